"""A command asked about the cases of a suite, or about a sample of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dmlsplit.conformance.judging import Outcome, Result, expected, judge
from dmlsplit.conformance.peers import NoAnswer, Peer
from dmlsplit.conformance.suite import FILES, SCHEMA, Suite

GIVEN_UP: Final = 25
"""After this many questions in a row without an answer, no more are asked."""


def run(
    suite: Suite,
    names: Sequence[str],
    command: Sequence[str],
    targets: Mapping[str, str],
    *,
    seconds: float = 60,
    sample: int = 1,
    correct: bool = False,
) -> Iterator[Result]:
    """Yields the results of a command for the cases of the named files, one after the other.

    `targets` are the versions of DirectML and ONNX Runtime whose answers are expected; cases that they did not answer
    are omitted. `sample`: every `sample`-th case is asked. `correct`: graphs must give right results, whatever the
    build computes. A command that ends is started again. Raises InputError if it cannot be started.
    """
    silent = 0
    with Peer(command, seconds) as peer:
        for name in names:
            file = FILES[name]
            version = targets[file.by]
            for case in suite.cases(name, sample):
                answers = expected(case, version, correct=correct)
                if not answers:
                    continue
                if silent >= GIVEN_UP:
                    yield Result(case["id"], Outcome.SKIPPED, f"not asked, after {GIVEN_UP} without an answer")
                    continue
                question = {"schema": SCHEMA, "id": case["id"], "target": f"{file.by} {version}", **case["question"]}
                try:
                    result = judge(case, file, answers, peer.ask(question))
                    silent = 0
                except NoAnswer as fault:
                    result = Result(case["id"], Outcome.FAILED, str(fault))
                    silent += 1
                yield result
