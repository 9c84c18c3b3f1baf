"""Writes what C needs to know of all operators, from the package's schema: `python csrc/generate_operators.py`.

include/dmlsplit_operators.h has their structs and enums, for programs without DirectML.h. csrc/dms_members.inc has
their names and members, for what walks through any of them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.descriptors.schema import Member, OperatorSchema, enumerators, enums, operators

INCLUDE: Final = Path(__file__).parents[1] / "include"
STRUCTS: Final = INCLUDE / "dmlsplit_operators.h"
MEMBERS: Final = Path(__file__).with_name("dms_members.inc")
DATA_TYPE: Final = "DML_TENSOR_DATA_TYPE"

HEAD: Final = """\
/* dmlsplit_operators.h - DirectML's tensors and operators, structs and enums: written by csrc/generate_operators.py
 *
 * dmlsplit_directml.h includes this header where there is no DirectML.h; with the same names, numbers and layouts.
 */
#ifndef DMLSPLIT_OPERATORS_H
#define DMLSPLIT_OPERATORS_H

#include <stddef.h>
#include <stdint.h>

/* windows.h declares these too and may be included before or after; C99 does not allow a typedef twice. */
#if !defined(_WINDEF_) && !defined(_MINWINDEF_)
typedef unsigned int UINT;
typedef int INT;
typedef uint64_t UINT64;
typedef float FLOAT;
typedef int BOOL;
#ifdef _WIN32
typedef long HRESULT;
#else
typedef int32_t HRESULT;                    /* as in the Windows headers for Linux */
#endif
#endif
"""
TENSORS: Final = """
typedef enum DML_TENSOR_TYPE {
    DML_TENSOR_TYPE_INVALID = 0,
    DML_TENSOR_TYPE_BUFFER = 1
} DML_TENSOR_TYPE;

typedef enum DML_TENSOR_FLAGS {
    DML_TENSOR_FLAG_NONE = 0,
    DML_TENSOR_FLAG_OWNED_BY_DML = 1
} DML_TENSOR_FLAGS;

typedef struct DML_BUFFER_TENSOR_DESC {
    DML_TENSOR_DATA_TYPE DataType;
    DML_TENSOR_FLAGS Flags;
    uint32_t DimensionCount;
    const uint32_t *Sizes;
    const uint32_t *Strides;                /* elements; NULL: packed */
    uint64_t TotalTensorSizeInBytes;
    uint32_t GuaranteedBaseOffsetAlignment;
} DML_BUFFER_TENSOR_DESC;

typedef struct DML_TENSOR_DESC {
    DML_TENSOR_TYPE Type;
    const void *Desc;
} DML_TENSOR_DESC;
"""
SMALL: Final = """
typedef struct DML_OPERATOR_DESC {
    DML_OPERATOR_TYPE Type;
    const void *Desc;
} DML_OPERATOR_DESC;

typedef struct DML_SCALE_BIAS {
    FLOAT Scale;
    FLOAT Bias;
} DML_SCALE_BIAS;

typedef struct DML_SIZE_2D {
    UINT Width;
    UINT Height;
} DML_SIZE_2D;

typedef union DML_SCALAR_UNION {
    unsigned char Bytes[8];
    int8_t Int8;
    uint8_t UInt8;
    int16_t Int16;
    uint16_t UInt16;
    int32_t Int32;
    uint32_t UInt32;
    int64_t Int64;
    uint64_t UInt64;
    float Float32;
    double Float64;
} DML_SCALAR_UNION;
"""
GRAPHS: Final = """
typedef enum DML_GRAPH_EDGE_TYPE {
    DML_GRAPH_EDGE_TYPE_INVALID = 0,
    DML_GRAPH_EDGE_TYPE_INPUT = 1,
    DML_GRAPH_EDGE_TYPE_OUTPUT = 2,
    DML_GRAPH_EDGE_TYPE_INTERMEDIATE = 3
} DML_GRAPH_EDGE_TYPE;

typedef struct DML_GRAPH_EDGE_DESC {
    DML_GRAPH_EDGE_TYPE Type;
    const void *Desc;
} DML_GRAPH_EDGE_DESC;

typedef struct DML_INPUT_GRAPH_EDGE_DESC {
    uint32_t GraphInputIndex;
    uint32_t ToNodeIndex;
    uint32_t ToNodeInputIndex;
    const char *Name;
} DML_INPUT_GRAPH_EDGE_DESC;

typedef struct DML_OUTPUT_GRAPH_EDGE_DESC {
    uint32_t FromNodeIndex;
    uint32_t FromNodeOutputIndex;
    uint32_t GraphOutputIndex;
    const char *Name;
} DML_OUTPUT_GRAPH_EDGE_DESC;

typedef struct DML_INTERMEDIATE_GRAPH_EDGE_DESC {
    uint32_t FromNodeIndex;
    uint32_t FromNodeOutputIndex;
    uint32_t ToNodeIndex;
    uint32_t ToNodeInputIndex;
    const char *Name;
} DML_INTERMEDIATE_GRAPH_EDGE_DESC;

typedef enum DML_GRAPH_NODE_TYPE {
    DML_GRAPH_NODE_TYPE_INVALID = 0,
    DML_GRAPH_NODE_TYPE_OPERATOR = 1,
    DML_GRAPH_NODE_TYPE_CONSTANT = 2
} DML_GRAPH_NODE_TYPE;

typedef struct DML_GRAPH_NODE_DESC {
    DML_GRAPH_NODE_TYPE Type;
    const void *Desc;                       /* a DML_OPERATOR_GRAPH_NODE_DESC */
} DML_GRAPH_NODE_DESC;

