"""Neighbouring shapes should cost alike: a sweep over widths, numbers of outputs, alignments and sizes.

    python benchmarks/sweep.py --quick
    python benchmarks/sweep.py --minutes 20 --plot sweep.png --json sweep.json

Widths 1 to 64 and 127 to 129, 2 to 17 outputs, outputs 0 to 63 bytes past a cache line, sizes around every cache, in
each layout. A point that costs more than 1.6 times both its neighbours per byte, and again when the three are measured
once more, is reported: a defect, unless EXPECTED gives its reason. Every point's result is checked. Exit status 1 if
one is wrong; times are never judged by it.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from suite import machine
from suite.cases import Case
from suite.contest import Buffers, Unsupported
from suite.layouts import PACKED, Layout
from suite.measure import is_right
from suite.ours import ISA_LEVELS, Ours, kernels_named
from suite.profiles import PROFILES
from suite.references import forget_buffers, memcpy
from suite.timing import Runner, round_robin

from dmlsplit.native import core

FACTOR: Final = 1.6
SMALL: Final = 256 << 10
STREAMED: Final = 14 << 20
"""Bytes copied: in the second cache, and above the size from which stores pass by a 32 MiB cache."""
WIDTHS: Final = (*range(1, 65), 127, 128, 129)
TYPES: Final = ("u1", "u2", "f4", "f8")
_BETWEEN_LINES: Final = "rows of the target begin between lines of memory; those of both neighbours on lines"
_ODD: Final = "pieces of 2 and 4 elements are one wider element; those of 3 are not"
_ELEVEN: Final = (
    "pixels of 10 elements are split, matrices of 12 turned; 11 are too many for the one and too few for the other"
)
EXPECTED: Final[dict[tuple[str, int], str]] = {
    **{(f"widths, {way}, {dtype}", 3): _ODD for way in ("packed", "join") for dtype in TYPES},
    **{(f"widths, packed, above the caches, {dtype}", 3): _ODD for dtype in TYPES},
    ("widths, broadcast columns, f4", 11): _ELEVEN,
    ("widths, NHWC view, u1", 127): _BETWEEN_LINES,
    ("widths, NHWC view, u2", 127): _BETWEEN_LINES,
}
"""(series, x): why this point may stand out."""


@dataclass
class Point:
    x: int
    case: Case
    ns: float = math.nan
    memcpy: float = math.nan
    """Nanoseconds a byte at this size."""
    kernel: str = ""
    problem: str = ""

    @property
    def cost(self) -> float:
        """Nanoseconds a byte."""
        return self.ns / self.case.bytes


@dataclass
class Series:
    """Points along one line; `panel` is the picture it belongs to, `x_title` what x counts."""

    panel: str
    label: str
    x_title: str
    points: list[Point]
    outliers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.panel}, {self.label}"


def _rows(dtype: str, width: int, size: int) -> int:
    return max(1, size // (width * np.dtype(dtype).itemsize))


def _point(x: int, dtype: str, shape: tuple[int, ...], axis: int, lengths: tuple[int, ...] | int, **more: Any) -> Point:
    return Point(x, Case(str(x), "sweep", dtype, shape, axis, lengths, **more))


LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "packed": {},
    "join": {"join": True},
    "padded input": {"whole": Layout(pad=3)},
    "strided outputs": {"parts": Layout(pad=3)},
    "transposed input": {"whole": Layout(order=(1, 0))},
    "transposed outputs": {"parts": Layout(order=(1, 0))},
    "broadcast rows": {"whole": Layout(broadcast=(0,))},
    "broadcast columns": {"whole": Layout(broadcast=(1,))},
    "reversed rows": {"whole": Layout(reverse=(0,))},
    "reversed columns": {"whole": Layout(reverse=(1,))},
}
"""For matrices cut along axis 1."""


def width_series(quick: bool) -> Iterator[Series]:
    """Two outputs of x columns each."""
    for layout, keywords in LAYOUTS.items():
        for dtype in ("u1", "f4") if quick else TYPES:
            points = [_point(w, dtype, (_rows(dtype, 2 * w, SMALL), 2 * w), 1, 2, **keywords) for w in WIDTHS]
            yield Series(f"widths, {layout}", dtype, "columns of each of 2 outputs", points)
    for dtype in () if quick else ("u1", "f4"):
        points = [_point(w, dtype, (_rows(dtype, 2 * w, STREAMED), 2 * w), 1, 2) for w in WIDTHS]
        yield Series("widths, packed, above the caches", dtype, "columns of each of 2 outputs", points)
    for dtype in ("f4",) if quick else TYPES:
        nhwc = Layout(order=(0, 2, 1))
        points = [_point(w, dtype, (4, 2 * w, _rows(dtype, 8 * w, SMALL)), 1, 2, whole=nhwc) for w in WIDTHS]
        yield Series("widths, NHWC view", dtype, "channels of each of 2 outputs", points)


def output_series(quick: bool) -> Iterator[Series]:
    """x outputs of equal widths."""
    for width in (1, 5, 100):
        for dtype in ("u1", "f4") if quick else TYPES:
            points = [_point(n, dtype, (_rows(dtype, n * width, SMALL), n * width), 1, n) for n in range(2, 18)]
            yield Series(f"outputs of width {width}", dtype, "outputs", points)


def offset_series(quick: bool) -> Iterator[Series]:
    """Outputs x bytes past a cache line."""
    matrix = Layout(order=(1, 0))
    shapes: dict[str, tuple[str, int, int, Layout]] = {
        "3 channels u1": ("u1", 3, 3, PACKED),
        "4 channels f4": ("f4", 4, 4, PACKED),
        "3 x 1000 u1": ("u1", 3000, 3, PACKED),
        "3 x 40 f4": ("f4", 120, 3, PACKED),
        "transposed f4": ("f4", 128, 2, matrix),
    }
    for place, size in (("L2", SMALL),) if quick else (("L2", SMALL), ("above the caches", STREAMED)):
        for label, (dtype, width, count, whole) in shapes.items():
            shape = (_rows(dtype, width, size), width)
            points = [_point(x, dtype, shape, 1, count, whole=whole, parts=Layout(offset=x)) for x in range(64)]
            yield Series(f"offsets, {place}", label, "bytes past a cache line", points)
        points = [_point(x, "u1", (2, size // 2), 0, 2, parts=Layout(offset=x)) for x in range(64)]
        yield Series(f"offsets, {place}", "contiguous", "bytes past a cache line", points)


def size_series(quick: bool) -> Iterator[Series]:
    """Input and outputs together from half to twice each cache: x is bytes copied."""
    steps = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
    caches = machine.cache_bytes()[:-1] if quick else machine.cache_bytes()
    sizes = sorted({int(cache * step / 2) for cache in caches for step in steps})
    shapes: dict[str, tuple[str, int, tuple[int, ...] | int, Layout]] = {
        "rows 3 x 2 KB": ("f4", 1536, 3, PACKED),
        "rows 16 + 320 bytes": ("f4", 84, (4, 80), PACKED),
        "3 channels u1": ("u1", 3, 3, PACKED),
        "4 channels f4": ("f4", 4, 4, PACKED),
        "[1,2,5] f8": ("f8", 8, (1, 2, 5), PACKED),
        "transposed f4": ("f4", 256, 2, Layout(order=(1, 0))),
    }
    for label, (dtype, width, lengths, whole) in shapes.items():
        points = [_point(s, dtype, (_rows(dtype, width, s), width), 1, lengths, whole=whole) for s in sizes]
        yield Series("sizes around the caches", label, "bytes copied", points)
    points = [_point(s, "u1", (2, s // 2), 0, 2) for s in sizes]
    yield Series("sizes around the caches", "contiguous", "bytes copied", points)


def all_series(quick: bool) -> list[Series]:
    kinds = (width_series, output_series, offset_series, size_series)
    return [series for kind in kinds for series in kind(quick)]


def measure(points: list[Point], ours: Ours, turns: int) -> None:
    """Checks and times the points in groups that fit the memory; within a group all take turns."""
    group: list[Point] = []
    for point in points:
        group.append(point)
        if sum(2 * p.case.bytes for p in group) > 1 << 30:
            _measure_group(group, ours, turns)
            group = [point]  # in the next group too, so that neighbours are measured together
    _measure_group(group, ours, turns)


def _measure_group(points: list[Point], ours: Ours, turns: int) -> None:
    runners, timed, alive = [], [], []
    for point in points:
        buffers = Buffers(point.case)
        try:
            point.kernel = kernels_named(ours.plan(buffers).describe())
            job = ours.bound(1)(buffers)
        except Unsupported as reason:
            point.problem = str(reason)
            continue
        if not is_right(job, buffers):
            point.problem = "WRONG"
            continue
        runners.append(Runner(str(point.x), job.run))
        timed.append(point)
        alive.append(buffers)
    if runners:
        # A turn takes about a millisecond: so many of them for each point.
        round_robin(runners, max(point.case.bytes for point in timed), turns * 1.5e-3 * len(runners))
    for point, runner in zip(timed, runners, strict=True):
        point.ns = runner.median


def outlying(series: Series) -> list[int]:
    """Indices of points that cost more than FACTOR times each neighbour."""
    costs = [point.cost for point in series.points]
    return [i for i in range(1, len(costs) - 1) if costs[i] > FACTOR * max(costs[i - 1], costs[i + 1])]


def confirm(series: Series, ours: Ours) -> None:
    """Measures what stands out once more, with its neighbours alone, and notes what stands out twice."""
    for i in outlying(series):
        first = [point.cost for point in series.points[i - 1 : i + 2]]
        again = [Point(point.x, point.case) for point in series.points[i - 1 : i + 2]]
        measure(again, ours, turns=15)
        before, here, after = (point.cost for point in again)
        if here > FACTOR * max(before, after):
            point = series.points[i]
            series.outliers.append(
                {
                    "series": series.name,
                    "x": point.x,
                    "factors": [first[1] / max(first[0], first[2]), here / max(before, after)],
                    "kernels": [p.kernel for p in series.points[i - 1 : i + 2]],
                    "reason": EXPECTED.get((series.name, point.x), ""),
                }
            )


def add_references(series: Series) -> None:
    """memcpy of as many bytes, one measurement for sizes that differ by less than an eighth."""
    found: dict[int, float] = {}
    for point in series.points:
        size = round(8 * math.log2(point.case.bytes))
        if size not in found:
            found[size] = reference(point.case)
        point.memcpy = found[size]


def reference(case: Case) -> float:
    """Nanoseconds a byte of memcpy at this size."""
    buffers = Buffers(case)
    runner = Runner("memcpy", memcpy()(buffers).run)
    round_robin([runner], case.bytes, 0.02)
    forget_buffers()
    return runner.median / case.bytes


def report(series: list[Series]) -> list[str]:
    points = [point for one in series for point in one.points]
    outliers = [outlier for one in series for outlier in one.outliers]
    unexplained = [outlier for outlier in outliers if not outlier["reason"]]
    wrong = [f"{one.name} {point.x}" for one in series for point in one.points if point.problem == "WRONG"]
    refused = sum(bool(point.problem) for point in points) - len(wrong)
    lines = [
        f"{len(points)} points in {len(series)} series; {len(wrong)} wrong, {refused} refused; "
        f"{len(outliers)} stand out twice, {len(unexplained)} of them without a reason.",
        "",
    ]
    lines += [f"WRONG: {name}" for name in wrong]
    if outliers:
        lines += ["| series | x | times its dearer neighbour, twice | kernels before, here, after | reason |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for outlier in outliers:
            factors = ", ".join(f"{factor:.2f}" for factor in outlier["factors"])
            kernels = " / ".join(outlier["kernels"])
            lines.append(f"| {outlier['series']} | {outlier['x']} | {factors} | {kernels} | {outlier['reason']} |")
    return lines


def plot(series: list[Series], path: Path, title: str) -> None:
    """A panel for each group of series: cost a byte as a multiple of memcpy's; rings around what stands out."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    panels = list(dict.fromkeys(one.panel for one in series))
    rows = math.ceil(len(panels) / 3)
    figure, grid = pyplot.subplots(rows, 3, figsize=(18, 3.6 * rows), squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for one in (one for one in series if one.panel == panel):
            cost = {point.x: point.cost / point.memcpy for point in one.points}
            axes.plot(list(cost), list(cost.values()), marker=".", markersize=3, linewidth=0.8, label=one.label)
            marked = [outlier["x"] for outlier in one.outliers]
            axes.plot(marked, [cost[x] for x in marked], "o", markersize=9, fillstyle="none", color="red")
            axes.set_xlabel(one.x_title, fontsize=8)
        if panel.startswith("sizes"):
            axes.set_xscale("log")
        axes.set_yscale("log")
        axes.axhline(1, color="gray", linewidth=0.8)
        axes.set_title(panel, fontsize=9)
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=7)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(f"{title}: time a byte, as a multiple of memcpy's", fontsize=10)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def as_data(one: Series) -> dict[str, Any]:
    points = [
        {
            "x": p.x,
            "case": p.case.title,
            "ns": None if math.isnan(p.ns) else p.ns,
            "bytes": p.case.bytes,
            "memcpy_ns_per_byte": p.memcpy,
        }
        | {"kernel": p.kernel, "problem": p.problem}
        for p in one.points
    ]
    return {"series": one.name, "points": points, "outliers": one.outliers}


