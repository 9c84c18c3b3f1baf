"""The graph of a model that passes change: Node and Value objects with links in both directions."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import onnx

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.protobuf import DEFAULT_DOMAINS
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.names_inside import NO_NAMES, NamesInside
from dmlsplit.models.taken_branches import TakenBranches, UntakenIfs
from dmlsplit.models.version_facts import VersionFacts


class Doubt(enum.Enum):
    """What is not known about a node after a pass."""

    TWINS_DIFFER = "an equal node has a different number of outputs"
    CONSTANT = "it may be folded into a constant for the Reshape that reads it"
    STATIC = "its output may have a static shape that shape inference did not find"
    TRANSPOSED = "Transposes may be moved across it"
    FUSED = "it may be fused with Casts"

    __hash__ = object.__hash__  # Enum's own hash runs in Python, and each node's doubts are read often


@dataclass(slots=True, eq=False, repr=False)
class Value:
    """A tensor. `producer` is the node that computes it, None for an input or initializer; `readers` are the nodes that
    read it.

    An omitted input is a value with the name "".
    """

    name: str
    producer: Node | None = None
    readers: dict[Node, None] = field(default_factory=dict)
    is_output: bool = False
    """True if it is an output of the graph."""
    like: Value | None = None
    """For a tensor that optimization inserts: a tensor of the model with its shape and type."""
    typed: Value | None = None
    """For a tensor that optimization inserts: a tensor of the model with its type, if `like` has a different type."""
    is_computed: bool = False
    """True if a node of the model's graph computes it, even one that has been removed."""
    is_captured: bool = False
    """True if, in the file, a graph in a node reads it."""
    called: str = ""
    """For a tensor that a move of Transposes inserts: the name that ONNX Runtime gives it, by which outputs are
    sorted."""
    has_spare: bool = False
    """True for the result of a duplicated DequantizeLinear if the merging of Shapes left one duplicate without a
    reader."""
    is_shared: bool = False
    """True if the merging of Shapes made several read it: of a DequantizeLinear, they share one duplicate."""

    @property
    def known(self) -> str:
        """The name under which the value's shape and type are recorded: its own, or that of `like`."""
        return self.name if self.like is None else self.like.name

    @property
    def known_type(self) -> str:
        """The name under which the value's type is recorded."""
        return self.known if self.typed is None else self.typed.known_type


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """An operator. `op_type` is "" for a domain other than the default one."""

    index: int
    """The index of the node in the model's graph; if several were fused, that of the last one."""
    proto: onnx.NodeProto
    op_type: str
    inputs: list[Value]
    outputs: list[Value]
    number: tuple[int, int]
    """Sort key of nodes in ONNX Runtime's order; nodes that optimization adds come last."""
    captured: Sequence[Value] = ()
    """The tensors of this graph that graphs inside the node read."""
    names_inside: NamesInside = NO_NAMES
    absorbed: tuple[int, ...] = ()
    """The indices of the nodes that were fused into it."""
    fused_before: tuple[int, ...] = ()
    """The indices of the nodes that were fused into it before the graph was copied; their own kernels do not matter."""
    unwritten: str = ""
    """The graph output that is never computed, because the activation that reads it was fused into this node."""
    doubts: frozenset[Doubt] = frozenset()
    is_inserted: bool = False
    """True for a node that optimization adds, which may replace a removed node of the model."""

    @property
    def name(self) -> str:
        """The name of the node's first output that has one; "" if none has."""
        return next((value.name for value in self.outputs if value.name), "")

    @property
    def origins(self) -> tuple[int, ...]:
        """The indices of all nodes of the model's graph that this node represents: first its own index, then those of
        the nodes fused into it."""
        return self.index, *self.absorbed

    @property
    def represented(self) -> tuple[int, ...]:
        """The indices in `origins` and `fused_before`."""
        return (*self.origins, *self.fused_before) if self.fused_before else self.origins

    @property
    def producers(self) -> Sequence[Node]:
        """The nodes that compute the tensors that this node, or a graph in it, reads."""
        values = (*self.inputs, *self.captured) if self.captured else self.inputs
        return [value.producer for value in values if value.producer is not None]

    @property
    def readers(self) -> Iterator[Node]:
        """Yields the nodes that read this node's outputs."""
        return (reader for value in self.outputs for reader in value.readers)

    @property
    def is_read(self) -> bool:
        """True if a node reads an output of this node."""
        for value in self.outputs:  # noqa: SIM110 - a generator takes twice as long, and this is called often
            if value.readers:
                return True
        return False

    @property
    def is_used(self) -> bool:
        """True if a node reads an output of this node, or an output is an output of the graph."""
        return any(value.is_output or value.readers for value in self.outputs)

    @property
    def only_reader(self) -> Node | None:
        """The node that reads the first output; None unless there is exactly one such read, and it is not an output of
        the graph."""
        value = self.outputs[0] if self.outputs else None
        if value is None or len(value.readers) != 1 or value.is_output:
            return None
        (reader,) = value.readers
        return reader if reader.inputs.count(value) == 1 else None


