"""Facts derived from the inputs of a Concat, in any framework."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dmlsplit.descriptors.conditions import (
    Condition,
    Expression,
    Values,
    alike,
    best_known,
    expressions,
    fits,
    total,
    value_of,
)
from dmlsplit.descriptors.dims import Dim, Shape, dim_text, overlap, shape_text
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.rules._model import Finding, Findings


class ConcatFacts(NodeFacts):
    """A Concat as the model declares it: shapes and element types of its inputs, None for unknown ones."""

    __slots__ = ()
    if TYPE_CHECKING:
        shapes: tuple[Shape | None, ...]
        data_types: tuple[str | None, ...]
        declared_shape: Shape | None

    @property
    @abstractmethod
    def output_shape(self) -> Shape | None:
        """The output's shape as far as the inputs determine it; None if its rank is not known."""

    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> ConcatFacts:
        changes: Any = {"shapes": shapes}
        return replace(self, **changes)

    @property
    def data_type(self) -> str | None:
        return next((data_type for data_type in self.data_types if data_type is not None), None)

    @property
    def rank(self) -> int | None:
        return next((len(shape) for shape in self.shapes if shape is not None), None)

    @property
    def lengths(self) -> tuple[Dim, ...] | None:
        """The inputs' sizes along the axis, None for unknown ones; None if the axis is not known."""
        axis = self.axis_index
        if axis is None:
            return None
        return tuple([None if shape is None or axis >= len(shape) else shape[axis] for shape in self.shapes])

    @property
    def inputs(self) -> tuple[tuple[Expression, ...] | None, ...]:
        """The sizes of each input, with open sizes as symbols; None for an input of unknown rank."""
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

    def closed(self, values: Values) -> ConcatFacts:
        return self.with_shapes(
            tuple([tuple([value_of(size, values) for size in sizes or ()]) for sizes in self.inputs])
        )


def sizes_alike(n: ConcatFacts) -> Iterator[Condition]:
    """Yields the conditions under which the inputs have equal sizes except along the axis."""
    yield from alike(n.inputs, n.axis_index)


def declared_fits(n: ConcatFacts) -> Iterator[Condition]:
    """Yields the conditions under which the output has its declared shape."""
    yield from fits(n.declared_shape, n.whole)


def types_differ(n: ConcatFacts) -> Findings:
    """Yields a finding for each input whose element type is known and differs from that of the first one (rules
    onnx/concat-types-differ and openvino/concat-types-differ)."""
    for i, data_type in enumerate(n.data_types):
        if data_type is not None and data_type != n.data_type:
            yield Finding(("inputs", i), f"is {data_type}, but other inputs are {n.data_type}", n.data_type, data_type)


def ranks_differ(n: ConcatFacts) -> Findings:
    """Yields a finding for each input whose rank differs from that of the first input of known rank (rules
    onnx/concat-rank-differs and openvino/concat-rank-differs)."""
    for i, shape in enumerate(n.shapes):
        if shape is not None and n.rank is not None and len(shape) != n.rank:
            message = f"has {len(shape)} dimensions, but earlier inputs have {n.rank}"
            yield Finding(("inputs", i), message, n.rank, len(shape))


def sizes_differ(n: ConcatFacts) -> Findings:
    """Yields a finding for each size of an input, in a dimension other than the axis, that contradicts the output's
    (rules onnx/concat-shape-differs and openvino/concat-shape-differs)."""
    axis, output = n.axis_index, n.output_shape
    if axis is None or output is None:
        return
    for i, shape in enumerate(n.shapes):
        for d, dim in enumerate(shape or ()):
            if d != axis and not overlap(dim, output[d]):
                message = f"has the shape {shape_text(shape)}, others have {dim_text(output[d])} in dimension {d}"
                yield Finding(("inputs", i), message, dim_text(output[d]), dim_text(dim))
