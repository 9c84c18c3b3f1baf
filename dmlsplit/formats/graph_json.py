"""Graphs in JSON.

    {"Type": "DML_GRAPH", "Desc": {"Inputs": [T, ...], "Outputs": [T, ...], "Nodes": [operator, ...],
     "InputEdges": [{"GraphInputIndex", "ToNodeIndex", "ToNodeInputIndex"}, ...],
     "OutputEdges": [{"FromNodeIndex", "FromNodeOutputIndex", "GraphOutputIndex"}, ...],
     "IntermediateEdges": [{"FromNodeIndex", "FromNodeOutputIndex", "ToNodeIndex", "ToNodeInputIndex"}, ...]}}

Operators and tensors T have the form of dmlsplit.formats.any_operator_json. If only the tensors of a node are known,
"Inputs" and "Outputs" are arrays of tensors or nulls; its Type may be any number. A null Desc means that only the
node's Type is known. An operator of dmlsplit.graphs.operators may omit all members except its tensors; then only its
tensors are known. A null input or output of the graph stands for the tensor at the other end of its edge.

A DxDispatch model has graphs in the form of C: a dispatchable DML_GRAPH_DESC with InputCount and OutputCount instead of
the tensors, and nodes {"Type": "DML_GRAPH_NODE_TYPE_OPERATOR", "Operator": D} that name the dispatchable D.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from typing import Any, Final, TypeVar

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import TensorDesc
from dmlsplit.descriptors.enums import GRAPH, MODEL_GRAPH
from dmlsplit.descriptors.schema import find_operator, known_operator
from dmlsplit.formats.any_operator_json import _AnyReader, to_json
from dmlsplit.formats.json import read_operator, tensor_json
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown
from dmlsplit.formats.limits import Limit
from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
    edge_counts,
)
from dmlsplit.graphs.operators import BY_NUMBER, JOIN, SPLIT
from dmlsplit.system.errors import InputError

_SIDES: Final = ("Inputs", "Outputs")
_COUNTS: Final = {"Inputs": "InputCount", "Outputs": "OutputCount"}
_OPERATOR_NODE: Final = "DML_GRAPH_NODE_TYPE_OPERATOR"
_DISPATCHABLES: Final = ("dispatchables",)
_Edge = TypeVar("_Edge", InputGraphEdgeDesc, OutputGraphEdgeDesc, IntermediateGraphEdgeDesc)


def loads(text: str | bytes) -> GraphDesc:
    """Returns the graph in a JSON text. Raises InputError, with line and column, if it is malformed."""
    return read_graph(JsonText(text))


def dumps(graph: GraphDesc, indent: int | None = None) -> str:
    """Returns a graph as JSON text, on one line or indented by `indent` spaces; `loads(dumps(graph)) == graph`."""
    desc = {
        "Inputs": [tensor_json(tensor) for tensor in graph.inputs],
        "Outputs": [tensor_json(tensor) for tensor in graph.outputs],
        "Nodes": [to_json(node) for node in graph.nodes],
        "InputEdges": _edges(graph.input_edges),
        "OutputEdges": _edges(graph.output_edges),
        "IntermediateEdges": _edges(graph.intermediate_edges),
    }
    return json.dumps({"Type": GRAPH, "Desc": desc}, indent=indent)


def _edges(edges: Sequence[Any]) -> list[dict[str, int]]:
    return [dict(zip(edge.members(), astuple(edge), strict=True)) for edge in edges]


def read_graph(text: JsonText, key_path: KeyPath = ()) -> GraphDesc:
    """Returns the graph at `key_path` of a parsed text: a DML_GRAPH or, in a DxDispatch model, a MODEL_GRAPH
    dispatchable. Raises InputError if it is malformed."""
    value = text.get(key_path)
    if isinstance(value, dict) and MODEL_GRAPH in (value.get("Type"), value.get("type")):
        return _ModelReader(text, True, key_path).graph(key_path)
    return _Reader(text, False, key_path).graph(key_path)


class _Reader(_AnyReader):
    type_name = GRAPH

    def graph(self, path: KeyPath) -> GraphDesc:
        members = self.members_of(self.text.get(path), path)
        self.field(members, path, "Type", self.graph_type)
        members, path = self.inside(members, path)

        items = partial(self.places, members, path)
        starts, ends = (self.ends(members, path, name) for name in _SIDES)
        inputs = [self.edge(place, InputGraphEdgeDesc) for place in items("InputEdges")]
        outputs = [self.edge(place, OutputGraphEdgeDesc) for place in items("OutputEdges")]
        wires = [self.edge(place, IntermediateGraphEdgeDesc) for place in items("IntermediateEdges")]
        counts = edge_counts(inputs, outputs, wires)
        nodes = [self.node(place, counts.get(i, (0, 0))) for i, place in enumerate(items("Nodes"))]
        return GraphDesc(starts, ends, nodes, inputs, outputs, wires)

    def graph_type(self, value: object, path: KeyPath) -> None:
        if value != self.type_name:
            raise self.text.error(path, f"Type: expected {self.type_name!r}, not {shown(value)}")

    def ends(self, members: dict[str, object], path: KeyPath, name: str) -> Sequence[TensorDesc | None]:
        """Returns the tensors in the array `members[name]`, which is "Inputs" or "Outputs"; null entries give None.
        Raises InputError if one is malformed."""
        return [self.end(place) for place in self.places(members, path, name)]

    def inside(self, members: dict[str, object], path: KeyPath) -> tuple[dict[str, object], KeyPath]:
        """Returns the object in the member Desc, and its key path. Raises InputError if it is missing or not an
        object."""
        return self.field(members, path, "Desc", lambda value, at: (self.members_of(value, at), at))

    def places(self, members: dict[str, object], path: KeyPath, name: str) -> list[KeyPath]:
        """Returns the key path of each entry of the array `members[name]`. Raises InputError if it is missing or not an
        array."""
        return [(*path, name, i) for i in range(len(self.field(members, path, name, self.items_of)))]

    def end(self, path: KeyPath) -> TensorDesc | None:
        return self.tensor(self.text.get(path), path)

    def edge(self, path: KeyPath, kind: type[_Edge]) -> _Edge:
        members = self.members_of(self.text.get(path), path)
        return kind(*[self.field(members, path, name, self.uint32) for name in kind.members()])

    def node(self, path: KeyPath, counts: tuple[int, int]) -> GraphNode:
        """Returns the node at `path`. `counts` are the numbers of inputs and outputs that the edges use, which a node
        with a null Desc gets. Raises InputError if the node is malformed."""
        members = self.members_of(self.text.get(path), path)
        number = self.field(members, path, "Type", self.number)
        if number in (SPLIT, JOIN):
            return read_operator(self.text, path, whole_model=self.whole_model).descriptor
        if "Desc" in members and members["Desc"] is None:
            return AnyOperatorDesc.of_tensors(number, [None] * counts[0], [None] * counts[1])
        desc = members.get("Desc", members)
        if isinstance(desc, dict) and ("Inputs" in desc or known_operator(number) is None):
            return self.of_tensors(number, members, path)
        try:
            return self.operator(path, f"Nodes[{path[-1]}].", fused=False)
        except InputError:
            if number not in BY_NUMBER:
                raise
            found = self.loosely(number, members, path)
            if found is None:
                raise
            return found

    def of_tensors(self, number: int, members: dict[str, object], path: KeyPath) -> AnyOperatorDesc:
        """Returns the descriptor of operator `number` when it is written with arrays Inputs and Outputs instead of
        named tensors; the other members of Desc become its members. Raises InputError if it is malformed."""
        members, path = self.inside(members, path)
        inputs, outputs = ([self.end(at) for at in self.places(members, path, name)] for name in _SIDES)
        values = {name: self.value(value, (*path, name)) for name, value in members.items() if name not in _SIDES}
        return AnyOperatorDesc.of_tensors(number, inputs, outputs, values)

    def loosely(self, number: int, members: dict[str, object], path: KeyPath) -> AnyOperatorDesc | None:
        """Returns the descriptor of a node whose tensors can be read and whose other members are numbers, without
        checking these against the operator's schema; None if they are anything else."""
        members, path = self.inside(members, path)
        sides: dict[str, list[TensorDesc | None]] = {"input": [], "output": []}
        tensors = [member for member in find_operator(number).members if member.type == "tensor"]
        try:
            for member in tensors:
                sides[member.role].append(self.field(members, path, member.name, self.tensor))
            others = members.keys() - {member.name for member in tensors}
            values = {name: self.value(members[name], (*path, name)) for name in others}
        except InputError:
            return None
        return AnyOperatorDesc.of_tensors(number, sides["input"], sides["output"], values)

    def number(self, value: object, path: KeyPath) -> int:
        if isinstance(value, str):
            try:
                return find_operator(value).number
            except ValueError as unknown:
                raise self.text.error(path, f"Type: {unknown}") from None
        return self.uint32(value, path)

    def value(self, value: object, path: KeyPath) -> object:
        if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return value
        if path[-1] == "ScaleBias" and isinstance(value, dict):
            value = [value.get("Scale", 1.0), value.get("Bias", 0.0)]
        if isinstance(value, list) and all(
            isinstance(item, (int, float)) and not isinstance(item, bool) for item in value
        ):
            return tuple(value)
        raise self.text.error(path, f"{path[-1]}: expected a number, an array of numbers or null, not {shown(value)}")


