"""The graph of a model as passes change it: nodes and values are objects, which know one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import onnx

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.formats.onnx.walking import depth_first


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
    absorbed: list[int] = field(default_factory=list)
    """The nodes of the model's graph that became part of it."""
    unwritten: str = ""
    """The output of the graph that nothing computes any more, since another node was put into this one."""

    @property
    def origins(self) -> tuple[int, ...]:
        """The nodes of the model's graph that it comes of."""
        return self.index, *self.absorbed

    @property
    def producers(self) -> Iterator[Node]:
        """The nodes that compute what it reads."""
        return (value.producer for value in self.inputs if value.producer is not None)

    @property
    def readers(self) -> Iterator[Node]:
        """The nodes that read what it computes."""
        return (reader for value in self.outputs for reader in value.readers)

    @property
    def only_reader(self) -> Node | None:
        """The node that alone reads the first output, once, where that is no output of the graph."""
        value = self.outputs[0]
        if len(value.readers) != 1 or value.is_output:
            return None
        (reader,) = value.readers
        return reader if reader.inputs.count(value) == 1 else None


class Facts(Protocol):
    """What is known of the tensors of a graph, by name."""

    @property
    def opset(self) -> int:
        """Of the default domain."""

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

    def __init__(self, facts: Facts, outputs: Iterable[str]) -> None:
        self.facts = facts
        self.values: dict[str, Value] = {name: Value(name, is_output=True) for name in outputs}
        self._nodes: dict[Node, None] = {}
        self._made = 0

    @property
    def nodes(self) -> list[Node]:
        """In the order of the file."""
        return list(self._nodes)

    def value(self, name: str) -> Value:
        """The tensor of a name, which is made where there is none yet."""
        if not name:
            return Value("")
        return self.values.setdefault(name, Value(name))

    def add(
        self, index: int, proto: onnx.NodeProto, number: tuple[int, int], inputs: Iterable[str], outputs: Iterable[str]
    ) -> Node:
        """The node of a model's graph, behind all others."""
        op_type = proto.op_type if domain_of(proto) == "" else ""
        node = Node(index, proto, op_type, [], [self.value(name) for name in outputs], number)
        self._nodes[node] = None
        for value in node.outputs:
            value.producer = node if value.name else None
        self.read(node, [self.value(name) for name in inputs])
        return node

    def read(self, node: Node, values: Sequence[Value]) -> None:
        """Makes a node read these values in place of those that it reads."""
        for value in node.inputs:
            value.readers.pop(node, None)
        node.inputs = list(values)
        for value in values:
            if value.name:
                value.readers[node] = None

    def remove(self, node: Node) -> None:
        """Takes a node out."""
        self.read(node, [])
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


def attribute(node: Node, name: str) -> onnx.AttributeProto | None:
    """An attribute of a node; None where it has none of this name."""
    return next((each for each in node.proto.attribute if each.name == name), None)
