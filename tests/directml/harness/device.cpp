#include "device.h"

#include <algorithm>
#include <array>

#include "messages.h"
#include "objects.h"
#include "recording.h"

namespace harness {
namespace {

// The members of D3D12_FEATURE that a build of DirectML was seen to ask for, and their structs (d3d12.h).
enum Feature : std::uint32_t {
    featureOptions = 0,
    featureFeatureLevels = 2,
    featureShaderModel = 7,
    featureOptions1 = 8,
    featureOptions4 = 23,
};

struct Options {
    std::uint32_t doublePrecisionShaderOps;
    std::uint32_t outputMergerLogicOp;
    std::uint32_t minPrecisionSupport;
    std::uint32_t tiledResourcesTier;
    std::uint32_t resourceBindingTier;
    std::uint32_t specifiedStencilRef;
    std::uint32_t typedUavLoadAdditionalFormats;
    std::uint32_t rasterizerOrderedViews;
    std::uint32_t conservativeRasterizationTier;
    std::uint32_t maxVirtualAddressBitsPerResource;
    std::uint32_t standardSwizzle64Kb;
    std::uint32_t crossNodeSharingTier;
    std::uint32_t crossAdapterRowMajorTexture;
    std::uint32_t viewportArrayIndexWithoutGeometryShader;
    std::uint32_t resourceHeapTier;
};

struct FeatureLevels {
    std::uint32_t count;
    const std::uint32_t* requested;
    std::uint32_t maximum;
};

struct Options1 {
    std::uint32_t waveOps;
    std::uint32_t waveLaneCountMin;
    std::uint32_t waveLaneCountMax;
    std::uint32_t totalLaneCount;
    std::uint32_t expandedComputeResourceStates;
    std::uint32_t int64ShaderOps;
};

struct Options4 {
    std::uint32_t msaa64KbAlignedTexture;
    std::uint32_t sharedResourceCompatibilityTier;
    std::uint32_t native16BitShaderOps;
};

struct Luid {
    std::uint32_t low;
    std::int32_t high;
};
constexpr Luid adapterLuid = {0x1234, 0};

// The interfaces ID3D12Object to ID3D12Device5 and their identifiers, from d3d12.h.
constexpr std::array<Guid, 8> deviceInterfaces = {{
    iidUnknown,
    {0xc4fec28f, 0x7966, 0x4e95, {0x9f, 0x94, 0xf4, 0x31, 0xcb, 0x56, 0xc3, 0xb8}},  // ID3D12Object
    {0x189819f1, 0x1db6, 0x4b57, {0xbe, 0x54, 0x18, 0x21, 0x33, 0x9b, 0x85, 0xf7}},  // ID3D12Device
    {0x77acce80, 0x638e, 0x4e65, {0x88, 0x95, 0xc1, 0xf2, 0x33, 0x86, 0x86, 0x3e}},  // ID3D12Device1
    {0x30baa41e, 0xb15b, 0x475c, {0xa0, 0xbb, 0x1a, 0xf5, 0xc5, 0xb6, 0x43, 0x28}},  // ID3D12Device2
    {0x81dadc15, 0x2bad, 0x4392, {0x93, 0xc5, 0x10, 0x13, 0x45, 0xc4, 0xaa, 0x98}},  // ID3D12Device3
    {0xe865df17, 0xa9ee, 0x46f9, {0xa4, 0x63, 0x30, 0x98, 0x31, 0x5a, 0xa2, 0xe5}},  // ID3D12Device4
    {0x8b4f173b, 0x2fea, 0x4b80, {0x8f, 0x58, 0x43, 0x07, 0x19, 0x1a, 0xb9, 0x5d}},  // ID3D12Device5
}};

constexpr Guid iidDebugDevice = {0x3febd6dd, 0x4973, 0x4787, {0x81, 0x94, 0xe4, 0x5f, 0x9e, 0x28, 0x92, 0x3e}};

// A virtual function that no build was seen to call: it holds its place in the vtable, and a trace
// shows where that changes. Under both calling conventions of x86-64 a function may ignore the arguments it is
// called with.
#define NOT_IMPLEMENTED(name)                             \
    virtual HResult name() {                              \
        trace("ID3D12Device::%s: not implemented", #name); \
        return notImplemented;                            \
    }

// The virtual functions stand in the order of d3d12.h.
class Device final : public Unknown {
public:
    explicit Device(const Capabilities& capabilities) : capabilities_(capabilities) {}

    HResult QueryInterface(const Guid& iid, void** object) override {
        if (iid == iidInfoQueue && capabilities_.debugLayer != 0) {
            *object = messageQueue();
            return ok;
        }
        if (iid == iidDebugDevice && capabilities_.debugLayer != 0) {
            *object = this;  // asked for and not called
            return ok;
        }
        const bool known = std::find(deviceInterfaces.begin(), deviceInterfaces.end(), iid) != deviceInterfaces.end();
        trace("ID3D12Device::QueryInterface %08x: %s", iid.data1, known ? "yes" : "no");
        *object = known ? this : nullptr;
        return known ? ok : noInterface;
    }
    std::uint32_t AddRef() override { return 2; }  // lives as long as the process
    std::uint32_t Release() override { return 1; }

    // ID3D12Object
    NOT_IMPLEMENTED(GetPrivateData)
    NOT_IMPLEMENTED(SetPrivateData)
    NOT_IMPLEMENTED(SetPrivateDataInterface)
    NOT_IMPLEMENTED(SetName)

    // ID3D12Device
    NOT_IMPLEMENTED(GetNodeCount)
    NOT_IMPLEMENTED(CreateCommandQueue)
    NOT_IMPLEMENTED(CreateCommandAllocator)
    NOT_IMPLEMENTED(CreateGraphicsPipelineState)
    virtual HResult CreateComputePipelineState(const void* desc, const Guid&, void** object) {
        trace("ID3D12Device::CreateComputePipelineState");
        *object = createPipeline(this, desc);
        return ok;
    }
    NOT_IMPLEMENTED(CreateCommandList)
    virtual HResult CheckFeatureSupport(std::uint32_t feature, void* data, std::uint32_t size);
    NOT_IMPLEMENTED(CreateDescriptorHeap)
    virtual std::uint32_t GetDescriptorHandleIncrementSize(std::uint32_t) { return 32; }
    virtual HResult CreateRootSignature(std::uint32_t, const void*, std::size_t, const Guid&, void** object) {
        trace("ID3D12Device::CreateRootSignature");
        *object = createObject(this);
        return ok;
    }
    NOT_IMPLEMENTED(CreateConstantBufferView)
    NOT_IMPLEMENTED(CreateShaderResourceView)
    virtual void CreateUnorderedAccessView(Unknown* buffer, Unknown*, const void* desc, std::uint64_t handle) {
        trace("ID3D12Device::CreateUnorderedAccessView");
        recordView(handle, buffer, desc);
    }
    NOT_IMPLEMENTED(CreateRenderTargetView)
    NOT_IMPLEMENTED(CreateDepthStencilView)
    NOT_IMPLEMENTED(CreateSampler)
    NOT_IMPLEMENTED(CopyDescriptors)
    NOT_IMPLEMENTED(CopyDescriptorsSimple)
    NOT_IMPLEMENTED(GetResourceAllocationInfo)
    NOT_IMPLEMENTED(GetCustomHeapProperties)
    NOT_IMPLEMENTED(CreateCommittedResource)
    NOT_IMPLEMENTED(CreateHeap)
    NOT_IMPLEMENTED(CreatePlacedResource)
    NOT_IMPLEMENTED(CreateReservedResource)
    NOT_IMPLEMENTED(CreateSharedHandle)
    NOT_IMPLEMENTED(OpenSharedHandle)
    NOT_IMPLEMENTED(OpenSharedHandleByName)
    virtual HResult MakeResident(std::uint32_t, Unknown* const*) {
        trace("ID3D12Device::MakeResident");
        return ok;
    }
    NOT_IMPLEMENTED(Evict)
    NOT_IMPLEMENTED(CreateFence)
    virtual HResult GetDeviceRemovedReason() {
        trace("ID3D12Device::GetDeviceRemovedReason");
        return ok;
    }
    NOT_IMPLEMENTED(GetCopyableFootprints)
    NOT_IMPLEMENTED(CreateQueryHeap)
    NOT_IMPLEMENTED(SetStablePowerState)
    NOT_IMPLEMENTED(CreateCommandSignature)
    NOT_IMPLEMENTED(GetResourceTiling)
    // On Windows a member function returns a struct through a pointer that stands behind `this`; GCC does so only from
    // nine bytes on.
#ifdef _WIN32
    virtual Luid* GetAdapterLuid(Luid* result) {
        trace("ID3D12Device::GetAdapterLuid");
        *result = adapterLuid;
        return result;
    }
#else
    virtual Luid GetAdapterLuid() {
        trace("ID3D12Device::GetAdapterLuid");
        return adapterLuid;
    }
#endif

    // ID3D12Device1
    NOT_IMPLEMENTED(CreatePipelineLibrary)
    NOT_IMPLEMENTED(SetEventOnMultipleFenceCompletion)
    NOT_IMPLEMENTED(SetResidencyPriority)
    // ID3D12Device2
    NOT_IMPLEMENTED(CreatePipelineState)
    // ID3D12Device3
    NOT_IMPLEMENTED(OpenExistingHeapFromAddress)
    NOT_IMPLEMENTED(OpenExistingHeapFromFileMapping)
    NOT_IMPLEMENTED(EnqueueMakeResident)
    // ID3D12Device4
    NOT_IMPLEMENTED(CreateCommandList1)
    NOT_IMPLEMENTED(CreateProtectedResourceSession)
    NOT_IMPLEMENTED(CreateCommittedResource1)
    NOT_IMPLEMENTED(CreateHeap1)
    NOT_IMPLEMENTED(CreateReservedResource1)
    NOT_IMPLEMENTED(GetResourceAllocationInfo1)
    // ID3D12Device5
    NOT_IMPLEMENTED(CreateLifetimeTracker)
    NOT_IMPLEMENTED(RemoveDevice)
    virtual HResult EnumerateMetaCommands(std::uint32_t* count, void*) {
        trace("ID3D12Device::EnumerateMetaCommands");
        *count = 0;
        return ok;
    }
    NOT_IMPLEMENTED(EnumerateMetaCommandParameters)
    NOT_IMPLEMENTED(CreateMetaCommand)
    NOT_IMPLEMENTED(CreateStateObject)
    NOT_IMPLEMENTED(GetRaytracingAccelerationStructurePrebuildInfo)
    NOT_IMPLEMENTED(CheckDriverMatchingIdentifier)

private:
    Capabilities capabilities_;
};

#undef NOT_IMPLEMENTED

HResult Device::CheckFeatureSupport(std::uint32_t feature, void* data, std::uint32_t size) {
    trace("ID3D12Device::CheckFeatureSupport %u, %u bytes", feature, size);
    std::uint32_t first = 0;  // the member that a caller fills in, where there is one
    if (size >= sizeof first) std::memcpy(&first, data, sizeof first);
    auto answer = [&](const auto& value) {
        if (size < sizeof value) return invalidArgument;
        std::memset(data, 0, size);
        std::memcpy(data, &value, sizeof value);
        return ok;
    };
    switch (feature) {
    case featureOptions: {
        Options options{};
        options.doublePrecisionShaderOps = capabilities_.doublePrecisionShaderOps;
        options.minPrecisionSupport = 2;  // 16 bits
        options.tiledResourcesTier = 3;
        options.resourceBindingTier = 3;
        options.typedUavLoadAdditionalFormats = capabilities_.typedUavLoadAdditionalFormats;
        options.maxVirtualAddressBitsPerResource = 40;
        options.resourceHeapTier = 2;
        return answer(options);
    }
    case featureFeatureLevels: {
        if (size < sizeof(FeatureLevels)) return invalidArgument;
        auto& levels = *static_cast<FeatureLevels*>(data);
        levels.maximum = 0;
        for (std::uint32_t i = 0; i < levels.count; ++i) {
            const std::uint32_t level = levels.requested[i];
            if (level <= capabilities_.direct3dFeatureLevel) levels.maximum = std::max(levels.maximum, level);
        }
        return ok;
    }
    case featureShaderModel:
        return answer(std::min(first, capabilities_.shaderModel));
    case featureOptions1:
        return answer(Options1{1, 32, 32, 4096, 1, capabilities_.int64ShaderOps});
    case featureOptions4:
        return answer(Options4{0, 0, capabilities_.native16BitShaderOps});
    default:
        return invalidArgument;
    }
}

}  // namespace

Unknown* createDevice(const Capabilities& capabilities) {
    static Device device(capabilities);
    return &device;
}

}  // namespace harness
