#include "objects.h"

#include <utility>
#include <vector>

namespace harness {
namespace {

struct Object {
    const void* const* functions;
    Unknown* device;
    std::uint64_t bytes;
    std::vector<char> content;
};

// A place in a vtable that any function of the public headers may have. Under both calling conventions of x86-64 a
// function may ignore the arguments it is called with.
template <std::size_t place>
HResult doesNothing(void*) {
    trace("function %zu of an object", place);
    return ok;
}

HResult queryInterface(void* self, const Guid&, void** object) {
    *object = self;
    return ok;
}
std::uint32_t addRef(void*) { return 2; }  // lives as long as the process
std::uint32_t release(void*) { return 1; }
HResult getDevice(const Object* self, const Guid& iid, void** device) {
    return self->device->QueryInterface(iid, device);
}

template <std::size_t... places>
std::array<const void*, sizeof...(places)> functions(std::index_sequence<places...>) {
    return {reinterpret_cast<const void*>(&doesNothing<places>)...};
}

struct ResourceDesc {  // D3D12_RESOURCE_DESC
    std::uint32_t dimension;
    std::uint64_t alignment;
    std::uint64_t width;
    std::uint32_t height;
    std::uint16_t depthOrArraySize;
    std::uint16_t mipLevels;
    std::uint32_t format;
    std::uint32_t sampleCount;
    std::uint32_t sampleQuality;
    std::uint32_t layout;
    std::uint32_t flags;
};

ResourceDesc describe(const Object& buffer) {
    ResourceDesc desc{};
    desc.dimension = 1;  // D3D12_RESOURCE_DIMENSION_BUFFER
    desc.width = buffer.bytes;
    desc.height = desc.depthOrArraySize = desc.mipLevels = 1;
    desc.sampleCount = 1;
    desc.layout = 1;  // row major
    desc.flags = 4;   // D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
    return desc;
}

// Where a struct is returned through a pointer: behind `this` on Windows, before it elsewhere.
#ifdef _WIN32
ResourceDesc* getDesc(const Object* self, ResourceDesc* result) {
#else
ResourceDesc* getDesc(ResourceDesc* result, const Object* self) {
#endif
    *result = describe(*self);
    return result;
}

std::uint64_t getGpuVirtualAddress(const Object* self) { return 0x100000000 + (reinterpret_cast<std::uintptr_t>(self) << 8); }

HResult getHeapProperties(const Object*, std::uint32_t* properties, std::uint32_t* flags) {
    if (properties != nullptr) {
        const std::uint32_t defaultHeap[5] = {1, 0, 0, 1, 1};
        std::memcpy(properties, defaultHeap, sizeof defaultHeap);
    }
    if (flags != nullptr) *flags = 0;
    return ok;
}

HResult map(Object* self, std::uint32_t, const void*, void** data) {
    self->content.resize(self->bytes);
    if (data != nullptr) *data = self->content.data();
    return ok;
}

void* getBufferPointer(Object* self) { return self->content.data(); }
std::size_t getBufferSize(Object* self) { return self->content.size(); }

Functions bufferFunctions() {  // ID3D12Resource
    Functions all = anyFunctions();
    all[8] = reinterpret_cast<const void*>(&map);
    all[10] = reinterpret_cast<const void*>(&getDesc);
    all[11] = reinterpret_cast<const void*>(&getGpuVirtualAddress);
    all[14] = reinterpret_cast<const void*>(&getHeapProperties);
    return all;
}

Functions blobFunctions() {
    Functions all = anyFunctions();
    all[3] = reinterpret_cast<const void*>(&getBufferPointer);
    all[4] = reinterpret_cast<const void*>(&getBufferSize);
    return all;
}

// An Unknown by its layout: a pointer to the functions comes first.
Unknown* made(const Functions& functions, Unknown* device, std::uint64_t bytes) {
    return reinterpret_cast<Unknown*>(new Object{functions.data(), device, bytes, {}});
}

}  // namespace

Functions anyFunctions() {
    Functions all = functions(std::make_index_sequence<128>());
    all[0] = reinterpret_cast<const void*>(&queryInterface);
    all[1] = reinterpret_cast<const void*>(&addRef);
    all[2] = reinterpret_cast<const void*>(&release);
    all[7] = reinterpret_cast<const void*>(&getDevice);
    return all;
}

Unknown* createObject(Unknown* device) {
    static const Functions functions = anyFunctions();
    return createObject(device, functions);
}

Unknown* createObject(Unknown* device, const Functions& functions) { return made(functions, device, 0); }

Unknown* createBuffer(Unknown* device, std::uint64_t bytes) {
    static const Functions functions = bufferFunctions();
    return made(functions, device, bytes);
}

Unknown* createBlob(std::size_t bytes) {
    static const Functions functions = blobFunctions();
    Unknown* blob = made(functions, nullptr, bytes);
    reinterpret_cast<Object*>(blob)->content.resize(bytes);
    return blob;
}

}  // namespace harness
