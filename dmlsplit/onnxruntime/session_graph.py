"""One graph of a model in a session: what is folded, what goes to the CPU, what can be fused."""

from __future__ import annotations

import copy
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import onnx

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import domain_of, first_output, reads, subgraphs
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Graph, Node
from dmlsplit.models.once import Once
from dmlsplit.models.onnx_nodes import name_of
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime import passes, transposes
from dmlsplit.onnxruntime.neighbours import (
    CONTRIBUTED,
    CPU_INPUTS,
    DATA_DEPENDENT,
    KEEPS_ON_CPU,
    NEIGHBOURS,
    ON_CPU,
    SMALL_INITIALIZER,
    Neighbour,
)
from dmlsplit.onnxruntime.node_shapes import merged
from dmlsplit.onnxruntime.reshapes import Fate, shapes_for_reshapes
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions

_ROWS: Final = {"": NEIGHBOURS, "com.microsoft": CONTRIBUTED}


@dataclass(frozen=True, slots=True)
class Placed:
    """A node that is left after folding, and where it goes; None where that is not known."""

    index: int
    on_dml: bool | None
    in_graph: bool | None


class SessionGraph:
    """The nodes of one graph, as they stand when ONNX Runtime cuts it into partitions."""

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
        self.run_scope = run_scope
        self.parent = parent
        self.nodes = list(scope.graph.node)
        self.inputs = {value.name for value in scope.graph.input}
        self.outputs = {value.name for value in scope.graph.output}
        self.initializers = {tensor.name: tensor for tensor in scope.graph.initializer}
        self.defaults: Mapping[str, onnx.TensorProto] = model.defaults if parent is None else {}
        self.readers: dict[str, list[int]] = {}
        self.producers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.reads = [tuple(dict.fromkeys(reads(node))) for node in self.nodes]
        """The names that each node reads, and those that graphs in it do."""
        for index, names in enumerate(self.reads):
            for name in names:
                self.readers.setdefault(name, []).append(index)
        self._paths: dict[int, str] = {}
        self._placed: dict[int, Placed] = {}
        self._shapes: dict[str, Shape | None] = {}
        self.graph = Graph(self, self.outputs, self.initializers)
        for index, node in enumerate(self.nodes):
            own = set(node.input)
            captured = [name for name in self.reads[index] if name not in own]
            self.graph.add(index, node, self.number(index), node.input, node.output, captured)
        passes.run(passes.BEFORE_PLACEMENT, self.graph, options.optimization)
        self._shapes = {}
        self.folded = self.graph.folded
        self.constants = self.graph.constants
        self.constants.update(name for name in self.producers if self.source(name) in self.constants)
        self._removed = set(range(len(self.nodes))) - self.folded - {node.index for node in self.graph.nodes}
        self.reshapes = shapes_for_reshapes(self)
        constant = {index for index, shape in self.reshapes.items() if shape.fate is Fate.CONSTANT}
        self.for_constants = {node.index for node in self.graph.nodes if _leads_only_to(node, constant)}
        """The nodes that nothing reads any more once a Reshape's shape is a constant."""
        for node in self.graph.nodes:
            if node.index in constant:
                self.graph.fold(node)
        self._open = self._open_names()
        self.has_subgraphs = any(True for node in self.nodes for _ in subgraphs(node))
        self._implemented = self._all_implemented()
        self.preferring_cpu = self._preferring_cpu()
        self.once = Once()
        """Shared with the same graph in sessions of other runtimes: what is made must rest on the runtime only as far
        as its key says so."""

    @classmethod
    def of_model(cls, model: SessionModel, runtime: Runtime, options: SessionOptions) -> list[SessionGraph]:
        """All graphs of a model, as `all_of` has them; what is the same for several runtimes is worked out once."""
        first = model.once(options, lambda: list(cls.all_of(model, runtime, options, model.session, model.run)))
        return model.once((options, runtime), lambda: _for_runtime(first, runtime))

    @classmethod
    def all_of(
        cls,
        model: SessionModel,
        runtime: Runtime,
        options: SessionOptions,
        scope: Scope,
        run_scope: Scope | None = None,
        parent: SessionGraph | None = None,
    ) -> Iterator[SessionGraph]:
        """A graph behind those in its nodes: ONNX Runtime fuses the inner ones first."""
        graph = cls(model, runtime, options, scope, run_scope, parent)
        for index, node in enumerate(graph.nodes):
            if not node.attribute:
                continue
            inner_run = dict(run_scope.children(index)) if run_scope is not None else {}
            for name, child in scope.children(index):
                yield from cls.all_of(model, runtime, options, child, inner_run.get(name), graph)
        yield graph

    def in_session_of(self, runtime: Runtime, parent: SessionGraph | None) -> SessionGraph:
        """The same graph in a session of another runtime: only what it leaves on the CPU may differ."""
        other = copy.copy(self)
        other.runtime, other.parent = runtime, parent
        other._implemented = other._all_implemented()
        if other._implemented != self._implemented:
            other.preferring_cpu = other._preferring_cpu()
            other.once, other._placed = Once(), {}
        return other

    def path(self, index: int) -> str:
        """The name of a node in diagnostics."""
        if index not in self._paths:
            self._paths[index] = name_of(self.nodes[index], self.scope)
        return self._paths[index]

    @property
    def given_constants(self) -> Iterator[str]:
        """The initializers, and what Constants give."""
        yield from self.initializers
        yield from (name for node in self.nodes if node.op_type == "Constant" for name in node.output[:1])

    def shape(self, name: str) -> Shape | None:
        """The shape of a tensor as far as it is known at session creation.

        A tensor that is read in its place may have declared sizes.
        """
        if name not in self._shapes:
            known, read = (self.scope.type_of(which)[1] for which in (name, self.source(name)))
            self._shapes[name] = read if known is None else known if is_static(known) else merged(known, read)
        return self._shapes[name]

    @property
    def opset(self) -> int:
        """Of the default domain."""
        return self.scope.origin.opset

    def data_type(self, name: str) -> str | None:
        """ONNX's name of an element type; None where it is not known."""
        return self.scope.type_of(name)[0]

    def elements(self, name: str) -> Array | None:
        """The elements of a small constant; None of anything else, and where they are not known."""
        return self.scope.elements(name) if self.is_constant(name) else None

    def is_constant(self, name: str) -> bool:
        """Whether a name is a constant of this graph or of one around it."""
        if name in self.graph.constants:
            return True
        hidden = name in self.inputs or name in self.producers
        return self.parent is not None and not hidden and self.parent.is_constant(name)

    @property
    def alive(self) -> Iterator[tuple[int, onnx.NodeProto]]:
        """The nodes that folding leaves, by index."""
        return ((index, node) for index, node in enumerate(self.nodes) if index not in self.folded)

    def order(self) -> list[int]:
        """The nodes that are left, in the order in which ONNX Runtime walks over them."""
        return [node.index for node in self.graph.walk()]

    @cached_property
    def walk(self) -> Mapping[int, int]:
        """For each of these nodes which of them it is."""
        return {index: place for place, index in enumerate(self.order())}

    def number(self, index: int) -> tuple[int, int]:
        """Where ONNX Runtime has a node: those of functions count as added behind all others."""
        place = self.model.inlined.get(first_output(self.nodes[index]))
        return (0, index) if place is None else (1, place)

    @cached_property
    def transposed(self) -> set[int]:
        """The nodes that optimization may move Transposes over."""
        return transposes.transposed(self)

    def removed(self, index: int) -> bool:
        """Whether optimization removes a node: an Identity, or one that computes what another does."""
        return index in self._removed

    def source(self, name: str) -> str:
        """The name that is read in place of another."""
        return self.graph.source(name)

    def origin(self, name: str) -> int | None:
        """The node that computes a name, or what is read in its place."""
        return self.producers.get(self.source(name))

    def ends(self, name: str) -> list[int]:
        """The nodes that read a name, or another that it stands for; -1 stands for a graph output."""
        value = self.graph.values.get(self.source(name))
        if value is None:
            return []
        return [-1] * value.is_output + [reader.index for reader in value.readers]

    def followers(self, index: int) -> Iterator[int]:
        """The nodes that read what a node gives, as `ends` has them."""
        return (reader for name in self.nodes[index].output if name for reader in self.ends(name))

    # Constants, open tensors, and nodes that compute with sizes.

    def _open_names(self) -> set[str]:
        """The tensors whose sizes follow from what is known only as the model runs."""
        found = {name for name in self.inputs if not is_static(self.shape(name))}
        outer = self.parent
        settled = {shape.reshape for shape in self.reshapes.values() if shape.settles}
        for index, node in self.alive:
            if index in settled:
                continue
            names = {name for name in node.input if name} - self.constants
            by_data = node.op_type in DATA_DEPENDENT | self.model.uninferred or self._has_computed_lengths(node)
            is_open = by_data or not names.isdisjoint(found) or any(map(self._is_open_integer, names))
            if is_open or (outer is not None and any(map(outer.is_open, names))):
                found.update(name for name in node.output if name)
        return found

    def is_open(self, name: str) -> bool:
        """Whether the sizes of a tensor follow from what is known only as the model runs."""
        return name in self._open or (self.parent is not None and self.parent.is_open(name))

    def _has_computed_lengths(self, node: onnx.NodeProto) -> bool:
        """Whether the lengths of a Split are computed as the model runs, even where they follow from the model."""
        is_split = node.op_type == "Split" and domain_of(node) == ""
        return is_split and any(name and not self.is_constant(name) for name in node.input[1:])

    def _is_open_integer(self, name: str) -> bool:
        """Whether a tensor may be sizes or lengths that a run gives."""
        return name in self.inputs and self.scope.type_of(name)[0] in ("INT64", "INT32")

    def _preferring_cpu(self) -> set[int]:
        """The nodes that are left on the CPU since they compute with sizes."""
        on_cpu = {
            name
            for index, node in self.alive
            if node.op_type in KEEPS_ON_CPU and domain_of(node) == "" and self.implemented(index)
            for name in node.output
        }
        found = set()
        for index, node in self.alive:
            names = list(node.input)
            if not on_cpu.intersection(names) or self.implemented(index) is False:
                continue
            cpu_inputs = CPU_INPUTS.get(node.op_type, ())
            if all(self._stays(i, name, on_cpu, cpu_inputs) for i, name in enumerate(names) if name):
                found.add(index)
                on_cpu.update(name for name in node.output if name)
        return found

    def _stays(self, index: int, name: str, on_cpu: set[str], cpu_inputs: Sequence[int]) -> bool:
        if self.scope.type_of(name)[0] in ("FLOAT16", "BFLOAT16"):
            return False
        if self._is_small_initializer(name) or (name in self.inputs and name not in self.defaults):
            return True
        return name in on_cpu and index not in cpu_inputs

    def _is_small_initializer(self, name: str) -> bool:
        if not self.is_constant(name) and name not in self.defaults:
            return False
        shape = self.shape(name) or ()
        return math.prod(dim for dim in shape if isinstance(dim, int)) <= SMALL_INITIALIZER

    # Where nodes go.

    def _all_implemented(self) -> tuple[bool | None, ...]:
        return tuple(map(self._is_implemented, self.nodes))

    def implemented(self, index: int) -> bool | None:
        """Whether the execution provider implements a node; None where that is not known."""
        return self._implemented[index]

    def _is_implemented(self, node: onnx.NodeProto) -> bool | None:
        domain, known = domain_of(node), neighbour_of(node)
        if domain == "" and node.op_type in ON_CPU:
            return False
        if known is None:
            return True if domain == "" and node.op_type in JUDGED else None
        if not known.types:
            return False
        read = node.input[node.op_type == "Where" :][:1]
        data_type = self.scope.type_of(read[0])[0] if read else None
        return known.takes(data_type, self.scope.origin.opset, self.runtime)

    def placed(self, index: int) -> Placed:
        """Where a node goes that is no Split or Concat."""
        if index not in self._placed:
            self._placed[index] = self._place(index)
        return self._placed[index]

    def _place(self, index: int) -> Placed:
        node = self.nodes[index]
        on_dml = False if index in self.preferring_cpu else self.implemented(index)
        if node.op_type == "Identity" and self.options.optimization >= 1 and self.fuses:
            # It may be removed, too, where it gives an output of the graph.
            return Placed(index, on_dml, None)
        known = neighbour_of(node)
        if on_dml is False or not self.fuses or (known is not None and not known.in_graph):
            return Placed(index, on_dml, False)
        cpu_inputs = known.cpu_inputs if known is not None else ()
        names = list(node.input)
        if known is not None and known.inputs_in_graph not in (None, len(names)):
            return Placed(index, on_dml, False)
        if any(names[i] and not self.is_initializer(names[i]) for i in cpu_inputs if i < len(names)):
            return Placed(index, on_dml, False)
        read = [name for i, name in enumerate(names) if name and i not in cpu_inputs]
        # The sizes of a constant are known where it is computed, whatever the file says of them.
        shapes = [self.shape(name) for name in read if not self.is_constant(name)]
        shapes += [self.shape(name) for name in node.output if name]
        if all(map(is_static, shapes)):
            empty = any(0 in shape for shape in shapes if shape is not None)
            return Placed(index, on_dml, False if empty else True if on_dml else None)
        # ONNX Runtime's inference may find shapes that inference here did not.
        unknown = all(is_static(self.shape(name)) or not self.is_open(name) for name in names if name)
        return Placed(index, on_dml, None if unknown else False)

    @property
    def fuses(self) -> bool:
        """Whether any nodes of this graph are fused: not where one of them holds a graph."""
        return self.options.graph_fusion and not self.has_subgraphs

    def is_initializer(self, name: str) -> bool:
        """Whether the partitioner finds a tensor of this name in this very graph."""
        return name in self.constants or name in self.defaults


def _leads_only_to(node: Node, indices: Container[int]) -> bool:
    """Whether nothing but these nodes, one at least, reads what a node gives."""
    readers = list(node.readers)
    return bool(readers) and all(r.index in indices for r in readers) and not any(v.is_output for v in node.outputs)


def neighbour_of(node: onnx.NodeProto) -> Neighbour | None:
    """The row of a node's operator, where it has one."""
    rows = _ROWS.get(domain_of(node))
    return None if rows is None else rows.get(node.op_type)


def _for_runtime(graphs: Sequence[SessionGraph], runtime: Runtime) -> list[SessionGraph]:
    """The same graphs in a session of a runtime."""
    if graphs[0].runtime == runtime:
        return list(graphs)
    found: dict[int, SessionGraph] = {}
    for graph in reversed(graphs):  # a graph stands behind those in its nodes
        found[id(graph)] = graph.in_session_of(runtime, None if graph.parent is None else found[id(graph.parent)])
    return list(reversed(found.values()))