class Arranged(NamedTuple):
    """The dimensions of a tensor as those of another one: dimension i is dimension `axes[i]` of the tensor `name`, a
    new one of size 1 for None."""

    name: str
    axes: Sequence[int | None]

    def of(self, shape: Shape | None) -> Shape | None:
        """Returns the sizes that follow from those of the other tensor; None if they do not."""
        if shape is None or len(shape) <= max((i for i in self.axes if i is not None), default=-1):
            return None
        return tuple([1 if i is None else shape[i] for i in self.axes])


class Facts(VersionFacts, Protocol):
    """The types, shapes and constants of a graph's tensors, by name, and what its version of ONNX Runtime does."""

    @property
    def given_constants(self) -> Iterable[str]:
        """The names of the constants that the graph contains, in order."""

    def shape(self, name: str) -> Shape | None:
        """Returns the shape of a tensor; None if its rank is unknown."""

    def shape_at_folding(self, name: str) -> Shape | None:
        """Returns the shape of a tensor as it is known while nodes are folded."""

    def declared_shape(self, name: str) -> Shape | None:
        """Returns the shape that the file declares for a tensor; None if it declares none."""

    def data_type(self, name: str) -> str | None:
        """Returns ONNX's name of a tensor's element type, such as "FLOAT"; None if it is unknown."""

    def is_constant(self, name: str) -> bool:
        """True for a constant in the file, and for a tensor that is computed before the session is created."""

    def elements(self, name: str) -> Array | None:
        """Returns the elements of a small constant; None for any other tensor, and if they are unknown."""

    def note(
        self,
        name: str,
        data_type: str | None,
        shape: Shape | None,
        is_constant: bool,
        elements: Array | None,
        arranged: Arranged | None = None,
    ) -> None:
        """Notes what is known about a tensor that a pass adds to the graph; a name has the same content in all
        sessions. `arranged` names the tensor whose dimensions it permutes, if it does."""

    def on_dml(self, index: int) -> bool | None:
        """Returns whether DirectML runs the node with this index; None if that is not known."""

    @property
    def branches(self) -> TakenBranches:
        """The branches that ONNX Runtime has substituted for their Ifs."""

    @property
    def is_main(self) -> bool:
        """True for the model's own graph, False for a graph in a node."""

    def has_cpu_kernel(self, index: int) -> bool:
        """True if the CPU provider has a kernel for the node with this index, or if that is not known."""

    def captured(self, index: int) -> Iterable[str]:
        """Returns the names that graphs inside the node with this index read once their Shapes are folded."""

    def is_expanded(self, index: int) -> bool:
        """True if the node with this index has no kernel and is replaced by the nodes of its function."""


