// Asks Microsoft's DirectML library what it thinks of operator descriptors.
//
//     harness LIBRARY [OPTION=NUMBER ...]          the options stand in the table below
//
// One command a line on standard input; an empty line, or the end, asks for the answers: one line each, in order.
//
//     create OPERATOR        CreateOperator; the form of OPERATOR stands in wire.h
//
//     80070057               the HRESULT
//     crash 11               the library ended the process with that signal
//     timeout                it had not answered after ten seconds
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "guarded.h"
#include "library.h"
#include "wire.h"

namespace harness {
namespace {

constexpr unsigned timeoutSeconds = 10;

// What the workers have found out, in memory that the end of one leaves behind.
struct Progress {
    std::size_t* done;
    HResult* results;
};

class Harness {
public:
    explicit Harness(DmlDevice* device) : device_(device) {}

    // Runs the commands in worker processes: a descriptor that ends one costs its own answer, and the next worker goes
    // on behind it. Workers are copies of this process, in which the library is loaded and the device exists already.
    std::vector<std::string> run(const std::vector<std::string>& commands);

private:
    [[noreturn]] void work(const std::vector<std::string>& commands, const Progress& progress);
    HResult execute(const std::string& command);

    DmlDevice* device_;
    GuardedMemory memory_;
};

HResult Harness::execute(const std::string& command) {
    static const std::string create = "create ";
    if (command.compare(0, create.size(), create) != 0) throw MalformedLine("unknown command: " + command);
    const DML_OPERATOR_DESC* desc = readOperator(command.substr(create.size()), memory_);
    void* object = nullptr;
    const HResult result = device_->CreateOperator(desc, iidDmlOperator, &object);
    if (object != nullptr) static_cast<Unknown*>(object)->Release();
    memory_.release();
    return result;
}

void Harness::work(const std::vector<std::string>& commands, const Progress& progress) {
    int status = 0;
    try {
        while (*progress.done < commands.size()) {
            alarm(timeoutSeconds);
            progress.results[*progress.done] = execute(commands[*progress.done]);
            ++*progress.done;
        }
    } catch (const MalformedLine& error) {
        std::cerr << "command " << *progress.done + 1 << ": " << error.what() << std::endl;
        status = 2;
    }
    _exit(status);
}

std::vector<std::string> Harness::run(const std::vector<std::string>& commands) {
    const std::size_t bytes = sizeof(std::size_t) + commands.size() * sizeof(HResult);
    void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    const Progress progress = {static_cast<std::size_t*>(shared),
                               reinterpret_cast<HResult*>(static_cast<std::size_t*>(shared) + 1)};
    std::vector<std::string> answers;
    while (*progress.done < commands.size()) {
        const pid_t worker = fork();
        if (worker < 0) throw std::runtime_error("fork failed");
        if (worker == 0) work(commands, progress);
        int status = 0;
        waitpid(worker, &status, 0);
        for (std::size_t i = answers.size(); i < *progress.done; ++i) {
            char text[16];
            std::snprintf(text, sizeof text, "%08X", static_cast<unsigned>(progress.results[i]));
            answers.emplace_back(text);
        }
        if (WIFSIGNALED(status)) {
            const int signal = WTERMSIG(status);
            answers.push_back(signal == SIGALRM ? "timeout" : "crash " + std::to_string(signal));
            ++*progress.done;
        } else if (WEXITSTATUS(status) != 0) {
            throw std::runtime_error("stopped");
        }
    }
    munmap(shared, bytes);
    return answers;
}

// Of the device that the library finds, and of the one that is asked for.
struct Settings {
    Capabilities capabilities;
    std::uint32_t minimumFeatureLevel = 0;  // of DMLCreateDevice1
};

Settings parseSettings(const std::vector<std::string>& options) {
    Settings settings;
    Capabilities& device = settings.capabilities;
    const std::map<std::string, std::uint32_t*> members = {
        {"minimum-feature-level", &settings.minimumFeatureLevel},
        {"double-precision", &device.doublePrecisionShaderOps},
        {"typed-uav-load", &device.typedUavLoadAdditionalFormats},
        {"int64", &device.int64ShaderOps},
        {"native-16-bit", &device.native16BitShaderOps},
        {"d3d-feature-level", &device.direct3dFeatureLevel},
        {"shader-model", &device.shaderModel},
    };
    for (const std::string& option : options) {
        const std::size_t equals = option.find('=');
        const auto member = members.find(option.substr(0, equals));
        if (equals == std::string::npos || member == members.end()) {
            throw std::runtime_error("unknown option: " + option);
        }
        *member->second = static_cast<std::uint32_t>(std::stoul(option.substr(equals + 1), nullptr, 0));
    }
    return settings;
}

int serve(const std::string& library, const Settings& settings) {
    const rlimit noCoreFiles = {0, 0};
    setrlimit(RLIMIT_CORE, &noCoreFiles);
    Harness harness(createDmlDevice(library, createDevice(settings.capabilities), settings.minimumFeatureLevel));
    std::vector<std::string> commands;
    bool more = true;
    while (more) {
        std::string line;
        more = static_cast<bool>(std::getline(std::cin, line));
        if (more && !line.empty()) {
            commands.push_back(line);
            continue;
        }
        for (const std::string& answer : harness.run(commands)) std::cout << answer << '\n';
        std::cout.flush();
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
    int status = 2;
    try {
        status = harness::serve(argv[1], harness::parseSettings({argv + 2, argv + argc}));
    } catch (const std::exception& error) {
        std::cerr << "harness: " << error.what() << std::endl;
    }
    // Without the library's destructors: some builds wait there for a device that never existed.
    std::cout.flush();
    _exit(status);
}
