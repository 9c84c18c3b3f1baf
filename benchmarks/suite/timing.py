"""Times that share a machine with others: round robin in one process, medians, no absolute promises."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

TURN_NS: Final = 1_000_000
"""A turn calls a job as often as fits; at least once."""
WARM_BYTES: Final = 64_000_000
"""Below this many bytes a job runs once, untimed, before each turn: the one before it has left its own lines."""
MOST_TURNS: Final = 41
FEWEST_TURNS: Final = 7
FEWEST_OF_SLOW: Final = 3
SLOW: Final = 8
"""Times as long as the fastest: a difference that needs no more turns to be seen."""


@dataclass
class Runner:
    """A job with its samples: nanoseconds a call, one for each turn."""

    name: str
    run: Callable[[], object]
    calls: int = 1
    turns: int = 0
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


CLOCKS: Final[dict[str, Callable[[], int]]] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}
"""Nanoseconds. The CPU time of all threads leaves out the time in which others had the core. Of several threads it is
the work that they do together: how much more than one thread's they need, not how much sooner they are done."""


def once(run: Callable[[], object], calls: int = 1, clock: str = "wall") -> float:
    """Nanoseconds a call."""
    now = CLOCKS[clock]
    start = now()
    for _ in range(calls):
        run()
    return (now() - start) / calls


def round_robin(runners: list[Runner], size: int, seconds: float, clock: str = "wall") -> None:
    """Fills the samples within about `seconds`, shared equally: who is slow gets fewer turns, spread over all rounds.

    `size`: bytes copied by one call. `clock`: a key of CLOCKS.
    """
    warm = size < WARM_BYTES
    share = seconds * 1e9 / max(1, len(runners))
    estimates = [min(once(runner.run, 1, clock) for _ in range(2)) for runner in runners]
    for runner, estimate in zip(runners, estimates, strict=True):
        runner.calls = max(1, int(TURN_NS / max(estimate, 1)))
        turn = estimate * (runner.calls + warm)
        fewest = FEWEST_OF_SLOW if estimate > SLOW * min(estimates) else FEWEST_TURNS
        runner.turns = int(min(MOST_TURNS, max(fewest, share / turn)))
    rounds = max((runner.turns for runner in runners), default=0)
    order = random.Random(0)
    for i in range(rounds):
        # A fixed order falls into step with the scheduler's slices: on a busy machine one runner would pay for all.
        for runner in order.sample(runners, len(runners)):
            if (i + 1) * runner.turns // rounds > i * runner.turns // rounds:
                if warm:
                    runner.run()
                runner.samples.append(once(runner.run, runner.calls, clock))
