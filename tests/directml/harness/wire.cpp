#include "wire.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace harness {

std::uint64_t Words::number(std::uint64_t limit) {
    if (*at_ < '0' || *at_ > '9') throw MalformedLine(std::string("expected a number: ") + at_);
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = std::strtoull(at_, &end, 10);
    if (errno != 0 || value > limit) throw MalformedLine(std::string("does not fit its member: ") + at_);
    next(end);
    return value;
}

std::uint32_t Words::uint() {
    return static_cast<std::uint32_t>(number(std::numeric_limits<std::uint32_t>::max()));
}

std::string Words::name() {
    const char* end = at_ + std::strcspn(at_, " ");
    if (end == at_) throw MalformedLine("ends too early");
    const std::string word(at_, end);
    next(end);
    return word;
}

bool Words::take(const char* word) {
    const std::size_t length = std::strlen(word);
    if (std::strncmp(at_, word, length) != 0 || (at_[length] != ' ' && at_[length] != '\0')) return false;
    next(at_ + length);
    return true;
}

void Words::end() const {
    if (more()) throw MalformedLine(std::string("unexpected: ") + at_);
}

void Words::next(const char* end) {
    if (*end != ' ' && *end != '\0') throw MalformedLine(std::string("expected a space: ") + end);
    at_ = *end == ' ' ? end + 1 : end;
    if (*end == ' ' && *at_ == '\0') throw MalformedLine("ends with a space");
}

namespace {

class Reader {
public:
    Reader(Words& words, GuardedMemory& memory) : words_(words), memory_(memory) {}

    const DML_OPERATOR_DESC* operatorDesc() {
        auto* desc = memory_.array<DML_OPERATOR_DESC>(1);
        desc->Type = enumerator<DML_OPERATOR_TYPE>();
        if (!words_.more()) {
            desc->Desc = nullptr;
        } else if (desc->Type == DML_OPERATOR_SPLIT) {
            desc->Desc = split();
        } else if (desc->Type == DML_OPERATOR_JOIN) {
            desc->Desc = join();
        } else {
            desc->Desc = members();
        }
        return desc;
    }

private:
    // Any struct: its members one after another, each at a multiple of its size.
    const void* members() {
        constexpr std::size_t most = 256;
        char* bytes = static_cast<char*>(memory_.allocate(most));
        std::memset(bytes, 0, most);
        std::size_t at = 0;
        auto put = [&](const auto& value) {
            at = (at + sizeof value - 1) / sizeof value * sizeof value;
            if (at + sizeof value > most) throw MalformedLine("too many members");
            std::memcpy(bytes + at, &value, sizeof value);
            at += sizeof value;
        };
        while (words_.more() && !words_.take("end")) {
            const std::string kind = words_.name();
            if (kind == "tensor") {
                put(tensor());
            } else if (kind == "tensors") {
                put(tensors());
            } else if (kind == "uint") {  // also an int or a float, by its bits
                put(words_.uint());
            } else if (kind == "uints") {
                put(uints());
            } else {
                throw MalformedLine("unknown kind of member: " + kind);
            }
        }
        return bytes;
    }

    const void* split() {
        auto* desc = memory_.array<DML_SPLIT_OPERATOR_DESC>(1);
        desc->InputTensor = tensor();
        desc->OutputCount = words_.uint();
        desc->OutputTensors = tensors();
        desc->Axis = words_.uint();
        return desc;
    }

    const void* join() {
        auto* desc = memory_.array<DML_JOIN_OPERATOR_DESC>(1);
        desc->InputCount = words_.uint();
        desc->InputTensors = tensors();
        desc->OutputTensor = tensor();
        desc->Axis = words_.uint();
        return desc;
    }

    const DML_TENSOR_DESC* tensor() {
        if (words_.take("-")) return nullptr;
        auto* desc = memory_.array<DML_TENSOR_DESC>(1);
        entry(*desc);
        return desc;
    }

    const DML_TENSOR_DESC* tensors() {
        if (words_.take("-")) return nullptr;
        const std::uint32_t length = words_.uint();
        auto* array = memory_.array<DML_TENSOR_DESC>(length);
        for (std::uint32_t i = 0; i < length; ++i) entry(array[i]);
        return array;
    }

    void entry(DML_TENSOR_DESC& desc) {
        desc.Type = enumerator<DML_TENSOR_TYPE>();
        desc.Desc = words_.take("-") ? nullptr : buffer();
    }

    const DML_BUFFER_TENSOR_DESC* buffer() {
        auto* desc = memory_.array<DML_BUFFER_TENSOR_DESC>(1);
        desc->DataType = enumerator<DML_TENSOR_DATA_TYPE>();
        desc->Flags = enumerator<DML_TENSOR_FLAGS>();
        desc->DimensionCount = words_.uint();
        desc->Sizes = uints();
        desc->Strides = uints();
        desc->TotalTensorSizeInBytes = words_.number(std::numeric_limits<std::uint64_t>::max());
        desc->GuaranteedBaseOffsetAlignment = words_.uint();
        return desc;
    }

    const std::uint32_t* uints() {
        if (words_.take("-")) return nullptr;
        const std::uint32_t length = words_.uint();
        auto* array = memory_.array<std::uint32_t>(length);
        for (std::uint32_t i = 0; i < length; ++i) array[i] = words_.uint();
        return array;
    }

    // Values without a name are wanted: GCC keeps them as the enum's underlying unsigned int.
    template <class Enum>
    Enum enumerator() {
        return static_cast<Enum>(words_.uint());
    }

    Words& words_;
    GuardedMemory& memory_;
};

}  // namespace

const DML_OPERATOR_DESC* readOperator(Words& words, GuardedMemory& memory) {
    return Reader(words, memory).operatorDesc();
}

}  // namespace harness
