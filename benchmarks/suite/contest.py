"""What takes part in a measurement: buffers that all share, and jobs that are run on them."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from suite.cases import Case
from suite.layouts import build, same_bytes, slices


class Unsupported(Exception):
    """A contestant does not do this case; the text says why."""


IMAGE_TYPES: Final = {1: "u1", 2: "u2", 4: "f4", 8: "f8"}


def same_size(array: np.ndarray, names: dict[int, str]) -> np.ndarray:
    """The elements as those of another type, by their size."""
    return array.view(names[array.itemsize])


class Buffers:
    """The arrays of one case. All contestants read the same inputs, and those that can write the same outputs."""

    def __init__(self, case: Case) -> None:
        self.case = case
        seeds = (None, 1) if case.join else (1, None)
        self.whole = build(case.whole, case.shape, case.dtype, seeds[0])
        self.parts = [
            build(case.parts, case.part_shape(n), case.dtype, None if seeds[1] is None else 7 * i)
            for i, n in enumerate(case.pieces)
        ]

    @property
    def inputs(self) -> list[np.ndarray]:
        return self.parts if self.case.join else [self.whole]

    @property
    def outputs(self) -> list[np.ndarray]:
        return [self.whole] if self.case.join else self.parts

    @property
    def outputs_are_packed(self) -> bool:
        return all(output.flags.c_contiguous for output in self.outputs)

    def whole_slices(self) -> list[np.ndarray]:
        """The parts as views of the whole."""
        return slices(self.whole, self.case.axis, self.case.pieces)

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(source, target) of each part and its place in the whole."""
        places = zip(self.whole_slices(), self.parts, strict=True)
        return [(part, place) if self.case.join else (place, part) for place, part in places]

    def turned(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Those of matrices that are turned, seen such that target is source.T and rows of both are contiguous."""
        found = [(a, b.T) if a.strides[-1] == a.itemsize else (a.T, b) for a, b in self.pairs()]
        if any(
            x.ndim != 2 or 1 in x.shape or x.strides[1] != x.itemsize or x.strides[0] < x.shape[1]
            for x in sum(found, ())
        ):
            raise Unsupported("matrices that are turned only")
        return found

    def packed(self) -> None:
        """Unsupported where there are gaps."""
        if not all(array.flags.c_contiguous for array in (self.whole, *self.parts)):
            raise Unsupported("contiguous tensors only")

    def channels(self, counts: Container[int]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The image, of elements that OpenCV has, and its planes."""
        case = self.case
        self.packed()
        if case.axis != len(case.shape) - 1 or set(case.pieces) != {1} or len(case.pieces) not in counts:
            raise Unsupported("channels only, of a number that it has")
        width = case.shape[-2]
        whole = same_size(self.whole, IMAGE_TYPES).reshape(-1, width, case.shape[-1])
        return whole, [same_size(part, IMAGE_TYPES).reshape(-1, width) for part in self.parts]

    def spoil(self) -> None:
        """Overwrites the outputs, so that no contestant profits from the one before it."""
        for output in self.outputs:
            output.view(f"u{output.dtype.itemsize}")[...] = 0xEE

    def is_right(self, outputs: Sequence[np.ndarray]) -> bool:
        """Whether these outputs are what numpy's slices say."""
        if self.case.join:
            (whole,) = outputs
            made, wanted = slices(whole, self.case.axis, self.case.pieces), self.parts
        else:
            made, wanted = list(outputs), self.whole_slices()
        return len(made) == len(wanted) and all(map(same_bytes, made, wanted))


@dataclass
class Job:
    """`run` is what is timed; `results` makes numpy arrays of what it returns (None: it wrote Buffers.outputs).

    Most hold bare addresses: whoever runs a job keeps its Buffers.
    """

    run: Callable[[], Any]
    results: Callable[[Any], Sequence[np.ndarray]] | None = None


Prepare: TypeAlias = Callable[[Buffers], Job]
"""Makes the job of one contestant; raises Unsupported."""
