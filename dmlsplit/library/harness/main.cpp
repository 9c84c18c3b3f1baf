// Asks Microsoft's DirectML library what it thinks of operator descriptors.
//
//     harness LIBRARY [OPTION=NUMBER ...]          the options stand in the table below
//
// One command a line on standard input; an empty line, or the end, asks for the answers: one line each, in order.
//
//     create OPERATOR        CreateOperator; the form of OPERATOR stands in wire.h
//     explain OPERATOR       the same; behind " | " what the debug layer says (option debug-layer=1)
//     session STEPS          a program on a device of its own; the form of STEPS stands in session.h
//     messages STEPS         the same; behind " | " what the debug layer says
//
//     80070057               the HRESULT; of a session one word for each step
//     crash 11               the library ended the process with that signal (Windows: exception)
//     timeout                it had not answered after twenty seconds
//
// On Windows the process ends behind "crash" and "timeout" (platform.h).
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "guarded.h"
#include "library.h"
#include "messages.h"
#include "platform.h"
#include "program.h"
#include "session.h"
#include "wire.h"

namespace harness {
namespace {

// Of the device that the library finds, and of the one that is asked for.
struct Settings {
    Capabilities capabilities;
    std::uint32_t minimumFeatureLevel = 0;  // of DMLCreateDevice1
};

class Harness {
public:
    Harness(const std::string& library, const Settings& settings)
        : library_(library),
          d3d12Device_(createDevice(settings.capabilities)),
          flags_(settings.capabilities.debugLayer),  // DML_CREATE_DEVICE_FLAG_DEBUG is 1
          minimumFeatureLevel_(settings.minimumFeatureLevel),
          device_(newDevice()) {}

    std::string execute(const std::string& command);

private:
    // The first one is kept; a session, which may have it removed, gets another.
    DmlDevice* newDevice() const;

    Library library_;
    Unknown* d3d12Device_;
    std::uint32_t flags_;
    std::uint32_t minimumFeatureLevel_;
    DmlDevice* device_;
    GuardedMemory memory_;
};

DmlDevice* Harness::newDevice() const {
    DmlDevice* device = nullptr;
    const HResult result = library_.createDevice(d3d12Device_, flags_, minimumFeatureLevel_, &device);
    if (result < 0) throw std::runtime_error("DMLCreateDevice1 returned 0x" + answerOf(result));
    return device;
}

std::string Harness::execute(const std::string& command) {
    Words words(command.c_str());
    const std::string name = words.word();
    std::string answer;
    if (name == "create" || name == "explain") {
        const OperatorDesc* desc = readOperator(words, memory_);
        words.end();
        takeMessages();
        void* object = nullptr;
        answer = answerOf(device_->CreateOperator(desc, iidDmlOperator, &object));
        if (object != nullptr) static_cast<Unknown*>(object)->Release();
        if (name == "explain") answer += " | " + takeMessages();
    } else if (name == "session") {
        answer = executeSession(words, *newDevice(), d3d12Device_, memory_);
    } else if (name == "messages") {
        takeMessages();
        answer = executeSession(words, *newDevice(), d3d12Device_, memory_);
        answer += " | " + takeMessages();
    } else {
        throw MalformedLine("unknown command: " + command);
    }
    memory_.release();
    return answer;
}

Settings parseSettings(int count, char** words) {
    Settings settings;
    Capabilities& device = settings.capabilities;
    readOptions(count, words, {
        {"minimum-feature-level", &settings.minimumFeatureLevel},
        {"double-precision", &device.doublePrecisionShaderOps},
        {"typed-uav-load", &device.typedUavLoadAdditionalFormats},
        {"int64", &device.int64ShaderOps},
        {"native-16-bit", &device.native16BitShaderOps},
        {"d3d-feature-level", &device.direct3dFeatureLevel},
        {"shader-model", &device.shaderModel},
        {"debug-layer", &device.debugLayer},
    });
    return settings;
}

int serve(const std::string& library, const Settings& settings) {
    Harness harness(library, settings);
    std::vector<std::string> commands;
    bool more = true;
    while (more) {
        std::string line;
        more = static_cast<bool>(std::getline(std::cin, line));
        if (more && !line.empty()) {
            commands.push_back(line);
            continue;
        }
        answer(commands, [&](const std::string& command) { return harness.execute(command); });
        commands.clear();
    }
    return 0;
}

}  // namespace

}  // namespace harness

int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: harness LIBRARY [OPTION=NUMBER ...]\n";
        return 2;
    }
    harness::runProgram([&] { return harness::serve(argv[1], harness::parseSettings(argc - 2, argv + 2)); });
}
