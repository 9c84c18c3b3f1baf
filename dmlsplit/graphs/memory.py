"""The model of CompileGraph: a graph becomes a list of dispatches, and the memory that each one reads and writes.

Derived from observed builds of DirectML, and valid for them except where it raises Unmodelled. The order of the passes:

    fuse        p * sigmoid(q) becomes one dispatch (fusion.py)
    bypass      identities are removed (views.py)
    elide       readers of a part of a Split read the Split's input at an offset: the part is a *view* (views.py)
    place       an input of a Join is computed directly in the joined buffer: it *lives* in the output (placement.py)
    home        a graph output is computed directly in the buffer that is bound for it, or copied there (placement.py)
    order       nodes are executed by depth, the deepest first
    share       an element-by-element operator works *in place*: its output takes the memory of one input

At the end every tensor has its place in a buffer. Each step asks how often a tensor is used, and counts uses of the
tensor itself only. So memory is reused while a view of it, or a tensor that lives in it, still needs it. This is why
DirectML's graphs compute wrong results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.descriptors import GraphDesc
from dmlsplit.graphs.dimensions import break_splits
from dmlsplit.graphs.fusion import fuse
from dmlsplit.graphs.operators import ABS, NEGATE, Family, short_name
from dmlsplit.graphs.placement import copies_inputs, home_outputs, place_in_joins
from dmlsplit.graphs.program import (
    VECTOR,
    BufferView,
    CompiledGraph,
    Dispatch,
    Node,
    Operand,
    Refused,
    StandIn,
    Tensor,
    Unmodelled,
    counted_uses,
    readers_first,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import FiveDimensions, GraphTraits, JoinPlacement
from dmlsplit.graphs.views import bypass_identities, cut_splits, elide_splits
from dmlsplit.rules.graph_faults import Fault, FaultKind

LAST_FACTOR: Final = 2
"""In x * sigmoid(x) * y * z, the index of the operand whose memory the fused product can take."""


def compile_graph(
    graph: GraphDesc,
    traits: GraphTraits,
    assumed: Mapping[int, Family] | None = None,
    never_negative: Iterable[int] = (),
    constant: Iterable[int] = (),
) -> CompiledGraph:
    """Returns what a structurally valid graph compiles to: the dispatches, the homes of the outputs, the inputs of
    Splits that stand in for a part, and the inputs that are lost.

    `assumed` as for Program. `never_negative` are the nodes that compute no negative values because a Relu is fused
    into them, `constant` those whose results do not depend on what they read. Raises Refused if CompileGraph refuses
    the graph, Crash if it ends the process, Unmodelled if the outcome is not known.
    """
    program = Program(graph, traits, assumed)
    for number in never_negative:
        program.nodes[number].never_negative = True
    for number in constant:
        program.nodes[number].constant = True
    return compile_program(program)


def compile_program(program: Program, *, refuses: bool = True) -> CompiledGraph:
    """Returns what a Program compiles to, as `compile_graph` does, and fills in its `buffers`. Raises the same errors.

    Without `refuses`, graphs whose tensors do not fit their memory get dispatches too.
    """
    nodes = dict.fromkeys(program.nodes)
    fuse(program)
    bypass_identities(program)
    if program.traits.splits_are_slices:
        cut_splits(program)
        nodes |= dict.fromkeys(program.nodes)
    if program.traits.join_placement is JoinPlacement.ALL_OR_NONE:
        # If one input of a Join would begin at an odd place, the Join copies all of them itself.
        for join in [node for node in program.nodes if node.family is Family.JOIN]:
            join.kept = copies_inputs(program, join, packed_strides(join.output.sizes))
    elide_splits(program)
    if program.traits.five_dimensions is not FiveDimensions.SOUND:
        break_splits(program)
    place_in_joins(program)
    homes = home_outputs(program)
    counted = counted_uses(program.nodes, homes)
    order = reversed(readers_first(program.nodes, homes, deepest=False, counted=counted))
    _share(program, readers_first(program.nodes, homes, deepest=True, counted=counted))
    dispatches = list(_dispatches(program, order))
    if refuses:
        _check_memory(program, dispatches)
    dispatches = _without_idle(program, dispatches, homes)
    # An inserted copy remains in a Join only if an in-place operator has joined two buffers.
    if program.traits.forgets_repeats and any(
        d.node is None and d.reads[0][1].buffer == d.writes.buffer for d in dispatches
    ):
        raise Unmodelled("a copy from one Join to another in the same buffer may be missing")
    stand_ins = [
        StandIn(node.output, _place_of(program, node, k, part.sizes), whole, part)
        for node, k, whole, part in program.stand_ins
    ]
    lost = [(node.output, _place_of(program, node, k, node.operands[k].sizes), k) for node, k in program.lost]
    nodes |= dict.fromkeys(program.nodes)
    return CompiledGraph(dispatches, program.results, homes, program.parts, lost, stand_ins, nodes)


def _share(program: Program, order: Iterable[Node]) -> None:
    """Marks, in place, the inputs that element-by-element operators overwrite: an input is overwritten if no other node
    reads it. `order` has the nodes, readers first.

    Only uses of the tensor itself count, as in CompileGraph: views of it, and a Join's output that it lives in, are
    ignored. If both inputs qualify, the order of their producers decides.
    """
    uses = program.uses()
    claimed: set[Node] = set()
    for node in order:
        for tensor in node.outputs:
            readers = uses[tensor]
            if tensor.graph_output is not None or tensor.joined is not None or len(readers) != 1:
                continue
            reader, k = readers[0]
            if not reader.family.computes or reader.copies or reader in claimed:
                continue
            if reader.fused and k != LAST_FACTOR:
                continue
            operand, output = reader.operands[k], reader.output
            if math.prod(operand.sizes) != math.prod(output.sizes):  # broadcast
                continue
            packed = output.packed and (not operand.view or is_packed(operand.sizes, tensor.strides))
            if not packed and _steps(operand.sizes, tensor.strides) != _steps(output.sizes, output.strides):
                continue
            if operand.thin and not program.traits.shares_thin_parts:
                continue
            tensor.shares = output
            claimed.add(reader)


def _dispatches(program: Program, order: Iterable[Node]) -> Iterator[Dispatch]:
    """Yields the dispatches of the nodes, in their order; Joins that need none only get their memory."""
    for node in order:
        if node.family is Family.JOIN and not node.kept:
            _region(program, node.output)
            continue
        reads = [_read_region(program, operand) for operand in node.operands]
        name = "COPY" if node.number is None else "SWISH" if node.fused else short_name(node.type)
        if node.family is Family.JOIN:
            yield from _kept_join(program, node, reads)
            continue
        cuts = node.family in (Family.SPLIT, Family.SLICE)
        copies = node.copies or cuts or node.family is Family.IDENTITY
        all_offsets = node.output_offsets() if cuts else [() for _ in node.outputs]
        for tensor, offsets in zip(node.outputs, all_offsets, strict=True):
            found, begins = reads, None
            if cuts:
                if program.traits.splits_are_slices:  # the operand is already the part
                    offsets = (0,) * len(offsets)
                found = [(reads[0][0], reads[0][1].window(tensor.sizes, offsets, node.steps))]
                begins = reads[0][1].offset
            region = _region(program, tensor)
            in_place = len(found) == 1 and region.begins_as(found[0][1])
            yield Dispatch(
                node.number,
                name,
                tuple(found),
                tensor,
                region,
                copies,
                copies or node.family.computes,
                node.wrong,
                binding=begins,
                rectifies=in_place and node.keeps_positive,
                turns_signs=in_place and node.type in (ABS, NEGATE),
                never_negative=node.never_negative,
                constant=node.constant,
                unseen=node.unseen,
            )


def _without_idle(program: Program, dispatches: Sequence[Dispatch], homes: list[Tensor]) -> list[Dispatch]:
    """Returns the dispatches without the compiler's copies that would copy a tensor onto itself. In `program` and
    `homes` the outputs of these copies are replaced, in place, by their inputs.
    """
    source = {d.output: d.reads[0][0] for d in dispatches if d.node is None and d.reads[0][1] == d.writes}
    if not source:
        return list(dispatches)
    for tensors in (*program.parts.values(), homes):
        tensors[:] = [source.get(tensor, tensor) for tensor in tensors]
    program.stand_ins = [(node, k, source.get(whole, whole), part) for node, k, whole, part in program.stand_ins]
    return [dispatch for dispatch in dispatches if dispatch.output not in source]


def _kept_join(program: Program, node: Node, reads: Sequence[tuple[Tensor, BufferView]]) -> Iterator[Dispatch]:
    whole = _region(program, node.output)
    for read, place in zip(reads, node.places(node.output.strides), strict=True):
        region = whole.part(place, read[1].sizes)
        yield Dispatch(
            node.number,
            "JOIN",
            (read,),
            node.output,
            region,
            copies=True,
            by_element=True,
            view_offset=whole.offset,
            unseen=node.unseen,
        )


def _read_region(program: Program, operand: Operand) -> tuple[Tensor, BufferView]:
    return operand.tensor, _region(program, operand.tensor).part(operand.offset, operand.sizes)


def _region(program: Program, tensor: Tensor) -> BufferView:
    """Returns the memory region of a tensor, and sets it for the tensor and all tensors that it is placed in."""
    if tensor.region is not None:
        return tensor.region
    chain = [tensor]
    while chain[-1].region is None:
        last = chain[-1]
        onward = last.joined[0] if last.joined else last.shares
        if last.graph_output is not None or last.producer is None or onward is None:
            _settle(program, last)
            break
        chain.append(onward)
    for near, far in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
        assert far.region is not None
        near.region = near.view(far.region.buffer, far.region.offset + (near.joined[1] if near.joined else 0))
    assert tensor.region is not None
    return tensor.region


def _place_of(program: Program, node: Node, k: int, sizes: tuple[int, ...]) -> BufferView:
    """Returns the region with these sizes in a Join's output that belongs to its input k."""
    return _region(program, node.output).part(node.place(node.output.strides, k), sizes)


