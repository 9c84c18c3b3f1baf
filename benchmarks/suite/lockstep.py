"""Processes that take turns on one core: each runs a side (suite/side.py) of a comparison."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from suite.builds import ISA_VARIABLE
from suite.cases import Case
from suite.timing import FEWEST_TURNS, MOST_TURNS, TURN_NS, WARM_BYTES

SUITE: Final = Path(__file__).parents[1]
A: Final = "a"
AGAIN: Final = "again"
B: Final = "b"
SIDES: Final = (A, AGAIN, B)
Job: TypeAlias = tuple[str, str]
"""A side and what it runs: "case" or "copy"."""


class Refused(Exception):
    """A side cannot run as it is asked to; the text says why."""


class NotMeasured(Exception):
    """A side cannot run a case, or its result is wrong; the text says so."""


@dataclass(frozen=True)
class Setting:
    """An installed package and how it plans."""

    name: str
    package: Path
    isa: str | None = None
    profile: dict[str, Any] | None = None


class Process:
    """A side, until the end of the context."""

    def __init__(self, setting: Setting, cpu: int | None, clock: str) -> None:
        self.name = setting.name
        environment = {name: value for name, value in os.environ.items() if name != ISA_VARIABLE}
        # -S: a finder of editable installations would find modules that this package lacks in the checkout.
        environment["PYTHONPATH"] = os.pathsep.join([str(setting.package), str(SUITE), *filter(None, sys.path)])
        if setting.isa is not None:
            environment[ISA_VARIABLE] = setting.isa
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-S", "-m", "suite.side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.about = self.ask(isa=setting.isa, profile=setting.profile, cpu=cpu, clock=clock)
        refusal = self.about.get("refused")
        if refusal is None and not Path(self.about["core"]).is_relative_to(setting.package):
            refusal = f"{self.about['core']} is loaded, which is not in {setting.package}"
        if refusal is not None:
            self.__exit__()
            raise Refused(f"{self.name}: {refusal}")

    def ask(self, **request: Any) -> dict[str, Any]:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with suppress(BrokenPipeError):
            print(json.dumps(request), file=requests, flush=True)
        line = answers.readline()
        if not line:
            raise Refused(f"{self.name}: its process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class Lockstep:
    """The processes of A, A again and B, new for each round: their buffers, pages and measured profiles are, too."""

    def __init__(self, settings: dict[str, Setting], own_copies: bool, clock: str, number: int) -> None:
        """`own_copies`: each side is measured beside a copy by its own package; otherwise A is beside memcpy.

        `number` of the round: each has an order of its own, in which sides take their pages and their turns.
        """
        self.copies = dict.fromkeys(SIDES, "own") if own_copies else {A: "memcpy"}
        self._stack = ExitStack()
        self.cpu = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        self._random = random.Random(number)
        with ExitStack() as started:
            self.sides = {
                name: started.enter_context(Process(setting, self.cpu, clock)) for name, setting in settings.items()
            }
            self._stack = started.pop_all()

    def __enter__(self) -> Lockstep:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kernels_and_times(
        self, case: Case, seconds: float, check: bool
    ) -> tuple[dict[str, str], dict[Job, list[float]]]:
        """The kernels of each side, and the time of each job in each turn, within about `seconds`.

        Raises NotMeasured where a side cannot run the case.
        """
        kernels, estimates = {}, {}
        for name, side in self._random.sample(list(self.sides.items()), len(self.sides)):
            ready = side.ask(prepare=case.name, copy=self.copies.get(name), check=check)
            if ready.get("wrong"):
                raise NotMeasured(f"{side.name}: WRONG")
            if "skipped" in ready:
                raise NotMeasured(f"{side.name}: {ready['skipped']}")
            kernels[name] = ready["kernels"]
            estimates |= {(name, job): time for job, time in ready["times"].items()}
        return kernels, self._turns(estimates, case.bytes < WARM_BYTES, seconds)

    def _turns(self, estimates: dict[Job, float], warm: bool, seconds: float) -> dict[Job, list[float]]:
        calls = {job: calls_of_a_turn(job, estimates) for job in estimates}
        turn = sum(estimate * (calls[job] + warm) for job, estimate in estimates.items())
        times: dict[Job, list[float]] = {job: [] for job in estimates}
        for _ in range(int(min(MOST_TURNS, max(FEWEST_TURNS, seconds * 1e9 / turn)))):
            for name, job in self._random.sample(list(estimates), len(estimates)):
                answer = self.sides[name].ask(run=job, calls=calls[name, job], warm=warm)
                times[name, job].append(answer["ns"])
        return times


def calls_of_a_turn(job: Job, estimates: dict[Job, float]) -> int:
    """As many calls as the fastest side makes in TURN_NS: the same for all sides, at least one."""
    fastest = min(estimate for (_, kind), estimate in estimates.items() if kind == job[1])
    return max(1, int(TURN_NS / max(fastest, 1)))


def of_copy(times: dict[Job, list[float]], name: str) -> float:
    """The time of a side's case as a multiple of its copy's, or of A's where it has none."""
    copies = times.get((name, "copy")) or times[A, "copy"]
    return statistics.median(times[name, "case"]) / statistics.median(copies)
