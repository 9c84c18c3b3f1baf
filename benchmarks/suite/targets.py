"""What dmlsplit set itself: times as ratios, by class of case. Never asserted: times are the machine's.

`must` is passed at 1.1 times the figure or less by the median of five processes (run.py --processes 5). Sizes are those
of the machine they were set on (32 MiB of L3): cache means up to 16 MB copied, DRAM 48 MB and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from suite.references import FLOOR

TOLERANCE: Final = 1.1


class Verdict(StrEnum):
    MOONSHOT = "moonshot"
    MUST = "must"
    MISSED = "missed"


@dataclass(frozen=True)
class Target:
    """One class: `must` and `moonshot` as multiples of `reference`, taken by the contestant `subject`."""

    title: str
    must: float
    moonshot: float
    reference: tuple[str, ...] = ("memcpy",)
    """The fastest of these."""
    subject: str = "dmlsplit"

    def verdict(self, ratio: float) -> Verdict:
        if ratio <= self.moonshot:
            return Verdict.MOONSHOT
        return Verdict.MUST if ratio <= self.must * TOLERANCE else Verdict.MISSED


TARGETS: Final = {
    "coalesced/dram": Target("axis 0 or coalesced, DRAM", 0.80, 0.73),
    "coalesced/mid": Target("axis 0 or coalesced, 16 to 48 MB", 0.92, 0.73),
    "coalesced/l3": Target("axis 0 or coalesced, L3", 1.00, 0.88),
    "rows/dram": Target("rows of 2 KB and more, DRAM", 0.85, 0.75),
    "rows/mid": Target("rows of 2 KB and more, 16 to 48 MB", 0.92, 0.75),
    "rows/cache": Target("rows, L2 and L3", 1.05, 0.95),
    "inner": Target("contiguous and rows, L1 and L2", 1.15, 1.00),
    "heads/dram": Target("narrow and wide mixed, DRAM", 0.90, 0.77),
    "heads/l3": Target("narrow and wide mixed, L3", 1.20, 1.02),
    "channels/dram": Target("2 to 4 channels, DRAM", 0.90, 0.76),
    "channels/mid": Target("2 to 4 channels, 16 to 48 MB", 0.92, 0.76),
    "channels/l3": Target("2 to 4 channels, L3", 1.10, 1.00),
    "channels/l2": Target("2 to 4 channels, L2", 1.60, 1.25),
    "channels16": Target("5 to 16 channels of 1, 2, 4 bytes", 2.50, 1.50),
    "mixed8/l2": Target("8-byte [1,2,5], 1 MB", 1.20, 1.00),
    "mixed8/mid": Target("8-byte [1,2,5], 17 MB", 1.10, 0.93),
    "mixed8/dram": Target("8-byte [1,2,5], 134 MB", 1.00, 0.85),
    "transposed/1": Target("transposed, 1 byte", 4.50, 3.00),
    "transposed/2": Target("transposed, 2 bytes", 3.00, 2.00),
    "transposed/4": Target("transposed or NHWC view, 4 bytes", 2.00, 1.50),
    "transposed/8": Target("transposed, 8 bytes", 1.80, 1.40),
    "padded": Target("padded input or strided outputs, 17 MB", 0.95, 0.85),
    "broadcast": Target("broadcast input", 0.42, 0.40),
    "many/axis0": Target("1024 outputs on axis 0", 1.20, 1.03),
    "many/columns": Target("1024 outputs, columns", 2.00, 1.40),
    "fresh": Target("fresh outputs of 4 MB and more", 2.20, 1.80, subject="dmlsplit fresh"),
    "tiny": Target("tiny call, bound once", 0.20, 0.11, reference=("numpy",)),
}

AVX2: Final = {
    "channels/dram": Target("2 to 4 channels, DRAM, AVX2", 1.60, 1.20),
    "channels/l3": Target("2 to 4 channels, L3, AVX2", 1.30, 1.05),
}
"""What replaces an entry above where AVX2 is the widest that may be used."""


FLOORS: Final = {
    name: Target(TARGETS[name].title, must, moonshot, FLOOR)
    for name, must, moonshot in (
        ("coalesced/dram", 1.10, 1.03),
        ("coalesced/mid", 1.05, 0.98),
        ("coalesced/l3", 1.25, 1.03),
        ("rows/dram", 1.15, 1.05),
        ("rows/mid", 1.15, 1.05),
        ("rows/cache", 1.25, 1.05),
        ("inner", 1.10, 1.00),
        ("heads/dram", 1.35, 1.12),
        ("heads/l3", 1.40, 1.12),
        ("channels/dram", 1.20, 1.05),
        ("channels/mid", 1.10, 1.05),
        ("channels/l3", 1.30, 1.05),
        ("channels/l2", 1.30, 1.05),
        ("channels16", 2.00, 1.40),
        ("mixed8/l2", 1.25, 1.05),
        ("mixed8/mid", 1.15, 1.05),
        ("mixed8/dram", 1.20, 1.05),
        ("transposed/1", 3.00, 2.00),
        ("transposed/2", 2.40, 1.60),
        ("transposed/4", 2.00, 1.30),
        ("transposed/8", 2.00, 1.30),
        ("padded", 1.00, 0.85),
        ("broadcast", 0.75, 0.55),
        ("many/axis0", 1.70, 1.10),
        ("many/columns", 2.20, 1.40),
    )
}
"""The same classes as multiples of the machine's floor: the fastest of three copies in the same run. These hold on any
machine, where memcpy itself jumps by half at a threshold of the C library; set on an Intel server core."""


_COPY: Final = ("memcpy x2", "stream copy x2")
TWO_THREADS: Final = {
    "coalesced/dram": Target("axis 0 or coalesced, DRAM, 2 threads", 1.15, 1.03, _COPY, "dmlsplit x2"),
    "rows/dram": Target("rows of 2 KB and more, DRAM, 2 threads", 1.15, 1.03, _COPY, "dmlsplit x2"),
    "channels/dram": Target("2 to 4 channels, DRAM, 2 threads", 1.50, 1.20, _COPY, "dmlsplit x2"),
    "transposed/4": Target("transposed, DRAM, 2 threads", 1 / 1.2, 1 / 1.6, ("dmlsplit",), "dmlsplit x2"),
}
"""With two threads, which are judged by the best copy with two threads, transposes by their own time with one."""
TWO_THREADS_BYTES: Final = 48_000_000


def target_of(name: str, size: int, widest_isa: str, threads: int) -> Target | None:
    """The target of a case of this class and size; None where there is none (such rows are shown for information)."""
    if threads > 1:
        return TWO_THREADS.get(name) if threads == 2 and size > TWO_THREADS_BYTES else None
    if widest_isa == "avx2" and name in AVX2:
        return AVX2[name]
    return TARGETS.get(name)
