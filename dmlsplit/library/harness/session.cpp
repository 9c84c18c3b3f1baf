#include "session.h"

#include <limits>
#include <vector>

#include "graph.h"
#include "objects.h"
#include "recording.h"

namespace harness {
namespace {

constexpr std::uint32_t noneType = 0;    // DML_BINDING_TYPE_NONE
constexpr std::uint32_t bufferType = 1;  // DML_BINDING_TYPE_BUFFER
constexpr std::uint64_t anyNumber = std::numeric_limits<std::uint64_t>::max();

class Session {
public:
    Session(Words& words, DmlDevice& device, Unknown* d3d12Device, GuardedMemory& memory)
        : words_(words), device_(device), d3d12Device_(d3d12Device), memory_(memory) {}

    std::string execute() {
        std::string answers;
        do {
            if (!answers.empty()) answers += ' ';
            answers += step(words_.word());
        } while (words_.take(";"));
        words_.end();
        return answers;
    }

private:
    std::string step(const std::string& name);

    template <class T>
    std::string featureSupport(std::uint32_t feature, const T& query) {
        std::uint32_t data = 0xDDDDDDDD;
        const HResult result = device_.CheckFeatureSupport(feature, sizeof query, &query, sizeof data, &data);
        return answerOf(result) + "," + std::to_string(data);
    }

    // Keeps what the step has made; a null pointer where there is nothing.
    std::string kept(HResult result) {
        objects_.push_back(made_);
        return answerOf(result);
    }
    std::string nothingKept() {
        objects_.push_back(nullptr);
        return "skipped";
    }

    // Of a void function: the device tells what came of it.
    std::string afterwards() { return answerOf(device_.GetDeviceRemovedReason()); }

    // How a recorded view names a buffer.
    std::string nameOf(Unknown* buffer) const {
        for (std::size_t i = 0; i < objects_.size(); ++i) {
            if (objects_[i] == buffer) return std::to_string(i);
        }
        return "-";
    }

    std::string run();

    void* objectAt(std::uint32_t number) {
        if (number >= objects_.size()) throw MalformedLine("no object has the number " + std::to_string(number));
        if (objects_[number] == nullptr) missing_ = true;
        return objects_[number];
    }
    template <class T>
    T* object() {
        return static_cast<T*>(objectAt(words_.uint()));
    }

    BindingTableDesc tableDesc(Unknown* dispatchable) { return {dispatchable, cpuDescriptors, gpuDescriptors, words_.uint()}; }

    const BindingDesc* bindings(std::uint32_t count) {
        auto* all = memory_.array<BindingDesc>(count);
        for (std::uint32_t i = 0; i < count; ++i) all[i] = binding();
        return all;
    }

    BindingDesc binding() {
        const std::uint32_t type = words_.uint();
        if (words_.take("-")) return {type, nullptr};
        if (words_.take("buffer")) return {type, ranges(1)};
        if (!words_.take("array")) throw MalformedLine("expected -, buffer or array");
        const std::uint32_t count = words_.uint();
        auto* array = memory_.array<BufferArrayBinding>(1);
        *array = {count, ranges(count)};
        return {type, array};
    }

    const BufferBinding* ranges(std::uint32_t count) {
        auto* all = memory_.array<BufferBinding>(count);
        for (std::uint32_t i = 0; i < count; ++i) {
            all[i].buffer = words_.take("-") ? nullptr : object<Unknown>();
            all[i].offset = words_.number(anyNumber);
            all[i].sizeInBytes = words_.number(anyNumber);
        }
        return all;
    }

