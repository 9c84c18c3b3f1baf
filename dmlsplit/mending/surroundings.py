"""The graph around a fault: its nodes, the readers of its tensors, and new nodes for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.protobuf import Names, add_document, domain_of, has_graphs, reads, refill, text
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.mending.constants import constant_nodes
from dmlsplit.mending.conversion import takes
from dmlsplit.mending.editing import Original
from dmlsplit.mending.sites import Site
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime.cure_places import Around


@dataclass(eq=False, repr=False)
class Surroundings(Around[str]):
    """The graph around a fault: its scopes at each call, and its Splits and Concats by index, at each call."""

    nodes: Sequence[onnx.NodeProto]
    exits: set[str]
    scopes: Sequence[Scope]
    sites: Mapping[int, Sequence[Site]]
    original: Original
    taken: Names = field(default_factory=Names)
    """The names in use."""
    document: str = ""
    """The doc_string of new nodes."""
    readers: dict[str, list[int]] = field(default_factory=dict)
    producers: dict[str, int] = field(default_factory=dict)
    may_show: bool = False
    """True if it is the model's own graph, which may get further outputs."""
    shown: dict[int, tuple[str, str]] = field(default_factory=dict)
    """The output names that changes of nodes need, by the node: the old name ("" for a further output) and the new
    one."""
    _shared: dict[object, str] = field(default_factory=dict)
    """The names of the constants that were made, by their elements."""
    _constants: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    """The nodes that compute them, by their names."""

    def __post_init__(self) -> None:
        for index, node in enumerate(self.nodes):
            for name in node.output[:]:
                if name:
                    self.producers[text(name)] = index
            for name in dict.fromkeys(reads(node)):
                self.readers.setdefault(name, []).append(index)

    @property
    def opset(self) -> int:
        return self.scopes[0].origin.opset

    def rank(self, name: str) -> int | None:
        """Returns the rank of a tensor; None if it is unknown or differs between calls."""
        ranks = {None if shape is None else len(shape) for shape in (s.type_of(name)[1] for s in self.scopes)}
        return ranks.pop() if len(ranks) == 1 else None

    def shape(self, tensor: str) -> Shape | None:
        shapes = {scope.type_of(tensor)[1] for scope in self.scopes}
        return shapes.pop() if len(shapes) == 1 else None

    def data_type(self, name: str) -> str | None:
        """Returns ONNX's name of a tensor's element type; None if it is unknown or differs between calls."""
        kinds = {scope.type_of(name)[0] for scope in self.scopes}
        return kinds.pop() if len(kinds) == 1 else None

    def lengths(self, index: int) -> tuple[int, int, tuple[int, ...]] | None:
        """Returns axis, rank and lengths of the Split or Concat with this index; None if one is unknown or differs
        between calls."""
        found = {
            (site.node.axis, site.node.whole_shape and len(site.node.whole_shape), site.node.lengths)
            for site in self.sites.get(index, ())
        }
        if len(found) != 1:
            return None
        axis, rank, lengths = found.pop()
        if axis is None or not rank or lengths is None or not all(isinstance(size, int) for size in lengths):
            return None
        return axis, rank, tuple([size for size in lengths if isinstance(size, int)])

    def cut(self, index: int, part: str) -> tuple[int, range] | None:
        """Returns the axis on which a Split, or a Slice of one axis, cuts, and the range of it in output `part`; None
        if it is unknown or differs between calls."""
        if self.op(index) == "Slice":
            found = {_window(scope, self.nodes[index]) for scope in self.scopes}
            return found.pop() if len(found) == 1 else None
        known = self.lengths(index)
        if known is None:
            return None
        axis, _, lengths = known
        place = list(map(text, self.nodes[index].output)).index(part)
        start = sum(lengths[:place])
        return axis, range(start, start + lengths[place])

    @cached_property
    def dead(self) -> Mapping[int, Sequence[int]]:
        """Maps the index of each node that no output depends on to the indices of all such nodes connected with it,
        itself included."""
        found: dict[int, list[int]] = {}
        for index in range(len(self.nodes)):
            if index in self.leading or index in found:
                continue
            group = found[index] = [index]
            for each in group:  # the group grows
                near = [i for name in self.inputs_of(each) if (i := self.producer(name)) is not None]
                near += [i for name in self.outputs_of(each) for i in self.readers_of(name)]
                for other in near:
                    if other not in self.leading and other not in found:
                        found[other] = group
                        group.append(other)
        return found

    def op(self, index: int | None) -> str:
        """Returns the operator of the node with this index; "" for None and for a node outside the default domain."""
        return "" if index is None or domain_of(self.nodes[index]) else text(self.nodes[index].op_type)

    def is_valid(self, node: onnx.NodeProto) -> bool:
        """True if a new node's operator accepts the element type of its first input at all calls: old versions of Max,
        for example, accept only floats."""
        kinds = {scope.type_of(text(node.input[0]))[0] for scope in self.scopes if node.input}
        return all(takes(text(node.op_type), self.opset, kind) for kind in kinds)

    def inputs_of(self, node: int) -> Sequence[str]:
        """Returns the names of the tensors that a node, or a graph in it, reads."""
        return list(map(text, reads(self.nodes[node])))

    def outputs_of(self, node: int) -> Sequence[str]:
        return [text(name) for name in self.nodes[node].output if name]

    def producer(self, name: str) -> int | None:
        return self.producers.get(text(name))

    def readers_of(self, name: str) -> Sequence[int]:
        return self.readers.get(name, ())

    def is_read(self, name: str) -> bool:
        return name in self.exits or bool(self.readers.get(name))

    def fresh(self, name: str, word: str) -> str:
        """Returns an unused name made from `name` and `word`, and adds it to the names in use."""
        return self.taken.fresh(f"{name}/{word}")

    def node(self, op: str, inputs: Sequence[str], output: str, **attributes: object) -> onnx.NodeProto:
        made = onnx.NodeProto(op_type=op, input=inputs, output=[output], name=output, doc_string=self.document)
        made.attribute.extend([helper.make_attribute(name, attributes[name]) for name in sorted(attributes)])
        return made

    def inheriting(self, index: int, made: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Returns `made`, after its nodes that write outputs of the replaced node got that node's doc_string and
        metadata, in place."""
        replaced = self.original(self.nodes[index])
        for node in made:
            if not set(node.output[:]).isdisjoint(replaced.output):
                node.doc_string = replaced.doc_string
                add_document(node, self.document)
                node.metadata_props.extend(replaced.metadata_props)
        return made

    def integers(self, name: str, values: Iterable[int]) -> str:
        """Returns the name of a constant of 64-bit integers, as `constant` does."""
        return self.constant(name, np.array(tuple(values), np.int64))

    def constant(self, name: str, values: Array) -> str:
        """Returns the name of a constant with these elements, which all changes share; `name` is the base for its name
        if it is new. `constants_of` returns its nodes."""
        key = values.dtype.str, values.shape, values.tobytes()
        if key not in self._shared:
            made = constant_nodes(self.fresh(name, "numbers"), values, self.opset, self.taken)
            for node in made:
                node.doc_string = self.document
            self._shared[key] = text(made[-1].output[0])
            self._constants[self._shared[key]] = made
        return self._shared[key]

    def constants_of(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Returns the nodes that compute those constants made by `constant` that the given nodes read; [] if they read
        none."""
        read = dict.fromkeys(text(name) for node in nodes for name in node.input[:])
        return [node for name in read if name in self._constants for node in self._constants[name]]

    def begin(self, taken: Names) -> None:
        """Forgets new outputs and constants of earlier changes; `taken` are the names in use from now on."""
        self.taken = taken
        self.shown = {}
        self._shared, self._constants = {}, {}

    def rewired(
        self, index: int, inputs: Mapping[str, str], outputs: Mapping[str, str] | None = None
    ) -> onnx.NodeProto:
        """Returns a copy of a node in which inputs and outputs are renamed by these mappings (old name to new)."""
        changed = deepcopy(self.original(self.nodes[index]))
        for names, other in ((changed.input, inputs), (changed.output, outputs or {})):
            refill(names, [other.get(text(name), text(name)) for name in names])
        add_document(changed, self.document)
        return changed

    def can_be_rewired(self, index: int) -> bool:
        return not has_graphs(self.nodes[index])


def _window(scope: Scope, node: onnx.NodeProto) -> tuple[int, range] | None:
    """Returns the axis of a Slice and its range; None if they are unknown, if it has several axes, or if its step is
    not 1."""
    if scope.origin.opset < 10:
        given = {text(a.name): tuple(a.ints) for a in node.attribute[:]}
        numbers = [given.get("starts"), given.get("ends"), given.get("axes"), (1,)]
    else:
        names = [*map(text, node.input[1:]), "", ""]
        numbers = [scope.integers(name) for name in names[:4]]
        numbers[3] = numbers[3] if names[3] else (1,)
    starts, ends, axes, steps = numbers
    shape = scope.type_of(text(node.input[0]))[1]
    if shape is None or not starts or not ends or len(starts) > 1 or steps != (1,):
        return None
    axis = axes[0] if axes else 0
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    size = shape[axis]
    return (axis, range(*slice(starts[0], ends[0]).indices(size))) if isinstance(size, int) else None
