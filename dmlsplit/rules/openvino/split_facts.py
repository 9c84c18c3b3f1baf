"""The facts about one OpenVINO Split or VariadicSplit layer, and derived properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dmlsplit.descriptors.conditions import Expression, Values, expressions, quotient, total, value_of
from dmlsplit.descriptors.dims import Bounds, Dim, Interval, Shape, bounds, interval
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.rules._nodes import Fact
from dmlsplit.system.records import record

INTEGER_TYPES: Final = ("i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64")
ELEMENT_TYPES: Final = (
    *INTEGER_TYPES,
    *("f16", "f32", "f64", "bf16", "boolean", "string", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0"),
)
"""OpenVINO's element types, by element_type's names."""

AXIS_KNOWN: Final = frozenset({Fact.FORM, Fact.SHAPE, Fact.AXIS})
"""What a check that uses the axis in the data's shape needs."""

INPUTS: Final = {"Split": ("data", "axis"), "VariadicSplit": ("data", "axis", "split_lengths")}


@record
class OpenVinoSplit(NodeFacts):
    """A layer as the IR declares it. None means unknown, or absent for optional members.

    Element types are OpenVINO's names (f32). The values of axis and split_lengths are known only if they come from
    constants; otherwise `..._unknown` has the reason.
    """

    scope = "openvino"
    op: str
    outputs: int
    """The number of output ports."""
    data_shape: Shape | None = None
    data_type: str | None = None
    axis: int | None = None
    axis_type: str | None = None
    axis_shape: Shape | None = None
    axis_unknown: str | None = None
    num_splits: int | None = None
    split_lengths: tuple[int, ...] | None = None
    split_lengths_type: str | None = None
    split_lengths_shape: Shape | None = None
    split_lengths_unknown: str | None = None
    missing_inputs: tuple[str, ...] = ()
    """The inputs without an edge."""
    extra_inputs: int = 0
    """Input ports beyond those of the specification."""
    port_shape: Shape | None = None
    """The shape of the layer's own data port, if it differs from its producer's."""
    declared_shapes: tuple[Shape | None, ...] = ()
    declared_types: tuple[str | None, ...] = ()
    """The types and shapes that the output ports declare."""

    @property
    def specification(self) -> str:
        return f"OpenVINO {self.op}-1"

    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> OpenVinoSplit:
        (shape,) = shapes
        return replace(self, data_shape=shape)

    def differences(self) -> Iterator[tuple[str, str]]:
        if self.op == "VariadicSplit":
            for member, type in (("axis", self.axis_type), ("split_lengths", self.split_lengths_type)):
                if type in ("f16", "f32", "f64", "bf16"):
                    yield member, "OpenVINO accepts floating-point values and drops the fraction"
        if isinstance(self.axis_size, Interval):
            if self.indivisible and not self.too_many_parts:
                yield "data", "OpenVINO compares num_splits only with the upper bound of an interval"
            if self.wrong_sum:
                yield "split_lengths", "OpenVINO does not compare lengths with an interval"
        if self.count is not None and self.outputs < self.count:
            yield "output", "OpenVINO counts the outputs itself and accepts a layer that lists fewer"

    @property
    def rank(self) -> int | None:
        return None if self.data_shape is None else len(self.data_shape)

    @property
    def axis_index(self) -> int | None:
        """The axis as a non-negative index; None if it or the rank is unknown, or if it is out of range."""
        if self.axis is None or self.data_shape is None:
            return None
        rank = len(self.data_shape)
        return self.axis % rank if -rank <= self.axis < rank else None

    @property
    def axis_size(self) -> Dim:
        return None if self.data_shape is None or self.axis_index is None else self.data_shape[self.axis_index]

    @property
    def axis_bounds(self) -> Bounds:
        return bounds(self.axis_size)

    @property
    def total(self) -> int | None:
        """The sum of the lengths without -1; None if they are not known."""
        return None if self.split_lengths is None else sum(n for n in self.split_lengths if n != -1)

    @property
    def has_rest(self) -> bool:
        """True if one length is -1: the rest of the axis."""
        return self.split_lengths is not None and -1 in self.split_lengths

    @property
    def count(self) -> int | None:
        """The number of outputs that the specification requires; None if it is not known."""
        if self.op == "Split":
            return self.num_splits
        if self.split_lengths is not None:
            return len(self.split_lengths)
        shape = self.split_lengths_shape
        return shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None

    @property
    def too_many_parts(self) -> bool:
        """True if num_splits exceeds every possible size of the axis, unless 0 is the only possible size."""
        high = self.axis_bounds.high
        return self.num_splits is not None and high is not None and high > 0 and self.num_splits > high

    @property
    def indivisible(self) -> bool:
        """True if no possible size of the axis is a multiple of num_splits."""
        low, high = self.axis_bounds
        n = self.num_splits
        return n is not None and n > 0 and high is not None and -(-low // n) * n > high

    @property
    def wrong_sum(self) -> bool:
        """True if the lengths, none of which is -1, add up to no possible size of the axis."""
        low, high = self.axis_bounds
        if self.total is None or self.has_rest:
            return False
        return self.total < low or (high is not None and self.total > high)

    @property
    def lengths(self) -> Shape:
        """The sizes of the outputs along the axis, None for unknown ones; one for each output port."""
        if self.op == "Split":
            return (self._part(),) * self.outputs
        if self.split_lengths is None or len(self.split_lengths) != self.outputs:
            return (None,) * self.outputs
        return tuple([self._rest() if n == -1 else n for n in self.split_lengths])

    @property
    def whole(self) -> tuple[Expression, ...] | None:
        return None if self.data_shape is None else expressions(self.data_shape, "data")

    @property
    def least_rank(self) -> int | None:
        if self.axis is None or self.data_shape is not None or any(shape is not None for shape in self.declared_shapes):
            return None
        return self.axis + 1 if self.axis >= 0 else -self.axis

    @property
    def parts(self) -> tuple[Expression, ...] | None:
        size = self.axis_length
        if size is None:
            return None
        if self.op == "Split":
            count = self.num_splits
            return None if count is None or count < 1 else (quotient("share", size, count),) * count
        if self.split_lengths is None:
            return None
        rest = total((size, -(self.total or 0)))
        return tuple([rest if length == -1 else length for length in self.split_lengths])

    def closed(self, values: Values) -> OpenVinoSplit:
        whole = self.whole
        return replace(self, data_shape=None if whole is None else tuple([value_of(size, values) for size in whole]))

    @property
    def output_shapes(self) -> tuple[Shape | None, ...]:
        """The outputs' shapes according to the specification; faults leave sizes unknown."""
        shape, axis = self.data_shape, self.axis_index
        if shape is None:
            return (None,) * self.outputs
        if axis is None:
            return ((None,) * len(shape),) * self.outputs
        return tuple([(*shape[:axis], length, *shape[axis + 1 :]) for length in self.lengths])

    def _part(self) -> Dim:
        size, count = self.axis_size, self.num_splits
        if size is None or count is None or count < 1:
            return None
        if isinstance(size, int):
            return size // count if size % count == 0 else None
        # Both ends are rounded down, as in OpenVINO; an evenly divisible size lies between them.
        low, high = bounds(size)
        return interval(low // count, None if high is None else high // count)

    def _rest(self) -> Dim:
        """Returns the length that -1 stands for; None if it is unknown. It is unknown for an interval, as in
        OpenVINO."""
        size, total = self.axis_size, self.total
        return size - total if isinstance(size, int) and total is not None and total <= size else None
