#include "library.h"

#include <cstdio>
#include <stdexcept>

#include "platform.h"

namespace harness {

DmlDevice* createDmlDevice(const std::string& path, Unknown* d3d12Device, std::uint32_t minimumFeatureLevel) {
    using CreateDevice1 = HResult (*)(Unknown*, std::uint32_t, std::uint32_t, const Guid&, void**);
    const auto create = reinterpret_cast<CreateDevice1>(libraryFunction(path, "DMLCreateDevice1"));
    void* device = nullptr;
    const HResult result = create(d3d12Device, 0, minimumFeatureLevel, iidDmlDevice, &device);
    if (result < 0) {
        char text[64];
        std::snprintf(text, sizeof text, "DMLCreateDevice1 returned 0x%08X", static_cast<unsigned>(result));
        throw std::runtime_error(text);
    }
    return static_cast<DmlDevice*>(device);
}

}  // namespace harness
