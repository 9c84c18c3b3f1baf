// Stands in for d3d12.dll, of which DirectML and ONNX Runtime import functions by their number (d3d12.def). Root
// signatures are serialized where operators are compiled; the others are there to be found.
#include "objects.h"

#define EXPORTED extern "C" __declspec(dllexport)

EXPORTED harness::HResult D3D12SerializeVersionedRootSignature(const void*, harness::Unknown** blob,
                                                               harness::Unknown** error) {
    *blob = harness::createBlob(16);
    if (error != nullptr) *error = nullptr;
    return harness::ok;
}

EXPORTED harness::HResult D3D12SerializeRootSignature(const void* desc, std::uint32_t, harness::Unknown** blob,
                                                      harness::Unknown** error) {
    return D3D12SerializeVersionedRootSignature(desc, blob, error);
}

EXPORTED harness::HResult D3D12GetDebugInterface(const harness::Guid&, void** object) {
    *object = nullptr;
    return harness::noInterface;
}

EXPORTED harness::HResult D3D12CreateDevice(void*, std::uint32_t, const harness::Guid&, void** object) {
    *object = nullptr;
    return harness::notImplemented;
}
