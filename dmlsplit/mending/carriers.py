"""The cures of wrong graphs, carried out: for each row of dmlsplit.onnxruntime.cures the nodes that it puts in.

A cure is tried where it can be applied, and kept where the graphs of the model that comes of it are right. None changes
a bit of a result: an operator is moved over a Split or a Concat only where it gives each element alone the same, in
whatever vector a processor computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import onnx

from dmlsplit.formats.onnx.protobuf import refill
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.mending.editing import Replacement
from dmlsplit.mending.surroundings import Surroundings
from dmlsplit.onnxruntime.cures import GUARDED, MOVABLE, Fault

_MOST_INDICES: Final = 1 << 16
"""Of a Gather: its indices are a constant in the model."""
_NEAR: Final = 6
"""Nodes between the one that does something wrong and the Split or Concat that it goes back to."""


Carrier: TypeAlias = Callable[[Surroundings, int], Iterator["Replacement | None"]]
"""The ways to apply a cure for the node that does something wrong, the nearest first; None: not there."""


def _two_slices(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    for index in _above(around, culprit):
        if around.op(index) == "Split":
            yield _sliced(around, index)


def _sliced(around: Surroundings, split: int) -> Replacement | None:
    known = around.lengths(split)
    if known is None:
        return None
    axis, _, lengths = known
    node = around.nodes[split]
    whole = text(node.input[0])
    made: list[onnx.NodeProto] = []
    start = 0
    for name, length in zip(map(text, node.output), lengths, strict=False):
        if name and around.is_read(name):
            made += _slice(around, whole, name, axis, start, start + length)
        start += length
    return {split: around.inheriting(split, made)}


def _slice(around: Surroundings, whole: str, part: str, axis: int, start: int, end: int) -> list[onnx.NodeProto]:
    if around.opset < 10:
        return [around.node("Slice", [whole], part, starts=[start], ends=[end], axes=[axis])]
    numbers = [node for value in (start, end, axis) for node in around.integers(part, [value])]
    return [*numbers, around.node("Slice", [whole, *(text(constant.output[0]) for constant in numbers)], part)]


def _above(around: Surroundings, index: int) -> Iterator[int]:
    """The nodes that a node's inputs come of, the nearest first."""
    todo, seen = [index], {index}
    for _ in range(_NEAR):
        following = []
        for each in todo:
            for name in around.nodes[each].input:
                before = around.producer(name)
                if before is not None and before not in seen:
                    seen.add(before)
                    following.append(before)
                    yield before
        todo = following


def _between(around: Surroundings, name: str, readers: Sequence[int], op: str) -> Replacement | None:
    """Puts Max(t, t), or a Reshape to the same shape, between a tensor and some of its readers."""
    if not readers or not all(map(around.can_be_rewired, readers)):
        return None
    other = around.fresh(name, "apart")
    if op == "Max":
        made = [around.node("Max", [name, name], other)]
    else:
        rank = around.rank(name)
        if rank is None or around.opset < 5:
            return None
        sizes = around.integers(name, [0] * rank)
        made = [*sizes, around.node("Reshape", [name, text(sizes[-1].output[0])], other)]
    found = {index: [around.rewired(index, {name: other})] for index in readers}
    return {**found, min(readers): [*made, *found[min(readers)]]}


