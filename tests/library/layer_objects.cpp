// layer_objects.cpp - what a program sees of DirectML's objects: the same with the layer as without it
//
//     layer_objects LIBRARY       prints facts, one a line; addresses are compared, never printed
//     layer_objects LIBRARY debug     asks for nothing but a device by the interface IDMLDebugDevice
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "device.h"
#include "dmlsplit_directml.h"
#include "library.h"
#include "objects.h"
#include "platform.h"
#include "recording.h"

using namespace harness;

namespace {

constexpr Guid iidDmlObject = {0xc8263aac, 0x9e0c, 0x4a2d, {0x9b, 0x8e, 0x00, 0x75, 0x21, 0xa3, 0x31, 0x7c}};
constexpr Guid iidDmlDeviceChild = {0x27e83142, 0x8165, 0x49e3, {0x97, 0x4e, 0x2f, 0xd6, 0x6e, 0x4c, 0xb6, 0x9d}};
constexpr Guid iidDmlPageable = {0xb1ab0825, 0x4542, 0x4a4b, {0x86, 0x17, 0x6d, 0xde, 0x6e, 0x8f, 0x62, 0x01}};
constexpr Guid iidDmlDispatchable = {0xdcb821a8, 0x1039, 0x441e, {0x9f, 0x1c, 0xb1, 0x75, 0x9c, 0x2f, 0x3c, 0xec}};
constexpr Guid iidDebugDevice = {0x7d6f3ac9, 0x394a, 0x4ac3, {0x92, 0xa7, 0x39, 0x0c, 0xc5, 0x7a, 0x82, 0x17}};
constexpr Guid iidNobody = {0x11111111, 0x2222, 0x3333, {1, 2, 3, 4, 5, 6, 7, 8}};
const Guid* const all[] = {&iidUnknown, &iidDmlObject, &iidDmlDevice, &iidDmlDevice1, &iidDmlDeviceChild, &iidDmlPageable,
                           &iidDmlDispatchable, &iidDmlOperator, &iidDmlCompiledOperator, &iidDmlOperatorInitializer,
                           &iidDmlBindingTable, &iidDmlCommandRecorder, &iidDebugDevice, &iidNobody};

std::uint32_t references(Unknown* object) {
    object->AddRef();
    return object->Release();
}

// An object that is private data, and counts.
class Counted final : public Unknown {
public:
    HResult QueryInterface(const Guid&, void** object) override {
        *object = this;
        AddRef();
        return ok;
    }
    std::uint32_t AddRef() override { return ++count; }
    std::uint32_t Release() override { return --count; }
    std::uint32_t count = 1;
};

// Whether an object is one object by whatever interface it is asked for, and how it counts.
void describe(const char* name, DmlObject* object, DmlDevice* device, bool child) {
    std::printf("%s: references %u;", name, references(object));
    void* identity = nullptr;
    object->QueryInterface(iidUnknown, &identity);
    static_cast<Unknown*>(identity)->Release();
    for (const Guid* iid : all) {
        void* found = &found;
        const HResult result = object->QueryInterface(*iid, &found);
        std::printf(" %08x", static_cast<unsigned>(result));
        if (result < 0 || found == nullptr) {
            std::printf(found == nullptr ? "-" : "?");
            continue;
        }
        auto* other = static_cast<Unknown*>(found);
        void* again = nullptr;
        other->QueryInterface(iidUnknown, &again);
        void* twice = nullptr;
        object->QueryInterface(*iid, &twice);
        std::printf("%s%s,%u", again == identity ? "=" : "!", twice == found ? "=" : "!", references(object));
        for (void* each : {again, twice, found}) static_cast<Unknown*>(each)->Release();
    }
    std::printf("; after %u\n", references(object));
    Counted data;
    std::uint32_t number = 77, size = sizeof number;
    std::printf("  private data: %08x", static_cast<unsigned>(object->SetPrivateData(iidNobody, sizeof number, &number)));
    number = 0;
    std::printf(" %08x", static_cast<unsigned>(object->GetPrivateData(iidNobody, &size, &number)));
    std::printf(" %u %u", number, size);
    std::printf(" %08x %u", static_cast<unsigned>(object->SetPrivateDataInterface(iidNobody, &data)), data.count);
    std::printf(" %08x %u", static_cast<unsigned>(object->SetPrivateDataInterface(iidNobody, nullptr)), data.count);
    std::printf("; name %08x", static_cast<unsigned>(object->SetName(L"name")));
    if (child) {
        void* of = nullptr;
        const HResult result = static_cast<DmlDeviceChild*>(object)->GetDevice(iidDmlDevice, &of);
        std::printf("; device %08x %s", static_cast<unsigned>(result), of == device ? "the same" : "another");
        if (of != nullptr) static_cast<Unknown*>(of)->Release();
        of = nullptr;
        static_cast<DmlDeviceChild*>(object)->GetDevice(iidUnknown, &of);
        std::printf(", %s", of == device ? "the same" : "another");
        if (of != nullptr) static_cast<Unknown*>(of)->Release();
    }
    std::printf("\n");
}

struct Identity {
    std::uint32_t sizes[4] = {1, 1, 4, 4};
    DML_BUFFER_TENSOR_DESC buffer = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 64, 0};
    DML_TENSOR_DESC tensor = {DML_TENSOR_TYPE_BUFFER, &buffer};
    DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&tensor, &tensor, nullptr};
    OperatorDesc desc = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
};

}  // namespace