#ifdef __cplusplus
struct IDMLOperator;
#else
typedef struct IDMLOperator IDMLOperator;
#endif

typedef struct DML_OPERATOR_GRAPH_NODE_DESC {
    IDMLOperator *Operator;
    const char *Name;
} DML_OPERATOR_GRAPH_NODE_DESC;

typedef struct DML_CONSTANT_DATA_GRAPH_NODE_DESC {
    const void *Data;
    size_t DataSize;
    const char *Name;
} DML_CONSTANT_DATA_GRAPH_NODE_DESC;

typedef struct DML_GRAPH_DESC {
    uint32_t InputCount;
    uint32_t OutputCount;
    uint32_t NodeCount;
    const DML_GRAPH_NODE_DESC *Nodes;
    uint32_t InputEdgeCount;
    const DML_GRAPH_EDGE_DESC *InputEdges;
    uint32_t OutputEdgeCount;
    const DML_GRAPH_EDGE_DESC *OutputEdges;
    uint32_t IntermediateEdgeCount;
    const DML_GRAPH_EDGE_DESC *IntermediateEdges;
} DML_GRAPH_DESC;
"""
C_TYPES: Final[Mapping[str, str]] = {
    "tensor": "const DML_TENSOR_DESC *",
    "tensors": "const DML_TENSOR_DESC *",
    "operator": "const DML_OPERATOR_DESC *",
    "operators": "const DML_OPERATOR_DESC *",
    "uint": "UINT ",
    "int": "INT ",
    "float": "FLOAT ",
    "bool": "BOOL ",
    "uints": "const UINT *",
    "ints": "const INT *",
    "floats": "const FLOAT *",
    "scale-bias": "const DML_SCALE_BIAS *",
    "size-2d": "DML_SIZE_2D ",
    "scalar": "DML_SCALAR_UNION ",
}
KINDS: Final[Mapping[str, str]] = {
    "tensor": "T",
    "tensors": "R",
    "operator": "O",
    "operators": "P",
    "uint": "U",
    "int": "I",
    "float": "F",
    "bool": "U",
    "uints": "u",
    "ints": "i",
    "floats": "f",
    "scale-bias": "S",
    "size-2d": "Z",
    "scalar": "X",
}
"""The letters of dms_members.h."""


def structs() -> str:
    """The text of dmlsplit_operators.h."""
    levels = {level.name.removeprefix("FL_"): int(level) for level in FeatureLevel}
    types = {"INVALID": 0, **{operator.name: operator.number for operator in operators()}}
    others = [_enum(name, enumerators(name)) for name in enums() if name != DATA_TYPE]
    basic = [HEAD, _enum("DML_FEATURE_LEVEL", levels, "0x{:04x}"), _enum(DATA_TYPE, enumerators(DATA_TYPE)), TENSORS]
    return "".join(
        [*basic, _enum("DML_OPERATOR", types), *others, SMALL, *map(_struct, operators()), GRAPHS, "\n#endif\n"]
    )


def _enum(name: str, values: Mapping[str, int], format: str = "{}") -> str:
    lines = [f"    {name}_{value} = {format.format(number)}" for value, number in values.items()]
    type_ = f"{name}_TYPE" if name == "DML_OPERATOR" else name
    return f"\ntypedef enum {type_} {{\n" + ",\n".join(lines) + f"\n}} {type_};\n"


def _struct(operator: OperatorSchema) -> str:
    lines = [f"    {C_TYPES.get(member.type) or f'{member.enum} '}{member.name};\n" for member in operator.members]
    return f"\ntypedef struct {operator.struct} {{\n{''.join(lines)}}} {operator.struct};\n"


def table() -> str:
    """The text of dms_members.inc."""
    words = [name for name in enums() if name != DATA_TYPE]
    rows = ["/* dms_members.inc - the members of all operators: written by generate_operators.py from the schema */"]
    rows += ["static const char *const enums[] = {"]
    rows += [f'    "{" ".join(_contiguous(enumerators(name)))}",' for name in words]
    rows += ["};", "static const dms_operator_row rows[] = {"]
    for operator in operators():
        members = " ".join(f"{_kind(operator, member, words)} {member.name}" for member in operator.members)
        row = f'    {{{operator.number}u, "{operator.name}", "{members}"}},'
        rows += [row] if len(row) <= 144 else _wrapped(operator, members)
    return "".join(f"{row}\n" for row in (*rows, "};"))


def _contiguous(values: Mapping[str, int]) -> Iterator[str]:
    """The names of an enum whose numbers are 0, 1, 2, ..."""
    for i, (name, number) in enumerate(values.items()):
        if i != number:
            raise ValueError(f"{name} is {number}, not {i}")
        yield name


def _kind(operator: OperatorSchema, member: Member, words: list[str]) -> str:
    if member.type == "enum":
        return "D" if member.enum == DATA_TYPE else f"E{chr(ord('a') + words.index(member.enum))}"
    counts = member.type == "uint" and any(each.count == member.name for each in operator.members)
    return "C" if counts else KINDS[member.type]


def _wrapped(operator: OperatorSchema, members: str) -> list[str]:
    lines = [f'     "{line} "' for line in textwrap.wrap(members, 120)]
    lines[-1] = f'{lines[-1][:-2]}"}},'
    return [f'    {{{operator.number}u, "{operator.name}",', *lines]


if __name__ == "__main__":
    STRUCTS.write_text(structs(), "utf-8")
    MEMBERS.write_text(table(), "utf-8")
