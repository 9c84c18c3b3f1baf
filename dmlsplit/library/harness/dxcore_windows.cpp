// Stands in for dxcore.dll, which some versions of ONNX Runtime ask for adapters: there are none.
#include "com.h"

extern "C" __declspec(dllexport) harness::HResult DXCoreCreateAdapterFactory(const harness::Guid&, void** object) {
    *object = nullptr;
    return harness::notImplemented;
}
