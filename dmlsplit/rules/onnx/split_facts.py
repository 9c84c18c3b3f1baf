"""The facts about one ONNX Split node, and derived properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.conditions import Expression, Values, expressions, quotient, value_of
from dmlsplit.descriptors.dims import Dim, Shape
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.system.records import record

Lengths: TypeAlias = tuple[int | float, ...]

VERSIONS: Final = (1, 2, 11, 13, 18)
"""The opsets in which Split changed."""

_FLOATS: Final = ("FLOAT16", "FLOAT", "DOUBLE")
_SINCE_2: Final = (
    *_FLOATS,
    *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("BOOL", "STRING", "COMPLEX64", "COMPLEX128"),
)
_SINCE_13: Final = (*_SINCE_2, "BFLOAT16")
DATA_TYPES: Final = {1: _FLOATS, 2: _SINCE_2, 11: _SINCE_2, 13: _SINCE_13, 18: _SINCE_13}
"""The element types of T, by version."""
ATTRIBUTES: Final = {
    1: ("axis", "split"),
    2: ("axis", "split"),
    11: ("axis", "split"),
    13: ("axis",),
    18: ("axis", "num_outputs"),
}
MAX_PARTS: Final = 1 << 16
"""The largest num_outputs for which lengths are computed; a file can give a larger one without naming outputs."""
MAX_INPUTS: Final = {1: 2, 2: 1, 11: 1, 13: 2, 18: 2}


@record
class OnnxSplit(NodeFacts):
    """A Split as the model declares it. None means absent for optional members, unknown for computed ones. `version` is
    0 if the model imports no opset for it."""

    scope = "onnx"
    version: int
    outputs: int
    """The number of listed outputs, including those without a name."""
    omitted: tuple[int, ...] = ()
    """The outputs with an empty name."""
    inputs: int = 1
    """The number of listed inputs, including those without a name."""
    data_input: bool = True
    """True if the first input has a name."""
    data_type: str | None = None
    input_shape: Shape | None = None
    axis: int | None = None
    num_outputs: int | None = None
    split: tuple[int, ...] | None = None
    """The attribute `split`."""
    split_input: bool = False
    """True if the second input has a name."""
    split_values: Lengths | None = None
    """The second input's elements."""
    split_dims: Shape | None = None
    """The second input's elements if some are symbols or unknown."""
    split_type: str | None = None
    split_shape: Shape | None = None
    split_malformed: str | None = None
    """Why the second input's tensor cannot be read."""
    other_attributes: tuple[str, ...] = ()
    """Attributes that the version does not have."""
    mistyped_attributes: tuple[str, ...] = ()
    declared_types: tuple[str | None, ...] = ()
    declared_shapes: tuple[Shape | None, ...] = ()
    """The outputs' types and shapes as the model declares them."""
    repeated: tuple[int, ...] = ()
    """Outputs that repeat the name of an earlier one."""
    opset: int | None = None
    newest_opset: int | None = None
    """The model's opset and the newest opset whose operators are known."""

    @property
    def specification(self) -> str:
        return f"ONNX Split {self.version}" if self.version else "ONNX"

    def with_shapes(self, shapes: tuple[tuple[int, ...], ...]) -> OnnxSplit:
        (shape,) = shapes
        return replace(self, input_shape=shape)

    def differences(self) -> Iterator[tuple[str, str]]:
        if self.version == 1:
            yield (
                "",
                "ONNX Runtime and onnx's reference evaluator have no Split 1, and onnx's shape inference infers only "
                "ranks",
            )
            if self.split_input and self.split is None:
                yield "split", "OpenVINO ignores lengths given as an input of Split 1 and makes equal parts"
        if self._uneven and (self.axis or 0) < 0:
            yield "num_outputs", "OpenVINO refuses a smaller last part if the axis is negative"

    @property
    def rank(self) -> int | None:
        return None if self.input_shape is None else len(self.input_shape)

    @property
    def axis_index(self) -> int | None:
        """The axis as a non-negative index; None if it is negative while the rank is unknown, or out of range."""
        axis, rank = self.axis or 0, self.rank
        if rank is None:
            return axis if axis >= 0 else None
        return axis % rank if -rank <= axis < rank else None

    @property
    def axis_size(self) -> Dim:
        if self.input_shape is None or self.axis_index is None:
            return None
        return self.input_shape[self.axis_index]

    @property
    def count(self) -> int:
        """The number of parts; it exceeds the number of outputs if trailing outputs are omitted."""
        if self.version >= 18 and not self.split_input and self.num_outputs is not None:
            return self.num_outputs
        return self.outputs

    @property
    def equal_parts(self) -> bool:
        """True if no lengths are given."""
        return not self.split_input and (self.split is None or self.version >= 13)

    @property
    def _uneven(self) -> bool:
        """True if num_outputs makes the last part smaller than the others."""
        size, count = self.axis_size, self.num_outputs or 0
        return self.version >= 18 and self.equal_parts and isinstance(size, int) and count > 0 and size % count != 0

    @property
    def given_lengths(self) -> tuple[int, ...] | None:
        """The lengths given by attribute or input; None if there are none or not all are known integers."""
        if self.split is not None and self.version < 13:
            return self.split
        values = self.split_values if self.split_input else None
        if values is None or not all(float(value).is_integer() for value in values):
            return None
        return tuple([int(value) for value in values])

    @property
    def lengths(self) -> Shape | None:
        """The sizes of the parts along the axis, None for unknown ones; None if even their number is uncertain."""
        if not self.equal_parts:
            given = self.given_lengths
            open_ = self.split_dims if self.split_dims and len(self.split_dims) == self.outputs else None
            return given if given is not None else open_ or (None,) * self.outputs
        size, count = self.axis_size, self.count
        if not 1 <= count <= MAX_PARTS:
            return None
        if not isinstance(size, int):
            return (size,) if count == 1 else (None,) * count
        # Before version 18 the two differ only in faulty nodes.
        chunk = -(-size // count) if self.version >= 18 else size // count
        return (*(chunk,) * (count - 1), size - chunk * (count - 1))

    @property
    def whole(self) -> tuple[Expression, ...] | None:
        return None if self.input_shape is None else expressions(self.input_shape, "input")

    @property
    def least_rank(self) -> int | None:
        if self.input_shape is not None or any(shape is not None for shape in self.declared_shapes):
            return None
        axis = self.axis or 0
        return axis + 1 if axis >= 0 else -axis

    @property
    def parts(self) -> tuple[Expression, ...] | None:
        size = self.axis_length
        if size is None:
            return None
        if not self.equal_parts:
            given = self.given_lengths
            return self.open_lengths if given is None else given
        count = self.count
        if not 1 <= count <= MAX_PARTS:
            return None
        if self.version < 18:
            return (quotient("share", size, count),) * count
        return (*(quotient("rounded up", size, count),) * (count - 1), quotient("last", size, count))

    @property
    def open_lengths(self) -> tuple[Expression, ...] | None:
        """The given lengths as expressions, if not all are known numbers; None if all are, or if none are given."""
        if self.given_lengths is not None or self.equal_parts or self.split_malformed:
            return None
        known = self.split_dims is not None and len(self.split_dims) == self.outputs
        return expressions(self.split_dims if known and self.split_dims else (None,) * self.outputs, "split")

    def closed(self, values: Values) -> OnnxSplit:
        lengths = self.open_lengths
        given = None if lengths is None else tuple([value_of(length, values) for length in lengths])
        shape = None if self.whole is None else tuple([value_of(size, values) for size in self.whole])
        if given is None:
            return replace(self, input_shape=shape)
        return replace(self, input_shape=shape, split_values=given, split_dims=None, split_shape=(len(given),))

    @property
    def output_shapes(self) -> tuple[Shape | None, ...]:
        lengths, shape, axis = self.lengths, self.input_shape, self.axis_index
        if lengths is None or shape is None or axis is None:
            return (None,) * self.outputs
        return tuple([(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths])
