// The text form in which commands reach the harness: words, separated by one space; numbers are decimal.
#pragma once

#include <cstdint>
#include <string>

#include "guarded.h"
#include "platform.h"

namespace harness {

// Reads a command word by word. MalformedLine where the next word is not what is asked for.
class Words {
public:
    explicit Words(const char* text) : at_(text) {}

    bool more() const { return *at_ != '\0'; }
    std::uint64_t number(std::uint64_t limit);
    std::uint32_t uint();
    std::string word();
    // Whether the next word is this one, which is then passed over.
    bool take(const char* word);
    void end() const;

private:
    void next(const char* end);

    const char* at_;
};

// DML_OPERATOR_DESC.
struct OperatorDesc {
    std::uint32_t type;
    const void* desc;
};

// Builds the image of memory that the words describe, and returns its first block: no struct of an operator is known
// here.
//
//     operator := count block ...
//     block    := ( "-" | bytes in hex ) count { offset block }      the pointers in it: where, and to which block
//
// Every block ends at an unreadable page (guarded.h).
const OperatorDesc* readOperator(Words& words, GuardedMemory& memory);

}  // namespace harness
