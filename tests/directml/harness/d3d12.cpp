// Stands in for libd3d12.so of the Windows Subsystem for Linux, and for d3d12.dll of Windows. DirectML imports one
// function from it, which it calls where it compiles an operator; creating one does not get there.
#include "com.h"

#ifdef _WIN32
#define EXPORTED extern "C" __declspec(dllexport)
#else
#define EXPORTED extern "C"
#endif

EXPORTED harness::HResult D3D12SerializeVersionedRootSignature(const void*, harness::Unknown**, harness::Unknown**) {
    harness::trace("D3D12SerializeVersionedRootSignature: not implemented");
    return harness::notImplemented;
}