    Words& words_;
    DmlDevice& device_;
    Unknown* d3d12Device_;
    GuardedMemory& memory_;
    DmlCommandRecorder* recorder_ = nullptr;
    std::vector<void*> objects_;
    void* made_ = nullptr;   // by this step
    bool missing_ = false;  // this step uses an object that was not made
};

std::string Session::run() {
    auto* dispatchable = object<DmlDispatchable>();
    const BindingDesc* sides[2];
    std::uint32_t counts[2];
    for (int side = 0; side < 2; ++side) {
        counts[side] = words_.uint();
        auto* all = memory_.array<BindingDesc>(counts[side]);
        for (std::uint32_t i = 0; i < counts[side]; ++i) {
            all[i] = words_.take("none") ? BindingDesc{noneType, nullptr} : BindingDesc{bufferType, ranges(1)};
        }
        sides[side] = all;
    }
    auto* scratch = object<Unknown>();
    if (missing_) return "skipped";
    const BindingProperties needed = dispatchable->bindingProperties();
    const BindingTableDesc desc{dispatchable, cpuDescriptors, gpuDescriptors, needed.requiredDescriptorCount};
    startRecording();
    void* made = nullptr;
    const HResult result = device_.CreateBindingTable(&desc, iidDmlBindingTable, &made);
    if (made == nullptr) return answerOf(result);
    auto* table = static_cast<DmlBindingTable*>(made);
    table->BindInputs(counts[0], sides[0]);
    table->BindOutputs(counts[1], sides[1]);
    const BufferBinding temporary{scratch, 0, needed.temporaryResourceSize};
    const BindingDesc temporaryBinding{bufferType, &temporary};
    if (needed.temporaryResourceSize != 0) table->BindTemporaryResource(&temporaryBinding);
    const BufferBinding persistent{scratch, 0, needed.persistentResourceSize};
    const BindingDesc persistentBinding{bufferType, &persistent};
    if (needed.persistentResourceSize != 0) table->BindPersistentResource(&persistentBinding);
    if (device_.GetDeviceRemovedReason() < 0) return afterwards();
    if (recorder_ == nullptr) {
        void* recorder = nullptr;
        device_.CreateCommandRecorder(iidDmlCommandRecorder, &recorder);
        recorder_ = static_cast<DmlCommandRecorder*>(recorder);
    }
    recorder_->RecordDispatch(createCommandList(d3d12Device_), dispatchable, table);
    return afterwards();
}

std::string Session::step(const std::string& name) {
    missing_ = false;
    made_ = nullptr;
    if (name == "levels") {
        const std::uint32_t count = words_.uint();
        auto* levels = memory_.array<std::uint32_t>(count);
        for (std::uint32_t i = 0; i < count; ++i) levels[i] = words_.uint();
        return featureSupport(1, FeatureLevelsQuery{count, count == 0 ? nullptr : levels});
    }
    if (name == "type") return featureSupport(0, words_.uint());
    if (name == "buffer") {
        made_ = createBuffer(d3d12Device_, words_.number(anyNumber));
        return kept(ok);
    }
    if (name == "operator") {
        return kept(device_.CreateOperator(readOperator(words_, memory_), iidDmlOperator, &made_));
    }
    if (name == "compile") {
        auto* op = object<Unknown>();
        const std::uint32_t flags = words_.uint();
        if (missing_) return nothingKept();
        return kept(device_.CompileOperator(op, flags, iidDmlCompiledOperator, &made_));
    }
    if (name == "graph") {
        const GraphDesc* graph = readGraph(words_, memory_, [this](std::uint32_t number) {
            return static_cast<Unknown*>(objectAt(number));
        });
        const std::uint32_t flags = words_.uint();
        if (missing_) return nothingKept();
        void* device = nullptr;
        const HResult result = device_.QueryInterface(iidDmlDevice1, &device);
        if (device == nullptr) return kept(result);
        return kept(static_cast<DmlDevice1*>(device)->CompileGraph(graph, flags, iidDmlCompiledOperator, &made_));
    }
    if (name == "initializer") {
        const std::uint32_t count = words_.uint();
        auto* operators = memory_.array<Unknown*>(count);
        for (std::uint32_t i = 0; i < count; ++i) operators[i] = object<Unknown>();
        if (missing_) return nothingKept();
        return kept(device_.CreateOperatorInitializer(count, operators, iidDmlOperatorInitializer, &made_));
    }
    if (name == "properties") {
        auto* dispatchable = object<DmlDispatchable>();
        if (missing_) return "skipped";
        const BindingProperties found = dispatchable->bindingProperties();
        return std::to_string(found.requiredDescriptorCount) + "," + std::to_string(found.temporaryResourceSize) + "," +
               std::to_string(found.persistentResourceSize);
    }
    if (name == "table") {
        const BindingTableDesc desc = tableDesc(object<Unknown>());
        if (missing_) return nothingKept();
        return kept(device_.CreateBindingTable(&desc, iidDmlBindingTable, &made_));
    }
    if (name == "dispatch") {
        auto* dispatchable = object<Unknown>();
        auto* table = object<Unknown>();
        if (missing_) return "skipped";
        if (recorder_ == nullptr) {
            const HResult result = device_.CreateCommandRecorder(iidDmlCommandRecorder, &made_);
            if (made_ == nullptr) return answerOf(result);
            recorder_ = static_cast<DmlCommandRecorder*>(made_);
        }
        recorder_->RecordDispatch(createCommandList(d3d12Device_), dispatchable, table);
        return afterwards();
    }
    if (name == "run") return run();
    if (name == "dispatches") return std::to_string(dispatchCount());
    if (name == "recorded") {
        return recorded([this](Unknown* buffer) { return nameOf(buffer); });
    }
    auto* table = object<DmlBindingTable>();
    if (name == "reset") {
        const BindingTableDesc desc = tableDesc(object<Unknown>());
        return missing_ ? "skipped" : answerOf(table->Reset(&desc));
    }
    const bool several = name == "inputs" || name == "outputs";
    const std::uint32_t count = several ? words_.uint() : 1;
    const BindingDesc* all = bindings(count);
    if (missing_) return "skipped";
    if (name == "inputs") {
        table->BindInputs(count, all);
    } else if (name == "outputs") {
        table->BindOutputs(count, all);
    } else if (name == "temporary") {
        table->BindTemporaryResource(all);
    } else if (name == "persistent") {
        table->BindPersistentResource(all);
    } else {
        throw MalformedLine("unknown step: " + name);
    }
    return afterwards();
}

}  // namespace

std::string executeSession(Words& words, DmlDevice& device, Unknown* d3d12Device, GuardedMemory& memory) {
    return Session(words, device, d3d12Device, memory).execute();
}

}  // namespace harness
