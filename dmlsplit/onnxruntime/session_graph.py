"""One graph of a model in a session: its constants, the nodes on the CPU, the nodes that can be fused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from typing import Final, NamedTuple

import onnx

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import domain_of, first_output, has_graphs
from dmlsplit.formats.onnx.protobuf import operator_of as operator_name
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Arranged, Doubt, Graph, Node
from dmlsplit.models.names_inside import NamesInside
from dmlsplit.models.once import Once
from dmlsplit.models.onnx_nodes import name_of
from dmlsplit.models.scope import Scope
from dmlsplit.models.taken_branches import TakenBranches
from dmlsplit.models.version_facts import VersionFacts
from dmlsplit.onnxruntime.expansion import holds_graphs
from dmlsplit.onnxruntime.inner_reads import likely_to_read, read_inside
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import (
    EXPANDED,
    Cell,
    Operator,
    Types,
    asked,
    is_on_cpu_too,
    is_on_dml,
    is_refused,
    operator_of,
    reads_attributes,
)
from dmlsplit.onnxruntime.passes import BEFORE_PLACEMENT, PASSES, run, that_may_change
from dmlsplit.onnxruntime.passes.failing_folds import failing_fold
from dmlsplit.onnxruntime.passes.reshape_fusion import CONTIGUOUS
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions

_IN_WORDS: Final = {number: name.lower() for name, number in onnx.TensorProto.DataType.items() if number}
"""The names of the element types of tensors in the table of placements, by their numbers."""
_LARGE: Final = 1 << 32
"""The number of elements that no tensor of DirectML has."""
_SMALL_INITIALIZER: Final = 100
"""The most elements of an initializer that lets a node stay on the CPU."""


class _Added(NamedTuple):
    """A tensor that a pass adds: its element type and shape, its elements if it is a small constant, and the tensor
    whose dimensions it has."""

    data_type: str | None
    shape: Shape | None
    is_constant: bool
    elements: Array | None
    arranged: Arranged | None


_OF_SIZES: Final = frozenset({"int32", "int64"})
"""The types of tensors that hold sizes and positions."""


class SessionGraph(VersionFacts):
    """One graph of a model at the time when ONNX Runtime partitions it."""

    def __init__(
        self,
        model: SessionModel,
        runtime: Runtime,
        options: SessionOptions,
        scope: Scope,
        run_scope: Scope | None,
        parent: SessionGraph | None,
    ) -> None:
        self.model = model
        self.runtime = runtime
        self.options = options
        self.scope = scope
        self.opset = scope.origin.opset
        self.run_scope = run_scope
        self.parent = parent
        self.inputs = {value.name for value in scope.graph.input}
        self.initializers = {tensor.name: tensor for tensor in scope.graph.initializer}
        self.defaults: Mapping[str, onnx.TensorProto] = model.defaults if parent is None else {}
        self._paths: dict[int, str] = {}
        self._shapes: dict[str, Shape | None] = {}
        self._added: dict[str, _Added] = {}
        """What is known about the tensors that passes add after placement, by name; all sessions share it."""
        self._is_changing = True
        self._element_types: dict[int, tuple[Types, Types]] = {}
        self._types_in_words: dict[str, str | None] = {"": ""}
        self.inside = {index: list(scope.children(index)) for index in sorted(scope.with_graphs)}
        """Maps the index of each node with graphs inside to the names of their attributes, with their scopes."""
        folds = options.optimization >= 1
        self._read_inside = {i: tuple(dict.fromkeys(likely_to_read(each, folds))) for i, each in self.inside.items()}
        self._captured = self._all_captured()
        self._captured_types: dict[int, Types] = {}
        self._operators: dict[int, Operator | None] = {}
        """Maps a kind of node to its row of the table of placements."""
        self._cells: dict[tuple[int, int], Cell | None] = {}
        """Maps (kind of node, opset) to the table's answer."""
        self.graph = self.before_optimization()
        """The graph after the passes that run before placement."""
        self.nodes = self.graph.nodes
        """All nodes of the model's graph, with the folded and the removed ones."""
        self.operators_in_file = self.graph.operators
        self.reshapes_in_file = sum(node.op_type in CONTIGUOUS for node in self.nodes)
        self.has_equal_shapes = False
        self._kinds = self._all_kinds()
        self._implemented = self._all_implemented()
        run(BEFORE_PLACEMENT, self.graph, options.optimization)
        self._is_changing = False
        if self.graph.replaced:
            self._element_types.clear()
            self._kinds = self._all_kinds()
            self._operators, self._cells = {}, {}
            self._implemented = self._all_implemented()
        self.order = self.graph.walk()
        """The remaining nodes, in the order in which ONNX Runtime visits them."""
        self._open = self._open_names()
        self._refused = self._all_refused()
        self.preferring_cpu, self.left_on_cpu = self._preferring_cpu()
        """The indices of the nodes that are left on the CPU because they compute with sizes, and the names of the
        tensors that are made on the CPU of sizes."""
        self.once = Once()
        """A cache shared with this graph in sessions of other runtimes; a key has to name whatever of the runtime
        its value depends on."""

    def settle(self, inner: Iterable[SessionGraph]) -> None:
        """Places the nodes by what the graphs inside them, `inner`, are left to read."""
        read: dict[int, dict[str, None]] = {}
        for graph in inner:
            read.setdefault(graph.scope.steps[-1][0], {}).update(dict.fromkeys(graph._left_to_read()))
        left = {index: tuple(filter(self._has, read.get(index, ()))) for index in self.inside}
        if all(set(left[index]) == set(filter(self._has, names)) for index, names in self._read_inside.items()):
            return
        self._read_inside = left
        self._captured, self._captured_types, self._cells = self._all_captured(), {}, {}
        vars(self).pop("alike", None)
        self._implemented = self._all_implemented()
        self.preferring_cpu, self.left_on_cpu = self._preferring_cpu()
        self.once = Once()

    def _left_to_read(self) -> Iterator[str]:
        """Yields the names that the nodes of the graph, and graphs inside these, read after the passes before
        placement, and those of its outputs; a name may come several times."""
        for node in self.graph.nodes:
            yield from (value.name for value in node.inputs if value.name)
            yield from self._read_inside.get(node.index, ())
        yield from (value.name for value in self.scope.graph.output)

    def _all_captured(self) -> dict[int, list[str]]:
        """Maps the index of each node with graphs inside to the names that only these graphs read."""
        nodes = self.scope.graph.node
        own = {index: {*nodes[index].input, *nodes[index].output} for index in self.inside}
        return {i: [name for name in names if name not in own[i]] for i, names in self._read_inside.items()}

    def in_session_of(self, runtime: Runtime, parent: SessionGraph | None) -> SessionGraph:
        """Returns a new SessionGraph of this graph in a session of `runtime`. It shares this one's optimized graph
        unless the passes before placement give a different one. `parent` is the graph around it there, None for the
        model's own."""
        other = copy.copy(self)
        other.runtime, other.parent = runtime, parent
        other._operators, other._cells = {}, {}
        for known in ("alike", "fusions", "has_subgraphs"):  # they belong to the other runtime
            vars(other).pop(known, None)
        other._implemented = other._all_implemented()
        if other._optimized_otherwise(self):
            return SessionGraph(self.model, runtime, self.options, self.scope, self.run_scope, parent)
        other._refused = other._all_refused()
        if (other._implemented, other._refused) != (self._implemented, self._refused):
            other.preferring_cpu, other.left_on_cpu = other._preferring_cpu()
            other.once = Once()
        return other

    def _optimized_otherwise(self, other: SessionGraph) -> bool:
        """True if the session of `other`, the same graph in another runtime, fuses or folds different nodes before
        placement."""
        if self.parent is not None and other.parent is not None and self.parent.graph is not other.parent.graph:
            return True
        level = self.options.optimization
        made = that_may_change(self.operators_in_file, BEFORE_PLACEMENT, level)
        if any(self.asked(name) != other.asked(name) for each in made for name in each.asks):
            return True
        if level < 1:
            return False
        by_size = self.traits.folds_known_sizes != other.traits.folds_known_sizes
        if not by_size and self._implemented == other._implemented:
            return False
        for i, node in enumerate(self.nodes):
            kernel = self.has_cpu_kernel(i) != other.has_cpu_kernel(i)
            sized = not by_size or all(is_static(self.shape(name)) for name in node.proto.output[:] if name)
            fails = by_size and bool(failing_fold(self, node))
            if (kernel or not sized or fails) and all(map(self.is_constant, filter(None, node.proto.input[:]))):
                return True
        return False

    def before_optimization(self) -> Graph:
        """Returns a new Graph of this graph's nodes as they are in the file."""
        made = Graph(self, (value.name for value in self.scope.graph.output), self.initializers)
        nodes, untaken = self.scope.graph.node, self.branches.inside
        own = self.inputs | self.initializers.keys() | {name for each in nodes if untaken for name in each.output}
        for index, node in enumerate(nodes):
            captured = list(read_inside(node)) if index in self._captured else []
            # branches that are never taken are there until the graph is folded
            captured += sorted(own & untaken.get(first_output(node), set())) if untaken else []
            added = made.add(index, node, self._number(index, node), node.input[:], node.output[:], captured)
            if captured:
                added.names_inside = NamesInside.of(node)
        return made

    def path(self, index: int) -> str:
        """Returns the path of node `index` of this graph in diagnostics, made safe to print: the label of its graph and
        "/", if the graph is not the model's own, then the node's name, or else its first output's or its operator."""
        if index not in self._paths:
            self._paths[index] = name_of(self.nodes[index].proto, self.scope)
        return self._paths[index]

    @property
    def given_constants(self) -> Iterator[str]:
        """Yields the names of initializers and of Constant nodes' outputs."""
        yield from self.initializers
        yield from (value.name for node in self.nodes if node.op_type == "Constant" for value in node.outputs[:1])

    def shape(self, name: str) -> Shape | None:
        """Returns the shape of a tensor, or of the one that is read in its place, as far as it is known at session
        creation; None if its rank is not."""
        if name in self._shapes:
            return self._shapes[name]
        if name in self._added:
            return self._added[name].shape
        read = self.graph.source(name)
        if self.parent is None or self.is_own(read):
            found = self.scope.type_of(read)[1]
        else:
            found = self.parent.shape(read)
        if not self._is_changing:
            self._shapes[name] = found
        return found

    def shape_at_folding(self, name: str) -> Shape | None:
        """Returns the shape of a tensor while graphs are folded: an output of a taken branch around this graph still
        has its own, even if an Identity computes it of another tensor."""
        found = self.shape(name)
        given = not is_static(found) and name in self.branches.given
        return self.scope.type_of(name)[1] if given else found

    @cached_property
    def _all_shapes(self) -> Set[Shape]:
        """The known shapes of the tensors that the graph's nodes read and write."""
        return {shape for shape in map(self.shape, self.graph.values) if shape is not None}

    @cached_property
    def highest_rank(self) -> int:
        """The highest rank of the tensors that the graph's nodes read and write."""
        return max(map(len, self._all_shapes), default=0)

    @cached_property
    def large_tensors(self) -> Mapping[str, Shape]:
        """The sizes of the tensors of 2^32 elements and more, or with such a size, that the graph's nodes read and
        write, by name."""
        large = {shape for shape in self._all_shapes if is_static(shape) and max(math.prod(shape), *shape, 0) >= _LARGE}
        shapes = ((name, self.shape(name)) for name in self.graph.values) if large else ()
        return {name: shape for name, shape in shapes if shape is not None and shape in large}

    @property
    def is_main(self) -> bool:
        """True for the model's own graph, False for a graph in a node."""
        return self.parent is None

    @property
    def is_removed(self) -> bool:
        """True for a graph in a node that optimization removes, or inside such a graph."""
        around = self.parent
        return around is not None and (self.scope.steps[-1][0] not in around.walk or around.is_removed)

    @property
    def branches(self) -> TakenBranches:
        """The branches that ONNX Runtime has substituted for their Ifs."""
        return self.model.branches

    @cached_property
    def fusions(self) -> tuple[object, ...]:
        """The properties of the session that, besides the graph, determine the result of the passes after placement:
        runtimes with equal properties share that result."""
        return tuple([self.asked(name) for name in self._asked])

    @cached_property
    def _asked(self) -> Sequence[str]:
        """The names of the properties that the passes after placement read; they depend on the graph, not on the
        runtime."""
        made = that_may_change(self.graph.operators, PASSES, self.options.optimization)
        return [name for each in made for name in sorted(each.asks)]

    def has_cpu_kernel(self, index: int) -> bool:
        """True if the CPU provider has a kernel for the node with this index, or if that is not known."""
        cell = self._implemented[index]
        return cell is None or is_on_cpu_too(cell)

    def captured(self, index: int) -> Sequence[str]:
        """Returns the names that graphs inside the node with this index read once their Shapes are folded."""
        return self._read_inside.get(index, ())

    def is_expanded(self, index: int) -> bool:
        """True if the node with this index is replaced by the nodes of its function."""
        return self._implemented[index] in EXPANDED

    def has_open_sizes(self, node: Node) -> bool:
        """True if a size of an input or output of an optimized graph's node is not known at session creation: its
        kernel is made as the model runs."""
        names = [value.known for value in (*node.inputs, *node.outputs) if value.name]
        return not all(is_static(self.shape(name)) for name in names)

    def declared_shape(self, name: str) -> Shape | None:
        """Returns the shape that the file declares for a tensor; None if it declares none."""
        return self.scope.declared(name)[1]

    def data_type(self, name: str) -> str | None:
        """Returns ONNX's name of a tensor's element type; None if it is unknown."""
        if name in self._added:
            return self._added[name].data_type
        return self.scope.type_of(name)[0]

    def elements(self, name: str) -> Array | None:
        """Returns the elements of a constant; None for a tensor that is not a constant, or whose elements are too many
        or not known."""
        if name in self._added:
            return self._added[name].elements
        return self.scope.elements(name) if self.is_constant(name) else None

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Returns the elements of a constant of integers, flattened; None if not all are known or its type is not an
        integer type."""
        if name not in self._added:
            return self.scope.integers(name)
        array = self._added[name].elements
        return tuple(array.ravel().tolist()) if array is not None and array.dtype.kind in "iu" else None

    def shape_at_run(self, name: str) -> Shape | None:
        """Returns the shape of a tensor at the first Run; None if it is not known."""
        if name not in self._added:
            return None if self.run_scope is None else self.run_scope.type_of(name)[1]
        _, shape, _, _, arranged = self._added[name]
        return shape if arranged is None else arranged.of(self.shape_at_run(arranged.name))

    def note(
        self,
        name: str,
        data_type: str | None,
        shape: Shape | None,
        is_constant: bool,
        elements: Array | None,
        arranged: Arranged | None = None,
    ) -> None:
        """Notes what is known about a tensor that a pass adds to the optimized graph."""
        self._added[name] = _Added(data_type, shape, is_constant, elements, arranged)

    def is_constant(self, name: str) -> bool:
        """True for a constant of this graph or of one around it."""
        if name in self._added:
            return self._added[name].is_constant
        if self.graph.is_given(name):
            return True
        if self.parent is None:
            return False
        return not self.is_own(name) and self.parent.is_constant(name)

    @cached_property
    def walk(self) -> Mapping[int, int]:
        """Maps each remaining node's index to its position in the order of the walk."""
        return {node.index: place for place, node in enumerate(self.order)}

    def _number(self, index: int, node: onnx.NodeProto) -> tuple[int, int]:
        """Returns the sort key of the node with this index in the order in which ONNX Runtime lists nodes: by index,
        with nodes of inlined functions after all others."""
        place = self.model.inlined.get(first_output(node)) if self.model.inlined else None
        return (0, index) if place is None else (1, place)

    # Constants, open tensors, and nodes that compute with sizes.

    def _open_names(self) -> set[str]:
        """Returns the tensors with sizes that are known only when the model runs."""
        found = {name for name in self.inputs if not is_static(self.shape(name))}
        integers = {name for name in self.inputs if self.scope.type_of(name)[0] in ("INT64", "INT32")}
        """They may be sizes or lengths."""
        outer, lost = self.parent, self.model.lost
        for node in self.order:
            if node.doubts and Doubt.STATIC in node.doubts:
                continue
            names = [value.name for value in node.inputs if value.name and value.name not in self.graph.constants]
            by_data = row_of(node.proto.op_type).data_dependent or (lost and not lost.isdisjoint(node.proto.output[:]))
            is_open = by_data or self._has_computed_lengths(node) or not found.isdisjoint(names)
            is_open = is_open or not integers.isdisjoint(names)
            if is_open or (outer is not None and any(map(outer.is_open, names))):
                found.update([value.name for value in node.outputs if value.name])
        return found

    @property
    def has_open(self) -> bool:
        """True if `is_open` is true for some tensor."""
        return bool(self._open) or (self.parent is not None and self.parent.has_open)

    def is_open(self, name: str) -> bool:
        """True for a tensor with sizes that are known only when the model runs."""
        if self.graph.source(name) in self._open:
            return True
        return self.parent is not None and self.parent.is_open(name)

    def _has_computed_lengths(self, node: Node) -> bool:
        """True for a Split whose lengths are computed when the model runs, even if they follow from the model."""
        if node.op_type != "Split":
            return False
        return any(value.name and not self.is_constant(value.name) for value in node.inputs[1:])

    def _preferring_cpu(self) -> tuple[set[int], set[str]]:
        """Returns `preferring_cpu` and `left_on_cpu`."""
        on_cpu = {
            value.name
            for node in self.order
            if row_of(node.op_type).on_cpu and self.implemented(node.index)
            for value in node.outputs
        }
        found = set()
        for node in self.order if on_cpu else ():
            names, implemented = [value.name for value in node.inputs], self.implemented(node.index)
            inside = map(self.graph.source, self._captured.get(node.index, ()))
            if implemented is None or on_cpu.isdisjoint((*names, *inside)):
                continue
            cpu_inputs = row_of(node.op_type).cpu_inputs
            has_kernel = implemented or self.is_refused(node.index)
            if not has_kernel or all(self._stays(i, name, on_cpu, cpu_inputs) for i, name in enumerate(names)):
                on_cpu.update(value.name for value in node.outputs if value.name)
                if implemented:
                    found.add(node.index)
        return found, on_cpu

    def _stays(self, index: int, name: str, on_cpu: set[str], cpu_inputs: Sequence[int]) -> bool:
        """True if the input `name` of a node at this position lets it stay on the CPU; one that is left out does
        not."""
        if not name or self.scope.type_of(name)[0] in ("FLOAT16", "BFLOAT16"):
            return False
        if self._is_small_initializer(name) or (name in self.inputs and name not in self.defaults):
            return True
        return name in on_cpu and index not in cpu_inputs

    def _is_small_initializer(self, name: str) -> bool:
        if not self.is_constant(name) and name not in self.defaults:
            return False
        shape = self.shape(name) or ()
        return math.prod(dim for dim in shape if isinstance(dim, int)) <= _SMALL_INITIALIZER

    # The placement of nodes.

    def _all_implemented(self) -> tuple[Cell | None, ...]:
        """Returns the operator table's answer about each node; nodes that are alike in everything it depends on are
        looked up once."""
        cells = {kind: self.cell_of(kind, self.nodes[kind].proto) for kind in dict.fromkeys(self._kinds)}
        return tuple([cells[kind] for kind in self._kinds])

    def _all_refused(self) -> Set[int]:
        """Returns the kinds of nodes that DirectML refuses although it has a kernel for their types. Such a node is on
        the CPU, but what it computes does not keep others there, unless all that it reads does."""

        def refused(kind: int) -> bool:
            node, cell = self.nodes[kind].proto, self._implemented[kind]
            if cell is None or is_on_dml(cell):
                return False
            return is_refused(node, *self.types_of_tensors(kind), self.opset, self.runtime)

        return set(filter(refused, dict.fromkeys(self._kinds)))

    def _all_kinds(self) -> Sequence[int]:
        """Returns, for each node, the index of the first node that is equal in everything that its cell depends on:
        nodes of one kind have the same cell in every runtime."""
        first: dict[object, int] = {}
        kinds = []
        for index, node in enumerate(self.nodes):
            proto = node.proto
            own: object = None
            if index in self.inside:
                own = index
            elif proto.attribute and reads_attributes(domain_of(proto), proto.op_type):
                own = tuple([each.SerializeToString() for each in proto.attribute[:]])
            kind = proto.domain, proto.op_type, own, self.types_of_tensors(index)
            kinds.append(first.setdefault(kind, index))
        return kinds

    @cached_property
    def alike(self) -> Sequence[int]:
        """For each node, the index of the first node that differs from it in names only: its operator, attributes and
        constants and its tensors' types and static sizes are the same, and so is everything that follows from these.
        A node with graphs inside or open sizes, one that a pass made of others, and one that is left on the CPU because
        it computes with sizes, are like no other."""
        first: dict[object, int] = {}
        is_sized = cache(is_static)
        return [
            first.setdefault(self._but_for_names(index, node, is_sized), index) for index, node in enumerate(self.nodes)
        ]

    def _but_for_names(self, index: int, node: Node, is_sized: Callable[[Shape | None], bool]) -> object:
        """Returns what nodes that `alike` maps to one index have in common; the index of a node that is like no other.
        `is_sized` is True for a static shape."""
        proto = node.proto
        if any(index in apart for apart in (self.inside, self.preferring_cpu, self.graph.replaced)):
            return index
        if node.op_type == "Constant":
            return index
        read = proto.input[:]
        shapes = [self.shape(name) for name in (*read, *proto.output[:]) if name]
        if not all(map(is_sized, shapes)):
            return index
        constants = [name for name in read if name in self.defaults or self.is_constant(name)]
        types, _ = self.types_of_tensors(index)
        for name, kind in zip(read, types, strict=False) if not _OF_SIZES.isdisjoint(types) else ():
            if kind in _OF_SIZES and name not in constants:
                return index  # the elements may be known although they are computed
        attributes = [each.SerializeToString() for each in proto.attribute[:]]
        return self._kinds[index], node.op_type, tuple(shapes), tuple(constants), tuple(attributes)

    def implemented(self, index: int) -> bool | None:
        """Returns True if DirectML's execution provider has a kernel for a node, False if not; None if that is
        unknown."""
        cell = self._implemented[index]
        return None if cell is None else is_on_dml(cell)

    def cell(self, index: int) -> Cell | None:
        """Returns the operator table's answer about the node with this index at the model's opset; None if the table
        has no answer."""
        return self._implemented[index]

    def cell_of(self, index: int, node: onnx.NodeProto, opset: int | None = None) -> Cell | None:
        """Returns the operator table's answer about node `node` with the tensors and types of the node with this index.
        `opset` None stands for the model's opset. None if the table has no answer."""
        at = self.opset if opset is None else opset
        if not self.traits.ifs_read_sequences and operator_name(node) == "If" and self._reads_sequences(index):
            return Cell.CPU
        learning = self.scope.origin.learning
        return asked(node, *self.types_of_tensors(index), at, self.runtime, self._types_captured(index), learning)

    def cell_at(self, index: int, opset: int) -> Cell | None:
        """Returns the operator table's answer about the node with this index if the model had opset `opset`; None if
        the table has no answer."""
        key = self._kinds[index], opset
        if key not in self._cells:
            self._cells[key] = self.cell_of(index, self.nodes[index].proto, opset)
        return self._cells[key]

    def _types_captured(self, index: int) -> Types:
        """Returns the element types of the tensors that graphs inside a node read from outside; sequences are left
        out."""
        if not self._captured.get(index):
            return ()
        if index not in self._captured_types:
            own = [name for name in self._captured[index] if self._has(name)]
            self._captured_types[index] = self._types([n for n in own if self.scope.type_of(n)[0] != "SEQUENCE"])
        return self._captured_types[index]

    def _reads_sequences(self, index: int) -> bool:
        """True if graphs inside a node read a sequence from outside."""
        read = self._captured.get(index, ())
        return any(self._has(name) and self.scope.type_of(name)[0] == "SEQUENCE" for name in read)

    def _has(self, name: str) -> bool:
        """True if this graph, or one around it, has a tensor of this name."""
        return self.is_own(name) or (self.parent is not None and self.parent._has(name))

    def is_own(self, name: str) -> bool:
        """True if this graph itself has a tensor of this name."""
        value = self.graph.values.get(name)
        return name in self.inputs or name in self.initializers or (value is not None and value.is_computed)

    def types_of_tensors(self, index: int) -> tuple[Types, Types]:
        """Returns the element types of a node's inputs and outputs, "" for one that is left out, None for one that is
        not known."""
        if index not in self._element_types:
            node = self.nodes[index]
            read = [value.name for value in node.inputs] if index in self.graph.replaced else node.proto.input[:]
            self._element_types[index] = self._types(read), self._types(node.proto.output[:])
        return self._element_types[index]

    def _types(self, names: Sequence[str]) -> Types:
        """Returns the element types of tensors in the table's words, "" for the name "", None for one that is not
        known."""
        known = self._types_in_words
        for name in names:
            if name not in known:
                known[name] = _IN_WORDS.get(self.scope.data_type(name)) or self._type_in_words(name)
        return tuple([known[name] for name in names])

    def _type_in_words(self, name: str) -> str | None:
        """Returns the type of the elements of a tensor, or of the tensors of a sequence, in the table's words."""
        found = self.scope.element_type(name)
        return found and found.lower()

    def operator(self, index: int) -> Operator | None:
        """Returns the node's row of the table of placements; None if there is none."""
        kind = self._kinds[index]
        if kind not in self._operators:
            node = self.nodes[index].proto
            self._operators[kind] = operator_of(node, self.opset, self.runtime, self.scope.origin.learning)
        return self._operators[kind]

    def types_of(self, index: int) -> Types:
        """Returns the types of the type parameters of a node's operator; () without a row in the table."""
        operator = self.operator(index)
        return () if operator is None else operator.types(*self.types_of_tensors(index))

    def is_refused(self, index: int) -> bool:
        """True if DirectML has a kernel for the types of the node with this index, but refuses the node."""
        return self._kinds[index] in self._refused

    def message(self, index: int) -> str:
        """Returns ONNX Runtime's message for a node that fails session creation; "" if none was recorded."""
        operator = self.operator(index)
        return "" if operator is None else operator.message(self.types_of(index))

    def most_rank(self, index: int) -> int | None:
        """Returns the highest rank of tensors with static sizes that the kernel of the node with this index accepts;
        None if no limit was recorded."""
        operator = self.operator(index)
        return None if operator is None else operator.most_rank

    def is_unsettled(self, index: int) -> bool:
        """True for a node that computes with sizes which further inference may find: it may be folded, or not be left
        on the CPU."""
        if not self.model.is_unfinished:
            return False
        node = self.nodes[index]
        measures = row_of(node.op_type).on_cpu and not all(is_static(self.shape(value.name)) for value in node.inputs)
        return measures or index in self.preferring_cpu

    def on_dml(self, index: int) -> bool | None:
        """Returns True if DirectML runs the node with this index, False if not; None if it is not known."""
        if self.is_unsettled(index):
            return None
        return False if index in self.preferring_cpu else self.implemented(index)

    @cached_property
    def has_subgraphs(self) -> bool:
        """True if a node that is left has a graph inside, or is replaced by nodes of which one has."""
        if self.inside and any(has_graphs(node.proto) for node in self.order):
            return True
        expanded = (node for node in self.order if self.is_expanded(node.index))
        return any(holds_graphs(node.proto, self.types_of_tensors(node.index)[0], self.opset) for node in expanded)

    @property
    def fuses(self) -> bool:
        """True if nodes of this graph are fused: fusion is on, and no node has a graph inside."""
        return self.options.graph_fusion and not self.has_subgraphs

    def is_initializer(self, name: str) -> bool:
        """True if the partitioner finds a constant of this name in this graph itself."""
        if name in self._added:
            return self._added[name].is_constant
        return self.graph.is_given(name) or name in self.defaults

    def is_known_to_kernels(self, name: str) -> bool:
        """True for a constant whose elements a kernel of this graph that is created with the session can read."""
        known = self.is_constant if self.runtime.traits.outer_lengths_are_known else self.is_initializer
        return known(name)
