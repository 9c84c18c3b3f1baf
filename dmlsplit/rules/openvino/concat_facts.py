"""What is known of one OpenVINO Concat layer, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dmlsplit.conditions import Expression, Values, best_known, expressions, total, value_of
from dmlsplit.dims import Dim, Shape, both, bounds, interval, overlap
from dmlsplit.rules._facts import NodeFacts


@dataclass(frozen=True, slots=True)
class OpenVinoConcat(NodeFacts):
    """A layer as the IR has it; None stands for unknown, or for absent. Element types are OpenVINO's names (f32)."""

    shapes: tuple[Shape | None, ...]
    """Of the inputs, one for each port."""
    data_types: tuple[str | None, ...] = ()
    """Of the inputs, one each where any is known."""
    axis: int | None = None
    missing: tuple[int, ...] = ()
    """The input ports that no edge leads to."""
    outputs: int = 1
    """Output ports."""
    port_shapes: tuple[tuple[int, Shape], ...] = ()
    """Input ports that declare another shape than what feeds them, and that shape."""
    declared_shape: Shape | None = None
    declared_type: str | None = None
    """What the output port says of itself."""

    @property
    def specification(self) -> str:
        return "OpenVINO Concat-1"

    def with_shape(self, shape: tuple[int, ...]) -> OpenVinoConcat:
        """The same of a Concat of one input."""
        return self.with_shapes((shape,))

    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> OpenVinoConcat:
        """The same layer with inputs of these shapes, which fit what is known of them."""
        return replace(self, shapes=shapes)

    @property
    def data_type(self) -> str | None:
        return next((data_type for data_type in self.data_types if data_type is not None), None)

    @property
    def rank(self) -> int | None:
        return next((len(shape) for shape in self.shapes if shape is not None), None)

    @property
    def axis_index(self) -> int | None:
        """The axis from 0; None where it or the rank is unknown, or where it is out of range."""
        axis, rank = self.axis, self.rank
        return None if axis is None or rank is None or not -rank <= axis < rank else axis % rank

    @property
    def lengths(self) -> tuple[Dim, ...] | None:
        """The inputs' sizes on the axis."""
        axis = self.axis_index
        if axis is None:
            return None
        return tuple([None if shape is None or axis >= len(shape) else shape[axis] for shape in self.shapes])

    @property
    def inputs(self) -> tuple[tuple[Expression, ...] | None, ...]:
        """The sizes of the inputs, the open ones as symbols."""
        return tuple([None if s is None else expressions(s, f"inputs[{i}]") for i, s in enumerate(self.shapes)])

    @property
    def whole(self) -> tuple[Expression, ...] | None:
        parts, axis = self.parts, self.axis_index
        if parts is None or axis is None:
            return None
        inputs = [sizes for sizes in self.inputs if sizes is not None]
        sizes = [best_known(sizes) for sizes in zip(*inputs, strict=True)]
        return (*sizes[:axis], total(parts), *sizes[axis + 1 :])

    @property
    def parts(self) -> tuple[Expression, ...] | None:
        axis, rank, inputs = self.axis_index, self.rank, self.inputs
        known = [sizes[axis] for sizes in inputs if axis is not None and sizes is not None and len(sizes) == rank]
        return tuple(known) if known and len(known) == len(inputs) else None

    def closed(self, values: Values) -> OpenVinoConcat:
        return self.with_shapes(
            tuple([tuple([value_of(size, values) for size in sizes or ()]) for sizes in self.inputs])
        )

    @property
    def output_shape(self) -> Shape | None:
        """As far as the inputs say; off the axis the sizes that fit all of them."""
        axis, rank, lengths = self.axis_index, self.rank, self.lengths
        if axis is None or rank is None or lengths is None:
            return None
        known = [shape for shape in self.shapes if shape is not None and len(shape) == rank]
        sizes = [_common([shape[i] for shape in known]) for i in range(rank)]
        sizes[axis] = _sum(lengths)
        return tuple(sizes)


def _common(dims: Sequence[Dim]) -> Dim:
    """The sizes that fit all dimensions; those of the first where there are none."""
    found = dims[0]
    for dim in dims[1:]:
        if overlap(found, dim):
            found = both(found, dim)
    return found


def _sum(dims: Sequence[Dim]) -> Dim:
    limits = [bounds(dim) for dim in dims]
    highs = [high for _, high in limits if high is not None]
    return interval(sum(low for low, _ in limits), sum(highs) if len(highs) == len(limits) else None)
