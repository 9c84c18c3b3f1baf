"""Compares an answer with the recorded ones: passed, failed or not known.

A member that is null in the recorded answer, or missing in the given one, is not known, at any depth; lists must have
equal lengths. A case fails if anything known differs, and is skipped if a required member is not known.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dmlsplit.conformance.suite import Case, File
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record

_SHOWN: Final = 60
"""The most characters of a value, and the most differences of a case, that are shown."""
_MOST_DIFFERENCES: Final = 5


class Outcome(enum.StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@record
class Result:
    """The outcome of a case, and why it did not pass. `values` is the number of values that were compared."""

    id: str
    outcome: Outcome
    reason: str = ""
    values: int = 0

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        return {"id": self.id, "outcome": str(self.outcome), "reason": self.reason or None, "values": self.values}


def expected(case: Case, version: str, *, correct: bool = False) -> list[Case]:
    """Returns the recorded answers of a version's builds to a case; [] if there are none.

    `correct`: the outputs of a graph must be right, even if the builds' are wrong.
    """
    found = [each["is"] for each in case["answers"] if version in each["by"]]
    if correct:
        found = [{**each, "right": True, "outputs": None} if "right" in each else each for each in found]
    return found


def judge(case: Case, file: File, answers: Sequence[Case], given: Case) -> Result:
    """Returns the best of the results of comparing an answer with those of each build of one version: passed if any of
    them passed, else skipped if any was skipped, else failed."""
    results = [_compared(case["id"], file, answer, given) for answer in answers]
    order = (Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED)
    return min(results, key=lambda result: order.index(result.outcome))


def _compared(id: str, file: File, answer: Case, given: Case) -> Result:
    if "skip" in given:
        return Result(id, Outcome.SKIPPED, printable(str(given["skip"])))
    found = [_Compared(answer[member], given.get(member), member) for member in answer]
    differences = [difference for each in found for difference in each.differences]
    values = sum(each.values for each in found)
    if differences:
        more = len(differences) - _MOST_DIFFERENCES
        said = "; ".join(differences[:_MOST_DIFFERENCES]) + (f"; {more} more" if more > 0 else "")
        return Result(id, Outcome.FAILED, said, values)
    unknown = [member for member, each in zip(answer, found, strict=True) if each.unknown and member in file.required]
    if unknown:
        return Result(id, Outcome.SKIPPED, f"{unknown[0]} is not known", values)
    return Result(id, Outcome.PASSED, "", values)


class _Compared:
    """The differences between a recorded value and a given one; `values` counts the values that agree."""

    def __init__(self, recorded: Any, given: Any, path: str) -> None:
        self.differences: list[str] = []
        self.values = 0
        self.unknown = False
        for part, expected, found in _leaves(recorded, given, path):
            if expected is None:
                continue
            if found is None:
                self.unknown = True
            elif type(expected) is type(found) and expected == found:
                self.values += 1
            else:
                self.differences.append(f"{part} is {_short(found)}, but {_short(expected)} is recorded")


def _leaves(recorded: Any, given: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, recorded value, given value) for each pair of values that is compared as a whole."""
    if isinstance(recorded, dict) and isinstance(given, dict):
        for name, value in recorded.items():
            yield from _leaves(value, given.get(name), f"{path}.{printable(name, _SHOWN)}")
    elif isinstance(recorded, list) and isinstance(given, list) and len(recorded) == len(given):
        for i, (one, other) in enumerate(zip(recorded, given, strict=True)):
            yield from _leaves(one, other, f"{path}[{i}]")
    else:
        yield path, recorded, given


def _short(value: Any) -> str:
    return printable(str(value) if isinstance(value, str) else repr(value), _SHOWN)
