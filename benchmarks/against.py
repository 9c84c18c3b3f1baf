"""Whether plans for another machine cost here what that machine's profile says.

    python benchmarks/against.py intel-early
    python benchmarks/against.py intel --cases 'h*,join-*' --seconds 1

A profile chooses between plain stores, stores of lines that are claimed (prefetchw), and stores past the caches, which
fetch lines or pages. Each costs a contiguous copy of the same bytes something, more here or less: that factor, and no
other, is what a profile may cost a case. So a case should take

    its time under this machine's profile x a copy's time under the other profile / a copy's time under this machine's

and loses where it takes more than 1.1 times that: then a kernel does badly in a regime, whatever machine it is for. All
four take turns in one process. Copies are dmlsplit's own; what a case turns is compared with a copy of its regime.
"""

from __future__ import annotations

import argparse
import fnmatch
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from suite.cases import CASES, Case
from suite.contest import Buffers
from suite.ours import Ours, kernels_named
from suite.profiles import PROFILES
from suite.targets import FLOORS
from suite.timing import Runner, round_robin

from dmlsplit.native import core

MOST_BYTES: Final = 140_000_000
TOLERANCE: Final = 1.1
PAGE: Final = 4096
MOST_STREAMS: Final = 8


@dataclass(frozen=True)
class Found:
    case: Case
    kernel: str
    other_kernel: str
    copy: float
    """The copy's time under the other profile, as a multiple of this machine's."""
    time: float
    """The case's."""

    @property
    def ratio(self) -> float:
        return self.time / self.copy


def machine_profile() -> core.Profile:
    """What plans are made for here, measured."""
    core.set_profile(None)
    return core.measured_profile()


def turned(case: Case) -> bool:
    return case.target.startswith(("transposed", "many/columns"))


def as_copies(profile: core.Profile) -> core.Profile:
    """Copies are stored as this profile stores matrices that are turned."""
    return profile._replace(stream_copies=profile.stream_turns)


def copy_of(case: Case) -> Case:
    """As many bytes in one piece, or in pieces of a page from or to as many places at once."""
    if case.target.startswith(("coalesced", "inner", "many/axis0")):
        return Case("copy", "copy", "u1", (2, case.bytes // 2), 0, 2, join=case.join)
    row = min(len(case.pieces), MOST_STREAMS) * PAGE
    return Case("copy", "copy", "u1", (-(-case.bytes // row), row), 1, row // PAGE, join=case.join)


def compare(case: Case, profiles: tuple[core.Profile, core.Profile], seconds: float) -> Found:
    buffers = Buffers(case)
    block = Buffers(copy_of(case))
    runners, kernels = [], []
    for profile in profiles:
        core.set_profile(profile)
        kernels.append(kernels_named(Ours().plan(buffers).describe()))
        runners.append(_runner(buffers))
        core.set_profile(as_copies(profile) if turned(case) else profile)
        runners.append(_runner(block))
    round_robin(runners, case.bytes, seconds)
    ours, copy, other, other_copy = (runner.median for runner in runners)
    return Found(case, kernels[0], kernels[1], other_copy / copy, other / ours)


def _runner(buffers: Buffers) -> Runner:
    run: Callable[[], object] = Ours().bound(1)(buffers).run
    return Runner("", run)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a profile costs here, beside what it costs a copy.")
    parser.add_argument("profile", choices=PROFILES)
    parser.add_argument("--cases", default="*", help="names or wildcards, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.5, help="for one case (default 0.5)")
    options = parser.parse_args()
    machine = machine_profile()
    print(f"{machine._asdict()}\n{options.profile}: {PROFILES[options.profile]._asdict()}\n")
    print(
        "| case | bytes | kernel | a copy | the case | of what it should cost |\n| --- | --- | --- | --- | --- | --- |"
    )
    found = []
    for case in CASES:
        chosen = any(fnmatch.fnmatchcase(case.name, pattern) for pattern in options.cases.split(","))
        if not chosen or case.target not in FLOORS or case.bytes > MOST_BYTES:
            continue
        row = compare(case, (machine, PROFILES[options.profile]), options.seconds)
        if row.ratio > TOLERANCE:  # once more: a loser is who loses twice
            row = min(
                row, compare(case, (machine, PROFILES[options.profile]), 2 * options.seconds), key=lambda r: r.ratio
            )
        found.append(row)
        kernel = row.kernel if row.kernel == row.other_kernel else f"{row.kernel}, then {row.other_kernel}"
        cells = case.name, f"{case.bytes:,}", kernel, f"{row.copy:.2f}", f"{row.time:.2f}", f"{row.ratio:.2f}"
        print(f"| {' | '.join(cells)} |", flush=True)
    losers = [f"{row.case.name} {row.ratio:.2f}" for row in found if row.ratio > TOLERANCE]
    median = statistics.median(row.ratio for row in found)
    print(f"\n{len(found)} cases, median {median:.2f}; {len(losers)} lose more than a tenth:", *(losers or ["none"]))


if __name__ == "__main__":
    main()
