// The Direct3D 12 objects that DirectML is given, or makes, on the way from an operator to a dispatch. None has memory
// behind it: the library looks at sizes and records commands, and nobody executes them.
#pragma once

#include <array>
#include <cstdint>

#include "com.h"

namespace harness {

// An object of any interface that belongs to a device: every other function answers S_OK and does nothing. Such are
// pipeline states, root signatures, command lists. All objects live as long as the process.
Unknown* createObject(Unknown* device);

// The functions of an object by their places in its interface; more than ID3D12GraphicsCommandList6 has.
using Functions = std::array<const void*, 128>;

// Of what createObject makes.
Functions anyFunctions();

// The same with functions of its own, which live as long as the process.
Unknown* createObject(Unknown* device, const Functions& functions);

// A committed buffer in a default heap.
Unknown* createBuffer(Unknown* device, std::uint64_t bytes);

// An ID3DBlob of that many zeros.
Unknown* createBlob(std::size_t bytes);

}  // namespace harness
