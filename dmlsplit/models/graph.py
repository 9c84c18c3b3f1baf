"""The graph of a model as passes change it: nodes and values are objects, which know one another."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import onnx

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.formats.onnx.walking import depth_first


class Doubt(enum.Enum):
    """What is not known of a node after a pass."""

    TWINS_DIFFER = "an equal node has another number of outputs"
    CONSTANT = "it may become a constant of the Reshape that reads it"
    CONSTANT_LATER = "newer versions may make a constant of it"
    STATIC = "its output may have a static shape that inference does not find here"
    TRANSPOSED = "Transposes may be moved over it"


@dataclass(eq=False, slots=True)
class Value:
    """A tensor. `producer` is the node that computes it, None for one that is given; `readers` are the nodes that read
    it. An input that is left out is a value of the name ""."""

    name: str
    producer: Node | None = None
    readers: dict[Node, None] = field(default_factory=dict)
    is_output: bool = False
    """Whether it is an output of the graph."""
    like: Value | None = None
    """Of a tensor that optimization makes: one of the model's that has its shape and type."""
    is_computed: bool = False
    """Whether a node of the model's graph computes it, be it left in the graph or not."""

    @property
    def known(self) -> str:
        """The name by which its shape and type are known."""
        return self.name if self.like is None else self.like.name


@dataclass(eq=False, slots=True)
class Node:
    """An operator. `op_type` is "" for a domain other than the default one."""

    index: int
    """Of the node in the model's graph; of several that were made one, the last."""
    proto: onnx.NodeProto
    op_type: str
    inputs: list[Value]
    outputs: list[Value]
    number: tuple[int, int]
    """Where ONNX Runtime has the node: those that optimization makes come last."""
    captured: list[Value] = field(default_factory=list)
    """What the graphs in it read of this graph, beside its inputs."""
    absorbed: list[int] = field(default_factory=list)
    """The nodes of the model's graph that became part of it."""
    unwritten: str = ""
    """The output of the graph that nothing computes any more, since another node was put into this one."""
    doubts: set[Doubt] = field(default_factory=set)

    @property
    def origins(self) -> tuple[int, ...]:
        """The nodes of the model's graph that it comes of."""
        return self.index, *self.absorbed

    @property
    def producers(self) -> Iterator[Node]:
        """The nodes that compute what it reads."""
        return (value.producer for value in (*self.inputs, *self.captured) if value.producer is not None)

    @property
    def readers(self) -> Iterator[Node]:
        """The nodes that read what it computes."""
        return (reader for value in self.outputs for reader in value.readers)

    @property
    def only_reader(self) -> Node | None:
        """The node that alone reads the first output, once, where that is no output of the graph."""
        value = self.outputs[0] if self.outputs else None
        if value is None or len(value.readers) != 1 or value.is_output:
            return None
        (reader,) = value.readers
        return reader if reader.inputs.count(value) == 1 else None


class Facts(Protocol):
    """What is known of the tensors of a graph, by name."""

    @property
    def opset(self) -> int:
        """Of the default domain."""

    @property
    def given_constants(self) -> Iterable[str]:
        """The constants that stand in the graph, in order."""

    def shape(self, name: str) -> Shape | None:
        """None where it is not known."""

    def data_type(self, name: str) -> str | None:
        """ONNX's name: FLOAT."""

    def is_constant(self, name: str) -> bool:
        """Whether it is computed before the session is made, or stands in the file."""

    def elements(self, name: str) -> Array | None:
        """The elements of a small constant; None of anything else, and where they are not known."""


