"""A Split node of a framework's model, as the front ends describe it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from dmlsplit.descriptors import BufferTensorDesc, SplitOperatorDesc
from dmlsplit.diagnostics import Diagnostic, Report
from dmlsplit.errors import InputError
from dmlsplit.formats.element_types import ElementType
from dmlsplit.rules import RULES

Dim: TypeAlias = int | str | None
"""A size, the name or interval (2..10) that stands for one, or None where nothing is known."""
Shape: TypeAlias = tuple[Dim, ...]

_INTERVAL = re.compile(r"([0-9]{0,20})\.\.([0-9]{0,20})")


@dataclass(frozen=True, slots=True)
class SplitNode:
    """One Split of a model.

    `op` and `version` say by which specification it is judged (Split 13, VariadicSplit 1). `axis` is resolved to
    0..rank-1 where the rank is known; `lengths` and the shapes hold None, or a symbol's name, where the model says no
    more. `report` is the framework's verdict. `graph` names the subgraph or function that holds the node, "" the
    model's own graph.
    """

    name: str
    op: str
    version: int
    input_shape: Shape | None
    data_type: str | None
    """The framework's name of the element type: FLOAT, f32."""
    axis: int | None
    lengths: tuple[Dim, ...] | None
    output_shapes: tuple[Shape | None, ...]
    report: Report
    element: ElementType | None = field(repr=False)
    graph: str = ""
    input_name: str = ""
    output_names: tuple[str, ...] = ()

    def descriptor(self) -> SplitOperatorDesc:
        """The node as one DirectML operator with packed tensors, before any level's limits: it may have nine
        dimensions or empty outputs. An element of 2 or 4 DirectML elements adds an innermost dimension.

        InputError where there is no such operator: unknown sizes, faults, or elements that no data type carries.
        """
        obstacle = self.obstacle()
        if obstacle is not None:
            raise InputError(f"{self.name}: {obstacle.message}")
        assert self.element is not None
        assert self.element.data_type is not None
        assert self.axis is not None
        sizes, lengths = _sizes(self.input_shape), _sizes(self.lengths)
        if self.element.count > 1:
            sizes = (*sizes, self.element.count)
        return SplitOperatorDesc.from_lengths(BufferTensorDesc(self.element.data_type, sizes), self.axis, lengths)

    def obstacle(self) -> Diagnostic | None:
        """Why the node stands for no DirectML operator; None where it does."""
        path = self.report.operator or self.op
        if not self.report.ok:
            return RULES["node/not-lowered"].diagnostic(path, "the node is not valid by its framework's rules")
        if self.element is None:
            return RULES["node/shape-unknown"].diagnostic(path, "the element type is not known", actual=self.data_type)
        if self.element.data_type is None:
            message = f"{self.data_type} cannot be lowered: {self.element.refusal}"
            return RULES["node/type-not-lowered"].diagnostic(path, message, actual=self.data_type)
        for what, sizes in (("input shape", self.input_shape), ("lengths", self.lengths)):
            if sizes is None or not all(isinstance(size, int) for size in sizes):
                message = f"the {what} {shape_text(sizes)} is not known; --shape or --dim gives it"
                return RULES["node/shape-unknown"].diagnostic(path, message, actual=shape_text(sizes))
        if self.axis is None:
            return RULES["node/shape-unknown"].diagnostic(path, "the axis is not known")
        return None

    def execute(self, array: np.ndarray) -> list[np.ndarray]:
        """The node's outputs for an input, bit for bit as the framework defines them, copied by the C core.

        The array has the node's element type and a shape that agrees with `input_shape`; InputError else, and for a
        node that its framework refuses.
        """
        if not self.report.ok:
            raise InputError(f"{self.name}: {self.report.errors[0].message}" if self.report.errors else self.name)
        if self.element is None:
            raise InputError(f"{self.name}: the element type is not known")
        if array.dtype != self.element.dtype():
            raise InputError(f"{self.name}: the input is {self.element.name}, not {array.dtype}")
        if self.axis is None or self.lengths is None:
            raise InputError(f"{self.name}: the axis or the lengths are not known")
        if self.input_shape is not None and not agrees(array.shape, self.input_shape):
            raise InputError(f"{self.name}: the input's shape is {shape_text(self.input_shape)}, not {array.shape}")
        from dmlsplit.arrays import split

        # As raw bytes: extension types are no concern of the kernels.
        raw = array.view(np.dtype(f"V{array.dtype.itemsize}"))
        return [piece.view(array.dtype) for piece in split(raw, self.axis, self._lengths_of(array.shape[self.axis]))]

    def _lengths_of(self, size: int) -> Sequence[int]:
        """The lengths, the only unknown one being what is left of the axis."""
        assert self.lengths is not None
        known = [length for length in self.lengths if isinstance(length, int)]
        if len(known) < len(self.lengths) - 1:
            raise InputError(f"{self.name}: the lengths {shape_text(self.lengths)} are not known")
        rest = size - sum(known)
        lengths = [length if isinstance(length, int) else rest for length in self.lengths]
        if min(lengths, default=0) < 0 or sum(lengths) != size:
            raise InputError(f"{self.name}: lengths {shape_text(self.lengths)} do not fit an axis of {size}")
        return lengths


@dataclass(frozen=True, slots=True)
class OtherNode:
    """A node that is named and not judged; `diagnostic` says why."""

    name: str
    op: str
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class ModelNodes:
    """What a front end found in a model, in its order."""

    items: tuple[SplitNode | OtherNode, ...]

    @property
    def splits(self) -> tuple[SplitNode, ...]:
        """The nodes that are judged."""
        return tuple([item for item in self.items if isinstance(item, SplitNode)])

    @property
    def not_judged(self) -> Counter[str]:
        """How many nodes of which other operators there are."""
        return Counter(item.op for item in self.items if isinstance(item, OtherNode))


def agrees(shape: Sequence[int], declared: Shape) -> bool:
    """Whether sizes fit a declared shape; one symbol stands for one size, an interval (2..10) for any in it."""
    symbols: dict[str, int] = {}

    def fits(size: int, dim: Dim) -> bool:
        if not isinstance(dim, str):
            return dim is None or dim == size
        bounds = _INTERVAL.fullmatch(dim)
        if bounds is None:
            return symbols.setdefault(dim, size) == size
        low, high = bounds.groups()
        return int(low or 0) <= size and (not high or size <= int(high))

    return len(shape) == len(declared) and all(map(fits, shape, declared))


def shape_text(shape: Sequence[Dim] | None) -> str:
    """[1, batch, ?]; "unknown" for an unknown rank."""
    if shape is None:
        return "unknown"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"


def _sizes(shape: Sequence[Dim] | None) -> tuple[int, ...]:
    assert shape is not None
    return tuple([dim for dim in shape if isinstance(dim, int)])
