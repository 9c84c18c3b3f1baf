"""The changes of a model that cure wrong graphs: for each row of dmlsplit.onnxruntime.cures the nodes that it inserts.

A cure is tried if its row says that it applies, and kept if the graphs of the changed model are right. No cure changes
a bit of a result: an operator is moved over a Split or a Concat only if its result for an element depends neither on
other elements nor on the element's position in a SIMD vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import onnx

from dmlsplit.descriptors.dims import is_static, numbers
from dmlsplit.formats.onnx.protobuf import refill, text
from dmlsplit.mending.constants import empty_nodes
from dmlsplit.mending.conversion import takes
from dmlsplit.mending.editing import Replacement
from dmlsplit.mending.surroundings import Surroundings
from dmlsplit.onnxruntime.cure_places import CurePlace, empty_outputs
from dmlsplit.onnxruntime.cures import WHOLE_FAULTS, Cure
from dmlsplit.onnxruntime.operator_traits import Kind, row_of
from dmlsplit.rules.graph_faults import FaultKind

_MOST_INDICES: Final = 1 << 16
"""The most indices of a Gather, which are a constant in the model."""

Change: TypeAlias = Callable[[Surroundings, CurePlace], "Replacement | None"]
"""Returns the nodes that apply a cure at a place; None if the model's opset, or unknown facts, do not allow it."""


def change_of(
    cure: Cure, places: range, around: Surroundings, node: int, lost: str | None = None
) -> Replacement | None:
    """Returns the nodes that replace others, keyed by the index of the replaced node, when a cure is applied against a
    fault of node `node` at the places with these numbers (0 is the nearest). None if the cure does not apply at one of
    the places, or would change a node twice. `lost` is the name of the tensor whose elements the fault loses, None if
    it loses none."""
    changed: dict[int, Sequence[onnx.NodeProto]] = {}
    for way in places:
        place = cure.place(around, node, way, lost)
        made = None if place is None else CHANGES[cure.fault, cure.name](around, place)
        if made is None or not changed.keys().isdisjoint(made):
            return None
        changed |= made
    return changed


def _two_slices(around: Surroundings, place: CurePlace) -> Replacement | None:
    split = place.node
    known = around.lengths(split)
    if known is None:
        return None
    axis, _, lengths = known
    node = around.nodes[split]
    whole = text(node.input[0])
    made: list[onnx.NodeProto] = []
    start = 0
    for name, length in zip(map(text, node.output[:]), lengths, strict=False):
        if name and around.is_read(name):
            made += _slice(around, whole, name, axis, start, start + length)
        start += length
    return {split: around.inheriting(split, made)}


