"""What each kernel earns: the time of what would be chosen in its place.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --cases 'd*,e*,widths*'

Every case is planned as on CPUs with each instruction set and no wider one. Where a kernel of that set is chosen, it
and the next kernel of the table that takes the case take turns; the figures are the other one's time as a multiple of
its own. A kernel whose cases the next one takes within a tenth does not earn its lines. Cases are those of run.py, and
some points of the sweep, 256 KB each.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from suite.cases import CASES, Case
from suite.contest import Buffers, Unsupported
from suite.ours import ISA_LEVELS, Ours, kernels_named
from suite.timing import Runner, round_robin
from sweep import all_series

from dmlsplit.native import core

MOST_BYTES: Final = 140_000_000
EVERY: Final = 5
"""So many of the sweep's points are passed on to the next one that takes part."""


def cases() -> list[Case]:
    points = [(series.name, point) for series in all_series(quick=True) for point in series.points]
    swept = [replace(point.case, name=f"{name} {point.x}") for name, point in points[::EVERY]]
    return [case for case in CASES if case.bytes <= MOST_BYTES and case.target != "tiny"] + swept


def chosen(buffers: Buffers, isa: str, without: str | None = None) -> tuple[Ours, str]:
    ours = Ours(isa=isa, without=without)
    return ours, kernels_named(ours.plan(buffers).describe())


def earned(case: Case, seconds: float) -> Iterator[tuple[str, str, float]]:
    """The kernel of each instruction set, what would be chosen in its place, and how much longer that takes."""
    buffers = Buffers(case)
    of = {kernel.name: kernel.isa for kernel in core.kernels() if kernel.available}
    for isa in ISA_LEVELS:
        if isa not in of.values():
            continue
        try:
            own, kernel = chosen(buffers, isa)
            other, name = chosen(buffers, isa, kernel)
        except Unsupported:
            continue  # the last kernel of the table, or one that not all parts have
        if of.get(kernel) == isa:
            runners = [Runner("", ours.bound(1)(buffers).run) for ours in (own, other)]
            round_robin(runners, case.bytes, seconds)
            yield kernel, name, runners[1].median / runners[0].median


def main() -> None:
    parser = argparse.ArgumentParser(description="What each kernel earns.")
    parser.add_argument("--cases", default="*", help="names or wildcards, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.1, help="for one pair of kernels (default 0.1)")
    options = parser.parse_args()
    found: dict[str, list[tuple[float, str, str]]] = {}
    for case in cases():
        if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in options.cases.split(",")):
            for kernel, other, factor in earned(case, options.seconds):
                found.setdefault(kernel, []).append((factor, case.name, other))
    print("| kernel | cases | in its place | times its time, median | least | most |\n|" + " --- |" * 6)
    for name in (kernel.name for kernel in core.kernels() if kernel.name in found):
        factors = sorted(found[name])
        others = ", ".join(dict.fromkeys(other for _, _, other in factors))
        ends = " | ".join(f"{factor:.2f} ({case})" for factor, case, _ in (factors[0], factors[-1]))
        median = statistics.median(factor for factor, _, _ in factors)
        print(f"| {name} | {len(factors)} | {others} | {median:.2f} | {ends} |")


if __name__ == "__main__":
    main()
