#include "device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "messages.h"
#include "objects.h"
#include "platform.h"
#include "recording.h"

namespace harness {
namespace {

constexpr HResult notFound = hresult(0x887A0002);     // DXGI_ERROR_NOT_FOUND
constexpr HResult unsupported = hresult(0x887A0004);  // DXGI_ERROR_UNSUPPORTED
constexpr std::uint32_t heapTypeReadback = 3;         // D3D12_HEAP_TYPE_READBACK
constexpr std::uint64_t allocationAlignment = 65536;  // D3D12_DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT

Unknown* theDevice = nullptr;

// What objects of a device have in common, in the order of d3d12.h. They live as long as the process.
class Child : public Unknown {
public:
    HResult QueryInterface(const Guid&, void** object) override {
        *object = this;
        return ok;
    }
    std::uint32_t AddRef() override { return 2; }
    std::uint32_t Release() override { return 1; }
    virtual HResult GetPrivateData(const Guid&, std::uint32_t* size, void*) {
        if (size != nullptr) *size = 0;
        return notFound;
    }
    virtual HResult SetPrivateData(const Guid&, std::uint32_t, const void*) { return ok; }
    virtual HResult SetPrivateDataInterface(const Guid&, Unknown*) { return ok; }
    virtual HResult SetName(const wchar_t*) { return ok; }
    virtual HResult GetDevice(const Guid& iid, void** device) { return theDevice->QueryInterface(iid, device); }

protected:
    ~Child() = default;
};

// A virtual function that holds its place in the vtable and does nothing. Under both calling conventions of x86-64 a
// function may ignore the arguments it is called with.
#define NOTHING(name) \
    virtual HResult name() { return ok; }

// A virtual function that returns a struct, with its parameters behind the value. On Windows a member function does so
// through a pointer behind `this`; elsewhere as the compiler does it.
#ifdef _WIN32
#define RETURNS(Type, name, value, ...)                     \
    virtual Type* name(Type* result, ##__VA_ARGS__) {       \
        trace(#name);                                       \
        *result = value;                                    \
        return result;                                      \
    }
#else
#define RETURNS(Type, name, value, ...)  \
    virtual Type name(__VA_ARGS__) {     \
        trace(#name);                    \
        return value;                    \
    }
#endif

class Fence final : public Child {
public:
    virtual std::uint64_t GetCompletedValue() { return ~0ULL >> 1; }  // whatever is waited for has happened
    virtual HResult SetEventOnCompletion(std::uint64_t, void* event) {
        if (event != nullptr) setEvent(event);
        return ok;
    }
    virtual HResult Signal(std::uint64_t) { return ok; }
};

struct HeapDesc {  // D3D12_DESCRIPTOR_HEAP_DESC
    std::uint32_t type, count, flags, nodeMask;
};

struct Handle {  // D3D12_CPU_DESCRIPTOR_HANDLE, D3D12_GPU_DESCRIPTOR_HANDLE
    std::uint64_t place;
};

class DescriptorHeap final : public Child {
public:
    explicit DescriptorHeap(const HeapDesc& desc) : desc_(desc) {}

    RETURNS(HeapDesc, GetDesc, desc_)
    RETURNS(Handle, GetCPUDescriptorHandleForHeapStart, Handle{cpuDescriptors})
    RETURNS(Handle, GetGPUDescriptorHandleForHeapStart, Handle{gpuDescriptors})

private:
    HeapDesc desc_;
};

class PipelineState final : public Child {
public:
    virtual HResult GetCachedBlob(Unknown** blob) {
        *blob = createBlob(64);
        return ok;
    }
};

struct QueueDesc {  // D3D12_COMMAND_QUEUE_DESC
    std::uint32_t type, priority, flags, nodeMask;
};

class Queue final : public Child {
public:
    explicit Queue(std::uint32_t type) : type_(type) {}

    NOTHING(UpdateTileMappings)
    NOTHING(CopyTileMappings)
    NOTHING(ExecuteCommandLists)
    NOTHING(SetMarker)
    NOTHING(BeginEvent)
    NOTHING(EndEvent)
    NOTHING(Signal)
    NOTHING(Wait)
    virtual HResult GetTimestampFrequency(std::uint64_t* frequency) {
        *frequency = 1'000'000;
        return ok;
    }
    NOTHING(GetClockCalibration)
    RETURNS(QueueDesc, GetDesc, (QueueDesc{type_, 0, 0, 1}))

private:
    std::uint32_t type_;
};

struct ResourceDesc {  // D3D12_RESOURCE_DESC
    std::uint32_t dimension;
    std::uint64_t alignment, width;
    std::uint32_t height;
    std::uint16_t depthOrArraySize, mipLevels;
    std::uint32_t format, sampleCount, sampleQuality, layout, flags;
};

struct AllocationInfo {  // D3D12_RESOURCE_ALLOCATION_INFO
    std::uint64_t size, alignment;
};

AllocationInfo allocationOf(const ResourceDesc* desc) {
    const std::uint64_t width = desc == nullptr ? 1 : desc->width;
    return {(width + allocationAlignment - 1) / allocationAlignment * allocationAlignment, allocationAlignment};
}

struct HeapProperties {  // D3D12_HEAP_PROPERTIES
    std::uint32_t type, cpuPageProperty, memoryPool, creationNodeMask, visibleNodeMask;
};

struct FeatureLevels {  // D3D12_FEATURE_DATA_FEATURE_LEVELS
    std::uint32_t count;
    const std::uint32_t* requested;
    std::uint32_t maximum;
};

struct Luid {
    std::uint32_t low;
    std::int32_t high;
};

// The members of D3D12_FEATURE that DirectML or ONNX Runtime was seen to ask for.
enum Feature : std::uint32_t {
    featureOptions = 0,
    featureArchitecture = 1,
    featureFeatureLevels = 2,
    featureFormatSupport = 3,
    featureVirtualAddresses = 6,
    featureShaderModel = 7,
    featureOptions1 = 8,
    featureRootSignature = 12,
    featureArchitecture1 = 16,
    featureOptions4 = 23,
};
// Of these the device has nothing.
constexpr std::array<std::uint32_t, 6> emptyFeatures = {18, 19, 21, 27, 30, 37};

constexpr std::array<Guid, 9> deviceInterfaces = {{
    iidUnknown,
    {0xc4fec28f, 0x7966, 0x4e95, {0x9f, 0x94, 0xf4, 0x31, 0xcb, 0x56, 0xc3, 0xb8}},  // ID3D12Object
    {0x189819f1, 0x1db6, 0x4b57, {0xbe, 0x54, 0x18, 0x21, 0x33, 0x9b, 0x85, 0xf7}},  // ID3D12Device
    {0x77acce80, 0x638e, 0x4e65, {0x88, 0x95, 0xc1, 0xf2, 0x33, 0x86, 0x86, 0x3e}},  // ID3D12Device1
    {0x30baa41e, 0xb15b, 0x475c, {0xa0, 0xbb, 0x1a, 0xf5, 0xc5, 0xb6, 0x43, 0x28}},  // ID3D12Device2
    {0x81dadc15, 0x2bad, 0x4392, {0x93, 0xc5, 0x10, 0x13, 0x45, 0xc4, 0xaa, 0x98}},  // ID3D12Device3
    {0xe865df17, 0xa9ee, 0x46f9, {0xa4, 0x63, 0x30, 0x98, 0x31, 0x5a, 0xa2, 0xe5}},  // ID3D12Device4
    {0x8b4f173b, 0x2fea, 0x4b80, {0x8f, 0x58, 0x43, 0x07, 0x19, 0x1a, 0xb9, 0x5d}},  // ID3D12Device5
    {0xc70b221b, 0x40e4, 0x4a17, {0x89, 0xaf, 0x02, 0x5a, 0x07, 0x27, 0xa6, 0xdc}},  // ID3D12Device6
}};

constexpr Guid iidDebugDevice = {0x3febd6dd, 0x4973, 0x4787, {0x81, 0x94, 0xe4, 0x5f, 0x9e, 0x28, 0x92, 0x3e}};

// A virtual function that nothing was seen to call: a trace shows where that changes.
#define NOT_IMPLEMENTED(name)                             \
    virtual HResult name() {                              \
        trace("ID3D12Device::%s: not implemented", #name); \
        return notImplemented;                            \
    }

// The virtual functions stand in the order of d3d12.h, after those of ID3D12Object (Child's, but for GetDevice).
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
    std::uint32_t AddRef() override { return 2; }
    std::uint32_t Release() override { return 1; }
    virtual HResult GetPrivateData(const Guid&, std::uint32_t* size, void*) {
        if (size != nullptr) *size = 0;
        return notFound;
    }
    NOTHING(SetPrivateData)
    NOTHING(SetPrivateDataInterface)
    NOTHING(SetName)

    virtual std::uint32_t GetNodeCount() { return 1; }
    virtual HResult CreateCommandQueue(const QueueDesc* desc, const Guid&, void** queue) {
        return give(queue, createQueue(desc == nullptr ? 0 : desc->type));
    }
    virtual HResult CreateCommandAllocator(std::uint32_t, const Guid&, void** allocator) {
        return give(allocator, createObject(this));
    }
    NOT_IMPLEMENTED(CreateGraphicsPipelineState)
    virtual HResult CreateComputePipelineState(const void*, const Guid&, void** state) {
        trace("ID3D12Device::CreateComputePipelineState");
        return give(state, new PipelineState);
    }
    virtual HResult CreateCommandList(std::uint32_t, std::uint32_t, Unknown*, Unknown*, const Guid&, void** list) {
        return give(list, createCommandList(this));
    }
    virtual HResult CheckFeatureSupport(std::uint32_t feature, void* data, std::uint32_t size);
    virtual HResult CreateDescriptorHeap(const HeapDesc* desc, const Guid&, void** heap) {
        return give(heap, new DescriptorHeap(desc == nullptr ? HeapDesc{0, 1, 1, 0} : *desc));
    }
    virtual std::uint32_t GetDescriptorHandleIncrementSize(std::uint32_t) { return descriptorBytes; }
    virtual HResult CreateRootSignature(std::uint32_t, const void*, std::size_t, const Guid&, void** signature) {
        return give(signature, createObject(this));
    }
    NOTHING(CreateConstantBufferView)
    NOTHING(CreateShaderResourceView)
    virtual void CreateUnorderedAccessView(Unknown* buffer, Unknown*, const void* desc, std::uint64_t handle) {
        recordView(handle, buffer, desc);
    }
    NOTHING(CreateRenderTargetView)
    NOTHING(CreateDepthStencilView)
    NOTHING(CreateSampler)
    NOTHING(CopyDescriptors)
    NOTHING(CopyDescriptorsSimple)
    RETURNS(AllocationInfo, GetResourceAllocationInfo, allocationOf(desc), std::uint32_t, std::uint32_t,
            const ResourceDesc* desc)
    RETURNS(HeapProperties, GetCustomHeapProperties, (HeapProperties{4, 1, 2, 1, 1}), std::uint32_t, std::uint32_t)
    virtual HResult CreateCommittedResource(const HeapProperties* heap, std::uint32_t, const ResourceDesc* desc,
                                            std::uint32_t, const void*, const Guid&, void** resource) {
        const bool isRead = heap != nullptr && heap->type == heapTypeReadback && desc != nullptr;
        return isRead ? give(resource, createBuffer(this, desc->width, capabilities_.computed)) : giveBuffer(resource, desc);
    }
    virtual HResult CreateHeap(const void*, const Guid&, void** heap) { return give(heap, createObject(this)); }
    virtual HResult CreatePlacedResource(Unknown*, std::uint64_t, const ResourceDesc* desc, std::uint32_t, const void*,
                                         const Guid&, void** resource) {
        return giveBuffer(resource, desc);
    }
    virtual HResult CreateReservedResource(const ResourceDesc* desc, std::uint32_t, const void*, const Guid&,
                                           void** resource) {
        return giveBuffer(resource, desc);
    }
    NOT_IMPLEMENTED(CreateSharedHandle)
    NOT_IMPLEMENTED(OpenSharedHandle)
    NOT_IMPLEMENTED(OpenSharedHandleByName)
    NOTHING(MakeResident)
    NOTHING(Evict)
    virtual HResult CreateFence(std::uint64_t, std::uint32_t, const Guid&, void** fence) { return give(fence, new Fence); }
    NOTHING(GetDeviceRemovedReason)
    NOT_IMPLEMENTED(GetCopyableFootprints)
    virtual HResult CreateQueryHeap(const void*, const Guid&, void** heap) { return give(heap, createObject(this)); }
    NOT_IMPLEMENTED(SetStablePowerState)
    virtual HResult CreateCommandSignature(const void*, Unknown*, const Guid&, void** signature) {
        return give(signature, createObject(this));
    }
    NOT_IMPLEMENTED(GetResourceTiling)
    RETURNS(Luid, GetAdapterLuid, (Luid{0x1234, 0}))

    // ID3D12Device1
    virtual HResult CreatePipelineLibrary() { return unsupported; }
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
    NOTHING(RemoveDevice)
    virtual HResult EnumerateMetaCommands(std::uint32_t* count, void*) {
        *count = 0;
        return ok;
    }
    NOT_IMPLEMENTED(EnumerateMetaCommandParameters)
    virtual HResult CreateMetaCommand() { return unsupported; }
    NOT_IMPLEMENTED(CreateStateObject)
    NOT_IMPLEMENTED(GetRaytracingAccelerationStructurePrebuildInfo)
    NOT_IMPLEMENTED(CheckDriverMatchingIdentifier)
    // ID3D12Device6
    NOTHING(SetBackgroundProcessingMode)

private:
    static HResult give(void** place, Unknown* object) {
        if (place != nullptr) *place = object;
        return ok;
    }
    HResult giveBuffer(void** place, const ResourceDesc* desc) {
        return give(place, createBuffer(this, desc == nullptr ? 0 : desc->width));
    }

    Capabilities capabilities_;
};

#undef NOT_IMPLEMENTED
#undef NOTHING
#undef RETURNS

HResult Device::CheckFeatureSupport(std::uint32_t feature, void* data, std::uint32_t size) {
    trace("ID3D12Device::CheckFeatureSupport %u, %u bytes", feature, size);
    std::vector<std::uint32_t> members(size / sizeof(std::uint32_t));
    if (members.empty()) return invalidArgument;
    const std::uint32_t first = *static_cast<const std::uint32_t*>(data);  // what a caller fills in, where there is one
    auto answer = [&](std::initializer_list<std::uint32_t> known) {
        std::copy_n(known.begin(), std::min(known.size(), members.size()), members.begin());
        std::memset(data, 0, size);
        std::memcpy(data, members.data(), members.size() * sizeof(std::uint32_t));
        return ok;
    };
    switch (feature) {
    case featureOptions:  // doubles, logic operations, minimum precision, tiers, ..., 40 address bits, ..., heap tier
        return answer({capabilities_.doublePrecisionShaderOps, 1, 2, 3, 3, 1, capabilities_.typedUavLoadAdditionalFormats, 1, 3,
                       40, 0, 0, 0, 0, 2});
    case featureArchitecture:
    case featureArchitecture1:
        return answer({first});
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
    case featureFormatSupport:
        return answer({first, ~0u, ~0u});
    case featureVirtualAddresses:
        return answer({40, 48});
    case featureShaderModel:
        return answer({std::min(first, capabilities_.shaderModel)});
    case featureOptions1:  // wave operations of 32 lanes, integers of 64 bits
        return answer({1, 32, 32, 4096, 1, capabilities_.int64ShaderOps});
    case featureRootSignature:
        return answer({std::min(first, 2u)});
    case featureOptions4:  // native 16-bit operations
        return answer({0, 0, capabilities_.native16BitShaderOps});
    default:
        if (std::find(emptyFeatures.begin(), emptyFeatures.end(), feature) != emptyFeatures.end()) return answer({});
        return invalidArgument;
    }
}

}  // namespace

Unknown* createDevice(const Capabilities& capabilities) {
    static Device device(capabilities);
    theDevice = &device;
    return theDevice;
}

Unknown* createQueue(std::uint32_t type) { return new Queue(type); }

}  // namespace harness
