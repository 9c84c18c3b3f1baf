"""The facts about one OpenVINO Concat layer, and derived properties."""

from __future__ import annotations

from collections.abc import Sequence

from dmlsplit.descriptors.dims import Dim, Shape, both, bounds, interval, overlap
from dmlsplit.rules._concat import ConcatFacts
from dmlsplit.system.records import record


@record
class OpenVinoConcat(ConcatFacts):
    """A layer as the IR declares it; None means unknown or absent. Element types are OpenVINO's names (f32)."""

    scope = "openvino"
    shapes: tuple[Shape | None, ...]
    """One shape for each input port."""
    data_types: tuple[str | None, ...] = ()
    """One type for each input; () if none is known."""
    axis: int | None = None
    missing: tuple[int, ...] = ()
    """The input ports without an edge."""
    outputs: int = 1
    """The number of output ports."""
    port_shapes: tuple[tuple[int, Shape], ...] = ()
    """Input ports whose declared shape differs from their producer's, with the declared shape."""
    declared_shape: Shape | None = None
    declared_type: str | None = None
    """The type that the output port declares."""

    @property
    def specification(self) -> str:
        return "OpenVINO Concat-1"

    @property
    def axis_index(self) -> int | None:
        """The axis as a non-negative index; None if it or the rank is unknown, or if it is out of range."""
        axis, rank = self.axis, self.rank
        return None if axis is None or rank is None or not -rank <= axis < rank else axis % rank

    @property
    def output_shape(self) -> Shape | None:
        """The output's shape, as far as the inputs determine it; in other dimensions than the axis it has the sizes
        that all inputs allow. None if the axis or the rank is not known."""
        axis, rank, lengths = self.axis_index, self.rank, self.lengths
        if axis is None or rank is None or lengths is None:
            return None
        known = [shape for shape in self.shapes if shape is not None and len(shape) == rank]
        sizes = [_common([shape[i] for shape in known]) for i in range(rank)]
        sizes[axis] = _sum(lengths)
        return tuple(sizes)


def _common(dims: Sequence[Dim]) -> Dim:
    """Returns the dimension that all dimensions allow; one that contradicts an earlier one is ignored."""
    found = dims[0]
    for dim in dims[1:]:
        if overlap(found, dim):
            found = both(found, dim)
    return found


def _sum(dims: Sequence[Dim]) -> Dim:
    limits = [bounds(dim) for dim in dims]
    highs = [high for _, high in limits if high is not None]
    return interval(sum(low for low, _ in limits), sum(highs) if len(highs) == len(limits) else None)
