// A Direct3D 12 device without a GPU, over which DirectML judges operators and ONNX Runtime makes sessions and runs
// them: all objects exist, no memory is read by anything but the CPU, and whatever is executed is done at once.
#pragma once

#include "com.h"

namespace harness {

// What the device claims to be able to do. The defaults withhold nothing, so that a refusal is the descriptor's fault.
struct Capabilities {
    std::uint32_t doublePrecisionShaderOps = 1;
    std::uint32_t typedUavLoadAdditionalFormats = 1;
    std::uint32_t int64ShaderOps = 1;
    std::uint32_t native16BitShaderOps = 1;
    std::uint32_t direct3dFeatureLevel = 0xC100;  // D3D_FEATURE_LEVEL_12_1; 0x1000 is a compute-only device
    std::uint32_t shaderModel = 0x66;             // D3D_SHADER_MODEL_6_6
    std::uint32_t debugLayer = 0;                 // whether it has a queue of messages
    std::uint32_t computed = 0;                   // what is read of all that is computed, as integers of 64 bits
};

// An ID3D12Device that lives as long as the process; there is one.
Unknown* createDevice(const Capabilities& capabilities);

// An ID3D12CommandQueue of a type (0: direct, 2: compute).
Unknown* createQueue(std::uint32_t type);

}  // namespace harness