def _behind(source: str, op: str) -> Carrier:
    """Behind what the culprit reads of an operator: a part of a Split, or a product that is a factor of another."""

    def apply(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
        for name in map(text, around.nodes[culprit].input):
            if around.op(around.producer(name)) == source:
                yield _between(around, name, [culprit], op)

    return apply


def _max_branch(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    """In front of all but the first of the inputs of a Concat that are one tensor."""
    names = list(map(text, around.nodes[culprit].input))
    changed, made = list(names), []
    last: dict[str, str] = {}
    for place, name in enumerate(names):
        if name in last:  # each of the one before: a session merges equal ones
            changed[place] = around.fresh(name, "apart")
            made.append(around.node("Max", [last[name]] * 2, changed[place]))
        last[name] = changed[place]
    if made and around.op(culprit) == "Concat":
        concat = around.rewired(culprit, {})
        refill(concat.input, changed)
        yield {culprit: [*made, concat]}


def _concats_before(around: Surroundings, culprit: int) -> Iterator[int]:
    return (i for i in _above(around, culprit) if around.op(i) == "Concat")


def _operator_before_concat(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    for concat in _concats_before(around, culprit):
        if text(around.nodes[concat].output[0]) in map(text, around.nodes[culprit].input):
            yield _moved_over_concat(around, culprit, concat)


def _moved_over_concat(around: Surroundings, culprit: int, concat: int) -> Replacement | None:
    if not _moves(around, culprit):
        return None
    joined = text(around.nodes[concat].output[0])
    if around.readers[joined] != [culprit] or joined in around.outputs:
        return None
    names = dict.fromkeys(map(text, around.nodes[concat].input))
    if any(name in around.outputs and around.op(around.producer(name)) in GUARDED for name in names):
        return None
    result = text(around.nodes[culprit].output[0])
    renamed = {name: around.fresh(name, around.op(culprit).lower()) for name in names}
    moved = []
    for name, new in renamed.items():
        moved.append(around.rewired(culprit, {joined: name}, {result: new}))
        moved[-1].name = new
    # Where the operator stood: what it reads beside the tensor is known there.
    return {concat: [], culprit: [*moved, around.rewired(concat, renamed, {joined: result})]}


def _moves(around: Surroundings, index: int) -> bool:
    """Whether an operator can be moved over a Split or Concat without changing a bit."""
    node = around.nodes[index]
    return around.op(index) in MOVABLE and len(node.output) == 1 and around.can_be_rewired(index)


def _max_input(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    return (_max_before_concat(around, concat) for concat in _concats_before(around, culprit))


def _max_before_concat(around: Surroundings, concat: int) -> Replacement | None:
    names = [name for name in dict.fromkeys(map(text, around.nodes[concat].input)) if name in around.producers]
    shared = [name for name in names if name in around.outputs or len(around.readers[name]) > 1]
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


def _is_max_of(node: onnx.NodeProto, name: str) -> bool:
    return node.op_type == "Max" and list(map(text, node.input)) == [name, name]


class _Used(NamedTuple):
    """A Split or Slice of which one part is used, that part, and the one node that reads it."""

    cut: int
    part: str
    reader: int


def _used_parts(around: Surroundings, culprit: int) -> Iterator[_Used]:
    """The Splits and Slices behind the node that makes what is cut, and right before it."""
    before = [i for name in around.nodes[culprit].input if (i := around.producer(name)) is not None]
    for index in dict.fromkeys((*_below(around, culprit), *before)):
        if around.op(index) not in ("Split", "Slice"):
            continue
        used = [name for name in map(text, around.nodes[index].output) if name and around.is_read(name)]
        if len(used) == 1 and used[0] not in around.outputs and len(around.readers[used[0]]) == 1:
            yield _Used(index, used[0], around.readers[used[0]][0])


def _below(around: Surroundings, index: int) -> Iterator[int]:
    """A node and those that it leads to, the nearest first."""
    todo, seen = [index], {index}
    for _ in range(_NEAR):
        yield from todo
        names = [text(name) for each in todo for name in around.nodes[each].output if name]
        following = dict.fromkeys(i for name in names for i in around.readers.get(name, ()))
        todo = [i for i in following if i not in seen]
        seen.update(todo)


def _moved_over_split(around: Surroundings, used: _Used) -> Replacement | None:
    cut, part, reader = used
    whole, result = text(around.nodes[cut].input[0]), text(around.nodes[reader].output[0])
    exposed = around.op(around.producer(whole)) in GUARDED and whole in around.outputs
    if not _moves(around, reader) or exposed:
        return None
    new = around.fresh(whole, around.op(reader).lower())
    moved = around.rewired(reader, {part: whole}, {result: new})
    moved.name = new
    return {cut: [], reader: [moved, around.rewired(cut, {whole: new}, {part: result})]}


def _gathered(around: Surroundings, used: _Used) -> Replacement | None:
    cut, part, _ = used
    known = around.cut(cut, part)
    if known is None or len(known[1]) > _MOST_INDICES:
        return None
    axis, taken = known
    indices = around.integers(part, taken)
    whole = text(around.nodes[cut].input[0])
    gather = around.node("Gather", [whole, text(indices[-1].output[0])], part, axis=axis)
    return {cut: around.inheriting(cut, [*indices, gather])}


def _max_behind(around: Surroundings, used: _Used) -> Replacement | None:
    return _between(around, used.part, [used.reader], "Max")


def _each_used(change: Callable[[Surroundings, _Used], Replacement | None]) -> Carrier:
    """A change of each Split or Slice of which one part is used."""
    return lambda around, culprit: (change(around, used) for used in _used_parts(around, culprit))


def _max_between(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    """Between an output of the graph and the activation that it feeds."""
    for name in map(text, around.nodes[culprit].output):
        if name in around.outputs and around.readers.get(name):
            yield _between(around, name, around.readers[name], "Max")


def _without_dead(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    """Takes out a node that leads to no output, and all such nodes that it hangs together with."""
    yield {index: [] for index in around.dead.get(culprit, ())}


def _fold_shapes(around: Surroundings, culprit: int) -> Iterator[Replacement | None]:
    """Constants in place of the sizes that are all that is read of a node: a session folds those, and keeps it."""
    made: dict[int, Sequence[onnx.NodeProto]] = {}
    todo, seen = [culprit], {culprit}
    while todo:
        index = todo.pop()
        for name in filter(None, map(text, around.nodes[index].output)):
            readers = around.readers.get(name, ())
            if name in around.outputs:
                return
            for reader in readers:
                if around.op(reader) in ("Shape", "Size"):
                    values = around.constant(result := text(around.nodes[reader].output[0]))
                    if values is None or result in around.outputs:
                        return
                    made[reader] = around.constant_nodes(result, values)
                elif reader not in seen:
                    seen.add(reader)
                    todo.append(reader)
    yield made


CARRIERS: Final[Mapping[tuple[Fault, str], Carrier]] = {
    (Fault.GATE, "two-slices"): _two_slices,
    (Fault.GATE, "reshape-part"): _behind("Split", "Reshape"),
    (Fault.GATE, "max-part"): _behind("Split", "Max"),
    (Fault.PRODUCT, "reshape-factor"): _behind("Mul", "Reshape"),
    (Fault.PRODUCT, "max-factor"): _behind("Mul", "Max"),
    (Fault.REPEATED, "max-branch"): _max_branch,
    (Fault.OVERWRITTEN, "operator-first"): _operator_before_concat,
    (Fault.OVERWRITTEN, "max-input"): _max_input,
    (Fault.REFUSED, "operator-first"): _each_used(_moved_over_split),
    (Fault.REFUSED, "gather"): _each_used(_gathered),
    (Fault.REFUSED, "max-part"): _each_used(_max_behind),
}
"""The function that carries a cure out, by its fault and name; cures without one change results, or add outputs."""

OTHERS: Final[Mapping[Fault, Sequence[tuple[str, Carrier]]]] = {
    Fault.UNWRITTEN: (("max-between", _max_between),),
    Fault.DEAD: (("remove-dead", _without_dead), ("fold-shape", _fold_shapes)),
}
"""The cures of faults that have no row in the table of cures."""
