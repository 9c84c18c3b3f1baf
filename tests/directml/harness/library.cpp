#include "library.h"

#include "platform.h"

namespace harness {

Library::Library(const std::string& path)
    : create_(reinterpret_cast<CreateDevice1>(libraryFunction(path, "DMLCreateDevice1"))) {}

HResult Library::createDevice(Unknown* d3d12Device, std::uint32_t minimumFeatureLevel, DmlDevice** device) const {
    void* made = nullptr;
    const HResult result = create_(d3d12Device, 0, minimumFeatureLevel, iidDmlDevice, &made);
    *device = static_cast<DmlDevice*>(made);
    return result;
}

}  // namespace harness
