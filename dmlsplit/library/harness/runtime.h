// ONNX Runtime's C API, loaded at run time: the few functions of OrtApi that the harness calls, by their place in the
// table, which never changes (onnxruntime_c_api.h), and the one of OrtDmlApi.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "com.h"

namespace harness {

enum class Api : int {
    getErrorCode = 1,
    getErrorMessage = 2,
    createEnvWithCustomLogger = 4,
    createSession = 7,
    createSessionFromArray = 8,
    run = 9,
    createSessionOptions = 10,
    setSessionExecutionMode = 13,
    disableMemPattern = 17,
    setSessionLogVerbosityLevel = 21,
    setSessionLogSeverityLevel = 22,
    setSessionGraphOptimizationLevel = 23,
    setIntraOpNumThreads = 24,
    setInterOpNumThreads = 25,
    createTensorWithDataAsOrtValue = 49,
    createMemoryInfo = 68,
    releaseStatus = 93,
    releaseSession = 95,
    addFreeDimensionOverrideByName = 124,
    addSessionConfigEntry = 130,
    getExecutionProviderApi = 195,
};

// What ONNX Runtime answers instead of doing it.
struct RuntimeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Runtime {
public:
    // std::runtime_error where there is no library at `path`.
    explicit Runtime(const std::string& path);

    const std::string& version() const { return version_; }

    template <class... Arguments>
    void* call(Api function, Arguments... arguments) const {
        using Function = void* (*)(Arguments...);
        return reinterpret_cast<Function>(table_[static_cast<int>(function)])(arguments...);
    }
    // The same for functions that return a status; RuntimeError where it is not success.
    template <class... Arguments>
    void check(const char* what, Api function, Arguments... arguments) const {
        checked(what, call(function, arguments...));
    }
    // Makes the DirectML execution provider of these options use a device and a queue.
    void useDirectML(void* options, Unknown* device, Unknown* queue) const;

private:
    void checked(const char* what, void* status) const;

    void** table_ = nullptr;
    void** directml_ = nullptr;
    std::string version_;
};

}  // namespace harness
