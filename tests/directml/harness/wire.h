// The text form in which commands reach the harness: words, separated by one space; numbers are decimal.
#pragma once

#include <cstdint>
#include <string>

#include "dmlsplit_directml.h"
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
    // A word that is no number.
    std::string name();
    // Whether the next word is this one, which is then passed over.
    bool take(const char* word);
    void end() const;

private:
    void next(const char* end);

    const char* at_;
};

// Builds the descriptor that the words describe in `memory`, which owns it.
//
//     operator := type [ split | join | members ]     type: DML_OPERATOR_TYPE; alone, its Desc is a null pointer
//     members  := { member } "end"                    of any other struct, in order
//     member   := "tensor" tensor | "tensors" tensors | "uint" number | "uints" uints      also ints and floats, by bits
//     split    := tensor count tensors axis           the members in the order of DML_SPLIT_OPERATOR_DESC
//     join     := count tensors tensor axis           DML_JOIN_OPERATOR_DESC
//     tensors  := "-" | length entry ...
//     tensor   := "-" | entry
//     entry    := type ( "-" | buffer )               type: DML_TENSOR_TYPE
//     buffer   := type flags dimensions uints uints total alignment
//     uints    := "-" | length number ...
//
// "-" is a null pointer. A count need not be the length of its array.
const DML_OPERATOR_DESC* readOperator(Words& words, GuardedMemory& memory);

}  // namespace harness