def _one_slice(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the nodes that let the reader of a Split's part read a new Slice of the Split's input instead, keyed by
    the index of the node that they replace; None if the range is unknown or the reader cannot be rewired."""
    part, reader = place.tensor, place.reader
    split = around.producer(part)
    known = around.cut(split, part) if split is not None and around.op(split) == "Split" else None
    if known is None or split is None or not around.can_be_rewired(reader):
        return None
    axis, taken = known
    other = around.fresh(part, "again")
    made = _slice(around, text(around.nodes[split].input[0]), other, axis, taken.start, taken.stop)
    return {reader: [*made, around.rewired(reader, {part: other})]}


def _sliced(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the Slice that replaces a Split, keyed by the Split's index; None if the node is not a Split or its
    lengths are unknown."""
    known = around.cut(place.node, place.tensor) if around.op(place.node) == "Split" else None
    if known is None:
        return None
    axis, taken = known
    whole = text(around.nodes[place.node].input[0])
    return {
        place.node: around.inheriting(place.node, _slice(around, whole, place.tensor, axis, taken.start, taken.stop))
    }


def _split_first(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the nodes, keyed by the indices that they replace, that move the node in front of a Split behind it, one
    copy for each part that is read; None if that node cannot be moved."""
    cut = place.node
    before = around.producer(text(around.nodes[cut].input[0]))
    if before is None or not _is_rewirable(around, before) or len(around.inputs_of(before)) != 1:
        return None
    (operand,), (whole,) = around.inputs_of(before), around.outputs_of(before)
    parts = {name: around.fresh(name, "before") for name in around.outputs_of(cut) if around.is_read(name)}
    moved = [around.rewired(before, {operand: new}, {whole: name}) for name, new in parts.items()]
    for node in moved:
        node.name = text(node.output[0])
    return {before: [], cut: [around.rewired(cut, {whole: operand}, parts), *moved]}


def _shown(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the node that computes the tensor, keyed by its index, and records in `around.shown` that the tensor
    becomes an output of the model; None if that is not allowed or it is one already."""
    producer = around.producer(place.tensor)
    if producer is None or not around.may_show or place.tensor in around.exits or not around.can_be_rewired(producer):
        return None
    around.shown[producer] = "", place.tensor
    return {producer: [around.rewired(producer, {})]}


def _second_reader(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns a Concat and a ReduceSum that reads it, keyed by the Concat's index, and records in `around.shown` that
    the sum becomes an output of the model; None if that is not allowed."""
    if not around.may_show or not around.can_be_rewired(place.node):
        return None
    total = around.fresh(place.tensor, "sum")
    around.shown[place.node] = "", total
    return {place.node: [around.rewired(place.node, {}), around.node("ReduceSum", [place.tensor], total)]}


def _renamed(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the node with its only output, an output of the model, renamed so that it sorts after the other one,
    keyed by its index, and records the name in `around.shown`; None if that is not allowed."""
    (name, *more) = around.outputs_of(place.node)
    if more or not around.may_show or not around.can_be_rewired(place.node):
        return None
    last = around.fresh(max(name, place.tensor, key=str.encode), "~")
    around.shown[place.node] = name, last
    return {place.node: [around.rewired(place.node, {}, {name: last})]}


def _tanh_form(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the nodes of 0.5 + 0.5 * tanh(0.5 * b) that replace a Sigmoid of b, keyed by its index; None if there is
    no Sigmoid, its type is unknown, or the opset does not broadcast."""
    gate, name = around.producer(place.tensor), around.data_type(place.tensor)
    if gate is None or around.op(gate) != "Sigmoid" or name is None or around.opset < _BROADCASTS:
        return None
    dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(name))
    half = around.constant(place.tensor, np.array(0.5, dtype))
    names = [around.fresh(place.tensor, word) for word in ("half", "tanh", "halved")]
    (read,) = around.inputs_of(gate)
    made = [
        around.node("Mul", [read, half], names[0]),
        around.node("Tanh", [names[0]], names[1]),
        around.node("Mul", [names[1], half], names[2]),
        around.node("Add", [names[2], half], place.tensor),
    ]
    return {gate: made}


def _regrouped(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the two nodes that replace the reader of sigmoid(x), keyed by its index: they compute y * (x *
    sigmoid(x)) instead of (y * x) * sigmoid(x). None if the nodes have another form, or if the reader's inputs cannot
    be replaced."""
    gate, reader = place.tensor, place.reader
    sigmoid = around.producer(gate)
    others = [name for name in around.inputs_of(reader) if name != gate]
    product = around.producer(others[0]) if len(others) == 1 else None
    if sigmoid is None or product is None or (around.op(sigmoid), around.op(product)) != ("Sigmoid", "Mul"):
        return None
    (x,) = around.inputs_of(sigmoid)
    factors = [text(name) for name in around.nodes[product].input]
    if x not in factors or not around.can_be_rewired(reader):
        return None
    factors.remove(x)
    other = around.fresh(gate, "product")
    made = around.node("Mul", [x, gate], other)
    return {reader: [made, around.rewired(reader, {others[0]: factors[0], gate: other})]}


def _without_empty_parts(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by a Split's index, the Split without the parts that have no elements, and constants that replace
    these; None if lengths or shapes are unknown or such a constant cannot be made."""
    known, node = around.lengths(place.node), around.nodes[place.node]
    if known is None:
        return None
    lengths = known[2]
    whole = text(node.input[0])
    parts = list(zip(map(text, node.output[:]), lengths, strict=True))
    left = [(name, length) for name, length in parts if length]
    made: list[onnx.NodeProto] = []
    for name, length in parts:
        data_type, shape = around.data_type(name), around.shape(name)
        if length or not around.is_read(name):
            continue
        if data_type is None or not is_static(shape) or data_type in _NO_CONSTANTS:
            return None
        made += empty_nodes(name, data_type, numbers(shape), around.opset, around.taken)
    if len(left) == 1:
        made.append(around.node("Identity", [whole], left[0][0]))
    elif left:
        split = around.rewired(place.node, {})
        lengths = tuple([length for _, length in left])
        refill(split.output, [name for name, _ in left])
        kept = [each for each in split.attribute if each.name not in ("split", "num_outputs")]
        del split.attribute[:]
        split.attribute.extend(kept)
        if around.opset < _LENGTHS_ARE_INPUTS:
            split.attribute.append(onnx.helper.make_attribute("split", lengths))
            refill(split.input, [whole])
        else:
            refill(split.input, [whole, around.integers(left[0][0], lengths)])
        made.append(split)
    return {place.node: around.inheriting(place.node, made)}


def _slice(around: Surroundings, whole: str, part: str, axis: int, start: int, end: int) -> list[onnx.NodeProto]:
    if around.opset < 10:
        return [around.node("Slice", [whole], part, starts=[start], ends=[end], axes=[axis])]
    numbers = [around.integers(part, [value]) for value in (start, end, axis)]
    return [around.node("Slice", [whole, *numbers], part)]


def _between(around: Surroundings, name: str, readers: Sequence[int], op: str) -> Replacement | None:
    """Returns the nodes, keyed by the indices that they replace, with which the nodes `readers` read tensor `name`
    through Max(t, t), or through a Reshape to the same shape. None if there are no readers, one cannot be rewired, or
    the Reshape cannot be written."""
    if not readers or not all(map(around.can_be_rewired, readers)):
        return None
    other = around.fresh(name, "apart")
    if op == "Max":
        made = [around.node("Max", [name, name], other)]
    else:
        rank = around.rank(name)
        if rank is None or around.opset < 5:
            return None
        made = [around.node("Reshape", [name, around.integers(name, [0] * rank)], other)]
    found = {index: [around.rewired(index, {name: other})] for index in readers}
    return {**found, min(readers): [*made, *found[min(readers)]]}


def _behind(op: str) -> Change:
    """Returns the change that inserts Max(t, t), or a Reshape to the same shape, as `op` says, between the place's
    tensor and its reader."""
    return lambda around, place: _between(around, place.tensor, [place.reader], op)


def _max_branch(around: Surroundings, place: CurePlace) -> Replacement:
    """Returns, keyed by a Concat's index, the Concat with Max(v, v) in front of all its equal inputs except the
    first."""
    culprit = place.node
    names = list(map(text, around.nodes[culprit].input))
    changed, made = list(names), []
    last: dict[str, str] = {}
    for k, name in enumerate(names):
        if name in last:  # each reads the previous one: a session merges equal nodes
            changed[k] = around.fresh(name, "apart")
            made.append(around.node("Max", [last[name]] * 2, changed[k]))
        last[name] = changed[k]
    concat = around.rewired(culprit, {})
    refill(concat.input, changed)
    return {culprit: [*made, concat]}


def _moved_over_concat(around: Surroundings, place: CurePlace) -> Replacement | None:
    concat, joined, culprit = place
    if not _is_rewirable(around, culprit):
        return None
    names = dict.fromkeys(map(text, around.nodes[concat].input))
    result = text(around.nodes[culprit].output[0])
    renamed = {name: around.fresh(name, around.op(culprit).lower()) for name in names}
    moved = []
    for name, new in renamed.items():
        moved.append(around.rewired(culprit, {joined: name}, {result: new}))
        moved[-1].name = new
    # at the operator's old position, its other inputs are known
    return {concat: [], culprit: [*moved, around.rewired(concat, renamed, {joined: result})]}


def _is_rewirable(around: Surroundings, index: int) -> bool:
    return len(around.nodes[index].output) == 1 and around.can_be_rewired(index)


def _max_input(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by a Concat's index, the Concat with Max(v, v) in front of each input v that other nodes also read
    or, if there is no such input, of each computed input; None if no input is computed."""
    concat = place.node
    names = [name for name in dict.fromkeys(map(text, around.nodes[concat].input)) if name in around.producers]
    shared = [name for name in names if _is_shared(around, name)]
    made: list[onnx.NodeProto] = []
    renamed: dict[str, str] = {}
    for name in shared or names:
        source = name
        if any(_is_max_of(around.nodes[i], name) for i in around.readers[name]):  # a session merges equal nodes
            source = around.fresh(name, "again")
            made.append(around.node("Max", [name, name], source))
        renamed[name] = around.fresh(name, "apart")
        made.append(around.node("Max", [source, source], renamed[name]))
    return {concat: [*made, around.rewired(concat, renamed)]} if renamed else None


def _is_shared(around: Surroundings, name: str) -> bool:
    """True if a tensor, or one of which it is only a copy, has several readers or is an output of the graph."""
    while name not in around.exits and len(around.readers_of(name)) <= 1:
        producer = around.producer(name)
        if producer is None or row_of(around.op(producer)).kind is not Kind.COPIES:
            return False
        name = around.inputs_of(producer)[0]
    return True


def _is_max_of(node: onnx.NodeProto, name: str) -> bool:
    return node.op_type == "Max" and list(map(text, node.input[:])) == [name, name]


def _moved_over_split(around: Surroundings, place: CurePlace) -> Replacement | None:
    cut, part, reader = place
    whole, result = text(around.nodes[cut].input[0]), text(around.nodes[reader].output[0])
    if not _is_rewirable(around, reader):
        return None
    new = around.fresh(whole, around.op(reader).lower())
    moved = around.rewired(reader, {part: whole}, {result: new})
    moved.name = new
    return {cut: [], reader: [moved, around.rewired(cut, {whole: new}, {part: result})]}


def _gathered(around: Surroundings, place: CurePlace) -> Replacement | None:
    cut, part, _ = place
    known = around.cut(cut, part)
    if known is None or len(known[1]) > _MOST_INDICES:
        return None
    axis, taken = known
    whole = text(around.nodes[cut].input[0])
    gather = around.node("Gather", [whole, around.integers(part, taken)], part, axis=axis)
    return {cut: around.inheriting(cut, [gather])}


def _padded(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the Pad with negative pads that replaces a Split, or a Slice of one axis, keyed by its index; None if its
    range or shape is unknown or the opset has no such Pad."""
    cut, part, _ = place
    known = around.cut(cut, part)
    whole = text(around.nodes[cut].input[0])
    shape = around.shape(whole)
    if (
        known is None
        or shape is None
        or around.opset < _PADS
        or not takes("Pad", around.opset, around.data_type(whole))
    ):
        return None
    axis, taken = known
    size = shape[axis]
    if not isinstance(size, int) or not taken:
        return None
    pads = [0] * (2 * len(shape))
    pads[axis], pads[len(shape) + axis] = -taken[0], taken[-1] + 1 - size
    if around.opset < _PADS_ARE_INPUTS:
        made = around.node("Pad", [whole], part, pads=pads)
    else:
        made = around.node("Pad", [whole, around.integers(part, pads)], part)
    return {cut: around.inheriting(cut, [made])}


def _clipped(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by the index of the product that reads a Sigmoid, the product with Clip(0, 1) in between; None if
    the type is unknown, the reader cannot be rewired, or the opset has no such Clip."""
    gate, reader = place.tensor, place.reader
    name = around.data_type(gate)
    if name is None or not around.can_be_rewired(reader) or around.opset < _CLIP:
        return None
    other = around.fresh(gate, "apart")
    if around.opset < _BOUNDS_ARE_INPUTS:
        made = [around.node("Clip", [gate], other, min=0.0, max=1.0)]
    else:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(name))
        bounds = [around.constant(gate, np.array(value, dtype)) for value in (0, 1)]
        made = [around.node("Clip", [gate, *bounds], other)]
    return {reader: [*made, around.rewired(reader, {gate: other})]}


def _cut_and_joined(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by the index of the node that works in place on a Concat's output, that node with two Slices and a
    Concat in between; None if the lengths are unknown or there is no place to cut."""
    concat, joined, reader = place
    known = around.lengths(concat)
    if known is None or not around.can_be_rewired(reader):
        return None
    axis, _, lengths = known
    size = sum(lengths)
    middle = lengths[0] if len(lengths) > 1 else size // 2
    if not 0 < middle < size:
        return None
    parts = [around.fresh(joined, "part") for _ in range(2)]
    made = [*_slice(around, joined, parts[0], axis, 0, middle), *_slice(around, joined, parts[1], axis, middle, size)]
    other = around.fresh(joined, "again")
    made.append(around.node("Concat", parts, other, axis=axis))
    return {reader: [*made, around.rewired(reader, {joined: other})]}


def _tiled(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns the Tile that replaces a Concat of one repeated tensor, keyed by its index; None if the rank is unknown
    or the opset has no Tile for the type."""
    known, node = around.lengths(place.node), around.nodes[place.node]
    if known is None or around.opset < _TILE or not takes("Tile", around.opset, around.data_type(text(node.input[0]))):
        return None
    axis, rank, lengths = known
    repeats = around.integers(text(node.output[0]), [len(lengths) if d == axis else 1 for d in range(rank)])
    made = around.node("Tile", [text(node.input[0]), repeats], text(node.output[0]))
    return {place.node: around.inheriting(place.node, [made])}


def _max_between(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by their indices, all readers of an output of the graph, rewired to read it through Max(t, t);
    None if one cannot be rewired."""
    return _between(around, place.tensor, around.readers[place.tensor], "Max")


_CLIP: Final = 6
"""The first opset whose Clip does not need the attribute consumed_inputs."""
_BOUNDS_ARE_INPUTS: Final = 11
_BROADCASTS: Final = 7
"""The first opset whose Mul and Add take a constant of one element without attributes."""
_PADS: Final = 2
_PADS_ARE_INPUTS: Final = 11
_LENGTHS_ARE_INPUTS: Final = 13
_TILE: Final = 6
"""The first opset whose Tile has the repeats of all axes."""
_COMPRESS: Final = 9
"""The first opset with a Compress."""
_NO_CONSTANTS: Final = frozenset({"STRING", "COMPLEX64", "COMPLEX128"})
"""Element types that Cast accepts in no opset, and ConstantOfShape only in newer ones."""


def _empty_output(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by a node's index, constants that replace the node's outputs without elements, and the node itself
    if it has other outputs; None if such a constant cannot be made or the node cannot be rewired."""
    names = empty_outputs(around, place.node)
    made: list[onnx.NodeProto] = []
    for name in names:
        data_type = around.data_type(name)
        if data_type is None or data_type in _NO_CONSTANTS:
            return None
        made += empty_nodes(name, data_type, numbers(around.shape(name)), around.opset, around.taken)
    if around.outputs_of(place.node) != names:
        if not around.can_be_rewired(place.node):
            return None
        made.append(around.rewired(place.node, {}, {name: around.fresh(name, "empty") for name in names}))
    return {place.node: around.inheriting(place.node, made)}


def _compressed(around: Surroundings, place: CurePlace) -> Replacement | None:
    """Returns, keyed by a node's index, its replacement: the node, and behind each output without elements a Compress,
    whose result is also empty, with its condition. None if no output is empty, if the opset has no Compress, or if the
    node cannot be rewired."""
    names = empty_outputs(around, place.node)
    if not names or around.opset < _COMPRESS or not around.can_be_rewired(place.node):
        return None
    renamed = {name: around.fresh(name, "empty") for name in names}
    made = [around.rewired(place.node, {}, renamed)]
    for name, other in renamed.items():
        condition = around.fresh(name, "condition")
        axis = (around.shape(name) or ()).index(0)
        made += empty_nodes(condition, "BOOL", (0,), around.opset, around.taken)
        made.append(around.node("Compress", [other, condition], name, axis=axis))
    return {place.node: made}


def _without_dead(around: Surroundings, place: CurePlace) -> Replacement:
    """Maps the indices of the place's node, on which no output depends, and of all such nodes connected with it, to no
    nodes: they are removed."""
    return {index: [] for index in around.dead[place.node]}


CHANGES: Final[Mapping[tuple[FaultKind, str], Change]] = {
    (FaultKind.GATE, "two-slices"): _two_slices,
    (FaultKind.GATE, "one-slice"): _one_slice,
    (FaultKind.GATE, "reshape-part"): _behind("Reshape"),
    (FaultKind.GATE, "max-part"): _behind("Max"),
    (FaultKind.GATE, "clip-sigmoid"): _clipped,
    (FaultKind.GATE, "sigmoid-output"): _shown,
    (FaultKind.GATE, "tanh-form"): _tanh_form,
    **{
        (fault, name): change
        for fault in (FaultKind.PRODUCT, FaultKind.PRODUCT_CRASHES)
        for name, change in {
            "reshape-factor": _behind("Reshape"),
            "max-factor": _behind("Max"),
            "clip-sigmoid": _clipped,
            "regroup": _regrouped,
            "factor-output": _shown,
        }.items()
    },
    (FaultKind.REPEATED, "max-branch"): _max_branch,
    (FaultKind.REPEATED, "tile"): _tiled,
    (FaultKind.OVERWRITTEN, "operator-first"): _moved_over_concat,
    (FaultKind.OVERWRITTEN, "max-input"): _max_input,
    (FaultKind.OVERWRITTEN, "concat-output"): _shown,
    (FaultKind.OVERWRITTEN, "second-reader"): _second_reader,
    (FaultKind.OVERWRITTEN, "cut-and-join"): _cut_and_joined,
    (FaultKind.OVERWRITTEN, "rename"): _renamed,
    (FaultKind.REFUSED, "operator-first"): _moved_over_split,
    (FaultKind.REFUSED, "gather"): _gathered,
    (FaultKind.REFUSED, "negative-pad"): _padded,
    (FaultKind.REFUSED, "max-part"): _behind("Max"),
    (FaultKind.REFUSED, "split-first"): _split_first,
    (FaultKind.REFUSED, "part-output"): _shown,
    (FaultKind.REFUSED, "slice"): _sliced,
    **{(fault, "max-part"): _behind("Max") for fault in WHOLE_FAULTS},
    (FaultKind.UNWRITTEN, "max-between"): _max_between,
    **{(fault, "leave-out"): _without_empty_parts for fault in (FaultKind.EMPTY_PART, FaultKind.EMPTY_SECOND_PART)},
    (FaultKind.EMPTY_OUTPUT, "empty-constant"): _empty_output,
    (FaultKind.EMPTY_OUTPUT, "compress"): _compressed,
    (FaultKind.DEAD, "remove-dead"): _without_dead,
}
"""The function that makes each cure's change: one for every row that says where to apply it."""
