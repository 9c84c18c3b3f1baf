"""The names of a graph, and what is known about each: type, shape, declaration, constant."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.limits import Budget, Limit, LimitError
from dmlsplit.formats.onnx.protobuf import domain_of, graphs_named, graphs_of, has_graphs, own_name, values_of
from dmlsplit.formats.onnx.tensors import Array, ReadExternal, type_name, type_of, value_of
from dmlsplit.models.folding import FOLDED, Constant, attributes_of, fold, of_shape
from dmlsplit.models.functions import Functions
from dmlsplit.models.given import symbols_of
from dmlsplit.rules.onnx import VERSIONS
from dmlsplit.system.errors import InputError

_Followed: TypeAlias = tuple[Constant | None, int]
"""A constant, and the number of nodes that are folded one after another for it."""
Step: TypeAlias = tuple[int, str, int]
"""The step into a graph inside a node: the node's index, the attribute's name, and the index of the graph among those
in attributes of that name. A malformed node has several such attributes."""

_CONSTANT_FIELDS: Final = {
    "value_int": ("i", np.int64),
    "value_ints": ("ints", np.int64),
    "value_float": ("f", np.float32),
    "value_floats": ("floats", np.float32),
}
"""The attributes of a Constant besides `value`."""
MAX_FOLDING: Final = Limit.ONNX_FOLDING.most
MAX_PATH: Final = Limit.ONNX_PATH.most


LEARNING: Final = "ai.onnx.ml"
"""The domain of ONNX's operators of machine learning."""


