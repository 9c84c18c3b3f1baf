// What a command list is told, so that a test can say which shader of a dispatch is bound to which bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "com.h"

namespace harness {

// An ID3D12GraphicsCommandList that writes down what it is told.
Unknown* createCommandList(Unknown* device);

// A shader and the descriptor tables and constants that its root signature has.
struct Pipeline {
    std::uint32_t shader = 0;  // a hash of its bytes
};
Unknown* createPipeline(Unknown* device, const void* desc);

// ID3D12Device::CreateUnorderedAccessView: what the descriptor at `handle` shows.
void recordView(std::uint64_t handle, Unknown* buffer, const void* desc);

// Forgets the views and what was told.
void startRecording();

// What the lists were told since then, one word: dispatches and copies, each followed by ";".
//
//     dispatch := "d" shader { "," view } { "#" constants }     the views that are bound at that moment, in the order of
//     copy     := "c" view "," view                             their descriptors; to, from
//     view     := buffer "+" offset "+" size                    `name` of the resource; bytes
//
// shader: a hash of the code, hexadecimal. constants: the root constants, 32 bits each, hexadecimal.
std::string recorded(const std::function<std::string(Unknown*)>& name, bool constants);

}  // namespace harness