// What the layer calls where DMLSPLIT_LAYER_CALLBACK names it.
extern "C" void on_layer(const char* text, std::size_t length) {
    static std::FILE* const heard = std::fopen(std::getenv("LAYER_HEARD"), "ab");
    std::fwrite(text, 1, length, heard);
    std::fflush(heard);
}

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    Unknown* d3d12 = createDevice({});
    using CreateDevice = HResult (*)(Unknown*, std::uint32_t, const Guid&, void**);
    const auto create = reinterpret_cast<CreateDevice>(libraryFunction(argv[1], "DMLCreateDevice"));
    void* older = nullptr;
    if (argc > 2) {
        std::printf("by another interface: %08x\n", static_cast<unsigned>(create(d3d12, 0, iidDebugDevice, &older)));
        endProcess(0);
    }
    const Library library(argv[1]);
    DmlDevice* device = nullptr;
    if (library.createDevice(d3d12, 0, 0, &device) < 0) return 1;
    DmlDevice* another = nullptr;
    library.createDevice(d3d12, 0, 0, &another);
    std::printf("a second device is %s\n", another == device ? "the same" : "another");
    another->Release();

    std::printf("DMLCreateDevice: %08x", static_cast<unsigned>(create(d3d12, 0, iidDmlDevice, &older)));
    std::printf(", references %u", references(static_cast<Unknown*>(older)));
    std::printf(", released %u", static_cast<Unknown*>(older)->Release());
    std::printf(", by nobody's interface %08x\n", static_cast<unsigned>(create(d3d12, 0, iidNobody, &older)));

    Identity identity;
    void *op = nullptr, *compiled = nullptr, *initializer = nullptr, *recorder = nullptr, *table = nullptr;
    void* none = &none;
    std::printf("of nobody's interface: %08x", static_cast<unsigned>(device->CreateOperator(&identity.desc, iidNobody, &none)));
    std::printf(" %s\n", none == nullptr ? "null" : none == &none ? "as before" : "an object");
    device->CreateOperator(&identity.desc, iidDmlOperator, &op);
    device->CompileOperator(static_cast<Unknown*>(op), 0, iidDmlDispatchable, &compiled);
    Unknown* const operators[] = {static_cast<Unknown*>(compiled)};
    device->CreateOperatorInitializer(1, operators, iidDmlOperatorInitializer, &initializer);
    device->CreateCommandRecorder(iidDmlCommandRecorder, &recorder);
    const BindingTableDesc desc = {operators[0], cpuDescriptors, gpuDescriptors,
                                   static_cast<DmlDispatchable*>(compiled)->bindingProperties().requiredDescriptorCount};
    std::printf("table: %08x\n", static_cast<unsigned>(device->CreateBindingTable(&desc, iidDmlBindingTable, &table)));
    describe("device", device, device, false);
    describe("operator", static_cast<DmlObject*>(op), device, true);
    describe("compiled operator", static_cast<DmlObject*>(compiled), device, true);
    describe("initializer", static_cast<DmlObject*>(initializer), device, true);
    describe("recorder", static_cast<DmlObject*>(recorder), device, true);
    describe("table", static_cast<DmlObject*>(table), device, true);
    void* parent = nullptr;
    device->GetParentDevice(iidUnknown, &parent);
    std::printf("the parent is %s\n", parent == d3d12 ? "the same" : "another");

    // The last reference to a device that its children outlive, and then theirs.
    for (void* object : {table, recorder, initializer, compiled, op}) {
        std::printf("released: %u\n", static_cast<Unknown*>(object)->Release());
    }

    std::vector<std::thread> threads;
    std::vector<int> good(8);
    for (std::size_t k = 0; k < good.size(); ++k) {
        threads.emplace_back([&, k] {
            for (std::uint32_t i = 0; i < 200; ++i) {
                Identity mine;
                mine.sizes[2] = static_cast<std::uint32_t>(k + 1);
                mine.sizes[3] = i + 1;
                mine.buffer.TotalTensorSizeInBytes = 4 * (k + 1) * (i + 1);
                void* made = nullptr;
                if (device->CreateOperator(&mine.desc, iidDmlOperator, &made) == ok && made != nullptr) ++good[k];
                if (made != nullptr) static_cast<Unknown*>(made)->Release();
            }
        });
    }
    for (auto& each : threads) each.join();
    for (const int count : good) std::printf("%d ", count);
    std::printf("\nthe device is released: %u\n", device->Release());
    std::fflush(stdout);
    endProcess(0);
}
