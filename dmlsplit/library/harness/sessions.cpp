// Asks ONNX Runtime with its DirectML execution provider what it does with models, on a device that is none.
//
//     sessions FOLDER [double-precision=0] [d3d-feature-level=0x1000] [computed=16]
//
// FOLDER holds onnxruntime.dll and DirectML.dll; `computed` is what the CPU reads, as integers, of what the device
// would have computed.
//
// A query is a few lines of words and ends with an empty one; what is not a number is percent-encoded.
//
//     model PATH                              the session is made of the file's bytes
//     file PATH                               the session is made of the file, and of those that it refers to
//     optimization LEVEL                      0, 1, 2, 99
//     config KEY VALUE                        an entry of the session's configuration
//     free NAME SIZE                          a symbolic dimension's size
//     cpu                                     the session has no DirectML execution provider
//     run                                     the session is to be run, with zeros, too
//     input NAME TYPE RANK SIZE ...           an input of the run, TYPE as in ONNX
//     integers NAME COUNT SIZE VALUE ...      an input of rank 1 and type 7, with its elements
//     output NAME
//
// The answer is one line of JSON: {"session", "ran", "error", "events", "placement"}, or {"crash"} behind which the
// process ends.
#include <windows.h>

#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "device.h"
#include "library.h"
#include "platform.h"
#include "program.h"
#include "recorder.h"
#include "runtime.h"

namespace harness {
namespace {

constexpr int verbose = 0;
constexpr int sequential = 0;
constexpr int elementBytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8};  // bytes of an element by ONNX's type

struct Input {
    std::string name;
    int type = 0;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> values;
};

struct Query {
    std::string model;
    bool fromFile = false;
    int optimization = 99;
    std::vector<std::pair<std::string, std::string>> config;
    std::vector<std::pair<std::string, std::int64_t>> free;
    bool run = false;
    bool directml = true;
    std::vector<Input> inputs;
    std::vector<std::string> outputs;
};

std::string decoded(const std::string& word) {
    std::string text;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] == '%' && i + 2 < word.size()) {
            text += static_cast<char>(std::stoi(word.substr(i + 1, 2), nullptr, 16));
            i += 2;
        } else {
            text += word[i];
        }
    }
    return text;
}

// A path in UTF-8 as Windows has it.
std::wstring wide(const std::string& path) {
    std::wstring text(path.size() + 1, L'\0');
    const int length = MultiByteToWideChar(CP_UTF8, 0, path.c_str(), -1, text.data(), static_cast<int>(text.size()));
    if (length == 0) throw MalformedLine("no UTF-8: " + path);
    text.resize(static_cast<std::size_t>(length) - 1);
    return text;
}

std::vector<std::int64_t> integers(std::istringstream& words) {
    std::size_t count = 0;
    words >> count;
    std::vector<std::int64_t> values(count);
    for (auto& value : values) words >> value;
    return values;
}

void readLine(Query& query, const std::string& line) {
    std::istringstream words(line);
    std::string key, first, second;
    words >> key;
    auto text = [&] {
        std::string word;
        words >> word;
        return decoded(word);
    };
    if (key == "model" || key == "file") {
        query.model = text();
        query.fromFile = key == "file";
    } else if (key == "optimization") {
        words >> query.optimization;
    } else if (key == "config") {
        first = text();
        query.config.emplace_back(first, text());
    } else if (key == "free") {
        first = text();
        std::int64_t size = 0;
        words >> size;
        query.free.emplace_back(first, size);
    } else if (key == "run") {
        query.run = true;
        return;
    } else if (key == "cpu") {
        query.directml = false;
        return;
    } else if (key == "input" || key == "integers") {
        Input input;
        input.name = text();
        if (key == "input") {
            words >> input.type;
            input.sizes = integers(words);
        } else {
            input.type = 7;
            input.values = integers(words);
            input.sizes = {static_cast<std::int64_t>(input.values.size())};
        }
        query.inputs.push_back(input);
    } else if (key == "output") {
        query.outputs.push_back(text());
    } else {
        throw MalformedLine("unknown line: " + line);
    }
    if (!words) throw MalformedLine("malformed line: " + line);
}

// The placement of nodes, which ONNX Runtime writes to its log.
std::vector<std::string> placement;

void onLog(void*, int, const char*, const char*, const char* location, const char* message) {
    trace("[onnxruntime] %s %s", location, message);
    const std::string place = location, text = message;
    if (place.find("VerifyEachNodeIsAssignedToAnEp") != std::string::npos || text.find("Node(s) placed") != std::string::npos) {
        placement.push_back(text);
    }
}

class Harness {
public:
    Harness(const std::string& folder, const Capabilities& capabilities)
        : directml_(folder + "\\DirectML.dll"), device_(createDevice(capabilities)), runtime_(folder + "\\onnxruntime.dll") {
        DmlDevice* device = nullptr;
        const HResult result = directml_.createDevice(device_, 0, 0x1000, &device);
        void* device1 = nullptr;
        if (result < 0 || device->QueryInterface(iidDmlDevice1, &device1) < 0) {
            throw std::runtime_error("DMLCreateDevice1 returned 0x" + answerOf(result));
        }
        recorder_ = recording(*static_cast<DmlDevice1*>(device1), events_);
        runtime_.check("CreateEnv", Api::createEnvWithCustomLogger, &onLog, static_cast<void*>(nullptr), verbose, "harness",
                       &environment_);
    }

