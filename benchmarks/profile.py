"""What copies cost on this machine, by size, and which profile plans are made for.

    python benchmarks/profile.py
    python benchmarks/profile.py --read                # with the output read once, after each copy
    python benchmarks/profile.py --json profile.json

Times are multiples of memcpy's of the same bytes; the floor is the fastest of the three copies; the last columns are
dmlsplit's copy in each regime of its stores. What is worth a report stands at the end of the output.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, Final

from suite import machine
from suite.cases import Case, T
from suite.contest import Buffers, Job, Prepare
from suite.ours import Ours
from suite.profiles import PROFILES
from suite.references import FLOOR, forget_buffers, references, then_read
from suite.timing import Runner, round_robin

from dmlsplit.native import core

SIZES: Final = tuple((1 << 18) * factor for factor in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512))
REGIMES: Final = {"plain": "arm", "claimed": "claimed", "by lines": "streamed", "by pages": "streamed-by-pages"}
"""Columns -> profiles whose plans all store in one way: plainly, with prefetchw, non-temporally as lines or pages are
fetched."""
REPORT: Final = """
Of a machine that benchmarks/README.md does not have, send all of this, and what these print:
    python benchmarks/profile.py --read
    python benchmarks/run.py --peers none --read
    DMLSPLIT_MEASURE=0 python benchmarks/run.py --peers none
Worth a remark: a regime that is a tenth faster than the one that the profile chooses, at several sizes and twice."""


def _case(shape: str, size: int) -> Case:
    if shape == "contiguous":
        return Case(shape, "profile", "u1", (2, size // 2), 0, 2)
    if shape == "rows of 3 x 2 KB":
        return Case(shape, "profile", "f4", (max(1, size // (1536 * 4)), 1536), 1, 3)
    side = math.isqrt(size // 4)
    return Case(shape, "profile", "f4", (side, side), 0, (side,), whole=T)


SHAPES: Final = ("contiguous", "rows of 3 x 2 KB", "turned, 4 bytes")


def _planned(name: str) -> Prepare:
    def prepare(buffers: Buffers) -> Job:
        core.set_profile(PROFILES[name])
        return Ours().bound(1)(buffers)

    return prepare


def measured(shape: str, size: int, seconds: float, read: bool, clock: str) -> dict[str, float]:
    """By contestant, as multiples of memcpy's time; memcpy in GB/s."""
    buffers = Buffers(_case(shape, size))
    jobs: dict[str, Prepare] = {}
    for name, load in references(1).items():
        jobs[name] = then_read(load(1), True) if read else load(1)
    for name, profile in REGIMES.items():
        jobs[name] = then_read(_planned(profile), False) if read else _planned(profile)
    runners = [Runner(name, prepare(buffers).run) for name, prepare in jobs.items()]
    round_robin(runners, buffers.case.bytes, seconds, clock)
    times = {runner.name: runner.median for runner in runners}
    forget_buffers()
    ratios = {name: times[name] / times["memcpy"] for name in times if name != "memcpy"}
    floor = min(times[name] for name in FLOOR if name in times) / times["memcpy"]
    return {"memcpy, GB/s": buffers.case.bytes / times["memcpy"], "floor": floor, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description="What copies cost on this machine, and how plans store.")
    parser.add_argument("--read", action="store_true", help="each output is read once after its copy")
    parser.add_argument("--seconds", type=float, default=0.5, help="for one size (default 0.5)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="bytes copied")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    core.set_profile(None)
    known = core.profile()
    found = core.measured_profile()
    about = machine.describe()
    print("\n".join(machine.in_words(about)))
    for profile in dict.fromkeys((known, found)):
        print(f"\nprofile by {profile.origin}: {profile._asdict()}")
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        for size in (size for size in SIZES if size <= options.most):
            row = {"shape": shape, "bytes": size} | measured(shape, size, options.seconds, options.read, options.clock)
            if not rows or rows[-1]["shape"] != shape:
                print(f"\n| {' | '.join(row)} |\n|{' --- |' * len(row)}")
            rows.append(row)
            cells = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row.values()]
            print(f"| {' | '.join(cells)} |", flush=True)
    print(REPORT)
    if options.json:
        profiles = {profile.origin: profile._asdict() for profile in (known, found)}
        data = {"schema": 1, "machine": about, "profiles": profiles, "read": options.read, "rows": rows}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
