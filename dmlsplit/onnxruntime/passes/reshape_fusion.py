"""A Concat that computes the shape of a Reshape becomes a constant; Reshapes in a row become one.

Source: reshape_fusion.cc of ONNX Runtime. In the constant, a size that the Reshape keeps is 0 and one unknown size is
-1; with more unknown sizes the Concat stays. Whether constants of outer graphs count was not observed. Observed with
all versions: up to 1.24.4 a Reshape of version 19 or newer is not changed; 1.30.0 also keeps a size of another tensor
where both have the same number or symbol, which constants in front may give it.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Mapping, Sequence
from functools import reduce
from typing import Final

from dmlsplit.descriptors.dims import Dim, Shape, is_static
from dmlsplit.models.graph import Doubt, Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.passes.patterns import ROUNDS
from dmlsplit.onnxruntime.passes.transposed_tensors import permutation


class _Fate(enum.Enum):
    STAYS = enum.auto()
    CONSTANT = enum.auto()
    UNKNOWN = enum.auto()


CONTIGUOUS: Final = frozenset({"Reshape", "Squeeze", "Unsqueeze"})
"""The operators that become one Reshape."""
_ALIKE: Final = frozenset({"Cast", "Clip", "Dropout", "Identity", "LayerNormalization", "LogSoftmax", "Softmax"})
"""Operators whose result has the shape of their first input."""
_MATRIX: Final = 2
"""The dimensions of a product besides batches."""


def reshape_fusion(graph: Graph) -> None:
    """Folds, in place, each Concat that becomes the constant shape of a Reshape, and removes the nodes that only led to
    it.

    Nodes with several outputs that led to it, and Concats with an unknown fate, are marked as doubtful.
    """
    if not graph.facts.fuses_reshapes:
        return
    folded: dict[Node, Sequence[int]] = {}
    shapes: Mapping[Value, Shape] = {}
    for _ in range(ROUNDS if graph.facts.traits.keeps_sizes_of_others else 1):
        if not (found := _constants(graph, folded, shapes)):
            break
        folded |= found
        shapes = _shapes_with(graph, folded)
    graph.found_shapes = {value.name: shape for value, shape in shapes.items()}
    for node in folded:
        waiting = list(node.producers)
        graph.fold(node)
        while waiting:
            each = waiting.pop()
            if each not in graph or each.is_used:
                continue
            if len(each.outputs) > 1:
                each.doubts |= {Doubt.CONSTANT}
                continue
            waiting += each.producers
            graph.remove(each)


def _constants(graph: Graph, folded: Container[Node], shapes: Mapping[Value, Shape]) -> Mapping[Node, Sequence[int]]:
    """Returns the Concats that become constants, besides those in `folded`, with their elements, given the shapes that
    follow from those. Marks the doubtful ones."""
    found = {}
    for node in graph.nodes:
        reshape = node.only_reader if node.op_type == "Concat" and node not in folded else None
        if reshape is None:
            continue
        fate, is_shape_known, elements = _fate(graph, node, reshape, shapes)
        if fate is _Fate.CONSTANT:
            found[node] = elements
        elif fate is _Fate.UNKNOWN:
            node.doubts |= {Doubt.CONSTANT}
        if is_shape_known:
            reshape.doubts |= {Doubt.STATIC}
    return found


def _shapes_with(graph: Graph, folded: Mapping[Node, Sequence[int]]) -> Mapping[Value, Shape]:
    """Returns the shapes of tensors that follow when Concats become constants: ONNX Runtime infers them before it looks
    at the Concats again."""
    shapes: dict[Value, Shape] = {}
    for node in graph.walk():
        concat = node.inputs[1].producer if node.op_type == "Reshape" and len(node.inputs) > 1 else None
        if concat in folded or not shapes.keys().isdisjoint(node.inputs):
            found = _shape_after(graph, node, folded.get(concat) if concat is not None else None, shapes)
            if found is not None:
                shapes[node.outputs[0]] = _with_declared(graph, node.outputs[0], found)
    return shapes


def _with_declared(graph: Graph, value: Value, shape: Shape) -> Shape:
    """Returns a shape with the sizes that the file declares in place of those that are not known."""
    declared = graph.facts.declared_shape(value.name)
    if declared is None or len(declared) != len(shape):
        return shape
    return tuple([given if size is None else size for size, given in zip(shape, declared, strict=True)])


def _shape_after(
    graph: Graph, node: Node, elements: Sequence[int] | None, shapes: Mapping[Value, Shape]
) -> Shape | None:
    """Returns the shape of a node's result, given those of tensors in front of it; `elements` are those of a new
    constant that a Reshape reads. None for operators that do not occur between the heads of an attention."""
    read = [shapes.get(value) or graph.facts.shape(value.name) for value in node.inputs if value.name]
    known = [shape for shape in read if shape is not None]
    if not known or read[0] is None:
        return None
    first = known[0]
    if node.op_type == "Reshape":
        given = graph.facts.elements(node.inputs[1].name) if elements is None else None
        sizes = given.reshape(-1).tolist() if given is not None else elements
        return None if sizes is None else tuple([_kept(first, i, size) for i, size in enumerate(sizes)])
    if node.op_type == "Transpose":
        return tuple([first[i] for i in permutation(node, len(first)) if i < len(first)])
    if len(known) < len(read):
        return None
    if node.op_type == "MatMul" and min(map(len, known)) >= _MATRIX:
        batches = [shape[:-_MATRIX] for shape in known]
        return (*reduce(_broadcast, batches), known[0][-2], known[1][-1])
    if row_of(node.op_type).broadcasts and not row_of(node.op_type).cpu_inputs:
        return reduce(_broadcast, known)
    return first if node.op_type in _ALIKE else None


def _kept(shape: Shape, place: int, size: int) -> Dim:
    return None if size == -1 else size or _size_at(shape, place)


def _broadcast(one: Shape, other: Shape) -> Shape:
    rank = max(len(one), len(other))
    pairs = zip(*((*(1,) * (rank - len(shape)), *shape) for shape in (one, other)), strict=True)
    return tuple([a if a == b or b == 1 else b if a == 1 else None for a, b in pairs])


def contiguous_reshapes(graph: Graph) -> None:
    """Fuses, in place, each Reshape with the Reshapes, Squeezes and Unsqueezes of static results that follow it, each
    the only reader of the one before: one Reshape to a constant shape is left. If a node computes the shape of the
    first one, ONNX Runtime fails: the new Reshape has no input that could read it. It is recorded as unresolved."""
    if not graph.facts.merges_reshapes:
        return
    for node in graph.nodes:
        if node not in graph or node.op_type != "Reshape" or _has_allowzero(node):
            continue
        while (after := _next(graph, node)) is not None:
            shape = node.inputs[1] if len(node.inputs) > 1 else None
            if shape is not None and shape.producer is not None:
                graph.unresolved.setdefault(node, shape.name)
            _join(graph, node, after)


def _has_allowzero(node: Node) -> bool:
    """True for a Reshape in whose shape a 0 is a size of 0."""
    given = attribute(node, "allowzero") if node.op_type == "Reshape" else None
    return given is not None and given.i != 0


def _next(graph: Graph, node: Node) -> Node | None:
    """Returns the node that is fused into the Reshape `node`; None if there is none."""
    after = node.only_reader
    if after is None or after.op_type not in CONTIGUOUS or after.inputs[:1] != node.outputs[:1]:
        return None
    if graph.facts.keeps_allowzero and _has_allowzero(after):
        return None
    return after if is_static(graph.facts.shape(after.outputs[0].known)) else None


def _join(graph: Graph, node: Node, after: Node) -> None:
    """Fuses the node behind a Reshape into it, in place. The result does not stand for the nodes of the model beside
    which optimization inserted one of the two: another node, the product, stands for them."""
    index, absorbed = node.index, node.absorbed
    graph.join(node, after)
    graph.read(node, node.inputs[:1])
    if after.is_inserted:
        node.index, node.absorbed = index, absorbed
    elif node.is_inserted:
        node.absorbed = after.absorbed
    node.is_inserted = node.is_inserted and after.is_inserted


def _fate(graph: Graph, node: Node, reader: Node, shapes: Mapping[Value, Shape]) -> tuple[_Fate, bool, Sequence[int]]:
    """Returns the fate of a Concat whose only reader is `reader`, True if the reader then outputs a static shape, and
    the elements of the constant that it becomes. `shapes` are of tensors whose shapes other constants give."""
    if reader.op_type == "Cast" and graph.facts.data_type(node.outputs[0].name) == "INT64":
        return _Fate.UNKNOWN, False, ()  # a Reshape without effect is removed
    if reader.op_type != "Reshape" or reader.inputs[1:2] != node.outputs[:1] or _has_allowzero(reader):
        return _Fate.STAYS, False, ()
    data = reader.inputs[0]
    whole = graph.facts.shape(data.name)
    elements: list[int] = []
    for value in node.inputs:
        known = _known(graph, value)
        if isinstance(known, _Fate):
            return known, known is _Fate.UNKNOWN and is_static(whole), ()
        if known is None:
            tensor, place = _size_of(graph, value)
            is_kept = tensor is not None and place == len(elements) and _have_size(graph, tensor, data, place, shapes)
            known = [0 if is_kept else -1]
        elements += known
    others = elements.count(-1)
    if others <= 1:
        return _Fate.CONSTANT, is_static(whole) if others else _are_known(whole, elements), elements
    if any(value.producer is not None and row_of(value.producer.op_type).may_vanish for value in node.inputs):
        return _Fate.UNKNOWN, is_static(whole), ()
    return _Fate.STAYS, False, ()


def _known(graph: Graph, value: Value) -> Sequence[int] | _Fate | None:
    """Returns the elements that an input adds to the shape, None for one computed element; or the Concat's fate if the
    input decides it."""
    if graph.is_given(value.name):
        array = graph.facts.elements(value.name)
        return _Fate.UNKNOWN if array is None or array.dtype.kind not in "iu" else array.ravel().tolist()
    sizes = graph.facts.shape(value.name)
    if sizes is None or not is_static(sizes):
        return _Fate.UNKNOWN
    return None if sizes == (1,) else _Fate.STAYS


def _are_known(whole: Shape | None, elements: Sequence[int]) -> bool:
    """True if the sizes of `whole` that the 0s of a Reshape's shape keep are known."""
    kept = [i for i, element in enumerate(elements) if element == 0]
    return not kept or (whole is not None and all(i < len(whole) and isinstance(whole[i], int) for i in kept))


