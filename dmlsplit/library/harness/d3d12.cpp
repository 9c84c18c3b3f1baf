// Stands in for libd3d12.so of the Windows Subsystem for Linux, and for d3d12.dll of Windows, of which libraries import
// functions by their number (d3d12.def). Root signatures are serialized where operators are compiled; the others are
// there to be found.
#include "objects.h"

#ifdef _WIN32
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C"
#endif

EXPORTED harness::HResult D3D12SerializeVersionedRootSignature(const void*, harness::Unknown** blob,
                                                               harness::Unknown** error) {
    harness::trace("D3D12SerializeVersionedRootSignature");
    *blob = harness::createBlob(16);
    if (error != nullptr) *error = nullptr;
    return harness::ok;
}

#ifdef _WIN32
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
#endif
