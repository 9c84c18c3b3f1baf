"""The form in which graphs and their executions are recorded, and the graphs in it.

spec := {"inputs": [T, ...], "nodes": [{"op", "in": [end, ...], "out": [T, ...], ...}, ...], "outputs": [end, ...]}
T    := {"s": sizes, "t": data type (FLOAT32 if absent), "st": strides (packed if absent)}
end  := ["x", graph input] | [node, output]
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any, Final, NamedTuple

import dmlsplit as dml
from dmlsplit import graphs

DATA: Final = Path(__file__).parents[1] / "data" / "graphs" / "executions.jsonl.xz"

OPERATORS: Final = {
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
    # Not in dmlsplit's table: by number.
    "GELU": 157,
    "SWISH": 167,
    "HARD_SWISH": 168,
}
"""The recorded names that are not those of DML_OPERATOR_ACTIVATION_*."""

Spec = dict[str, Any]


class Build(NamedTuple):
    """A build that executed graphs, and its DirectML version."""

    build: str
    directml: str


class Execution(NamedTuple):
    """A graph and what each build made of it: "refused", "error" (CreateOperator), "right", "wrong", or each output."""

    name: str
    spec: Spec
    verdicts: dict[Build, str | list[str]]


def executions() -> list[Execution]:
    """All that were recorded."""
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        builds = json.loads(next(lines))
        found = []
        for line in lines:
            name, spec, groups = json.loads(line)
            verdicts = {Build(**builds[i]): verdict for verdict, indices in groups for i in indices}
            found.append(Execution(name, spec, verdicts))
        return found


def tensor(record: dict[str, Any]) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(record.get("t", 1), record["s"], strides=record.get("st"))


def graph(spec: Spec) -> graphs.GraphDesc:
    """The graph that a spec describes."""

    def source(end: list[Any]) -> dml.BufferTensorDesc:
        node, index = end
        return tensor(spec["inputs"][index] if node == "x" else spec["nodes"][node]["out"][index])

    inputs, wires = [], []
    for k, node in enumerate(spec["nodes"]):
        for i, (start, index) in enumerate(node["in"]):
            if start == "x":
                inputs.append(graphs.InputGraphEdgeDesc(index, k, i))
            else:
                wires.append(graphs.IntermediateGraphEdgeDesc(start, index, k, i))
    return graphs.GraphDesc(
        [tensor(record) for record in spec["inputs"]],
        [source(end) for end in spec["outputs"]],
        [_node(node, [source(end) for end in node["in"]]) for node in spec["nodes"]],
        inputs,
        [graphs.OutputGraphEdgeDesc(start, index, i) for i, (start, index) in enumerate(spec["outputs"])],
        wires,
    )


def _node(node: dict[str, Any], inputs: list[dml.BufferTensorDesc]) -> graphs.GraphNode:
    outputs = [tensor(record) for record in node["out"]]
    if node["op"] == "SPLIT":
        return dml.SplitOperatorDesc(inputs[0], outputs, node["axis"])
    if node["op"] == "JOIN":
        return dml.JoinOperatorDesc(inputs, outputs[0], node["axis"])
    members: dict[str, Any] = {}
    if node["op"] == "SLICE1":
        members = {
            "DimensionCount": len(node["win"]),
            "InputWindowOffsets": tuple(node["off"]),
            "InputWindowSizes": tuple(node["win"]),
            "InputWindowStrides": tuple(node["step"]),
        }
    name = OPERATORS.get(node["op"], f"ACTIVATION_{node['op']}")
    if "p" in node:
        numbers = [member.name for member in dml.find_operator(name).members if member.type == "float"]
        members = dict(zip(numbers, node["p"], strict=True))
    return dml.AnyOperatorDesc.of_tensors(name, inputs, outputs, members)
