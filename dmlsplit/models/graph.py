"""The graph of a model that passes change: Node and Value objects with links in both directions."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Protocol

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
    FUSED = "it may be fused with Casts"


@dataclass(eq=False, slots=True)
class Value:
    """A tensor. `producer` is the node that computes it, None for an input or initializer; `readers` are the nodes that
    read it.

    An omitted input is a value with the name "".
    """

    name: str
    producer: Node | None = None
    readers: dict[Node, None] = field(default_factory=dict)
    is_output: bool = False
    """Whether it is an output of the graph."""
    like: Value | None = None
    """For a tensor that optimization inserts: a tensor of the model with its shape and type."""
    is_computed: bool = False
    """True where a node of the model's graph computes it, even one that was removed since."""

    @property
    def known(self) -> str:
        """The name under which its shape and type are recorded."""
        return self.name if self.like is None else self.like.name


@dataclass(eq=False, slots=True)
class Node:
    """An operator. `op_type` is "" for a domain other than the default one."""

    index: int
    """The index of its node in the model's graph; of several fused nodes, the last."""
    proto: onnx.NodeProto
    op_type: str
    inputs: list[Value]
    outputs: list[Value]
    number: tuple[int, int]
    """Sorts nodes as ONNX Runtime lists them; nodes that optimization adds come last."""
    captured: list[Value] = field(default_factory=list)
    """The tensors of this graph that graphs inside the node read, besides its inputs."""
    absorbed: list[int] = field(default_factory=list)
    """The indices of the nodes that were fused into it."""
    unwritten: str = ""
    """The output of the graph that is never computed, since the activation behind it was fused into this node."""
    doubts: set[Doubt] = field(default_factory=set)

    @property
    def origins(self) -> tuple[int, ...]:
        """The indices of all nodes of the model's graph that it stands for."""
        return self.index, *self.absorbed

    @property
    def producers(self) -> Iterator[Node]:
        """The nodes that compute its inputs."""
        return (value.producer for value in (*self.inputs, *self.captured) if value.producer is not None)

    @property
    def readers(self) -> Iterator[Node]:
        """The nodes that read its outputs."""
        return (reader for value in self.outputs for reader in value.readers)

    @property
    def is_used(self) -> bool:
        """Whether a node reads what it computes, or the graph gives it."""
        return any(value.is_output or value.readers for value in self.outputs)

    @property
    def only_reader(self) -> Node | None:
        """The one node that reads the first output, exactly once; None where there are others, or the graph outputs
        it."""
        value = self.outputs[0] if self.outputs else None
        if value is None or len(value.readers) != 1 or value.is_output:
            return None
        (reader,) = value.readers
        return reader if reader.inputs.count(value) == 1 else None


class Facts(Protocol):
    """The types, shapes and constants of a graph's tensors, by name."""

    @property
    def opset(self) -> int:
        """The opset of the default domain."""

    @property
    def given_constants(self) -> Iterable[str]:
        """The names of the constants in the graph, in order."""

    def shape(self, name: str) -> Shape | None:
        """The shape, None where it is unknown."""

    def data_type(self, name: str) -> str | None:
        """ONNX's name of the element type: FLOAT."""

    def is_constant(self, name: str) -> bool:
        """True for a constant of the file, and for a tensor that is computed before the session is made."""

    def elements(self, name: str) -> Array | None:
        """The elements of a small constant; None where they are unknown, and for any other tensor."""

    def on_dml(self, index: int) -> bool | None:
        """Whether DirectML runs the node of an index; None where it is not known."""

    def branch_of(self, name: str) -> int | None:
        """The number of the branch that a tensor is of, where that stands in place of its If; None for any other."""

    @property
    def is_main(self) -> bool:
        """True for the model's own graph, False for a graph in a node."""

    @property
    def reshapes_products(self) -> bool:
        """Whether a MatMul of more than two dimensions becomes a Gemm between two Reshapes."""

    @property
    def keeps_attentions(self) -> bool:
        """Whether those around an attention do not."""

    @property
    def fuses_convs(self) -> bool:
        """Whether the scales and shifts behind a Conv are fused into its weights."""

    @property
    def makes_gelus(self) -> bool:
        """Whether an operator Gelu replaces the nodes that compute one."""

    @property
    def makes_layer_norms(self) -> bool:
        """Whether a LayerNormalization replaces the nodes that compute one before they are placed."""

    @property
    def reads_half_epsilons(self) -> bool:
        """Whether that LayerNormalization has the epsilon of a constant of FLOAT16, too."""

    @property
    def fuses_reshapes(self) -> bool:
        """Whether the shape that a Concat computes for a Reshape becomes a constant."""

    @property
    def merges_shapes(self) -> bool:
        """Whether Shapes of equal sizes read one tensor."""

    @property
    def folds_known_sizes(self) -> bool:
        """Whether a node is folded only if the sizes of its results are inferred."""

    def has_cpu_kernel(self, index: int) -> bool:
        """Whether the CPU has a kernel for the node of an index."""


