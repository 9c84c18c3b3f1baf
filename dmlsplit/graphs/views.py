"""Removes nodes as CompileGraph does: identities, and Splits whose readers can read their input instead."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from operator import mul, ne
from typing import Final

from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.dimensions import too_narrow
from dmlsplit.graphs.operators import Family
from dmlsplit.graphs.program import (
    VECTOR,
    Node,
    Operand,
    Part,
    Readers,
    Tensor,
    Use,
    readers_first,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import JoinPlacement

_FIVE: Final = 5
_SCALAR_READERS: Final = (Family.SPLIT, Family.JOIN)
"""Operators whose shaders can read single elements in builds in which all other shaders read vectors."""


def bypass_identities(program: Program) -> None:
    """Makes readers of an identity's output read its input, and removes the identity from the program; if its output is
    a graph output, its input becomes that graph output.

    The identities are removed starting at the graph inputs, in the reverse of the order for Splits. The uses of a
    removed identity's output become uses of its input, after the existing ones.
    """
    if program.traits.keeps_identities or all(node.family is not Family.IDENTITY for node in program.nodes):
        return
    uses = program.uses()
    outputs: dict[Tensor, list[int]] = defaultdict(list)
    for i, tensor in enumerate(program.outputs):
        outputs[tensor].append(i)
    order = itertools.count()
    for node in reversed(readers_first(program.nodes, program.outputs, deepest=True)):
        if node.family is not Family.IDENTITY:
            continue
        source = node.operands[0].tensor
        for reader, k in uses[node.output]:
            reader.operands[k].tensor, reader.operands[k].rank = source, (Use.PAST_IDENTITY, next(order))
        uses[source] += uses[node.output]
        for i in outputs[node.output]:
            program.outputs[i], program.output_ranks[i] = source, (Use.PAST_IDENTITY, next(order))
        outputs[source] += outputs[node.output]
    program.nodes = [node for node in program.nodes if node.family is not Family.IDENTITY]
    program.rank_outputs()


def cut_splits(program: Program) -> None:
    """Replaces each Split in the program, in place, by a Slice for each of its outputs that is used."""
    uses = program.uses()
    before, program.nodes = program.nodes, []
    for node in before:
        if node.family is not Family.SPLIT:
            program.nodes.append(node)
            continue
        source = node.operands[0]
        for tensor, offsets in zip(node.outputs, node.output_offsets(), strict=True):
            if tensor in program.first_ranks or uses[tensor]:
                operand = Operand(source.tensor, source.rank)
                tensor.producer = Node(Family.SLICE, node.type, [operand], [tensor], node.number, offsets=offsets)
                tensor.producer.from_split = True
                program.nodes.append(tensor.producer)


def elide_splits(program: Program) -> None:
    """Removes from the program the Splits and Slices whose parts are all read by operators that can read with strides.

    Keeps those with a part that is a graph output, is read by a Join in place, or has views itself. A view begins at a
    multiple of 16 bytes. Readers of the part then read the Split's input; other views of that input do not take these
    new readers into account. A Join that takes the part into rows gets the Split's whole input instead.

    The Splits are removed from the last graph output backwards, depth first. The uses of a removed Split's parts become
    uses of its input, after the existing ones.
    """
    traits = program.traits
    uses = program.uses()
    families = {Family.SPLIT, Family.SLICE} if traits.slices_are_views else {Family.SPLIT}
    removed: set[Node] = set()
    order = itertools.count()
    for node in readers_first(program.nodes, program.outputs, deepest=True):
        if node.family is Family.JOIN and not node.kept and traits.join_placement is JoinPlacement.ALL_OR_NONE:
            _lay_in_rows(program, node.output, [use for use in uses[node.output] if use[0] not in removed])
        if node.family not in families:
            continue
        source = node.operands[0]
        if node.slices_everything and not traits.splits_are_slices:
            continue
        element = source.tensor.element_bytes
        strides = packed_strides(source.tensor.sizes)
        parts = [
            (tensor, sum(map(mul, offsets, strides)) * element)
            for tensor, offsets in zip(node.outputs, node.output_offsets(), strict=True)
        ]
        readers = [[use for use in uses[tensor] if use[0] not in removed] for tensor, _ in parts]
        if _elidable(program, node, parts, strides, readers):
            for (tensor, offset), part_readers in zip(parts, readers, strict=True):
                for reader, k in part_readers:
                    old, rank = reader.operands[k], (Use.OF_PART, next(order))
                    if reader.family is Family.JOIN and not reader.kept:
                        part = Part(node.number or 0, tensor.sizes, node.axis, offset == 0)
                        reader.operands[k] = replace(source, rank=rank, stands_for=part)
                    else:
                        reader.operands[k] = Operand(
                            source.tensor,
                            rank,
                            source.offset + offset + old.offset,
                            old.sizes,
                            view=source.view or old.view or not node.slices_everything,
                            thin=node.family is Family.SPLIT and tensor.sizes[node.axis] == 1,
                        )
                    uses[source.tensor].append((reader, k))
            removed.add(node)
        elif traits.splits_are_slices:
            source.offset += parts[0][1]
            source.sizes = node.output.sizes
            if node.slices_everything:
                node.family, node.copies = Family.IDENTITY, True
            else:
                source.view = True
    program.nodes = [node for node in program.nodes if node not in removed]


def _lay_in_rows(program: Program, output: Tensor, readers: Readers) -> None:
    """Sets the strides of a Join's output to those of the output of another Join that it can lie in."""
    found = None if output in program.first_ranks else join_to_live_in(program, output, readers)
    if found is not None:
        output.strides = found[0].output.strides


