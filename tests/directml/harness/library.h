// Microsoft's DirectML library, loaded at run time; the virtual functions stand in the order of DirectML.h.
#pragma once

#include <string>

#include "com.h"
#include "dmlsplit_directml.h"

namespace harness {

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
    virtual HResult CreateOperator(const DML_OPERATOR_DESC* desc, const Guid& iid, void** object) = 0;
};

constexpr Guid iidDmlDevice = {0x6dbd6437, 0x96fd, 0x423f, {0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f}};
constexpr Guid iidDmlOperator = {0x26caae7a, 0x3081, 0x4633, {0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d}};

// DMLCreateDevice1 of the library at `path`; std::runtime_error where it cannot be loaded or refuses.
DmlDevice* createDmlDevice(const std::string& path, Unknown* d3d12Device, std::uint32_t minimumFeatureLevel);

}  // namespace harness
