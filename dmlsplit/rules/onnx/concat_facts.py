"""The facts about one ONNX Concat node, and derived properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dmlsplit.descriptors.dims import Dim, Shape
from dmlsplit.rules._concat import ConcatFacts
from dmlsplit.rules.onnx.split_facts import DATA_TYPES as SPLIT_TYPES
from dmlsplit.system.records import record

VERSIONS: Final = (1, 4, 11, 13)
"""The opsets in which Concat changed."""
DATA_TYPES: Final = {1: SPLIT_TYPES[1], 4: SPLIT_TYPES[2], 11: SPLIT_TYPES[2], 13: SPLIT_TYPES[13]}
"""The element types of T, by version."""


@record
class OnnxConcat(ConcatFacts):
    """A Concat as the model declares it; None means absent or unknown. `version` is 0 if the model imports no opset for
    it."""

    scope = "onnx"
    version: int
    shapes: tuple[Shape | None, ...]
    """One shape for each input."""
    data_types: tuple[str | None, ...] = ()
    """One type for each input; () if none is known."""
    axis: int | None = None
    omitted: tuple[int, ...] = ()
    """The inputs with an empty name."""
    outputs: int = 1
    output_omitted: bool = False
    """True if the output's name is empty."""
    other_attributes: tuple[str, ...] = ()
    """Attributes that the version does not have."""
    mistyped_attributes: tuple[str, ...] = ()
    declared_type: str | None = None
    declared_shape: Shape | None = None
    """The output's type and shape as the model declares them."""
    opset: int | None = None
    newest_opset: int | None = None
    """The model's opset and the newest opset whose operators are known."""

    @property
    def specification(self) -> str:
        return f"ONNX Concat {self.version}" if self.version else "ONNX"

    def differences(self) -> Iterator[tuple[str, str]]:
        if self.version == 1:
            yield "", "ONNX Runtime and onnx's reference evaluator have no Concat 1"

    @property
    def given_axis(self) -> int | None:
        """The attribute's value, or version 1's default; None if there is neither."""
        return 1 if self.axis is None and self.version == 1 else self.axis

    @property
    def axis_index(self) -> int | None:
        """The axis as a non-negative index; None if it is missing, negative while the rank is unknown, or out of
        range."""
        axis, rank = self.given_axis, self.rank
        if axis is None or rank is None:
            return axis if axis is not None and axis >= 0 else None
        return axis % rank if -rank <= axis < rank else None

    @property
    def output_shape(self) -> Shape | None:
        """The output's shape, as far as the inputs determine it; a size other than the axis's is the first number that
        any input has there. None if the axis or the rank is not known."""
        axis, rank, lengths = self.axis_index, self.rank, self.lengths
        if axis is None or rank is None or lengths is None:
            return None
        known = [shape for shape in self.shapes if shape is not None and len(shape) == rank]
        sizes: list[Dim] = []
        for i in range(rank):
            here = [shape[i] for shape in known]
            sizes.append(next((dim for dim in here if isinstance(dim, int)), here[0]))
        numbers = [length for length in lengths if isinstance(length, int)]
        sizes[axis] = sum(numbers) if len(numbers) == len(lengths) else lengths[0] if len(lengths) == 1 else None
        return tuple(sizes)
