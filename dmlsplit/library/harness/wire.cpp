#include "wire.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

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

std::string Words::word() {
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

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw MalformedLine("a block is written in hex digits");
}

}  // namespace

const OperatorDesc* readOperator(Words& words, GuardedMemory& memory) {
    struct Pointer {
        char* at;
        std::uint32_t block;
    };
    const std::uint32_t count = words.uint();
    std::vector<char*> blocks;
    std::vector<Pointer> pointers;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string hex = words.take("-") ? "" : words.word();
        if (hex.size() % 2 != 0) throw MalformedLine("half a byte");
        const std::size_t bytes = hex.size() / 2;
        if (i == 0 && bytes != sizeof(OperatorDesc)) throw MalformedLine("the first block is the operator");
        char* block = static_cast<char*>(memory.allocate(bytes));
        for (std::size_t at = 0; at < bytes; ++at) {
            block[at] = static_cast<char>(digit(hex[2 * at]) * 16 + digit(hex[2 * at + 1]));
        }
        blocks.push_back(block);
        const std::uint32_t links = words.uint();
        for (std::uint32_t link = 0; link < links; ++link) {
            const std::uint64_t offset = words.uint();
            if (offset + sizeof(void*) > bytes) throw MalformedLine("a pointer outside its block");
            pointers.push_back({block + offset, words.uint()});
        }
    }
    if (blocks.empty()) throw MalformedLine("an operator without blocks");
    for (const Pointer& pointer : pointers) {
        if (pointer.block >= blocks.size()) throw MalformedLine("a pointer to no block");
        std::memcpy(pointer.at, &blocks[pointer.block], sizeof(void*));
    }
    return reinterpret_cast<const OperatorDesc*>(blocks[0]);
}

}  // namespace harness