    std::string answer(const Query& query) {
        events_.clear();
        placement.clear();
        std::string error, ran;
        void* session = nullptr;
        try {
            session = created(query);
            if (query.run) {
                events_.add("{\"call\":\"Run\"}");
                ran = "false";
                run(query, session);
                ran = "true";
            }
        } catch (const RuntimeError& refusal) {
            error = refusal.what();
        }
        std::string lines;
        for (const auto& line : placement) lines += (lines.empty() ? "" : ",") + jsonString(line);
        std::string text = std::string("{\"session\":") + (session != nullptr ? "true" : "false");
        if (!ran.empty()) text += ",\"ran\":" + ran;
        if (!error.empty()) text += ",\"error\":" + jsonString(error);
        if (session != nullptr) runtime_.call(Api::releaseSession, session);
        return text + ",\"placement\":[" + lines + "],\"events\":" + events_.json() + "}";
    }

private:
    void* created(const Query& query) {
        void* options = nullptr;
        runtime_.check("CreateSessionOptions", Api::createSessionOptions, &options);
        // As the DirectML execution provider needs it, and so that runs are the same each time.
        runtime_.call(Api::disableMemPattern, options);
        runtime_.call(Api::setSessionExecutionMode, options, sequential);
        runtime_.call(Api::setIntraOpNumThreads, options, 1);
        runtime_.call(Api::setInterOpNumThreads, options, 1);
        runtime_.call(Api::setSessionLogSeverityLevel, options, verbose);
        runtime_.call(Api::setSessionLogVerbosityLevel, options, 1);
        runtime_.call(Api::setSessionGraphOptimizationLevel, options, query.optimization);
        for (const auto& [key, value] : query.config) {
            runtime_.check("AddSessionConfigEntry", Api::addSessionConfigEntry, options, key.c_str(), value.c_str());
        }
        for (const auto& [name, size] : query.free) {
            runtime_.check("AddFreeDimensionOverrideByName", Api::addFreeDimensionOverrideByName, options, name.c_str(), size);
        }
        if (query.directml) runtime_.useDirectML(options, recorder_, createQueue(0));
        void* session = nullptr;
        if (query.fromFile) {
            runtime_.check("CreateSession", Api::createSession, environment_, wide(query.model).c_str(), options, &session);
            return session;
        }
        std::ifstream file(query.model, std::ios::binary);
        if (!file) throw MalformedLine("there is no " + query.model);
        const std::string bytes((std::istreambuf_iterator<char>(file)), {});
        runtime_.check("CreateSession", Api::createSessionFromArray, environment_, static_cast<const void*>(bytes.data()),
                       bytes.size(), options, &session);
        return session;
    }

    void run(const Query& query, void* session) {
        void* memory = nullptr;
        runtime_.check("CreateMemoryInfo", Api::createMemoryInfo, "Cpu", 1, 0, 0, &memory);
        std::deque<std::vector<char>> buffers;
        std::vector<void*> values;
        std::vector<const char*> names, outputs;
        for (const Input& input : query.inputs) {
            std::size_t bytes = static_cast<std::size_t>(elementBytes[input.type]);
            for (const std::int64_t size : input.sizes) bytes *= static_cast<std::size_t>(size);
            buffers.emplace_back(bytes + 64);
            std::memcpy(buffers.back().data(), input.values.data(), input.values.size() * sizeof(std::int64_t));
            void* value = nullptr;
            runtime_.check("CreateTensor", Api::createTensorWithDataAsOrtValue, memory,
                           static_cast<void*>(buffers.back().data()), bytes, input.sizes.data(), input.sizes.size(),
                           input.type, &value);
            values.push_back(value);
            names.push_back(input.name.c_str());
        }
        for (const auto& output : query.outputs) outputs.push_back(output.c_str());
        std::vector<void*> results(outputs.size());
        runtime_.check("Run", Api::run, session, static_cast<const void*>(nullptr), names.data(), values.data(),
                       values.size(), outputs.data(), outputs.size(), results.data());
    }

    Library directml_;
    Unknown* device_;
    Runtime runtime_;
    Events events_;
    DmlDevice1* recorder_ = nullptr;
    void* environment_ = nullptr;
};

LONG WINAPI onCrash(EXCEPTION_POINTERS* exception) {
    std::cout << "{\"crash\":\"" << answerOf(static_cast<HResult>(exception->ExceptionRecord->ExceptionCode)) << "\"}"
              << std::endl;
    endProcess(1);
}

Capabilities parseCapabilities(int count, char** words) {
    Capabilities device;
    readOptions(count, words, {
        {"double-precision", &device.doublePrecisionShaderOps},
        {"d3d-feature-level", &device.direct3dFeatureLevel},
        {"computed", &device.computed},
    });
    return device;
}

int serve(const std::string& folder, const Capabilities& capabilities) {
    Harness harness(folder, capabilities);
    Query query;
    std::string line;
    while (std::getline(std::cin, line)) {
        if (!line.empty()) {
            readLine(query, line);
            continue;
        }
        std::cout << harness.answer(query) << std::endl;
        query = {};
    }
    return 0;
}

}  // namespace

}  // namespace harness

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: sessions FOLDER [OPTION=NUMBER ...]\n";
        return 2;
    }
    SetUnhandledExceptionFilter(harness::onCrash);
    harness::runProgram([&] { return harness::serve(argv[1], harness::parseCapabilities(argc - 2, argv + 2)); });
}