def _elidable(
    program: Program,
    node: Node,
    parts: Sequence[tuple[Tensor, int]],
    strides: Sequence[int],
    uses: Sequence[Readers],
) -> bool:
    """True if all readers of all parts of a Split or Slice can read its input instead, with these strides (in
    elements). `parts` has each part with its byte offset in the input, `uses` the readers of each."""
    if any(step != 1 for step in node.steps):
        return False
    of_any_axes = program.traits.splits_are_slices or node.family is not Family.SLICE
    if not of_any_axes and sum(map(ne, node.output.sizes, node.operands[0].tensor.sizes)) != 1:
        return False
    for (tensor, offset), readers in zip(parts, uses, strict=True):
        if not _part_is_elidable(program, node, tensor, offset, readers):
            return False
        in_rows = join_for_rows(program, tensor, readers) is not None
        in_rows |= program.traits.parts_stay_packed and any(_reads_packed(reader, tensor) for reader, _ in readers)
        if not all(_reads_as_view(program, tensor, strides, use, in_rows) for use in readers):
            return False
    return True


def _part_is_elidable(program: Program, node: Node, tensor: Tensor, offset: int, readers: Readers) -> bool:
    """True if a part that begins `offset` bytes into the input may become a view of it, regardless of the operators
    that read it."""
    traits = program.traits
    if tensor in program.first_ranks:
        return False
    if offset % VECTOR and (readers or traits.all_places_aligned):
        copies = readers and all(reader.only_copies for reader, _ in readers)
        if not (traits.splits_are_slices and copies):
            return False
    in_vectors = traits.vector_reads and any(reader.family not in _SCALAR_READERS for reader, _ in readers)
    return not (in_vectors and tensor.block_bytes(node.axis) % VECTOR)


def _reads_as_view(
    program: Program, tensor: Tensor, strides: Sequence[int], use: tuple[Node, int], in_rows: bool
) -> bool:
    """True if a reader of a part can read the Split's input with these strides (in elements) instead. `in_rows`: the
    part can lie in rows of a Join."""
    reader, k = use
    operand = reader.operands[k]
    if operand.stands_for is not None:
        return False
    if reader.family is Family.JOIN and not reader.kept:
        return not in_rows and not tensor.is_block_of(reader.output)
    if operand.view:
        return False
    if program.traits.splits_are_slices and reader.family is Family.SLICE and not reader.slices_everything:
        return False
    packed = is_packed(tensor.sizes, strides) or _reads_apart(reader, tensor.sizes, strides)
    if _reads_packed(reader, tensor) and not packed:
        return False
    return not too_narrow(program, reader, tensor, strides)


def join_to_live_in(program: Program, tensor: Tensor, readers: Readers) -> tuple[Node, int] | None:
    """Returns the Join in whose output a tensor with these readers can lie, and the index of the Join's input that is
    the tensor: the first that has it as a contiguous block, else the one for its rows; None if there is none."""
    for node, k in readers:
        if node.family is Family.JOIN and not node.kept and tensor.is_block_of(node.output):
            return node, k
    return join_for_rows(program, tensor, readers)


def join_for_rows(program: Program, tensor: Tensor, readers: Readers) -> tuple[Node, int] | None:
    """Returns the Join in whose rows a tensor with these readers can lie, and the index of the Join's input that is the
    tensor; None if there is none."""
    joins = [(node, k) for node, k in readers if node.family is Family.JOIN and not node.kept]
    viewed = any(node.operands[k].view for node, k in readers)  # a view reads its tensor packed
    if not joins or viewed or not (program.traits.joins_reuse_rows or len(readers) == 1):
        return None
    rows = joins[-1][0].output.strides
    others = [node for node, _ in readers if node.family is not Family.JOIN]
    if any(_reads_packed(node, tensor) and not _reads_apart(node, tensor.sizes, rows) for node in others):
        return None
    return None if any(too_narrow(program, node, tensor, rows) for node in others) else joins[-1]


def _reads_packed(reader: Node, tensor: Tensor) -> bool:
    """True if an operator can read a tensor only if it is packed; normalizations of five dimensions can read strided
    ones."""
    return reader.family is Family.PACKED or (reader.family is Family.BLOCK and len(tensor.sizes) < _FIVE)


def _reads_apart(reader: Node, sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """True if the reader is a normalization and, by these sizes and strides, no two elements of the tensor are adjacent
    in memory."""
    return reader.family is Family.BLOCK and _lie_apart(sizes, strides)


def _lie_apart(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    return next((stride for size, stride in zip(reversed(sizes), reversed(strides), strict=True) if size > 1), 1) != 1
