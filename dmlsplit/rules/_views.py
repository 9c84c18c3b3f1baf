"""The subjects of checks: a tensor or an operator under judgement, with values derived from it."""

from __future__ import annotations

import enum
from typing import Final

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.geometry import ROLES, members_of
from dmlsplit.descriptors.layout import ELEMENT_BITS, extent
from dmlsplit.descriptors.location import Step, steps_text
from dmlsplit.targets.feature_levels import TensorSupport
from dmlsplit.targets.releases import SizeArithmetic
from dmlsplit.targets.target import Target


class Aspect(enum.Enum):
    """A part of a descriptor that a check requires to be sound, or that a fault spoils for later checks."""

    # Aspects of a tensor.
    DESC = "the tensor's descriptor"
    READABLE = "memory that is there where the release reads it"
    DATA_TYPE = "DataType"
    FLAGS = "Flags"
    DIMENSION_COUNT = "DimensionCount"
    SIZES = "Sizes"
    COMPLETE = "as many Sizes as dimensions"
    POSITIVE = "Sizes without a 0"
    ELEMENT_COUNT = "the product of Sizes"
    STRIDES = "Strides"
    LAYOUT = "the places of elements"
    SPAN = "the span of the places, as a release counts it"
    TOTAL = "TotalTensorSizeInBytes"
    ALIGNMENT = "GuaranteedBaseOffsetAlignment"
    # Aspects of an operator.
    ARRAY = "the array of the parts, and its count"
    AXIS = "Axis"
    # Absence of these is not a fault, but leaves nothing to check.
    STRIDES_GIVEN = "non-null Strides"
    OUTPUT = "a tensor that is an output"

    # Enum's own hash is a Python-level call, and sets of aspects are built for every tensor.
    __hash__ = object.__hash__


DIMENSIONS: Final = frozenset({Aspect.DESC, Aspect.DIMENSION_COUNT, Aspect.SIZES})
LAYOUT_SIZES: Final = DIMENSIONS | {Aspect.COMPLETE, Aspect.POSITIVE}
EXTENT: Final = LAYOUT_SIZES | {Aspect.DATA_TYPE, Aspect.STRIDES, Aspect.ELEMENT_COUNT}


class TensorView:
    """One tensor of an operator under judgement.

    `spoilt` holds the aspects that a check must not rely on; `is_output` and `is_strided` say which aspects exist at
    all.
    """

    __slots__ = (
        "_exact",
        "bits",
        "desc",
        "is_output",
        "is_strided",
        "sizes",
        "spoilt",
        "steps",
        "strides",
        "support",
        "target",
        "tensor",
    )

    def __init__(
        self,
        steps: tuple[Step, ...],
        tensor: TensorDesc | None,
        is_output: bool,
        support: TensorSupport,
        target: Target,
    ) -> None:
        self.steps = steps
        self.tensor = tensor
        self.is_output = is_output
        self.support = support
        self.target = target
        desc = tensor.desc if tensor is not None else None
        # A check that reads `desc` is skipped if it is null, so the stand-in is never read.
        self.desc: BufferTensorDesc = desc if desc is not None else _NO_DESC
        count = self.desc.dimension_count
        sizes, strides = self.desc.sizes or (), self.desc.strides
        self.sizes: tuple[int, ...] = sizes if len(sizes) <= count else sizes[:count]
        self.strides: tuple[int, ...] | None = strides if strides is None or len(strides) <= count else strides[:count]
        self.is_strided = strides is not None
        self.bits = ELEMENT_BITS.get(self.desc.data_type, 0)
        self.spoilt: set[Aspect] = set()
        self._exact: int | None = None

    @property
    def name(self) -> str:
        """The tensor's name in messages, such as "OutputTensors[1]"."""
        return steps_text(self.steps)

    def implied_size(self, arithmetic: SizeArithmetic) -> int:
        """Returns the size in bytes, rounded up to 4, that a build with this arithmetic computes. The aspect EXTENT
        must be sound."""
        if self.strides is None or arithmetic is SizeArithmetic.EXACT:
            return self.exact_implied_size
        return arithmetic.implied_size(self.bits, self.sizes, self.strides)

    @property
    def exact_implied_size(self) -> int:
        if self._exact is None:  # several rules use it
            self._exact = (extent(self.sizes, self.strides) * self.bits + 31) // 32 * 4
        return self._exact


_NO_DESC: Final = BufferTensorDesc(0, None)


class OperatorView:
    """A Split or Join under judgement: the whole tensor, the parts up to the count, and the axis."""

    __slots__ = ("array", "array_name", "axis", "count", "count_name", "parts", "spoilt", "target", "type", "whole")

    def __init__(self, desc: OperatorDesc, target: Target) -> None:
        self.target = target
        self.spoilt: set[Aspect] = set()
        members = members_of(desc)
        self.type, whole, self.array, self.count, self.axis = members
        roles = ROLES[self.type]
        of_whole, of_parts = roles.sides(*target.support[self.type])
        self.array_name, self.count_name = roles.parts, roles.part_count
        writes_parts = roles.part_side == "output"
        self.whole = TensorView((roles.whole,), whole, not writes_parts, of_whole, target)
        self.parts = [
            TensorView((roles.parts, i), tensor, writes_parts, of_parts, target)
            for i, tensor in enumerate(members.parts)
        ]
