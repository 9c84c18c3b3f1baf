"""What is measured: one table.

Names with a letter and a number up to i are those of the table that the targets were set with; the other rows are more
shapes of the same classes. Sizes in the comments are bytes copied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from suite.layouts import PACKED, Layout


@dataclass(frozen=True)
class Case:
    """A split of `shape` along `axis`, or the join that undoes it. An int for `lengths`: so many equal parts."""

    name: str
    target: str
    """A key of targets.TARGETS, or a word for a class without targets."""
    dtype: str
    shape: tuple[int, ...]
    axis: int
    lengths: tuple[int, ...] | int
    whole: Layout = PACKED
    parts: Layout = PACKED
    join: bool = False

    @property
    def pieces(self) -> tuple[int, ...]:
        if isinstance(self.lengths, tuple):
            return self.lengths
        return (self.shape[self.axis] // self.lengths,) * self.lengths

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def part_shape(self, length: int) -> tuple[int, ...]:
        return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])

    @property
    def title(self) -> str:
        """`f4 (8192, 4096) axis 0 /4, whole transposed`."""
        lengths = f"/{self.lengths}" if isinstance(self.lengths, int) else "+".join(map(str, self.lengths))
        notes = [f"{side} {layout}" for side, layout in (("whole", self.whole), ("parts", self.parts)) if str(layout)]
        verb = "join " if self.join else ""
        return ", ".join([f"{verb}{self.dtype} {self.shape} axis {self.axis} {lengths}", *notes])


MATRIX: Final = (2048, 2048)
T: Final = Layout(order=(1, 0))
NHWC: Final = Layout(order=(0, 2, 3, 1))

BASELINE: Final = (
    Case("a", "coalesced/dram", "f4", (8192, 4096), 0, 4),
    Case("a2", "coalesced/l3", "f4", (1024, 512), 0, 4),
    Case("b1", "coalesced/l3", "f4", (1, 64, 112, 112), 1, 2),
    Case("b2", "coalesced/mid", "f4", (8, 256, 56, 56), 1, 4),
    Case("c1", "rows/dram", "u2", (4096, 12288), 1, 3),
    Case("c2", "rows/mid", "f4", (32, 128, 2304), 2, 3),
    Case("c3", "rows/cache", "u2", (128, 12288), 1, 3),
    Case("c4", "rows/cache", "f4", (128, 2304), 1, 3),
    Case("d1", "channels/l3", "u1", (1080, 1920, 3), 2, 3),
    Case("d2", "channels/l3", "u1", (1080, 1920, 4), 2, 4),
    Case("d3", "channels/mid", "f4", (1_000_000, 4), 1, 4),
    Case("d4", "heads/l3", "f4", (1, 8400, 84), 2, (4, 80)),
    Case("d5", "coalesced/l3", "f4", (1, 84, 8400), 1, (4, 80)),
    Case("d6", "channels/l2", "u1", (224, 224, 3), 2, 3),
    Case("d7", "heads/l3", "f4", (1, 25200, 85), 2, (4, 1, 80)),
    Case("d8", "channels/l3", "u2", (1080, 1920, 3), 2, 3),
    Case("d9", "channels/mid", "f4", (1080, 1920, 3), 2, 3),
    Case("d10", "channels/l3", "f4", (500_000, 2), 1, 2),
    Case("d11", "channels/dram", "u1", (8, 1080, 1920, 3), 3, 3),
    Case("d12", "channels/dram", "f4", (8_000_000, 4), 1, 4),
    Case("d13", "heads/dram", "f4", (10, 25200, 85), 2, (4, 1, 80)),
    Case("d14", "channels/dram", "u1", (8, 1080, 1920, 4), 3, 4),
    Case("e1", "mixed8/mid", "f8", (512, 512, 8), 2, (1, 2, 5)),
    Case("e2", "mixed8/l2", "i8", (128, 128, 8), 2, (1, 2, 5)),
    Case("e3", "mixed8/dram", "f8", (1024, 2048, 8), 2, (1, 2, 5)),
    Case("f1", "tiny", "f4", (1, 3, 4, 4), 1, 3),
    Case("f2", "tiny", "f4", (1, 1, 6, 2), 2, (2, 1, 3)),
    Case("g1", "many/axis0", "f4", (1024, 1024), 0, 1024),
    Case("g2", "many/columns", "f4", (1024, 1024), 1, 1024),
    Case("h1", "transposed/4", "f4", MATRIX, 0, 4, whole=T),
    Case("h1b", "transposed/4", "f4", (512, 512), 0, 4, whole=T),
    Case("h2", "padded", "f4", MATRIX, 1, 4, whole=Layout(pad=16)),
    Case("h3", "broadcast", "f4", MATRIX, 1, 4, whole=Layout(broadcast=(0,))),
    Case("h4", "broadcast", "f4", MATRIX, 0, 4, whole=Layout(broadcast=(1,))),
    Case("h5", "transposed/4", "f4", (8, 256, 56, 56), 1, 4, whole=NHWC),
    Case("h6", "padded", "f4", MATRIX, 1, 4, parts=Layout(pad=16)),
    Case("h7", "transposed/1", "u1", MATRIX, 0, 4, whole=T),
    Case("h8", "transposed/4", "f4", (8192, 4096), 0, 4, whole=T),
    Case("i1", "coalesced/dram", "f4", (8, 8192, 4096), 0, 4),
    Case("i2", "rows/dram", "f4", (65536, 4096), 1, 4),
)

MORE: Final = (
    Case("a3", "inner", "f4", (64, 128), 0, 4),  # 32 KB
    Case("a4", "inner", "f4", (256, 256), 0, 2),  # 256 KB
    Case("a5", "coalesced/dram", "u1", (3, 30_000_001), 0, 3),  # 90 MB, every part at another alignment in the whole
    Case("b3", "coalesced/dram", "u2", (16, 512, 56, 56), 1, (128, 384)),  # 51 MB
    Case("c5", "rows/dram", "f4", (16384, 1540), 1, (513, 515, 512)),  # 101 MB, pieces of no whole lines
    Case("c6", "rows/cache", "u1", (1024, 6147), 1, (2049, 2049, 2049)),  # 6.3 MB
    Case("c7", "inner", "f4", (64, 1536), 1, 3),  # 393 KB
    Case("c8", "rows/mid", "f8", (1000, 3000), 1, (1000, 2000)),  # 24 MB
    Case("d15", "channels/l2", "f4", (64, 512, 4), 2, 4),  # 524 KB
    Case("d16", "channels/l2", "u2", (224, 224, 3), 2, 3),  # 301 KB
    Case("d17", "channels/l3", "f8", (300_000, 2), 1, 2),  # 4.8 MB
    Case("d18", "channels/dram", "f8", (2_400_000, 3), 1, 3),  # 58 MB
    Case("d19", "channels/dram", "u2", (30_000_000, 2), 1, 2),  # 120 MB
    Case("d20", "channels/l3", "u1", (999, 1999, 3), 2, 3, parts=Layout(offset=1)),  # 6 MB, outputs at odd addresses
    Case("d21", "heads/l3", "f4", (1, 8400, 85), 2, (4, 1, 80)),  # 2.9 MB
    Case("d22", "heads/dram", "u2", (16, 25200, 117), 2, (4, 1, 80, 32)),  # 94 MB
    Case("e4", "mixed8/l2", "f8", (100, 160, 8), 2, (1, 2, 5), parts=Layout(offset=8)),  # 1 MB
    Case("j1", "channels16", "u1", (1080, 1920, 5), 2, 5),  # 10 MB
    Case("j2", "channels16", "u1", (512, 512, 16), 2, 16),  # 4.2 MB
    Case("j3", "channels16", "u2", (512, 512, 8), 2, 8),  # 4.2 MB
    Case("j4", "channels16", "f4", (256, 256, 6), 2, 6),  # 1.6 MB
    Case("j5", "channels16", "f4", (512, 512, 13), 2, 13),  # 13.6 MB
    Case("j6", "narrow rows", "f4", (100_000, 24), 1, 3),  # 9.6 MB
    Case("j7", "narrow rows", "u1", (100_000, 65), 1, (33, 32)),  # 6.5 MB
    Case("h9", "transposed/2", "u2", MATRIX, 0, 4, whole=T),
    Case("h10", "transposed/8", "f8", MATRIX, 0, 4, whole=T),
    Case("h11", "transposed/4", "f4", (1999, 2003), 0, (1000, 999), whole=T),  # 16 MB, sizes that no tile divides
    Case("h12", "transposed/4", "f4", (8, 64, 112, 112), 1, 2, whole=NHWC),  # 25.7 MB
    Case("h13", "transposed/1", "u1", (8, 256, 56, 56), 1, 4, whole=NHWC),  # 6.4 MB
    Case("h14", "transposed/4", "f4", MATRIX, 0, 4, parts=T),  # transposed outputs
    Case("h15", "negative strides", "f4", MATRIX, 1, 4, whole=Layout(reverse=(0,))),
    Case("h16", "negative strides", "f4", MATRIX, 1, 4, whole=Layout(reverse=(1,))),
    Case("g3", "many/axis0", "u1", (1024, 4096), 0, 1024),
    Case("g4", "many/columns", "u1", (2048, 1024), 1, 1024),
    Case("t1", "few rows", "f4", (2, 8, 1_000_003), 1, 4),  # 64 MB, cut within rows
    Case("t2", "few rows", "f4", (4, 64, 112, 112), 1, 2, parts=Layout(offset=16)),  # 12.8 MB, outputs between lines
    Case("t3", "few columns", "u1", (3, 2_073_601), 0, 3, whole=T),  # 6.2 MB, pixels to planes
    Case("k1", "fresh", "f4", (8192, 4096), 0, 4),  # 134 MB
    Case("k2", "fresh", "f4", (2048, 4096), 1, 4),  # 34 MB
    Case("k3", "fresh", "u1", (1080, 4000, 3), 2, 3),  # 13 MB
)

# fmt: off
_JOINED: Final = (
    "a", "a2", "a4", "b2", "c1", "c2", "c3", "c7", "d1", "d3", "d6", "d7", "d9", "d11", "d12", "d13", "e1", "e2",
    "e3", "j1", "j4", "f1", "g1", "g2", "h1", "h2", "h6", "h7", "h9", "h10",
)
# fmt: on
"""What is measured as a join too, with the target of the split. T becomes a transposed output."""


def _joins() -> tuple[Case, ...]:
    splits = {case.name: case for case in BASELINE + MORE}
    return tuple(replace(splits[name], name=f"join-{name}", join=True) for name in _JOINED)


CASES: Final = BASELINE + MORE + _joins()

QUICK_BYTES: Final = 64_000_000
"""The quick mode leaves out cases above this size, and those below."""
NOT_QUICK: Final = frozenset({"g1", "g2", "g3", "g4", "join-g1", "join-g2", "h1", "h5", "h10", "h11", "h12", "join-h1"})
