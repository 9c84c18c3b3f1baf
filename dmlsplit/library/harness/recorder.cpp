#include "recorder.h"

#include <array>
#include <cstdio>
#include <map>

#include "dmlsplit_capture.h"
#include "graph.h"

namespace harness {
namespace {

constexpr Guid iidDmlObject = {0xc8263aac, 0x9e0c, 0x4a2d, {0x9b, 0x8e, 0x00, 0x75, 0x21, 0xa3, 0x31, 0x7c}};

constexpr std::uint32_t operatorNode = 1;

std::string list(const std::string& elements) { return "[" + elements + "]"; }

template <class Each>
std::string joined(std::size_t count, Each each) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + each(i);
    return list(text);
}

std::string numbers(const std::uint32_t* values, std::uint32_t count) {
    if (values == nullptr) return "null";
    return joined(count, [&](std::size_t i) { return std::to_string(values[i]); });
}

std::string hex(HResult result) {
    char text[16];
    std::snprintf(text, sizeof text, "\"0x%08X\"", static_cast<unsigned>(result));
    return text;
}

std::size_t append(const char* text, std::size_t length, void* to) {
    static_cast<std::string*>(to)->append(text, length);
    return length;
}

std::string describe(const OperatorDesc& desc) {
    const DML_OPERATOR_DESC given = {static_cast<DML_OPERATOR_TYPE>(desc.type), desc.desc};
    std::string text;
    dmlsplit_capture_operator(&given, append, &text);
    return text;
}

class Recorder final : public DmlDevice1 {
public:
    Recorder(DmlDevice1& device, Events& events) : device_(device), events_(events) {}

    HResult QueryInterface(const Guid& iid, void** object) override {
        if (iid == iidUnknown || iid == iidDmlObject || iid == iidDmlDevice || iid == iidDmlDevice1) {
            *object = this;
            return ok;
        }
        return device_.QueryInterface(iid, object);
    }
    std::uint32_t AddRef() override { return 2; }  // lives as long as the process
    std::uint32_t Release() override { return 1; }

    HResult GetPrivateData(const Guid& guid, std::uint32_t* size, void* data) override {
        return device_.GetPrivateData(guid, size, data);
    }
    HResult SetPrivateData(const Guid& guid, std::uint32_t size, const void* data) override {
        return device_.SetPrivateData(guid, size, data);
    }
    HResult SetPrivateDataInterface(const Guid& guid, Unknown* data) override {
        return device_.SetPrivateDataInterface(guid, data);
    }
    HResult SetName(const void* name) override { return device_.SetName(name); }

    HResult CheckFeatureSupport(std::uint32_t feature, std::uint32_t querySize, const void* query, std::uint32_t size,
                                void* data) override {
        return device_.CheckFeatureSupport(feature, querySize, query, size, data);
    }
    HResult CreateOperator(const OperatorDesc* desc, const Guid& iid, void** object) override {
        const std::string described = describe(*desc);  // before the call, which may not return
        const HResult result = device_.CreateOperator(desc, iid, object);
        const int id = next_++;
        if (object != nullptr && *object != nullptr) ids_[*object] = id;
        events_.add("{\"call\":\"CreateOperator\",\"id\":" + std::to_string(id) + ",\"desc\":" + described +
                    ",\"hr\":" + hex(result) + "}");
        return result;
    }
    HResult CompileOperator(Unknown* op, std::uint32_t flags, const Guid& iid, void** object) override {
        const HResult result = device_.CompileOperator(op, flags, iid, object);
        events_.add("{\"call\":\"CompileOperator\",\"id\":" + std::to_string(id(op)) +
                    ",\"flags\":" + std::to_string(flags) + ",\"hr\":" + hex(result) + "}");
        return result;
    }
    HResult CreateOperatorInitializer(std::uint32_t count, Unknown* const* operators, const Guid& iid,
                                      void** object) override {
        return device_.CreateOperatorInitializer(count, operators, iid, object);
    }
    HResult CreateCommandRecorder(const Guid& iid, void** object) override {
        return device_.CreateCommandRecorder(iid, object);
    }
    HResult CreateBindingTable(const BindingTableDesc* desc, const Guid& iid, void** object) override {
        return device_.CreateBindingTable(desc, iid, object);
    }
    HResult Evict(std::uint32_t count, Unknown* const* objects) override { return device_.Evict(count, objects); }
    HResult MakeResident(std::uint32_t count, Unknown* const* objects) override {
        return device_.MakeResident(count, objects);
    }
    HResult GetDeviceRemovedReason() override { return device_.GetDeviceRemovedReason(); }
    HResult GetParentDevice(const Guid& iid, void** device) override { return device_.GetParentDevice(iid, device); }

    HResult CompileGraph(const GraphDesc* desc, std::uint32_t flags, const Guid& iid, void** object) override {
        const GraphDesc& graph = *desc;
        const std::string nodes = joined(graph.nodeCount, [&](std::size_t i) { return node(graph.nodes[i]); });
        const HResult result = device_.CompileGraph(desc, flags, iid, object);
        events_.add("{\"call\":\"CompileGraph\",\"nodes\":" + nodes + ",\"inputs\":" + std::to_string(graph.inputCount) +
                    ",\"outputs\":" + std::to_string(graph.outputCount) +
                    ",\"inputEdges\":" + edges(graph.inputEdges, graph.inputEdgeCount, 3) +
                    ",\"outputEdges\":" + edges(graph.outputEdges, graph.outputEdgeCount, 3) +
                    ",\"intermediateEdges\":" + edges(graph.intermediateEdges, graph.intermediateEdgeCount, 4) +
                    ",\"flags\":" + std::to_string(flags) + ",\"hr\":" + hex(result) + "}");
        return result;
    }

private:
    int id(const void* object) const {
        const auto found = ids_.find(object);
        return found == ids_.end() ? -1 : found->second;
    }
    std::string node(const GraphNodeDesc& node) const {
        if (node.type != operatorNode) return "{\"type\":" + std::to_string(node.type) + "}";
        const auto& desc = *static_cast<const OperatorNodeDesc*>(node.desc);
        return "{\"id\":" + std::to_string(id(desc.op)) +
               ",\"name\":" + jsonString(desc.name == nullptr ? "" : desc.name) + "}";
    }
    // Each edge as the numbers of its struct, in their order.
    static std::string edges(const GraphEdgeDesc* edges, std::uint32_t count, std::uint32_t members) {
        return joined(count, [&](std::size_t i) {
            return numbers(static_cast<const std::uint32_t*>(edges[i].desc), members);
        });
    }

    DmlDevice1& device_;
    Events& events_;
    std::map<const void*, int> ids_;
    int next_ = 0;
};

}  // namespace

std::string jsonString(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (byte < 0x20 || byte >= 0x7f) {  // not even UTF-8 is sure to be whole
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
            quoted += escaped;
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

DmlDevice1* recording(DmlDevice1& device, Events& events) { return new Recorder(device, events); }

}  // namespace harness
