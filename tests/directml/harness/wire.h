// The text form in which descriptors reach the harness.
//
//     operator := type [ split | join ]               type: DML_OPERATOR_TYPE; alone, its Desc is a null pointer
//     split    := tensor count tensors axis           the members in the order of DML_SPLIT_OPERATOR_DESC
//     join     := count tensors tensor axis           DML_JOIN_OPERATOR_DESC
//     tensors  := "-" | length entry ...
//     tensor   := "-" | entry
//     entry    := type ( "-" | buffer )               type: DML_TENSOR_TYPE
//     buffer   := type flags dimensions uints uints total alignment
//     uints    := "-" | length number ...
//
// Words are separated by one space, numbers are decimal, "-" is a null pointer. A count need not be the length of its
// array.
#pragma once

#include <string>

#include "dmlsplit_directml.h"
#include "guarded.h"
#include "platform.h"

namespace harness {

// Builds the descriptor that `text` describes in `memory`, which owns it. MalformedLine where it does not follow the
// grammar.
const DML_OPERATOR_DESC* readOperator(const std::string& text, GuardedMemory& memory);

}  // namespace harness
