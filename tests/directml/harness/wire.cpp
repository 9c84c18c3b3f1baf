#include "wire.h"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>

namespace harness {
namespace {

class Reader {
public:
    Reader(const char* text, GuardedMemory& memory) : at_(text), memory_(memory) {}

    const DML_OPERATOR_DESC* operatorDesc() {
        auto* desc = memory_.array<DML_OPERATOR_DESC>(1);
        desc->Type = enumerator<DML_OPERATOR_TYPE>();
        if (*at_ == '\0') {
            desc->Desc = nullptr;
        } else if (desc->Type == DML_OPERATOR_SPLIT) {
            desc->Desc = split();
        } else if (desc->Type == DML_OPERATOR_JOIN) {
            desc->Desc = join();
        } else {
            throw MalformedLine("only the descriptors of Split and Join can be described");
        }
        if (*at_ != '\0') throw MalformedLine(std::string("unexpected: ") + at_);
        return desc;
    }

private:
    const void* split() {
        auto* desc = memory_.array<DML_SPLIT_OPERATOR_DESC>(1);
        desc->InputTensor = tensor();
        desc->OutputCount = uint();
        desc->OutputTensors = tensors();
        desc->Axis = uint();
        return desc;
    }

    const void* join() {
        auto* desc = memory_.array<DML_JOIN_OPERATOR_DESC>(1);
        desc->InputCount = uint();
        desc->InputTensors = tensors();
        desc->OutputTensor = tensor();
        desc->Axis = uint();
        return desc;
    }

    const DML_TENSOR_DESC* tensor() {
        if (null()) return nullptr;
        auto* desc = memory_.array<DML_TENSOR_DESC>(1);
        entry(*desc);
        return desc;
    }

    const DML_TENSOR_DESC* tensors() {
        if (null()) return nullptr;
        const std::uint32_t length = uint();
        auto* array = memory_.array<DML_TENSOR_DESC>(length);
        for (std::uint32_t i = 0; i < length; ++i) entry(array[i]);
        return array;
    }

    void entry(DML_TENSOR_DESC& desc) {
        desc.Type = enumerator<DML_TENSOR_TYPE>();
        desc.Desc = null() ? nullptr : buffer();
    }

    const DML_BUFFER_TENSOR_DESC* buffer() {
        auto* desc = memory_.array<DML_BUFFER_TENSOR_DESC>(1);
        desc->DataType = enumerator<DML_TENSOR_DATA_TYPE>();
        desc->Flags = enumerator<DML_TENSOR_FLAGS>();
        desc->DimensionCount = uint();
        desc->Sizes = uints();
        desc->Strides = uints();
        desc->TotalTensorSizeInBytes = number(std::numeric_limits<std::uint64_t>::max());
        desc->GuaranteedBaseOffsetAlignment = uint();
        return desc;
    }

    const std::uint32_t* uints() {
        if (null()) return nullptr;
        const std::uint32_t length = uint();
        auto* array = memory_.array<std::uint32_t>(length);
        for (std::uint32_t i = 0; i < length; ++i) array[i] = uint();
        return array;
    }

    // Values without a name are wanted: GCC keeps them as the enum's underlying unsigned int.
    template <class Enum>
    Enum enumerator() {
        return static_cast<Enum>(uint());
    }

    std::uint32_t uint() { return static_cast<std::uint32_t>(number(std::numeric_limits<std::uint32_t>::max())); }

    std::uint64_t number(std::uint64_t limit) {
        if (*at_ < '0' || *at_ > '9') throw MalformedLine(std::string("expected a number: ") + at_);
        char* end = nullptr;
        errno = 0;
        const unsigned long long value = std::strtoull(at_, &end, 10);
        if (errno != 0 || value > limit) throw MalformedLine(std::string("does not fit its member: ") + at_);
        next(end);
        return value;
    }

    bool null() {
        if (*at_ != '-') return false;
        next(at_ + 1);
        return true;
    }

    void next(const char* end) {
        if (*end != ' ' && *end != '\0') throw MalformedLine(std::string("expected a space: ") + end);
        at_ = *end == ' ' ? end + 1 : end;
        if (*end == ' ' && *at_ == '\0') throw MalformedLine("ends with a space");
    }

    const char* at_;
    GuardedMemory& memory_;
};

}  // namespace

const DML_OPERATOR_DESC* readOperator(const std::string& text, GuardedMemory& memory) {
    return Reader(text.c_str(), memory).operatorDesc();
}

}  // namespace harness