def _have_size(graph: Graph, tensor: Value, data: Value, place: int, shapes: Mapping[Value, Shape]) -> bool:
    """True if the version knows that two tensors have the same size at `place`: they are one tensor or, in newer
    versions, the sizes are the same number or symbol."""
    if tensor is data or not graph.facts.traits.keeps_sizes_of_others:
        return tensor is data
    size, other = (_size_at(shapes.get(value) or graph.facts.shape(value.name), place) for value in (tensor, data))
    return size is not None and size == other


def _size_at(shape: Shape | None, place: int) -> Dim:
    return shape[place] if shape is not None and place < len(shape) else None


def _size_of(graph: Graph, value: Value) -> tuple[Value | None, int | None]:
    """Returns the tensor whose size `value` holds, computed by Shape, Gather and Unsqueeze, and the index of the
    dimension (None if it is unknown); (None, None) for any other value."""
    place: int | None = None
    for op_type in ("Unsqueeze", "Gather", "Shape"):
        node = value.producer
        if node is None or node.op_type != op_type or (op_type == "Shape" and node.proto.attribute):
            return None, None
        if not all(graph.is_given(each.name) for each in node.inputs[1:]):
            return None, None
        if op_type == "Gather":
            array = graph.facts.elements(node.inputs[1].name)
            place = (
                int(array.ravel()[0]) if array is not None and array.size == 1 and array.dtype.kind in "iu" else None
            )
        value = node.inputs[0]
    return value, place
