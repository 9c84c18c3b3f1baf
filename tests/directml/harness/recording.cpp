#include "recording.h"

#include <map>

#include "objects.h"

namespace harness {
namespace {

constexpr std::uint64_t descriptorBytes = 32;    // Device::GetDescriptorHandleIncrementSize
constexpr std::uint64_t cpuToGpu = 0x10000;      // the two handles that a binding table is given (session.cpp)

struct UavDesc {  // D3D12_UNORDERED_ACCESS_VIEW_DESC of a buffer
    std::uint32_t format;
    std::uint32_t dimension;
    std::uint64_t firstElement;
    std::uint32_t elements;
    std::uint32_t structureStride;
    std::uint64_t counterOffset;
    std::uint32_t flags;
};

struct PipelineDesc {  // D3D12_COMPUTE_PIPELINE_STATE_DESC, as far as it is read
    const void* rootSignature;
    const void* code;
    std::size_t bytes;
};

struct View {
    Unknown* buffer = nullptr;
    UavDesc desc{};
};

struct Call {
    bool copies = false;
    std::uint32_t shader = 0;
    std::vector<std::uint64_t> tables;       // GPU handles by root parameter; 0 where none was set
    std::vector<std::uint32_t> constants;
    Unknown* buffers[2] = {nullptr, nullptr};
    std::uint64_t offsets[2] = {0, 0};
    std::uint64_t bytes = 0;
};

struct State {
    std::map<std::uint64_t, View> views;
    std::map<const void*, std::uint32_t> shaders;  // by pipeline state
    std::vector<Call> calls;
    Call next;  // what is set for the next dispatch
};

State& state() {
    static State all;
    return all;
}

void setPipelineState(void*, const void* pipeline) { state().next.shader = state().shaders[pipeline]; }

void setTable(void*, std::uint32_t parameter, std::uint64_t handle) {
    auto& tables = state().next.tables;
    if (tables.size() <= parameter) tables.resize(parameter + 1);
    tables[parameter] = handle;
}

void setConstants(void*, std::uint32_t, std::uint32_t count, const std::uint32_t* values, std::uint32_t offset) {
    auto& constants = state().next.constants;
    if (constants.size() < offset + count) constants.resize(offset + count);
    std::copy(values, values + count, constants.begin() + offset);
}

void dispatch(void*, std::uint32_t, std::uint32_t, std::uint32_t) { state().calls.push_back(state().next); }

void copyBufferRegion(void*, Unknown* to, std::uint64_t toOffset, Unknown* from, std::uint64_t fromOffset,
                      std::uint64_t bytes) {
    Call call;
    call.copies = true;
    call.buffers[0] = to;
    call.buffers[1] = from;
    call.offsets[0] = toOffset;
    call.offsets[1] = fromOffset;
    call.bytes = bytes;
    state().calls.push_back(call);
}

std::uint32_t hash(const void* bytes, std::size_t count) {  // FNV-1a
    std::uint32_t value = 2166136261;
    for (std::size_t i = 0; i < count; ++i) value = (value ^ static_cast<const unsigned char*>(bytes)[i]) * 16777619;
    return value;
}

std::string hexadecimal(std::uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "%x", value);
    return text;
}

}  // namespace

Unknown* createCommandList(Unknown* device) {
    // By their places in ID3D12GraphicsCommandList.
    static const Functions functions = [] {
        Functions all = anyFunctions();
        all[14] = reinterpret_cast<const void*>(&dispatch);
        all[15] = reinterpret_cast<const void*>(&copyBufferRegion);
        all[25] = reinterpret_cast<const void*>(&setPipelineState);
        all[31] = reinterpret_cast<const void*>(&setTable);
        all[35] = reinterpret_cast<const void*>(&setConstants);
        return all;
    }();
    return createObject(device, functions);
}

Unknown* createPipeline(Unknown* device, const void* desc) {
    Unknown* made = createObject(device);
    const auto& pipeline = *static_cast<const PipelineDesc*>(desc);
    state().shaders[made] = hash(pipeline.code, pipeline.bytes);
    return made;
}

void recordView(std::uint64_t handle, Unknown* buffer, const void* desc) {
    View& view = state().views[handle];
    view.buffer = buffer;
    view.desc = desc == nullptr ? UavDesc{} : *static_cast<const UavDesc*>(desc);
}

void startRecording() {
    state().views.clear();
    state().calls.clear();
    state().next = {};
}

std::string recorded(const std::function<std::string(Unknown*)>& name, bool withConstants) {
    auto range = [&](Unknown* buffer, std::uint64_t offset, std::uint64_t bytes) {
        return name(buffer) + "+" + std::to_string(offset) + "+" + std::to_string(bytes);
    };
    std::string text;
    for (const Call& call : state().calls) {
        if (call.copies) {
            text += "c" + range(call.buffers[0], call.offsets[0], call.bytes) + "," +
                    range(call.buffers[1], call.offsets[1], call.bytes) + ";";
            continue;
        }
        text += "d" + hexadecimal(call.shader);
        for (const std::uint64_t table : call.tables) {
            if (table == 0) continue;
            text += "@" + std::to_string((table - 2 * cpuToGpu) / descriptorBytes);
        }
        if (withConstants) {
            text += "#";
            for (const std::uint32_t value : call.constants) text += hexadecimal(value) + ".";
        }
        text += ";";
    }
    text += "|";
    for (const auto& [handle, view] : state().views) {
        const std::uint64_t stride = view.desc.structureStride != 0 ? view.desc.structureStride : 1;
        text += std::to_string((handle - cpuToGpu) / descriptorBytes) + "=" +
                range(view.buffer, view.desc.firstElement * stride, view.desc.elements * stride) + "f" +
                std::to_string(view.desc.format) + ";";
    }
    return text;
}

}  // namespace harness
