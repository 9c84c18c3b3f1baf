#include "recording.h"

#include <map>
#include <vector>

#include "objects.h"
#include "platform.h"

namespace harness {
namespace {

struct ViewDesc {  // D3D12_UNORDERED_ACCESS_VIEW_DESC, of a buffer
    std::uint32_t format;
    std::uint32_t dimension;
    std::uint64_t firstElement;
    std::uint32_t elements;
    std::uint32_t structureStride;
    std::uint64_t counterOffset;
    std::uint32_t flags;
};

// Bytes of an element; the formats that a build was seen to use.
std::uint64_t elementBytes(const ViewDesc& desc) {
    constexpr std::uint32_t none = 0, float32x4 = 2, float16x4 = 10;
    switch (desc.format) {
    case none:
        return desc.structureStride;
    case float32x4:
        return 16;
    case float16x4:
        return 8;
    default:
        throw MalformedLine("a view of the DXGI format " + std::to_string(desc.format));
    }
}

struct View {
    Unknown* buffer = nullptr;
    ViewDesc desc{};
};

constexpr std::uint64_t copied = ~0ULL;

struct Recording {
    std::map<std::uint64_t, View> views;  // by the number of the descriptor
    std::vector<std::uint64_t> calls;     // the first descriptor of each dispatch, or `copied`
    std::uint64_t table = 0;
};

Recording& recording() {
    static Recording all;
    return all;
}

void setComputeRootDescriptorTable(void*, std::uint32_t, std::uint64_t handle) {
    recording().table = (handle - gpuDescriptors) / descriptorBytes;
}
void dispatch(void*, std::uint32_t, std::uint32_t, std::uint32_t) { recording().calls.push_back(recording().table); }
void copy(void*) { recording().calls.push_back(copied); }

}  // namespace

Unknown* createCommandList(Unknown* device) {
    static const Functions functions = [] {
        Functions all = anyFunctions();
        all[14] = reinterpret_cast<const void*>(&dispatch);
        all[15] = reinterpret_cast<const void*>(&copy);  // CopyBufferRegion
        all[17] = reinterpret_cast<const void*>(&copy);  // CopyResource
        all[31] = reinterpret_cast<const void*>(&setComputeRootDescriptorTable);
        return all;
    }();
    return createObject(device, functions);
}

void recordView(std::uint64_t handle, Unknown* buffer, const void* desc) {
    const auto* view = static_cast<const ViewDesc*>(desc);
    recording().views[(handle - cpuDescriptors) / descriptorBytes] = {buffer, view == nullptr ? ViewDesc{} : *view};
}

void startRecording() { recording() = {}; }

std::string recorded(const std::function<std::string(Unknown*)>& name) {
    const Recording& all = recording();
    std::string text;
    for (std::size_t i = 0; i < all.calls.size(); ++i) {
        if (all.calls[i] == copied) {
            text += "copy;";
            continue;
        }
        // Dispatches have their descriptors one behind the other.
        const std::uint64_t next = i + 1 < all.calls.size() ? all.calls[i + 1] : copied;
        for (auto view = all.views.lower_bound(all.calls[i]); view != all.views.end() && view->first < next; ++view) {
            if (view->first != all.calls[i]) text += ",";
            const auto& [buffer, desc] = view->second;
            if (buffer == nullptr) {
                text += "-";
                continue;
            }
            const std::uint64_t bytes = elementBytes(desc);
            text += name(buffer) + "+" + std::to_string(desc.firstElement * bytes) + "+" +
                    std::to_string(desc.elements * bytes);
        }
        text += ";";
    }
    return text;
}

}  // namespace harness
