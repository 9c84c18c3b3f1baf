"""One case: every contestant checked, then timed; the result as plain data."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from suite.cases import Case
from suite.contest import Buffers, Job, Prepare, Unsupported
from suite.ours import Ours, kernels_named
from suite.references import forget_buffers
from suite.timing import Runner, round_robin

Row: TypeAlias = dict[str, Any]
"""`results`: by contestant, {"ns", "ratio", "turns"} or {"skipped": why} or {"wrong": True}."""

OURS: Final = "dmlsplit"


def ours_with(threads: int) -> str:
    """The contestant's name."""
    return OURS if threads == 1 else f"{OURS} x{threads}"


def is_right(job: Job, buffers: Buffers) -> bool:
    """Runs the job once into spoilt outputs."""
    buffers.spoil()
    returned = job.run()
    if job.results is None:
        return buffers.is_right(buffers.outputs)
    results = job.results(returned)
    return not results or buffers.is_right(results)  # a reference copies blocks of its own and checks them itself


def measure(case: Case, contestants: dict[str, Prepare], ours: Ours, threads: int, seconds: float, clock: str) -> Row:
    buffers = Buffers(case)
    results: dict[str, dict[str, Any]] = {}
    runners = []
    for name, prepare in contestants.items():
        try:
            if name.endswith("fresh") and not buffers.outputs_are_packed:
                raise Unsupported("fresh outputs are packed")
            job = prepare(buffers)
            right = is_right(job, buffers)
        except Unsupported as reason:
            results[name] = {"skipped": str(reason)}
        except Exception as error:  # a peer's refusal may be of any type; it is shown
            results[name] = {"skipped": f"{type(error).__name__}: {str(error).strip()[:160]}"}
        else:
            results[name] = {} if right else {"wrong": True}
            if right:
                runners.append(Runner(name, job.run))
    round_robin(runners, case.bytes, seconds, clock)
    for runner in runners:
        results[runner.name] = {"ns": runner.median, "turns": len(runner.samples)}
    _add_ratios(results)
    row: Row = {
        "name": case.name,
        "title": case.title,
        "class": case.target,
        "bytes": case.bytes,
        "join": case.join,
        "threads": threads,
        "clock": clock,
        "results": results,
    }
    forget_buffers()
    return row | _plan_of(ours, buffers)


def _plan_of(ours: Ours, buffers: Buffers) -> Row:
    try:
        description = ours.plan(buffers).describe()
    except Unsupported as reason:
        return {"kernel": "", "plan": str(reason)}
    return {"kernel": kernels_named(description), "plan": description}


def _add_ratios(results: dict[str, dict[str, Any]]) -> None:
    memcpy = results.get("memcpy", {}).get("ns")
    for result in results.values():
        if memcpy and "ns" in result:
            result["ratio"] = result["ns"] / memcpy
