"""The plan for a geometry: the copies of a Split or Join as the C core runs them."""

from __future__ import annotations

from collections.abc import Sequence

from dmlsplit.descriptors.geometry import Dimensions, Geometry
from dmlsplit.native import core


def plan_of(
    geometry: Geometry, strides: Dimensions | None = None, part_strides: Sequence[Dimensions] | None = None
) -> core.Plan:
    """Returns the plan of an operator whose elements are whole bytes.

    `strides` and `part_strides`, in bytes, are the bound arrays' strides, the descriptor's by default. Written elements
    may overlap here: the rules report that, and DirectML runs such an operator.
    """
    own = geometry.whole
    whole = own.sizes, own.byte_strides if strides is None else strides
    if part_strides is None:
        part_strides = [part.byte_strides for part in geometry.parts]
    parts = [(part.sizes, steps) for part, steps in zip(geometry.parts, part_strides, strict=True)]
    direction = core.SPLIT if geometry.roles.part_side == "output" else core.JOIN
    return core.Plan.of(direction, own.bits // 8, geometry.axis, whole, parts, overlap_allowed=True)