def main() -> int:
    parser = argparse.ArgumentParser(description="Neighbouring shapes should cost alike.")
    parser.add_argument("--quick", action="store_true", help="fewer types, nothing above the second cache")
    parser.add_argument("--series", default="*", help="names or wildcards: 'widths*', '*f4'")
    parser.add_argument("--kernel", help="force one kernel")
    parser.add_argument("--isa", choices=ISA_LEVELS, help="the first kernel of the table up to this instruction set")
    parser.add_argument("--profile", choices=PROFILES, help="plan as on another machine (suite/profiles.py)")
    parser.add_argument("--turns", type=int, default=5, help="of a millisecond, for each point (default 5)")
    parser.add_argument("--minutes", type=float, help="begin no series after so many; the others are named")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="needs matplotlib")
    options = parser.parse_args()
    if options.profile is not None:
        core.set_profile(PROFILES[options.profile])
    ours, about = Ours(options.kernel, options.isa), machine.describe()
    series = [one for one in all_series(options.quick) if fnmatch.fnmatchcase(one.name, options.series)]
    end = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    left = list(series)
    while left and time.monotonic() < end:
        one = left.pop(0)
        add_references(one)
        measure(one.points, ours, options.turns)
        confirm(one, ours)
        print(f"{one.name}: {len(one.outliers)} stand out", file=sys.stderr, flush=True)
    series = series[: len(series) - len(left)]
    print("\n".join([*machine.in_words(about), "", *report(series)]))
    if left:
        print(f"\nNot measured, for lack of time: {'; '.join(one.name for one in left)}")
    if options.json:
        data = {"schema": 1, "machine": about, "series": [as_data(one) for one in series]}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(series, options.plot, f"{about['cpu']}, dmlsplit {about['dmlsplit']}")
    return any(point.problem == "WRONG" for one in series for point in one.points)


if __name__ == "__main__":
    sys.exit(main())