class Graph:
    """The nodes of one graph; `facts` are about their tensors."""

    def __init__(self, facts: Facts, outputs: Iterable[str], constants: Iterable[str] = ()) -> None:
        self.facts = facts
        self.constants = set(constants)
        """The names that have their elements before the session is made: initializers, and what was folded."""
        self.folded: set[int] = set()
        """The nodes of the model's graph in whose place there are constants."""
        self._instead: dict[str, str] = {}
        """For names those that are read in their place."""
        self.values: dict[str, Value] = {name: Value(name, is_output=True) for name in outputs}
        self._nodes: dict[Node, None] = {}
        self._made = 0

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    @property
    def nodes(self) -> list[Node]:
        """In the order of the file."""
        return list(self._nodes)

    def value(self, name: str) -> Value:
        """The tensor of a name, which is made where there is none yet."""
        if not name:
            return Value("")
        return self.values.setdefault(name, Value(name))

    def copy(self) -> Graph:
        """The same nodes in a graph that can be changed by itself."""
        made = Graph(self.facts, (), self.constants)
        made.values = {name: Value(name, is_output=True) for name, value in self.values.items() if value.is_output}
        for node in self._nodes:
            tensors = ([value.name for value in values] for values in (node.inputs, node.outputs, node.captured))
            made.add(node.index, node.proto, node.number, *tensors).doubts.update(node.doubts)
        return made

    def add(
        self,
        index: int,
        proto: onnx.NodeProto,
        number: tuple[int, int],
        inputs: Iterable[str],
        outputs: Iterable[str],
        captured: Iterable[str] = (),
    ) -> Node:
        """The node of a model's graph, behind all others."""
        op_type = proto.op_type if domain_of(proto) == "" else ""
        node = Node(index, proto, op_type, [], [self.value(name) for name in outputs], number)
        self._nodes[node] = None
        for value in node.outputs:
            value.producer = node if value.name else None
            value.is_computed = True
        self.read(node, [self.value(name) for name in inputs], [self.value(name) for name in captured])
        return node

    def read(self, node: Node, values: Sequence[Value], captured: Sequence[Value] | None = None) -> None:
        """Makes a node read these values in place of those that it reads; `captured` None: the graphs in it the same as
        before."""
        for value in (*node.inputs, *node.captured):
            value.readers.pop(node, None)
        node.inputs = list(values)
        node.captured = node.captured if captured is None else list(captured)
        for value in (*node.inputs, *node.captured):
            if value.name:
                value.readers[node] = None

    def redirect(self, node: Node, instead: Mapping[Value, Value]) -> None:
        """Makes a node read other values in place of some."""
        if any(value in instead for value in (*node.inputs, *node.captured)):
            inputs, captured = ([instead.get(v, v) for v in values] for values in (node.inputs, node.captured))
            self.read(node, inputs, captured)

    def redirect_all(self, instead: Mapping[Value, Value]) -> None:
        """Makes all nodes read other values in place of some; `source` knows of it."""
        ends = _ends(instead)
        self._instead |= {value.name: end.name for value, end in ends.items() if value is not end}
        for node in self._nodes:
            self.redirect(node, ends)

    def source(self, name: str) -> str:
        """The name that is read in place of another: itself where none is."""
        while name in self._instead:
            name = self._instead[name]
        return name

    def is_given(self, name: str) -> bool:
        """Whether what is read under a name is a constant of this very graph."""
        return self.source(name) in self.constants

    def kept(self, node: Node) -> Node:
        """The node itself, or the one that computes its outputs where it was removed."""
        if node in self._nodes:
            return node
        found = (self.values[self.source(value.name)].producer for value in node.outputs if value.name)
        return next((other for other in found if other is not None), node)

    def fold(self, node: Node) -> None:
        """Puts constants in the place of a node."""
        self.constants.update(value.name for value in node.outputs if value.name)
        self.folded.add(node.index)
        self.remove(node)

    def remove(self, node: Node) -> None:
        """Takes a node out."""
        self.read(node, [], [])
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        del self._nodes[node]

    def write(self, node: Node, outputs: Sequence[Value]) -> None:
        """Makes a node compute these values in place of those that it computes."""
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        node.outputs = list(outputs)
        for value in outputs:
            value.producer = node if value.name else None

    def join(self, node: Node, after: Node) -> None:
        """Makes the node behind another part of it."""
        outputs = after.outputs
        self.remove(after)
        self.write(node, outputs)
        node.absorbed += [node.index, *after.absorbed]
        node.doubts |= after.doubts
        node.index = after.index
        node.number = self.new_number()

    def insert(self, node: Node, op_type: str, inputs: Sequence[Value]) -> Node:
        """A node of another operator in front of one, which comes of the same node of the model and computes a value of
        the same shape and type. What the node reads is left to the caller."""
        made = Node(node.index, node.proto, op_type, [], [], self.new_number())
        value = Value(f"{node.outputs[0].name}/{op_type}", like=node.outputs[0])
        self.write(made, [value])
        self.read(made, inputs)
        self._nodes[made] = None
        return made

    def new_number(self) -> tuple[int, int]:
        """The place of a node that optimization makes."""
        self._made += 1
        return 2, self._made

    def walk(self) -> list[Node]:
        """The nodes in the order in which ONNX Runtime walks over them.

        Depth first from the nodes that nothing reads, the last one first; of a node's inputs the last node first.
        """

        def by_number(nodes: Iterable[Node]) -> list[Node]:
            return sorted(nodes, key=lambda node: node.number)

        leaves = by_number(node for node in self._nodes if not any(True for _ in node.readers))
        return list(depth_first(leaves, lambda node: by_number(set(node.producers))))


def _ends(instead: Mapping[Value, Value]) -> dict[Value, Value]:
    """Where each value leads to at last."""
    found: dict[Value, Value] = {}
    for value in instead:
        way: dict[Value, None] = {}
        while value in instead and value not in found and value not in way:
            way[value] = None
            value = instead[value]
        found.update(dict.fromkeys(way, found.get(value, value)))
    return found


def attribute(node: Node, name: str) -> onnx.AttributeProto | None:
    """An attribute of a node; None where it has none of this name."""
    return next((each for each in node.proto.attribute if each.name == name), None)
