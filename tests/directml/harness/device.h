// A Direct3D 12 device without a GPU: answers what DirectML asks before it judges an operator descriptor.
#pragma once

#include "com.h"

namespace harness {

// What the device claims to be able to do. The defaults withhold nothing, so that a refusal is the descriptor's fault.
struct Capabilities {
    std::uint32_t doublePrecisionShaderOps = 1;
    std::uint32_t typedUavLoadAdditionalFormats = 1;
    std::uint32_t int64ShaderOps = 1;
    std::uint32_t native16BitShaderOps = 1;
    std::uint32_t direct3dFeatureLevel = 0xC100;  // D3D_FEATURE_LEVEL_12_1
    std::uint32_t shaderModel = 0x66;             // D3D_SHADER_MODEL_6_6
};

// An ID3D12Device that lives as long as the process; there is one.
Unknown* createDevice(const Capabilities& capabilities);

}  // namespace harness
