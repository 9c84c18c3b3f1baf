"""Recordings of builds of DirectML and versions of ONNX Runtime: the lines of a file, and the descriptors in them.

They lie in tests/data of a checkout, and in this package in a wheel. A graph is recorded as

    spec := {"inputs": [T, ...], "nodes": [{"op", "in": [end, ...], "out": [T, ...], ...}, ...], "outputs": [end, ...]}
    T    := {"s": sizes, "t": data type (FLOAT32 if absent), "st": strides (packed if absent)}
    end  := ["x", graph input] | [node, output]
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.descriptors.schema import find_operator
from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
)
from dmlsplit.system.errors import DmlSplitError
from dmlsplit.system.input_files import open_input

PLACES: Final = (Path(__file__).parent / "recorded", Path(__file__).parents[2] / "tests" / "data")
"""The folders of the recordings, in a wheel and in a checkout."""
NAMES: Final[Mapping[str, str | int]] = {
    "IDENTITY": "ELEMENT_WISE_IDENTITY",
    "ABS": "ELEMENT_WISE_ABS",
    "EXP": "ELEMENT_WISE_EXP",
    "EWTANH": "ELEMENT_WISE_TANH",
    "ADD": "ELEMENT_WISE_ADD",
    "SUB": "ELEMENT_WISE_SUBTRACT",
    "MUL": "ELEMENT_WISE_MULTIPLY",
    "DIV": "ELEMENT_WISE_DIVIDE",
    "MAX": "ELEMENT_WISE_MAX",
    "MIN": "ELEMENT_WISE_MIN",
    "ACTIDENTITY": "ACTIVATION_IDENTITY",
    "SLICE1": "SLICE1",
    # Newer than the table of dmlsplit.graphs.operators, hence by number.
    "GELU": 157,
    "SWISH": 167,
    "HARD_SWISH": 168,
}
"""The recorded names of operators that are not names of DML_OPERATOR_ACTIVATION_*."""
LEFT_OUT: Final = {
    "OutputCount 0xffffffff, array has 2": "whether so many can be copied depends on the memory",
    "NullOperatorDesc": "no operator descriptor at all",
    "NullPpv": "about the out pointer of the call, not about the descriptor",
    "OperatorType": "the type names another operator",
    "NULLDESC": "no operator descriptor at all",
    "too large": "a size that no UINT holds; the recording truncated it",
}
"""Maps the name of a probe, or a key of its record, to the reason why no caller of CreateOperator with valid pointers
can express it."""

Record = dict[str, Any]


def lines(name: str, longest: float = math.inf) -> Iterator[Any]:
    """Yields the values in a file of recordings, such as "oracle/random", except lines of more than `longest`
    characters. Raises DmlSplitError if this installation has no recordings."""
    for place in PLACES:
        path = place / f"{name}.jsonl.xz"
        if path.is_file():
            with open_input(path) as stream, lzma.open(stream, "rt", encoding="utf-8") as text:
                yield from (json.loads(line) for line in text if len(line) <= longest)
            return
    raise DmlSplitError("this installation has no recordings; the wheel and the checkout have them")


def tensor(record: Record | None) -> TensorDesc | None:
    """Returns the descriptor of a recorded DML_TENSOR_DESC; None for None."""
    if record is None:
        return None
    members = record["Desc"]
    if members is None:
        return TensorDesc(record["Type"], None)
    return TensorDesc(
        record["Type"],
        BufferTensorDesc(
            members["DataType"],
            members["Sizes"],
            strides=members["Strides"],
            flags=members["Flags"],
            total_tensor_size_in_bytes=members["TotalTensorSizeInBytes"],
            guaranteed_base_offset_alignment=members["GuaranteedBaseOffsetAlignment"],
            dimension_count=members["DimensionCount"],
        ),
    )


def _tensors(records: list[Record | None] | None) -> list[TensorDesc | None] | None:
    return None if records is None else [tensor(record) for record in records]


def operator(record: Record) -> OperatorDesc:
    """Returns the descriptor of a recorded Split or Join."""
    if record["op"] == "SPLIT":
        outputs = _tensors(record["OutputTensors"])
        return SplitOperatorDesc(tensor(record["InputTensor"]), outputs, record["Axis"], record["OutputCount"])
    inputs = _tensors(record["InputTensors"])
    return JoinOperatorDesc(inputs, tensor(record["OutputTensor"]), record["Axis"], record["InputCount"])


def _too_large(record: Record) -> bool:
    ends = [record.get("InputTensor"), record.get("OutputTensor")]
    ends += [*(record.get("InputTensors") or ()), *(record.get("OutputTensors") or ())]
    sizes = [size for end in ends if end and end["Desc"] and end["Desc"]["Sizes"] for size in end["Desc"]["Sizes"]]
    return any(size >= 2**32 for size in sizes)


def reason_to_leave_out(record: Record) -> str | None:
    """Returns the reason why a recorded question cannot be written as a descriptor; None if it can."""
    desc = record["desc"]
    if record.get("name") in LEFT_OUT:
        return LEFT_OUT[record["name"]]
    if desc["op"] not in ("SPLIT", "JOIN"):
        return LEFT_OUT[desc["op"]]
    for key in ("NullOperatorDesc", "NullPpv", "OperatorType"):
        if key in desc:
            return LEFT_OUT[key]
    return LEFT_OUT["too large"] if _too_large(desc) else None


def graph(spec: Record) -> GraphDesc:
    """Returns the graph of a recorded spec."""

    def source(end: list[Any]) -> BufferTensorDesc:
        node, index = end
        return _end(spec["inputs"][index] if node == "x" else spec["nodes"][node]["out"][index])

    inputs, wires = [], []
    for k, node in enumerate(spec["nodes"]):
        for i, (start, index) in enumerate(node["in"]):
            if start == "x":
                inputs.append(InputGraphEdgeDesc(index, k, i))
            else:
                wires.append(IntermediateGraphEdgeDesc(start, index, k, i))
    return GraphDesc(
        [_end(record) for record in spec["inputs"]],
        [source(end) for end in spec["outputs"]],
        [_node(node, [source(end) for end in node["in"]]) for node in spec["nodes"]],
        inputs,
        [OutputGraphEdgeDesc(start, index, i) for i, (start, index) in enumerate(spec["outputs"])],
        wires,
    )


def _end(record: Record) -> BufferTensorDesc:
    return BufferTensorDesc(record.get("t", 1), record["s"], strides=record.get("st"))


def _node(node: Record, inputs: list[BufferTensorDesc]) -> GraphNode:
    outputs = [_end(record) for record in node["out"]]
    if node["op"] == "SPLIT":
        return SplitOperatorDesc(inputs[0], outputs, node["axis"])
    if node["op"] == "JOIN":
        return JoinOperatorDesc(inputs, outputs[0], node["axis"])
    members: dict[str, Any] = {}
    if node["op"] == "SLICE1":
        members = {
            "DimensionCount": len(node["win"]),
            "InputWindowOffsets": tuple(node["off"]),
            "InputWindowSizes": tuple(node["win"]),
            "InputWindowStrides": tuple(node["step"]),
        }
    name = NAMES.get(node["op"], f"ACTIVATION_{node['op']}")
    if "p" in node:
        numbers = [member.name for member in find_operator(name).members if member.type == "float"]
        members = dict(zip(numbers, node["p"], strict=True))
    return AnyOperatorDesc.of_tensors(name, inputs, outputs, members)
