"""Chooses where tensors live: inputs of Joins in the joined buffer, graph outputs in the buffers bound for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dmlsplit.descriptors.layout import is_packed
from dmlsplit.graphs.dimensions import too_narrow
from dmlsplit.graphs.operators import Family
from dmlsplit.graphs.program import (
    VECTOR,
    Node,
    Operand,
    Part,
    Refused,
    Tensor,
    Unmodelled,
    Uses,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import JoinPlacement
from dmlsplit.graphs.views import join_to_live_in
from dmlsplit.rules.graph_faults import Fault, FaultKind


def copies_inputs(program: Program, join: Node, strides: Sequence[int]) -> bool:
    """True if an input of a Join cannot be computed directly into an output with these strides (in elements). Raises
    Unmodelled if that is not known."""
    for operand, place in zip(join.operands, join.places(strides), strict=True):
        tensor, producer = operand.tensor, operand.tensor.producer
        if place % VECTOR:
            return True
        if producer is None or producer.family in (Family.SPLIT, Family.JOIN) or operand.stands_for is not None:
            continue
        if producer.family is Family.BLOCK and not is_packed(tensor.sizes, strides):
            return True
        if program.traits.vector_joins and tensor.block_bytes(join.axis) % VECTOR:
            return True
        if producer.family is Family.SLICE and len(tensor.sizes) in program.traits.narrow_ranks:
            raise Unmodelled("when a Slice of five dimensions is computed into a Join was not determined")
        if too_narrow(program, producer, tensor, strides, leaves=tensor in program.first_ranks):
            return True
    return False


def place_in_joins(program: Program) -> None:
    """Places the inputs of each Join in its output, by changing the program: their producers write there or, if they
    cannot, inserted copies do. Raises Unmodelled or Refused.

    Works from the last Join to the first, so that each output's place is known. A tensor that several Joins read lives
    in the first Join that has it as a contiguous block, else in the last one. A graph output is placed only as a
    contiguous block, and is then copied to its own buffer. The tensor's other readers read it where it lives.
    """
    uses = program.uses()
    joins = []
    for node in reversed(program.topological()):
        for tensor in node.outputs:
            _place_tensor(program, tensor, uses)
        if node.family is Family.JOIN and node.kept:
            narrow = len(node.output.sizes) in program.traits.narrow_ranks
            if narrow and not node.output.packed and not copies_inputs(program, node, node.output.strides):
                raise Unmodelled(
                    "which elements a Join of five dimensions copies into rows of another one was not determined"
                )
        elif node.family is Family.JOIN:
            if program.traits.join_placement is JoinPlacement.ALL_OR_NONE:
                node.kept = copies_inputs(program, node, node.output.strides)
            if not node.kept:
                joins.append(node)
    refused: list[Fault] = []
    for node in joins:
        _fill(program, node, refused)
    if refused:
        first, *others = refused
        raise Refused(first, others)


def _place_tensor(program: Program, tensor: Tensor, uses: Uses) -> None:
    traits, readers = program.traits, uses[tensor]
    joins = [(node, k) for node, k in readers if node.family is Family.JOIN and not node.kept]
    blocks = [(node, k) for node, k in joins if tensor.is_block_of(node.output)]
    is_output = tensor in program.first_ranks
    if is_output and any(node.operands[k].rank < program.first_ranks[tensor] for node, k in blocks):
        program.copies_for_outputs.add(tensor)
    chosen = join_to_live_in(program, tensor, readers)
    producer = tensor.producer
    assert producer is not None
    if traits.one_home_per_node and (is_output or chosen):
        program.homes_of_nodes.setdefault(producer, tensor)
    if chosen is None or (is_output and tensor not in program.copies_for_outputs):
        return
    node, k = chosen
    output, operand = node.output, node.operands[k]
    place = node.place(output.strides, k)
    if producer.family in (Family.APART, Family.PACKED):
        return
    if producer.family is Family.BLOCK and not tensor.is_block_of(output):
        return
    if operand.view or place % VECTOR or program.homes_of_nodes.get(producer, tensor) is not tensor:
        return
    anywhere = traits.join_placement is JoinPlacement.ALL_OR_NONE or producer.copies_anywhere
    if not anywhere and not tensor.is_vectors_in(output.strides):
        return
    tensor.joined, tensor.strides = (output, place), output.strides
    tensor.joined_as = (node, k)


def _fill(program: Program, node: Node, refused: list[Fault]) -> None:
    """Inserts a copy into the program for each input of a Join that is not placed in its output, and records the parts
    of the output. Adds to `refused` the faults of the inputs that CompileGraph refuses."""
    output = node.output
    program.parts[output] = []
    places = node.places(output.strides)
    for k, operand in enumerate(node.operands):
        tensor, part = operand.tensor, operand.stands_for
        if tensor.joined_as == (node, k):
            program.parts[output].append(tensor)
        elif program.traits.forgets_repeats and tensor.joined and [*tensor.outer()][-1] in (output, *output.outer()):
            program.lost.append((node, k))
        else:
            copy = _copy(program, operand)
            copy.joined, copy.strides = (output, places[k]), output.strides
            program.parts[output].append(copy)
            node.operands[k] = Operand(copy, operand.rank)
        if part is not None:
            if _is_too_narrow(operand, part, output):
                refused.append(Fault(FaultKind.WHOLE_TOO_NARROW, part.split))
            program.stand_ins.append((node, k, program.parts[output][-1], part))


def _copy(program: Program, operand: Operand) -> Tensor:
    source = operand.tensor
    read = Operand(source, operand.rank, operand.offset, operand.sizes)
    node = Node(Family.IDENTITY, 0, [read], [], None, copies=True)
    node.outputs = [Tensor(operand.sizes, source.element_bytes, node, 0)]
    program.nodes.append(node)
    return node.output


def home_outputs(program: Program) -> list[Tensor]:
    """Returns, for each graph output, the tensor that lives in the output's buffer: the output's own tensor or, if that
    lives elsewhere, the output of a copy, which is inserted into the program."""
    homes = []
    for i, tensor in enumerate(program.outputs):
        elsewhere = (
            tensor.producer is None
            or tensor.joined is not None
            or tensor.graph_output is not None
            or tensor in program.copies_for_outputs
            or program.output_ranks[i] != program.first_ranks[tensor]
            or program.homes_of_nodes.get(tensor.producer, tensor) is not tensor
        )
        home = _copy(program, Operand(tensor, program.output_ranks[i])) if elsewhere else tensor
        home.graph_output = i
        homes.append(home)
    return homes


def _is_too_narrow(operand: Operand, part: Part, output: Tensor) -> bool:
    """True if a Split's whole input, which is joined in place of a part, has fewer bytes in the output's rows than in
    memory."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(operand.sizes, output.strides, strict=True))
    thin = part.sizes[part.axis] == 1 < operand.sizes[part.axis]
    return thin or extent < math.prod(operand.sizes)
