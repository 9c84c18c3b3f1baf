"""The subject of a picture: an operator's tensors, lengths and faults, as far as the descriptor determines them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc, TensorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.enums import OperatorType, TensorDataType
from dmlsplit.descriptors.geometry import ROLES, Side, dimensions_read, members_of
from dmlsplit.descriptors.layout import ELEMENT_BITS, packed_strides
from dmlsplit.descriptors.location import steps_text
from dmlsplit.system.records import record

RANK_SHOWN: Final = 16
"""DirectML allows 8 dimensions, but a faulty descriptor may have any number."""


@record
class DrawnTensor:
    """One tensor: as many `sizes` and `strides` as DimensionCount says; None if they make no layout."""

    path: str
    desc: BufferTensorDesc | None
    sizes: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    obstacle: str = ""
    """Why its elements have no places; "" if they have."""

    @property
    def drawable(self) -> bool:
        return not self.obstacle


def _tensor(path: str, tensor: TensorDesc | None) -> DrawnTensor:
    if tensor is None:
        return DrawnTensor(path, None, None, None, "null")
    desc = tensor.desc
    if desc is None:
        return DrawnTensor(path, None, None, None, "Desc is null")
    count = desc.dimension_count
    sizes, strides = dimensions_read(desc)
    if sizes is None:
        return DrawnTensor(path, desc, None, None, "Sizes is null")
    obstacle = ""
    if len(sizes) != count:
        obstacle = f"Sizes has {len(sizes)} entries, DimensionCount is {count}"
    elif not sizes:
        obstacle = "no dimensions"
    elif 0 in sizes:
        obstacle = f"no elements: Sizes[{sizes.index(0)}] is 0"
    elif len(sizes) > RANK_SHOWN:
        obstacle = f"{len(sizes)} dimensions are too many to draw"
    elif strides is not None and len(strides) != count:
        obstacle = f"Strides has {len(strides)} entries, DimensionCount is {count}"
    return DrawnTensor(path, desc, sizes, strides, obstacle)


@dataclass(slots=True)
class Subject:
    """An operator to draw.

    `lengths[i]`: the size of part i along the axis, None if it is unknown. `sizes`: those of the whole tensor or, if it
    has none, of the first part with sizes. `axis` is None if it is out of range.
    """

    type: OperatorType
    whole: DrawnTensor
    parts: Sequence[DrawnTensor]
    given_axis: int
    axis: int | None
    sizes: tuple[int, ...]
    lengths: Sequence[int | None]
    report: Report
    faulty: frozenset[str]
    """The tensors, and "Axis", that have an error."""
    _ends: Sequence[int] = field(default=(), repr=False)

    @property
    def part_noun(self) -> Side:
        return ROLES[self.type].part_side

    @property
    def tensors(self) -> Sequence[DrawnTensor]:
        """The tensors to draw, inputs first."""
        return ROLES[self.type].in_order(self.whole, self.parts)

    @property
    def faults(self) -> Sequence[Diagnostic]:
        return self.report.errors

    @property
    def total_length(self) -> int:
        return self._ends[-1] if self._ends else 0

    def part_at(self, index: int) -> int | None:
        """Returns the index of the part that contains an index along the whole's axis; None if no part does."""
        found = bisect_right(self._ends, index)
        return found if found < len(self._ends) else None

    def start_of(self, part: int) -> int:
        """Returns the index along the whole's axis at which a part begins."""
        return self._ends[part - 1] if part else 0

    def numbering(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Returns, for each dimension, how much an element's number grows with its index: in the whole tensor if
        `sizes` fit it, else in a packed tensor of `sizes`."""
        fits = len(sizes) == len(self.sizes) and all(
            own == whole or i == self.axis for i, (own, whole) in enumerate(zip(sizes, self.sizes, strict=True))
        )
        return packed_strides(self.sizes if fits else sizes)


def subject(desc: OperatorDesc, report: Report) -> Subject:
    """Returns the content of a descriptor's picture: its tensors, as far as their sizes make a layout, the parts'
    lengths, and the tensors for which `report` has errors."""
    members = members_of(desc)
    roles = members.roles
    whole = _tensor(roles.whole, members.whole)
    parts = [_tensor(f"{roles.parts}[{i}]", part) for i, part in enumerate(members.parts)]
    sizes = next((t.sizes for t in (whole, *parts) if t.sizes), ())
    axis = desc.axis if desc.axis < len(sizes) else None
    lengths = [
        part.sizes[desc.axis] if part.sizes is not None and desc.axis < len(part.sizes) else None for part in parts
    ]
    at_fault = (steps_text(d.location.tensor) for d in report.diagnostics if d.severity is Severity.ERROR)
    return Subject(
        members.kind,
        whole,
        parts,
        desc.axis,
        axis,
        sizes,
        lengths,
        report,
        frozenset(at_fault),
        list(accumulate(length or 0 for length in lengths)),
    )


def type_text(tensor: DrawnTensor) -> str:
    """Returns the name of a tensor's data type, such as "FLOAT32", or "DataType N" for a number without a name; "" if
    the tensor has no descriptor."""
    if tensor.desc is None:
        return ""
    data_type = tensor.desc.data_type
    return data_type.name if isinstance(data_type, TensorDataType) else f"DataType {int(data_type)}"


def element_text(tensor: DrawnTensor) -> str:
    """Returns the size of a tensor's element, such as "4 bytes" or "4 bits"; "" if the type has no known size."""
    bits = ELEMENT_BITS.get(tensor.desc.data_type, 0) if tensor.desc is not None else 0
    if not bits:
        return ""
    return f"{bits} bits" if bits < 8 else "1 byte" if bits == 8 else f"{bits // 8} bytes"


def numbers_text(values: Sequence[int] | None, limit: int = RANK_SHOWN) -> str:
    """Returns numbers as text: "[1, 1, 6, 2]"; if there are more than `limit`, the first `limit` and the number of the
    rest; "null" for None."""
    if values is None:
        return "null"
    more = f", … {len(values) - limit:,} more" if len(values) > limit else ""
    return f"[{', '.join(map(str, values[:limit]))}{more}]"
