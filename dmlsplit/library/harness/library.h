// Microsoft's DirectML library, loaded at run time; the virtual functions stand in the order of DirectML.h.
#pragma once

#include <string>

#include "com.h"
#include "graph.h"
#include "wire.h"

namespace harness {

struct BindingProperties {  // DML_BINDING_PROPERTIES
    std::uint32_t requiredDescriptorCount;
    std::uint64_t temporaryResourceSize;
    std::uint64_t persistentResourceSize;
};

struct BindingTableDesc {  // DML_BINDING_TABLE_DESC
    Unknown* dispatchable;
    std::uint64_t cpuDescriptorHandle;
    std::uint64_t gpuDescriptorHandle;
    std::uint32_t sizeInDescriptors;
};

struct BindingDesc {  // DML_BINDING_DESC
    std::uint32_t type;
    const void* desc;
};

struct BufferBinding {  // DML_BUFFER_BINDING
    Unknown* buffer;
    std::uint64_t offset;
    std::uint64_t sizeInBytes;
};

struct BufferArrayBinding {  // DML_BUFFER_ARRAY_BINDING
    std::uint32_t bindingCount;
    const BufferBinding* bindings;
};

struct FeatureLevelsQuery {  // DML_FEATURE_QUERY_FEATURE_LEVELS
    std::uint32_t requestedFeatureLevelCount;
    const std::uint32_t* requestedFeatureLevels;
};

class DmlObject : public Unknown {
public:
    virtual HResult GetPrivateData(const Guid& guid, std::uint32_t* size, void* data) = 0;
    virtual HResult SetPrivateData(const Guid& guid, std::uint32_t size, const void* data) = 0;
    virtual HResult SetPrivateDataInterface(const Guid& guid, Unknown* data) = 0;
    virtual HResult SetName(const void* name) = 0;
};

class DmlDevice : public DmlObject {
public:
    virtual HResult CheckFeatureSupport(std::uint32_t feature, std::uint32_t querySize, const void* query,
                                        std::uint32_t size, void* data) = 0;
    virtual HResult CreateOperator(const OperatorDesc* desc, const Guid& iid, void** object) = 0;
    virtual HResult CompileOperator(Unknown* op, std::uint32_t flags, const Guid& iid, void** object) = 0;
    virtual HResult CreateOperatorInitializer(std::uint32_t count, Unknown* const* operators, const Guid& iid,
                                              void** object) = 0;
    virtual HResult CreateCommandRecorder(const Guid& iid, void** object) = 0;
    virtual HResult CreateBindingTable(const BindingTableDesc* desc, const Guid& iid, void** object) = 0;
    virtual HResult Evict(std::uint32_t count, Unknown* const* objects) = 0;
    virtual HResult MakeResident(std::uint32_t count, Unknown* const* objects) = 0;
    virtual HResult GetDeviceRemovedReason() = 0;
    virtual HResult GetParentDevice(const Guid& iid, void** device) = 0;
};

class DmlDevice1 : public DmlDevice {
public:
    virtual HResult CompileGraph(const GraphDesc* desc, std::uint32_t flags, const Guid& iid, void** object) = 0;
};

class DmlDeviceChild : public DmlObject {
public:
    virtual HResult GetDevice(const Guid& iid, void** device) = 0;
};

class DmlDispatchable : public DmlDeviceChild {
public:
    // A struct that is returned through a pointer: see GetAdapterLuid in device.cpp.
#ifdef _WIN32
    virtual BindingProperties* GetBindingProperties(BindingProperties* result) = 0;
    BindingProperties bindingProperties() {
        BindingProperties result;
        return *GetBindingProperties(&result);
    }
#else
    virtual BindingProperties GetBindingProperties() = 0;
    BindingProperties bindingProperties() { return GetBindingProperties(); }
#endif
};

class DmlBindingTable : public DmlDeviceChild {
public:
    virtual void BindInputs(std::uint32_t count, const BindingDesc* bindings) = 0;
    virtual void BindOutputs(std::uint32_t count, const BindingDesc* bindings) = 0;
    virtual void BindTemporaryResource(const BindingDesc* binding) = 0;
    virtual void BindPersistentResource(const BindingDesc* binding) = 0;
    virtual HResult Reset(const BindingTableDesc* desc) = 0;
};

class DmlCommandRecorder : public DmlDeviceChild {
public:
    virtual void RecordDispatch(Unknown* commandList, Unknown* dispatchable, Unknown* table) = 0;
};

constexpr Guid iidDmlDevice = {0x6dbd6437, 0x96fd, 0x423f, {0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f}};
constexpr Guid iidDmlDevice1 = {0xa0884f9a, 0xd2be, 0x4355, {0xaa, 0x5d, 0x59, 0x01, 0x28, 0x1a, 0xd1, 0xd2}};
constexpr Guid iidDmlOperator = {0x26caae7a, 0x3081, 0x4633, {0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d}};
constexpr Guid iidDmlCompiledOperator = {0x6b15e56a, 0xbf5c, 0x4902, {0x92, 0xd8, 0xda, 0x3a, 0x65, 0x0a, 0xfe, 0xa4}};
constexpr Guid iidDmlOperatorInitializer = {
    0x427c1113, 0x435c, 0x469c, {0x86, 0x76, 0x4d, 0x5d, 0xd0, 0x72, 0xf8, 0x13}};
constexpr Guid iidDmlBindingTable = {0x29c687dc, 0xde74, 0x4e3b, {0xab, 0x00, 0x11, 0x68, 0xf2, 0xfc, 0x3c, 0xfc}};
constexpr Guid iidDmlCommandRecorder = {0xe6857a76, 0x2e3e, 0x4fdd, {0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4, 0x53}};

// DMLCreateDevice1 of a library.
class Library {
public:
    // std::runtime_error where there is none at `path`.
    explicit Library(const std::string& path);

    // `flags`: DML_CREATE_DEVICE_FLAGS.
    HResult createDevice(Unknown* d3d12Device, std::uint32_t flags, std::uint32_t minimumFeatureLevel,
                         DmlDevice** device) const;

private:
    using CreateDevice1 = HResult (*)(Unknown*, std::uint32_t, std::uint32_t, const Guid&, void**);
    CreateDevice1 create_;
};

}  // namespace harness