class Graph:
    """The nodes of one graph; `facts` are about their tensors."""

    def __init__(self, facts: Facts, outputs: Iterable[str], constants: Iterable[str] = ()) -> None:
        self.facts = facts
        self.constants = set(constants)
        """The names with known elements: initializers and folded tensors."""
        self.folded: set[int] = set()
        """The indices of the nodes that constants replaced."""
        self.replaced: set[int] = set()
        """The indices of the nodes that have another operator than in the file."""
        self._instead: dict[str, str] = {}
        """Maps a name to the name that is read instead."""
        self.values: dict[str, Value] = {name: Value(name, is_output=True) for name in outputs}
        self._nodes: dict[Node, None] = {}
        self._made = 0

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    @property
    def nodes(self) -> list[Node]:
        """The nodes in the order of the file."""
        return list(self._nodes)

    def value(self, name: str) -> Value:
        """The value of a name; a new one the first time."""
        if not name:
            return Value("")
        found = self.values.get(name)
        if found is None:
            found = self.values[name] = Value(name)
        return found

    def copy(self, facts: Facts | None = None) -> Graph:
        """A graph with copies of these nodes, which can be changed independently; `facts` are those of another
        session."""
        made = Graph(facts or self.facts, (), self.constants)
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
        """Appends a node of the model's graph and returns it."""
        op_type = proto.op_type if domain_of(proto) == "" else ""
        node = Node(index, proto, op_type, [], [self.value(name) for name in outputs], number)
        self._nodes[node] = None
        for value in node.outputs:
            value.producer = node if value.name else None
            value.is_computed = True
        self.read(node, [self.value(name) for name in inputs], [self.value(name) for name in captured])
        return node

    def read(self, node: Node, values: Sequence[Value], captured: Sequence[Value] | None = None) -> None:
        """Replaces the inputs of a node, and with `captured` the tensors that graphs inside it read."""
        for value in (*node.inputs, *node.captured):
            value.readers.pop(node, None)
        node.inputs = list(values)
        node.captured = node.captured if captured is None else list(captured)
        for value in (*node.inputs, *node.captured):
            if value.name:
                value.readers[node] = None

    def redirect(self, node: Node, instead: Mapping[Value, Value]) -> None:
        """Replaces some inputs of a node by others."""
        if any(value in instead for value in (*node.inputs, *node.captured)):
            inputs, captured = ([instead.get(v, v) for v in values] for values in (node.inputs, node.captured))
            self.read(node, inputs, captured)

    def redirect_all(self, instead: Mapping[Value, Value]) -> None:
        """Replaces some values by others in all nodes; `source` follows the replacements."""
        if not instead:
            return
        ends = _ends(instead)
        self._instead |= {value.name: end.name for value, end in ends.items() if value is not end}
        for node in self._nodes:
            self.redirect(node, ends)

    def source(self, name: str) -> str:
        """The name that is read instead of this one; the name itself where nothing replaced it."""
        while name in self._instead:
            name = self._instead[name]
        return name

    def is_given(self, name: str) -> bool:
        """True where the name, after replacements, is a constant of this graph."""
        return self.source(name) in self.constants

    def kept(self, node: Node) -> Node:
        """The node itself, or where it was removed the node that computes its outputs now."""
        if node in self._nodes:
            return node
        found = (self.values[self.source(value.name)].producer for value in node.outputs if value.name)
        return next((other for other in found if other is not None), node)

    def fold(self, node: Node) -> None:
        """Replaces a node by constants."""
        self.constants.update(value.name for value in node.outputs if value.name)
        self.folded.add(node.index)
        self.remove(node)

    def remove(self, node: Node) -> None:
        """Removes a node."""
        self.read(node, [], [])
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        del self._nodes[node]

    def write(self, node: Node, outputs: Sequence[Value]) -> None:
        """Replaces the outputs of a node."""
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        node.outputs = list(outputs)
        for value in outputs:
            value.producer = node if value.name else None

    def join(self, node: Node, after: Node) -> None:
        """Fuses the node `after` into `node`, which computes its outputs from now on."""
        outputs = after.outputs
        self.remove(after)
        self.write(node, outputs)
        node.absorbed += [node.index, *after.absorbed]
        node.doubts |= after.doubts
        node.index = after.index
        node.number = self.new_number()

    def fuse(
        self, nodes: Sequence[Node], op_type: str, inputs: Sequence[Value], proto: onnx.NodeProto | None = None
    ) -> None:
        """Fuses nodes into the last one, which becomes an operator of these inputs; `proto` has its attributes."""
        last = nodes[-1]
        for each in nodes[:-1]:
            self.remove(each)
            last.absorbed += each.origins
            last.doubts |= each.doubts
        if proto is not None:
            self.replaced.add(last.index)
            last.proto = proto
        last.op_type = op_type
        last.number = self.new_number()
        self.read(last, inputs)

    def insert(self, node: Node, op_type: str, inputs: Sequence[Value]) -> Node:
        """Inserts a node of another operator before `node`, and returns it. It stands for the same node of the
        model, and its output has the shape and type of `node`'s. The caller rewires `node`."""
        made = Node(node.index, node.proto, op_type, [], [], self.new_number())
        value = Value(f"{node.outputs[0].name}/{op_type}", like=node.outputs[0])
        self.write(made, [value])
        self.read(made, inputs)
        self._nodes[made] = None
        return made

    def release(self) -> None:
        """Frees the nodes and tensors, whose links are cycles. The graph is empty then."""
        cut(self._nodes)
        self._nodes.clear()
        self.values.clear()

    def new_number(self) -> tuple[int, int]:
        """The number of the next node that optimization adds."""
        self._made += 1
        return 2, self._made

    def walk(self) -> list[Node]:
        """The nodes in the order in which ONNX Runtime visits them.

        Depth first from the nodes without readers, the last one first, and from each node to its inputs' producers, the
        last one first.
        """

        def before(node: Node) -> Iterable[Node]:
            found = set(node.producers)
            return sorted(found, key=_number) if len(found) > 1 else found

        leaves = [node for node in self._nodes if not any(value.readers for value in node.outputs)]
        return list(depth_first(sorted(leaves, key=_number), before))


_number: Final = attrgetter("number")


def _ends(instead: Mapping[Value, Value]) -> dict[Value, Value]:
    """Maps each value to the end of its chain of replacements."""
    found: dict[Value, Value] = {}
    for value in instead:
        way: dict[Value, None] = {}
        while value in instead and value not in found and value not in way:
            way[value] = None
            value = instead[value]
        found.update(dict.fromkeys(way, found.get(value, value)))
    return found


def cut(nodes: Iterable[Node]) -> None:
    """Takes their tensors from nodes that are not asked again, so that no cycle keeps either alive."""
    for node in nodes:
        node.inputs, node.outputs, node.captured = [], [], []


def attribute(node: Node, name: str) -> onnx.AttributeProto | None:
    """An attribute of a node by name; None where it has no such attribute."""
    found: onnx.AttributeProto
    for found in node.proto.attribute:
        if found.name == name:
            return found
    return None