class Graph:
    """The nodes of one graph; `facts` are about their tensors.

    Passes change it by these methods, which keep producers, readers and the order of the nodes up to date:

        add, insert      a new node: one of the model, or one that stands for the same node of the model as another
        read, redirect   other inputs of a node; redirect_all: of all nodes, also in `source`
        write            other outputs of a node
        fuse, join       several nodes become one, whose `absorbed` then has the indices of the others
        remove, fold     a node is removed; its outputs are gone, or constants

    A pass that makes one node of several without `fuse` or `join` adds the indices to `absorbed` itself.
    """

    def __init__(self, facts: Facts, outputs: Iterable[str], constants: Iterable[str] = ()) -> None:
        self.facts = facts
        self.constants = set(constants)
        """The names with known elements: initializers and folded tensors."""
        self.folded: set[int] = set()
        """The indices of the nodes that constants replaced, and of the nodes before them that are then unused."""
        self._folded: dict[str, Node] = {}
        """Maps the names that folded nodes computed to these nodes."""
        self.replaced: set[int] = set()
        """The indices of the nodes that have another operator than in the file."""
        self.failing: dict[Node, str] = {}
        """Maps nodes whose change by a pass fails session creation to what is said of them."""
        self.moved_to_empty: dict[Node, str] = {}
        """Maps Transposes that are moved to a constant without elements, by a division by its sizes, to its name."""
        self.unresolved: dict[Node, str] = {}
        """Maps each node that reads a tensor which no node computes any more, or which its replacement cannot read, to
        the first such tensor."""
        self.found_shapes: dict[str, Shape] = {}
        """The shapes of tensors that follow from Concats that became constants; inference does not know them."""
        self.unsigned: set[Value] = set()
        """The INT8 tensors that become UINT8."""
        self.merged: set[Value] = set()
        """The scales and zero points that are created where two pairs of quantizations become one."""
        self._instead: dict[str, str] = {}
        """Maps a name to the name that is read instead."""
        self.values: dict[str, Value] = {name: Value(name, is_output=True) for name in outputs}
        self._nodes: dict[Node, None] = {}
        self._made = 0
        self._inserted: set[str] = set()
        """The names of the tensors that `insert` made."""
        self._order: Sequence[Node] | None = None
        """The result of `walk`; None after a change."""
        self.without_twins: Sequence[Node] | None = None
        """The result of `walk` for which the graph was found to have no equal nodes; after a change, `walk` returns
        another list."""
        self._untaken_ifs: UntakenIfs | None = None
        self.before_moves: Graph | None = None
        """A copy of the graph before Transposes were moved for placement; None if none was moved."""

    @property
    def untaken_ifs(self) -> UntakenIfs | None:
        """The Ifs whose places branches take later; None if there are none."""
        if self._untaken_ifs is None and self.facts.branches.ifs:
            self._untaken_ifs = UntakenIfs(self.facts.branches)
        return self._untaken_ifs

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    @property
    def nodes(self) -> list[Node]:
        """A new list of the nodes, in the order of the file."""
        return list(self._nodes)

    @property
    def operators(self) -> frozenset[str]:
        """The operators of the nodes."""
        return frozenset([node.op_type for node in self._nodes])

    def value(self, name: str) -> Value:
        """Returns the value with this name, which is added if the graph does not have it; for "" returns a new value
        that is not added."""
        if not name:
            return Value("")
        found = self.values.get(name)
        if found is None:
            found = self.values[name] = Value(name)
        return found

    def copy(self, facts: Facts | None = None) -> Graph:
        """Returns a graph with copies of the nodes, which can be changed independently; `facts` replaces the graph's
        facts. The copies have the operators of the nodes' protos, and no node is absorbed by another one."""
        made = Graph(facts or self.facts, (), self.constants)
        made.values = {name: Value(name, is_output=True) for name, value in self.values.items() if value.is_output}
        made.found_shapes = dict(self.found_shapes)
        for node in self._nodes:
            read, written = [value.name for value in node.inputs], [value.name for value in node.outputs]
            captured = [value.name for value in node.captured] if node.captured else ()
            other = made.add(node.index, node.proto, node.number, read, written, captured)
            other.doubts, other.names_inside, other.is_inserted = node.doubts, node.names_inside, node.is_inserted
            other.fused_before = (*node.fused_before, *node.absorbed)
            for value in node.outputs:
                if value.is_captured or value.has_spare or value.is_shared:
                    same = made.value(value.name)
                    same.is_captured, same.has_spare = value.is_captured, value.has_spare
                    same.is_shared = value.is_shared
        return made

    def add(
        self,
        index: int,
        proto: onnx.NodeProto,
        number: tuple[int, int],
        inputs: Iterable[str],
        outputs: Iterable[str],
        captured: Sequence[str] = (),
    ) -> Node:
        """Appends a node that reads the names `inputs` and writes `outputs` to the graph, and returns it. `index` is
        its index in the file, `number` its place in the order of nodes; `captured` are the names that graphs inside it
        read."""
        op_type = proto.op_type if proto.domain in DEFAULT_DOMAINS else ""
        known = self.values.get  # most names have a value
        read = [known(name) or self.value(name) for name in inputs]
        written = [known(name) or self.value(name) for name in outputs]
        node = Node(index, proto, op_type, read, written, number)
        if captured:
            node.captured = list(map(self.value, captured))
            for value in node.captured:
                value.is_captured = True
        self._nodes[node] = None
        self._order = None
        for value in written:
            value.producer = node if value.name else None
            value.is_computed = True
        for value in (*read, *node.captured) if node.captured else read:
            if value.name:
                value.readers[node] = None
        return node

    def read(self, node: Node, values: Sequence[Value], captured: Sequence[Value] | None = None) -> None:
        """Replaces the inputs of a node with `values` and, if given, the tensors that graphs inside it read with
        `captured`, and updates the readers of all these values."""
        self._order = None
        for value in (*node.inputs, *node.captured):
            value.readers.pop(node, None)
        node.inputs = list(values)
        node.captured = node.captured if captured is None else list(captured)
        for value in (*node.inputs, *node.captured):
            if value.name:
                value.readers[node] = None

    def redirect(self, node: Node, instead: Mapping[Value, Value]) -> None:
        """Replaces those inputs of a node, and tensors that graphs in it read, that are keys of `instead` with their
        values there."""
        if instead and any(value in instead for value in (*node.inputs, *node.captured)):
            for value in node.captured:
                if value in instead:
                    node.names_inside = node.names_inside.renamed(value.name, instead[value].name)
            inputs, captured = ([instead.get(v, v) for v in values] for values in (node.inputs, node.captured))
            self.read(node, inputs, captured)

    def redirect_all(self, instead: Mapping[Value, Value]) -> None:
        """Replaces, in all nodes, each value that is a key of `instead` with the value that it is mapped to; `source`
        follows the replacements."""
        if not instead:
            return
        ends = _ends(instead)
        self._instead |= {value.name: end.name for value, end in ends.items() if value is not end}
        for node in dict.fromkeys(chain.from_iterable(value.readers for value in ends)):
            self.redirect(node, ends)

    def source(self, name: str) -> str:
        """Returns the name of the value with which `redirect_all` replaced this one; the name itself if it was not
        replaced."""
        while name in self._instead:
            name = self._instead[name]
        return name

    def is_given(self, name: str) -> bool:
        """True if the value that nodes read for this name, after replacements, is a constant of this graph."""
        return (self.source(name) if self._instead else name) in self.constants

    def kept(self, node: Node) -> Node:
        """Returns the node that replaces `node` in the graph: `node` itself if it is in the graph, else the node that
        now computes what its readers read, or computed it before it was folded; `node` if there is no such node."""
        if node in self._nodes:
            return node
        read = [self.source(value.name) for value in node.outputs if value.name]
        found = (self.values[name].producer or self._folded.get(name) for name in read)
        return next((other for other in found if other is not None), node)

    def fold(self, node: Node) -> None:
        """Removes a node; its outputs are constants afterwards."""
        names = [value.name for value in node.outputs if value.name]
        self.constants.update(names)
        self._folded |= dict.fromkeys(names, node)
        self.folded.add(node.index)
        self.remove(node)

    def remove(self, node: Node) -> None:
        """Removes a node from the graph, from the readers of its inputs, and as the producer of its outputs."""
        self.read(node, [], [])
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        del self._nodes[node]

    def write(self, node: Node, outputs: Sequence[Value]) -> None:
        """Replaces the outputs of a node, in place; the node becomes the producer of the new ones and is removed as the
        producer of the old ones."""
        self._order = None
        for value in node.outputs:
            if value.producer is node:
                value.producer = None
        node.outputs = list(outputs)
        for value in outputs:
            value.producer = node if value.name else None

    def join(self, node: Node, after: Node) -> None:
        """Removes the node `after` and lets `node`, which represents both from now on, compute its outputs."""
        outputs = after.outputs
        self.remove(after)
        self.write(node, outputs)
        node.absorbed += (node.index, *after.absorbed)
        node.doubts |= after.doubts
        node.index = after.index
        self.renumber(node)

    def fuse(
        self, nodes: Sequence[Node], op_type: str, inputs: Sequence[Value], proto: onnx.NodeProto | None = None
    ) -> None:
        """Removes all `nodes` except the last, which represents all of them from now on and becomes operator `op_type`
        with these inputs; its attributes are those of `proto`, if that is given."""
        last = nodes[-1]
        for each in nodes[:-1]:
            self.remove(each)
            last.absorbed += each.origins
            last.doubts |= each.doubts
        if proto is not None:
            self.replaced.add(last.index)
            last.proto = proto
        last.op_type = op_type
        self.renumber(last)
        self.read(last, inputs)

    def insert(
        self, node: Node, op_type: str, inputs: Sequence[Value], like: Value | None = None, typed: Value | None = None
    ) -> Node:
        """Adds a node of operator `op_type` with these inputs, and returns it. It represents the same node of the model
        as `node`, and its output has the shape of `like` and the type of `typed`, by default those of `node`'s output.
        The caller rewires the nodes that read it."""
        made = Node(node.index, node.proto, op_type, [], [], node.number, is_inserted=True)
        self.renumber(made)
        like = like or node.outputs[0]
        name = f"{like.name}/{op_type}"
        value = Value(name if name not in self._inserted else f"{name}/{self._made}", like=like, typed=typed)
        self._inserted.add(value.name)
        self.write(made, [value])
        self.read(made, inputs)
        self._nodes[made] = None
        return made

    def release(self) -> None:
        """Removes all nodes and tensors, whose links form cycles, to free their memory."""
        cut(self._nodes)
        self._order = None
        self._nodes.clear()
        self._folded.clear()
        self.values.clear()

    def renumber(self, node: Node) -> None:
        """Moves a node, which a pass has added or substituted for others, to the end of the order of nodes."""
        self._made += 1
        self._order = None
        node.number = 2, self._made

    def walk(self) -> Sequence[Node]:
        """Returns the nodes in the order in which ONNX Runtime visits them.

        Each node comes after the producers of the tensors that it reads. The search is depth first, from the nodes
        without readers, the last one first, and from each node to these producers, the last one first.
        """

        def before(node: Node) -> Iterable[Node]:
            values = (*node.inputs, *node.captured) if node.captured else node.inputs
            if len(values) == 1:
                producer = values[0].producer
                return () if producer is None else (producer,)
            found = {value.producer for value in values if value.producer is not None}
            return sorted(found, key=_number) if len(found) > 1 else found

        if self._order is None:
            leaves = [node for node in self._nodes if not node.is_read]
            self._order = list(depth_first(sorted(leaves, key=_number), before))
        return self._order


_number: Final = attrgetter("number")


def _ends(instead: Mapping[Value, Value]) -> dict[Value, Value]:
    """Maps each value in the mapping to the end of its chain of replacements; of a cycle, to its first value."""
    found: dict[Value, Value] = {}
    for value in instead:
        way: dict[Value, None] = {}
        while value in instead and value not in found and value not in way:
            way[value] = None
            value = instead[value]
        found.update(dict.fromkeys(way, found.get(value, value)))
    return found


def cut(nodes: Iterable[Node]) -> None:
    """Removes the inputs and outputs of unused nodes, so that no cycle keeps nodes or tensors alive."""
    for node in nodes:
        node.inputs, node.outputs, node.captured = [], [], ()


def attribute(node: Node, name: str) -> onnx.AttributeProto | None:
    """Returns an attribute of a node by name; None if the node does not have it."""
    found: onnx.AttributeProto
    for found in node.proto.attribute[:]:
        if found.name == name:
            return found
    return None
