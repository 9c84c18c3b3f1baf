"""One side of a comparison: a process that runs jobs of an installed package when it is told to.

Requests and answers are lines of JSON. The first request is a Setting; each later one names a case to prepare, or a job
to run. All that this module imports works with the packages of older commits, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suite import references
from suite.cases import CASES, Case
from suite.contest import Buffers, Job, Unsupported
from suite.installed import core
from suite.measure import is_right
from suite.ours import Ours, fresh, kernels_named
from suite.timing import once

PAGE: Final = 4096
MOST_STREAMS: Final = 8
FREED: Final = 31 << 20
"""Below 32 MiB, the most to which the C library raises its threshold."""
BY_NAME: Final = {case.name: case for case in CASES}


def turned(case: Case) -> bool:
    return case.target.startswith(("transposed", "many/columns"))


def settle_memory() -> None:
    """Brings the C library's heap to the state of a process that has freed large arrays.

    It maps blocks from a threshold on, and raises that to the largest block that is freed. How much a package has freed
    must not decide where fresh outputs lie.
    """
    np.empty(FREED, np.uint8)


def copy_of(case: Case) -> Case:
    """As many bytes in one piece, or in pieces of a page from or to as many places at once."""
    if case.target.startswith(("coalesced", "inner", "many/axis0")):
        return Case("copy", "copy", "u1", (2, case.bytes // 2), 0, 2, join=case.join)
    row = min(len(case.pieces), MOST_STREAMS) * PAGE
    return Case("copy", "copy", "u1", (-(-case.bytes // row), row), 1, row // PAGE, join=case.join)


class Side:
    """The jobs of one case at a time, under a profile."""

    def __init__(self, isa: str | None, profile: dict[str, Any] | None, cpu: int | None, clock: str) -> None:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        self.clock = clock
        self.isa = isa
        self.has_profiles = hasattr(core, "Profile")
        self.profile = None
        if self.has_profiles:
            self.profile = core.measured_profile()
            if profile is not None:
                known = {name: value for name, value in profile.items() if name in core.Profile._fields}
                self.profile = self.profile._replace(**known | {"origin": "settings"})
        self.jobs: dict[str, tuple[Job, Buffers]] = {}

    def about(self) -> dict[str, Any]:
        """What the package says of this machine. Raises Unsupported where it is not held to the instruction set."""
        widest = Ours().widest_isa
        if self.isa is not None and widest != self.isa:
            raise Unsupported(f"{self.isa} is asked for, and the widest instruction set is {widest}")
        return {"core": core.__file__, "isa": widest, "profile": self.profile._asdict() if self.profile else None}

    def prepare(self, case: Case, copy: str | None, check: bool) -> dict[str, Any]:
        """Makes the jobs `case` and, where a copy is asked for, `copy`; returns their times and the kernels.

        `copy`: "memcpy", or "own" for a copy by the package under the same profile.
        """
        self.jobs.clear()
        references.forget_buffers()
        self._set_profile(self.profile)
        buffers = Buffers(case)
        load: Callable[[Buffers], Job] = fresh(1) if case.target == "fresh" else Ours().bound(1)
        self.jobs["case"] = load(buffers), buffers
        if check and not is_right(self.jobs["case"][0], buffers):
            return {"wrong": True}
        kernels = kernels_named(Ours().plan(buffers).describe())
        if copy == "memcpy":
            self.jobs["copy"] = references.memcpy()(buffers), buffers
        elif copy == "own":
            block = Buffers(copy_of(case))
            # Copies are stored as this profile stores matrices that are transposed.
            if self.profile and turned(case):
                self._set_profile(self.profile._replace(stream_copies=self.profile.stream_turns))
            self.jobs["copy"] = Ours().bound(1)(block), block
        times = {name: min(self.turn(name, 1, False) for _ in range(2)) for name in self.jobs}
        return {"kernels": kernels, "times": times}

    def turn(self, job: str, calls: int, warm: bool) -> float:
        """Nanoseconds a call."""
        run = self.jobs[job][0].run
        if warm:
            run()
        return once(run, calls, self.clock)

    def _set_profile(self, profile: Any) -> None:
        if self.has_profiles:
            core.set_profile(profile)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if "prepare" in request:
                return self.prepare(BY_NAME[request["prepare"]], request["copy"], request["check"])
            return {"ns": self.turn(request["run"], request["calls"], request["warm"])}
        except Unsupported as reason:
            return {"skipped": str(reason)}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    settle_memory()
    side: Side | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if side is None:
            side = Side(**request)
            try:
                answer = side.about()
            except Unsupported as reason:
                answer = {"refused": str(reason)}
        else:
            answer = side.answer(request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
