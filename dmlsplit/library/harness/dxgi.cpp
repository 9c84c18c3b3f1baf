// Stands in for dxgi.dll: a factory with one made-up adapter. DirectML asks for its identifiers while it creates a
// device, ONNX Runtime for its description. The virtual functions stand in the order of dxgi.h to dxgi1_6.h.
#include <cstddef>

#include "com.h"

namespace {

using namespace harness;

constexpr HResult notFound = hresult(0x887A0002);  // DXGI_ERROR_NOT_FOUND

struct Luid {
    std::uint32_t low;
    std::int32_t high;
};

struct AdapterDesc {  // DXGI_ADAPTER_DESC1; without `flags` DXGI_ADAPTER_DESC
    char16_t description[128];
    std::uint32_t vendor, device, subsystem, revision;
    std::size_t dedicatedVideoMemory, dedicatedSystemMemory, sharedSystemMemory;
    Luid luid;
    std::uint32_t flags;
};
constexpr std::uint32_t microsoft = 0x1414;

struct VideoMemoryInfo {  // DXGI_QUERY_VIDEO_MEMORY_INFO
    std::uint64_t budget, currentUsage, availableForReservation, currentReservation;
};
constexpr std::uint64_t memory = 8ULL << 30;

#define NOT_IMPLEMENTED(name)                     \
    virtual HResult name() {                      \
        trace("dxgi::%s: not implemented", #name); \
        return notImplemented;                    \
    }

// IDXGIObject
class Object : public Unknown {
public:
    HResult QueryInterface(const Guid& iid, void** object) override {
        trace("dxgi::QueryInterface %08x", iid.data1);
        *object = this;
        return ok;
    }
    std::uint32_t AddRef() override { return 2; }  // lives as long as the process
    std::uint32_t Release() override { return 1; }

    NOT_IMPLEMENTED(SetPrivateData)
    NOT_IMPLEMENTED(SetPrivateDataInterface)
    NOT_IMPLEMENTED(GetPrivateData)
    virtual HResult GetParent(const Guid& iid, void** parent) = 0;

protected:
    ~Object() = default;
};

// IDXGIAdapter3
class Adapter final : public Object {
public:
    HResult GetParent(const Guid&, void** parent) override;
    NOT_IMPLEMENTED(EnumOutputs)
    virtual HResult GetDesc(AdapterDesc* desc) {
        std::memset(desc, 0, offsetof(AdapterDesc, flags));
        desc->vendor = microsoft;
        desc->dedicatedVideoMemory = desc->sharedSystemMemory = memory;
        desc->luid = {0x1234, 0};
        return ok;
    }
    virtual HResult CheckInterfaceSupport(const Guid&, std::int64_t* driverVersion) {
        if (driverVersion != nullptr) *driverVersion = 0;
        return ok;
    }
    virtual HResult GetDesc1(AdapterDesc* desc) {
        desc->flags = 0;
        return GetDesc(desc);
    }
    NOT_IMPLEMENTED(GetDesc2)
    NOT_IMPLEMENTED(RegisterHardwareContentProtectionTeardownStatusEvent)
    NOT_IMPLEMENTED(UnregisterHardwareContentProtectionTeardownStatus)
    virtual HResult QueryVideoMemoryInfo(std::uint32_t, std::uint32_t, VideoMemoryInfo* info) {
        *info = {memory, 0, memory / 2, 0};
        return ok;
    }
};

Adapter theAdapter;

// IDXGIFactory6
class Factory final : public Object {
public:
    HResult GetParent(const Guid&, void** parent) override {
        *parent = nullptr;
        return notImplemented;
    }
    virtual HResult EnumAdapters(std::uint32_t index, void** adapter) { return give(index, adapter); }
    NOT_IMPLEMENTED(MakeWindowAssociation)
    NOT_IMPLEMENTED(GetWindowAssociation)
    NOT_IMPLEMENTED(CreateSwapChain)
    NOT_IMPLEMENTED(CreateSoftwareAdapter)
    // IDXGIFactory1
    virtual HResult EnumAdapters1(std::uint32_t index, void** adapter) { return give(index, adapter); }
    virtual std::uint32_t IsCurrent() { return 1; }
    // IDXGIFactory2
    NOT_IMPLEMENTED(IsWindowedStereoEnabled)
    NOT_IMPLEMENTED(CreateSwapChainForHwnd)
    NOT_IMPLEMENTED(CreateSwapChainForCoreWindow)
    NOT_IMPLEMENTED(GetSharedResourceAdapterLuid)
    NOT_IMPLEMENTED(RegisterStereoStatusWindow)
    NOT_IMPLEMENTED(RegisterStereoStatusEvent)
    NOT_IMPLEMENTED(UnregisterStereoStatus)
    NOT_IMPLEMENTED(RegisterOcclusionStatusWindow)
    NOT_IMPLEMENTED(RegisterOcclusionStatusEvent)
    NOT_IMPLEMENTED(UnregisterOcclusionStatus)
    NOT_IMPLEMENTED(CreateSwapChainForComposition)
    // IDXGIFactory3
    NOT_IMPLEMENTED(GetCreationFlags)
    // IDXGIFactory4
    virtual HResult EnumAdapterByLuid(Luid, const Guid&, void** adapter) { return give(0, adapter); }
    NOT_IMPLEMENTED(EnumWarpAdapter)
    // IDXGIFactory5
    NOT_IMPLEMENTED(CheckFeatureSupport)
    // IDXGIFactory6
    virtual HResult EnumAdapterByGpuPreference(std::uint32_t index, std::uint32_t, const Guid&, void** adapter) {
        return give(index, adapter);
    }

private:
    static HResult give(std::uint32_t index, void** adapter) {
        *adapter = index == 0 ? &theAdapter : nullptr;
        return index == 0 ? ok : notFound;
    }
};

Factory theFactory;

HResult Adapter::GetParent(const Guid&, void** parent) {
    *parent = &theFactory;
    return ok;
}

}  // namespace

#define EXPORTED extern "C" __declspec(dllexport)

EXPORTED harness::HResult CreateDXGIFactory(const harness::Guid&, void** object) {
    *object = &theFactory;
    return harness::ok;
}

EXPORTED harness::HResult CreateDXGIFactory1(const harness::Guid& iid, void** object) { return CreateDXGIFactory(iid, object); }

EXPORTED harness::HResult CreateDXGIFactory2(std::uint32_t, const harness::Guid& iid, void** object) {
    return CreateDXGIFactory(iid, object);
}

EXPORTED harness::HResult DXGIGetDebugInterface1(std::uint32_t, const harness::Guid&, void** object) {
    *object = nullptr;
    return harness::noInterface;
}