@dataclass(frozen=True, eq=False, repr=False)
class Origin:
    """The model, or the function, that a graph belongs to."""

    opset: int
    """The opset of the default domain; 0 if none is imported, or several."""
    functions: Functions
    graph: onnx.GraphProto = field(repr=False, compare=False)
    """The graph of the model."""
    read_external: ReadExternal
    budget: Budget
    partly: bool = True
    """True if the known part of a partly known shape counts."""
    types: dict[bytes, tuple[str | None, Shape | None]] = field(default_factory=dict, repr=False, compare=False)
    """Decoded types by their bytes: many tensors share few types."""
    learning: int = 0
    """The opset of ai.onnx.ml; 0 if it is not imported, or in several versions."""

    @classmethod
    def of(
        cls,
        model: onnx.ModelProto,
        functions: Functions,
        read_external: ReadExternal,
        budget: Budget,
        partly: bool = True,
    ) -> Origin:
        learning = opset_of(model, LEARNING)
        return cls(opset_of(model), functions, model.graph, read_external, budget, partly, learning=learning)

    @cached_property
    def symbols(self) -> Mapping[str, int]:
        """The symbolic dimensions of the model, numbered from 1."""
        return {name: number for number, name in enumerate(symbols_of(self.graph), 1)}

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Maps the number of each symbol, negative as in a Constant, to its name."""
        return {-number: name for name, number in self.symbols.items()}

    @cached_property
    def version(self) -> int:
        """The version of Split in this opset; 0 if the opset is unknown."""
        return max((version for version in VERSIONS if version <= self.opset), default=0)


def opset_of(model: onnx.ModelProto | onnx.FunctionProto, domain: str = "") -> int:
    """Returns the version of a domain that the model, or function, imports; 1 for the default one in a model of an IR
    version below 3 without imports; 0 if it imports none, or several that differ."""
    opsets = {entry.version for entry in model.opset_import if domain_of(entry) == domain}
    if not domain and not model.opset_import and isinstance(model, onnx.ModelProto) and model.ir_version < 3:
        return 1
    return max(opsets.pop(), 0) if len(opsets) == 1 else 0


class Scope:
    """The names of one graph; lookups continue in the graphs around it."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        inferred: onnx.GraphProto,
        origin: Origin,
        label: str = "",
        parent: Scope | None = None,
        constants: Mapping[str, Constant | None] | None = None,
        depth: int = 0,
        steps: tuple[Step, ...] = (),
    ) -> None:
        """Makes the Scope of a graph: `inferred` is the graph with inferred types, `constants` are known elements of
        tensors, `depth` is the number of graphs around this one, and `steps` leads to it from the model's or function's
        graph."""
        self.graph = graph
        self.inferred = inferred
        self.origin = origin
        self.label = label
        self.depth = depth
        self.steps = steps
        self._parent = parent
        self._given = constants or {}
        self._constants: dict[str, _Followed] = {name: (constant, 0) for name, constant in self._given.items()}
        self._whole: dict[str, Array] = {}
        """The elements of constants of which all are known."""
        self._malformed: dict[str, InputError] = {}
        self._running: set[str] = set()
        """The names that are being followed: a graph may have cycles."""
        self._types = {value.name: value.type for value in values_of(inferred) if value.name and value.HasField("type")}
        self._read_types: dict[str, tuple[str | None, Shape | None]] = {}

    @cached_property
    def with_graphs(self) -> Set[int]:
        """The indices of the nodes with graphs inside."""
        return {index for index, node in enumerate(self.graph.node) if node.attribute and has_graphs(node)}

    @cached_property
    def _initializers(self) -> Mapping[str, onnx.TensorProto]:
        return {tensor.name: tensor for tensor in self.graph.initializer if tensor.name}

    @cached_property
    def _inputs(self) -> Set[str]:
        return {value.name for value in self.graph.input}

    @cached_property
    def _producers(self) -> Mapping[str, onnx.NodeProto]:
        return {name: node for node in self.graph.node for name in node.output[:] if name}

    @cached_property
    def _declared(self) -> Mapping[str, onnx.TypeProto]:
        return {value.name: value.type for value in (*self.graph.value_info, *self.graph.output) if value.name}

    def asked_anew(self) -> Scope:
        """Returns a scope of the same outermost graph with an empty cache of constants."""
        return Scope(self.graph, self.inferred, self.origin, self.label, None, self._given, self.depth, self.steps)

    def type_of(self, name: str) -> tuple[str | None, Shape | None]:
        """Returns the element type and the shape of a tensor, each None if it is unknown; (None, None) for the name
        ""."""
        found = self._read_types.get(name)
        if found is not None:
            return found
        if name in self._types:
            proto = self._types[name]
            data = proto.SerializeToString()
            if data not in self.origin.types:
                data_type, shape = type_of(proto)
                self.origin.types[data] = data_type, self._named(shape)
            found = self._read_types[name] = self.origin.types[data]
            return found
        if name in self._initializers:
            tensor = self._initializers[name]
            return type_name(tensor.data_type), tuple([dim if dim >= 0 else None for dim in tensor.dims])
        if name in self._producers or self._parent is None:
            return None, None
        return self._parent.type_of(name)

    def data_type(self, name: str) -> int:
        """Returns a tensor's element type (a TensorProto.DataType), UNDEFINED (0) for an unknown one and for what is no
        tensor. It takes a fraction of the time of `type_of`."""
        if name in self._types:
            return int(self._types[name].tensor_type.elem_type)
        if name in self._initializers:
            return self._initializers[name].data_type
        return 0 if name in self._producers or self._parent is None else self._parent.data_type(name)

    def inferred_type(self, name: str) -> onnx.TypeProto | None:
        """Returns the type of one of this graph's own names, even if it is not a tensor; None if it is not known."""
        return self._types.get(name)

    def element_type(self, name: str) -> str | None:
        """Returns the name of a tensor's element type, or of the element type of a sequence's tensors; None if it is
        not known."""
        if name not in self._types and self._parent is not None and name not in self._producers:
            return self._parent.element_type(name) if name not in self._initializers else self.type_of(name)[0]
        data_type = self.type_of(name)[0]
        if data_type == "SEQUENCE":
            return type_of(self._types[name].sequence_type.elem_type)[0]
        return data_type

    def set_type(self, name: str, data_type: int, shape: Shape) -> None:
        """Records a tensor's type (a TensorProto.DataType) and shape, and replaces the inferred one."""
        self._types[name] = helper.make_tensor_type_proto(data_type, shape)
        self._read_types.pop(name, None)

    def declared(self, name: str) -> tuple[str | None, Shape | None]:
        """Returns the element type and the shape that the model declares for one of this graph's own names, each None
        if it does not."""
        return type_of(self._declared[name]) if name in self._declared else (None, None)

    def _named(self, shape: Shape | None) -> Shape | None:
        """Returns the shape with the symbols that inference generated replaced with None."""
        if shape is None:
            return None
        made_up = {d for d in shape if isinstance(d, str) and d not in self.origin.symbols}
        return tuple([None if d in made_up else d for d in shape])

    def producer(self, name: str) -> onnx.NodeProto | None:
        """Returns the node that computes a name, in this graph or one around it; None if no node does."""
        if name in self._producers or self._parent is None:
            return self._producers.get(name)
        return self._parent.producer(name)

    def constant(self, name: str) -> Constant | None:
        """Returns a small constant, whose `known` marks the elements that are known; None if the name is not a
        constant, if nothing is known about it, or if more than MAX_FOLDING nodes would be folded one after another.
        Raises InputError if a tensor is malformed, LimitError beyond a limit."""
        return self._followed(name, 0)[0]

    def _followed(self, name: str, depth: int) -> _Followed:
        """Returns a constant as `constant` does, and the number of nodes that are folded one after another for it.

        `depth` is the number of nodes between it and the name that was asked for. If the constant is None and the
        number is not 0, it is at least that number, and with `depth` more than MAX_FOLDING.
        """
        found = self._constants.get(name)
        if found is not None and (found[0] is not None or found[1] == 0 or depth + found[1] > MAX_FOLDING):
            return found
        if name in self._malformed:
            raise self._malformed[name].with_traceback(None)
        if name in self._running:
            return None, 0
        self._running.add(name)
        try:
            found = self._constants[name] = self._find(name, depth)
        except InputError as error:
            self._malformed[name] = error
            raise
        finally:
            self._running.remove(name)
        return found

    def set_constant(self, name: str, constant: Constant | None) -> None:
        """Records the elements of a tensor that no folded node computes; None records nothing."""
        if constant is not None:
            self._constants[name] = constant, 0
            self._whole.pop(name, None)

    def known(self, name: str) -> Constant | None:
        """Returns what `constant` returns, except None for a malformed tensor, which is reported when lengths are read.
        Raises LimitError."""
        try:
            return self.constant(name)
        except LimitError:
            raise
        except InputError:
            return None

    def elements(self, name: str) -> Array | None:
        """Returns the elements of a constant as an array; None if not all are known."""
        if name not in self._whole:
            constant = self.known(name)
            if constant is None or not constant.whole:
                return None
            self._whole[name] = constant.array
        return self._whole[name]

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Returns the elements of a constant of integers, flattened; None if not all are known or its type is not an
        integer type."""
        array = self.elements(name)
        return tuple(array.ravel().tolist()) if array is not None and array.dtype.kind in "iu" else None

    def _find(self, name: str, depth: int) -> _Followed:
        """Returns the constant with this name, or (None, 0) if it is not known to be one; `depth` nodes that read it
        are being folded."""
        if name in self._initializers:
            return self._read(value_of(self._initializers[name], self.origin.read_external)), 0
        node = self._producers.get(name)
        if node is None:
            given = name in self._inputs
            return (None, 0) if given or self._parent is None else self._parent._followed(name, depth)
        if domain_of(node) != "" or self.origin.functions.key_of(node) is not None or node.output[0] != name:
            return None, 0
        if node.op_type == "Constant":
            return self._read(self._value_of(node)), 0
        if node.op_type in ("Shape", "Size") and node.input:
            shape = self.type_of(node.input[0])[1]
            if shape is None or not (self.origin.partly or (is_static(shape) and node.op_type == "Shape")):
                return None, 0
            return of_shape(node, shape, self.origin.symbols, self.origin.opset), 0
        return self._folded(node, depth) if node.op_type in FOLDED else (None, 0)

    def _folded(self, node: onnx.NodeProto, depth: int) -> _Followed:
        """Returns the constant that a node computes from constants; (None, 0) if it does not, and (None, the number of
        nodes in a row) if these are too many to fold."""
        if depth >= MAX_FOLDING:
            return None, 1
        read = {each: self._followed(each, depth + 1) for each in node.input[:] if each}
        unknown = [count for constant, count in read.values() if constant is None]
        if 0 in unknown:
            return None, 0
        count = 1 + max([count for _, count in read.values()], default=0)
        if unknown or count > MAX_FOLDING:
            return None, count
        inputs = [read[each][0] if each else None for each in node.input[:]]
        self.origin.budget.spend(Limit.ONNX_FOLDED)
        folded = fold(node, inputs, self.origin.opset, self.origin.read_external)
        tried = sum(constant.array.size for constant in inputs if constant is not None)
        self.origin.budget.spend(Limit.ONNX_ALL_ELEMENTS, tried if folded is None else folded.array.size)
        return folded, 0 if folded is None else count

    def _read(self, array: Array | None) -> Constant | None:
        if array is None:
            return None
        self.origin.budget.spend(Limit.ONNX_ALL_ELEMENTS, array.size)
        return Constant.of(array)

    def _value_of(self, node: onnx.NodeProto) -> Array | None:
        for name, attribute in (attributes_of(node, self.origin.opset) or {}).items():
            if name == "value":
                return value_of(attribute.t, self.origin.read_external)
            if name in _CONSTANT_FIELDS:
                field, data_type = _CONSTANT_FIELDS[name]
                return np.array(getattr(attribute, field), data_type)
        return None

    def children(self, index: int) -> Iterator[tuple[str, Scope]]:
        """Yields the graphs in the attributes of the node with this index, each as (attribute name, scope)."""
        if index not in self.with_graphs:
            return
        node = self.graph.node[index]
        # Inference keeps the order of nodes, but not that of attributes.
        twins = {a.name: a for a in self.inferred.node[index].attribute}
        numbers: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
        for attribute in node.attribute[:]:
            twin = twins.get(attribute.name, attribute)
            pairs = [(attribute.g, twin.g)] if attribute.HasField("g") else []
            pairs += zip(attribute.graphs, twin.graphs, strict=False)
            for number, (graph, inferred) in enumerate(pairs):
                if len(graph.node) != len(inferred.node):
                    inferred = graph
                label = label_of(self.label, _inner_name(node, attribute, number, len(pairs)))
                steps = (*self.steps, (index, attribute.name, next(numbers[attribute.name])))
                yield (
                    attribute.name,
                    Scope(graph, inferred, self.origin, label, self, depth=self.depth + 1, steps=steps),
                )


def inside(node: onnx.NodeProto, scope: Scope) -> onnx.GraphProto | None:
    """Returns the graph in the attributes of `node` at the place of `scope`, the scope of a graph inside a copy of that
    node; None if it was removed because inference cannot read it."""
    _, name, number = scope.steps[-1]
    graphs = graphs_named(node, name)
    found = graphs[number] if number < len(graphs) else None
    return found if found is not None and len(found.node) == len(scope.graph.node) else None


def labelled_graphs(graph: onnx.GraphProto, label: str = "") -> Iterator[tuple[onnx.GraphProto, str]]:
    """Yields a graph and all graphs nested in its nodes, each with the label of its scope; `label` is that of `graph`.
    A graph comes before the graphs in it."""
    yield graph, label
    for node in graph.node:
        for attribute in node.attribute[:]:
            inner = list(graphs_of(attribute)) if attribute.HasField("g") or attribute.graphs else ()
            for number, each in enumerate(inner):
                yield from labelled_graphs(each, label_of(label, _inner_name(node, attribute, number, len(inner))))


def _inner_name(node: onnx.NodeProto, attribute: onnx.AttributeProto, number: int, count: int) -> str:
    """Returns the name, in labels, of graph `number` of the `count` graphs in a node's attribute."""
    return f"{own_name(node)}.{attribute.name}" + (f"[{number}]" if count > 1 else "")


def label_of(outer: str, name: str) -> str:
    """Returns the path of graph `name` inside a graph with the path `outer`; the middle of a long path is omitted."""
    path = f"{outer}/{name}" if outer else name
    return path if len(path) <= MAX_PATH else f"{path[: MAX_PATH // 2]}...{path[-MAX_PATH // 4 :]}"
