#include "runtime.h"

#include <algorithm>

#include "platform.h"

namespace harness {
namespace {

constexpr int newestApi = 17;  // the newest version of the table that is asked for: all functions used are older

struct ApiBase {
    void** (*getApi)(std::uint32_t version);
    const char* (*getVersionString)();
};

}  // namespace

Runtime::Runtime(const std::string& path) {
    using GetApiBase = const ApiBase* (*)();
    const ApiBase* base = reinterpret_cast<GetApiBase>(libraryFunction(path, "OrtGetApiBase"))();
    version_ = base->getVersionString();
    const int minor = std::stoi(version_.substr(version_.find('.') + 1));
    table_ = base->getApi(static_cast<std::uint32_t>(std::min(minor, newestApi)));
    if (table_ == nullptr) throw std::runtime_error("ONNX Runtime " + version_ + " has no API of that version");
    check("GetExecutionProviderApi", Api::getExecutionProviderApi, "DML", static_cast<std::uint32_t>(minor),
          const_cast<const void**>(reinterpret_cast<void**>(&directml_)));
}

void Runtime::useDirectML(void* options, Unknown* device, Unknown* queue) const {
    using Append = void* (*)(void*, Unknown*, Unknown*);
    checked("AppendExecutionProvider_DML1", reinterpret_cast<Append>(directml_[1])(options, device, queue));
}

void Runtime::checked(const char* what, void* status) const {
    if (status == nullptr) return;
    using Code = int (*)(const void*);
    using Message = const char* (*)(const void*);
    const int code = reinterpret_cast<Code>(table_[static_cast<int>(Api::getErrorCode)])(status);
    const char* message = reinterpret_cast<Message>(table_[static_cast<int>(Api::getErrorMessage)])(status);
    const std::string text = std::string(what) + ": [" + std::to_string(code) + "] " + message;
    call(Api::releaseStatus, status);
    throw RuntimeError(text);
}

}  // namespace harness