class _ModelReader(_Reader):
    """Reads a graph of a DxDispatch model, whose nodes name other dispatchables."""

    type_name = MODEL_GRAPH

    def __init__(self, text: JsonText, whole_model: bool, key_path: KeyPath) -> None:
        super().__init__(text, whole_model, key_path)
        self._operators: dict[str, GraphNode] = {}

    def ends(self, members: dict[str, object], path: KeyPath, name: str) -> Sequence[TensorDesc | None]:
        count = self.field(members, path, _COUNTS[name], self.uint32)
        if count > Limit.STRUCT_TENSORS.most:
            said = f"{_COUNTS[name]}: {count} is more than {Limit.STRUCT_TENSORS.most}"
            raise self.text.error((*path, _COUNTS[name]), said)
        return [None] * count

    def node(self, path: KeyPath, counts: tuple[int, int]) -> GraphNode:
        members = self.members_of(self.text.get(path), path)
        given, at = self.field(members, path, "Type", lambda value, at: (value, at))
        if given != _OPERATOR_NODE:
            raise self.text.error(at, f"Type: expected {_OPERATOR_NODE!r}, not {shown(given)}")
        name = self.field(members, path, "Operator", self.string)
        if name not in self._operators:
            if name not in self.members_of(self.text.get(_DISPATCHABLES), _DISPATCHABLES):
                raise self.text.error((*path, "Operator"), f"Operator: there is no dispatchable {shown(name)}")
            self._operators[name] = super().node((*_DISPATCHABLES, name), counts)
        return self._operators[name]
