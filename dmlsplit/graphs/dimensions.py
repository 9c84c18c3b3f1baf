"""Shaders of four dimensions: how builds of DirectML compile tensors with five or more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dmlsplit.descriptors.layout import is_packed, packed_strides
from dmlsplit.graphs.operators import Family
from dmlsplit.graphs.program import (
    INNER,
    VECTOR,
    Node,
    Refused,
    Tensor,
    Unmodelled,
    Wrong,
    same_layout,
)
from dmlsplit.graphs.reading import Program
from dmlsplit.graphs.traits import FiveDimensions
from dmlsplit.rules.graph_faults import Fault, FaultKind


def break_splits(program: Program) -> None:
    """Marks, in place, the Splits of five dimensions that builds compile as four: the shader reads all elements beyond
    the first index of dimension 0 from wrong places. Raises Refused for a Split or Join that CompileGraph refuses,
    Unmodelled if that is not known."""
    broken = []
    for node in program.nodes:
        outer = len(node.output.sizes) - INNER
        if node.family is Family.SPLIT and math.prod(node.operands[0].sizes[:-INNER]) > 1:
            broken.append(node)
            node.wrong = Wrong(Fault(FaultKind.FIVE_DIMENSIONS, node.number), behind_first=True)
            if node.axis < outer:
                raise Refused(Fault(FaultKind.OUTER_SPLIT, node.number or 0, numbers=(outer + INNER,)))
        if node.family is Family.JOIN and node.kept and node.axis < outer and len(node.operands) > 1:
            outer_sizes = [math.prod(operand.sizes[:-INNER]) for operand in node.operands]
            if outer_sizes[0] == 1:
                raise Refused(Fault(FaultKind.OUTER_JOIN, node.number or 0, numbers=(outer + INNER,)))
            if 1 in outer_sizes:
                node.unseen = "the result of a Join of such inputs was not observed with this build"
            if outer > 1:
                raise Unmodelled("which Joins of more than five dimensions are refused was not determined")
    unseen = program.traits.five_dimensions is FiveDimensions.UNKNOWN
    for node in broken:
        if unseen or len(node.output.sizes) > 5:
            node.unseen = "the result of a Split of so many dimensions was not observed with this build"


def too_narrow(program: Program, node: Node, tensor: Tensor, strides: Sequence[int], *, leaves: bool = False) -> bool:
    """True if a node's operator, limited to four dimensions, would have to read or write a tensor with these strides
    (in elements) that does not fold into four.

    Determined by experiment. Packed tensors of whole 16-byte vectors fold if at most three sizes are above 1, other
    tensors as those with gaps do. With four sizes above 1 and a gap after the first, the innermost size decides: it has
    to equal the first stride divided by the number of elements at one index of the first. `leaves`: the operator writes
    a graph output.
    """
    sizes = tensor.sizes
    if node.family not in (Family.ACTIVATION, Family.SLICE) or len(sizes) not in program.traits.narrow_ranks:
        return False
    if sizes[1] == sizes[2] == 1 and not leaves:
        return False
    large = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    packed = is_packed(sizes, strides)
    if packed and tensor.block_bytes(0) % VECTOR == 0:
        return len(large) > 3
    rows = [strides[-2] * stride for stride in packed_strides(sizes[:-1])]
    if not packed and sizes[-1] > 1 and same_layout(sizes[:-1], strides[:-1], rows):
        return not program.traits.narrow_ranks_take_rows
    behind = [size for size, _ in large[1:]]
    if len(large) == 4 and packed_strides(behind) == tuple(stride for _, stride in large[1:]):
        return large[0][1] != math.prod(behind) * behind[-1]
    folds = (packed and len(large) < 2) or (len(large) == 2 and sizes[0] > 1)
    return leaves or not folds