def _settle(program: Program, tensor: Tensor) -> None:
    """Sets the region of a tensor to a new buffer, or to the buffer of the graph input or output that it is."""
    size = tensor.bytes
    if tensor.graph_output is not None:
        buffer = f"output {tensor.graph_output}"
    elif tensor.producer is None:
        buffer = f"input {tensor.index}"
    else:
        buffer = f"temporary {len(program.buffers)}"
        size = -(-size // VECTOR) * VECTOR
    program.buffers[buffer] = size
    tensor.region = tensor.view(buffer, 0)


def _check_memory(program: Program, dispatches: Iterable[Dispatch]) -> None:
    """Raises Refused if a dispatch reads or writes beyond the end of a buffer, with a fault for each such buffer."""
    refused: dict[str, Fault] = {}
    for dispatch in dispatches:
        regions = [*[region for _, region in dispatch.reads], dispatch.writes]
        for region in regions if dispatch.wrong is None else map(dispatch.compiled_region, regions):
            available = program.buffers[region.buffer]
            if region.end > available and region.buffer not in refused:
                size = region.end - region.offset
                kind, node = _too_small_for(program, dispatch)
                numbers = (size, region.offset, available)
                refused[region.buffer] = Fault(kind, node, numbers=numbers, buffer=region.buffer)
    if refused:
        first, *others = refused.values()
        raise Refused(first, others)


def _too_small_for(program: Program, dispatch: Dispatch) -> tuple[FaultKind, int]:
    """Returns the kind and the node index of the fault of a dispatch that reads or writes beyond the end of a
    buffer."""
    for _, _, whole, part in program.stand_ins:
        if dispatch.output is whole:
            return FaultKind.WHOLE_TOO_LARGE, part.split
    return FaultKind.REFUSED, dispatch.node or 0


def _steps(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the (size, stride) of each dimension with more than one element: tensors of different ranks have the same
    layout if these lists are equal."""
    return [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
