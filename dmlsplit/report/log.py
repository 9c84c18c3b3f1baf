"""The findings in a log, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from dmlsplit.checking.log_findings import Explained
from dmlsplit.logs.messages import Asks
from dmlsplit.logs.reading import Finding, Log
from dmlsplit.report import placement
from dmlsplit.report.text import diagnostic_parts, plain
from dmlsplit.system.printable import printable

if TYPE_CHECKING:
    from dmlsplit.checking.log_findings import ModelFacts

TEXT_SHOWN: Final = 160
ERRORS_SHOWN: Final = 3
UNKNOWN_SHOWN: Final = 50
"""Findings without a message that the text shows; JSON has all of them."""


def text(file: str, log: Log, command: tuple[str, str], facts: ModelFacts | None) -> Iterator[str]:
    """Yields lines of text: each known finding with its meaning, the first unknown ones, and the counts. `command` has
    the model and the version that the suggested commands name; `facts`, if given, returns what the model says about a
    finding."""
    name = "standard input" if file == "-" else printable(file, None)
    known = [finding for finding in log.findings if finding.message is not None]
    unknown = [finding for finding in log.findings if finding.message is None]
    for finding in known:
        yield from _known(name, finding, command, facts)
    for finding in unknown[:UNKNOWN_SHOWN]:
        code = f" with {finding.code_text}" if finding.code is not None else ""
        yield f"{name}:{finding.line}: unknown{code}{_times(finding)}: {printable(finding.text, TEXT_SHOWN)}\n"
    left = len(unknown) - UNKNOWN_SHOWN
    if left > 0:
        yield f"{name}: {left} more unknown\n"
    if log.more:
        yield f"{name}: {log.more} further lines report errors\n"
    if facts is not None and facts.is_of_another_model(log.findings):
        yield f"{name}: is not a log of {command[0]}: none of the nodes that it names is in the model\n"
    counts = ((log.lines, "line"), (len(known), "known message"))
    lines, messages = (f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts)
    yield f"{lines}: {messages}, {len(unknown)} unknown\n"


def _known(name: str, finding: Finding, command: tuple[str, str], facts: ModelFacts | None) -> Iterator[str]:
    message = finding.message
    assert message is not None
    at = "".join(f" {part}" for part in (finding.code_text, f"at {finding.place}" if finding.place else "") if part)
    yield f"{name}:{finding.line}: {message.id}{at}{_times(finding)}: {printable(finding.text, TEXT_SHOWN)}\n"
    if finding.operator:
        yield f"  node: {printable(finding.operator)} {printable(finding.node or '')}".rstrip() + "\n"
    yield f"  means: {message.meaning}\n"
    if message.advice:
        yield f"  try: {message.advice}\n"
    for line in _of_model(finding, facts) if facts is not None else ():
        yield f"  model: {line}\n"
    if message.next:
        model, version = command
        yield f"  next: {message.next.replace('{model}', model).replace('{version}', version)}\n"
    yield f"  source: {message.source}\n"


def _times(finding: Finding) -> str:
    return f" ({finding.count:,} lines)" if finding.count > 1 else ""


def _of_model(finding: Finding, facts: ModelFacts) -> Iterator[str]:
    explained = facts.explains(finding)
    if explained is None:
        return
    assert finding.message is not None
    said = {
        Explained.YES: "explains it",
        Explained.NO: "ruled out by all that is known about this version: check the sizes of the Run, the DirectML.dll "
        "that the process has loaded, and the driver",
        Explained.UNKNOWN: "not known",
    }
    yield said[explained]
    if facts.errors and finding.message.asks is Asks.CREATION:
        for error in facts.errors[:ERRORS_SHOWN]:
            yield plain(diagnostic_parts(error, None))
        if len(facts.errors) > ERRORS_SHOWN:
            yield f"{len(facts.errors) - ERRORS_SHOWN} more errors"
    for line in placement.lines([facts.session]):
        yield "".join(part for part, _ in line)
    if finding.node:
        node = facts.node(finding)
        created = "optimization created it" if facts.may_have(finding) else "the log may be of another model"
        where = f"is not a node of the file: {created}" if node is None else f"is a node of the file: {node}"
        yield f"{printable(finding.node)} {where}"


def document(file: str, log: Log, command: tuple[str, str], facts: ModelFacts | None) -> Iterator[str]:
    """Yields one JSON object with the findings of a log. `command` has the model and the version that the suggested
    commands name; `facts`, if given, returns what the model says about a finding."""
    model, version = command
    findings = []
    for finding in log.findings:
        explained = facts.explains(finding) if facts is not None else None
        next_ = finding.message.next if finding.message is not None else ""
        findings.append(
            {
                **finding.to_dict(),
                "advice": (finding.message.advice or None) if finding.message is not None else None,
                "next": next_.replace("{model}", model).replace("{version}", version) or None,
                "by_model": None if explained is None else str(explained),
            }
        )
    errors = None if facts is None else [error.to_dict() for error in facts.errors]
    whole = {
        "schema": 1,
        "file": file,
        "lines": log.lines,
        "more": log.more,
        "findings": findings,
        "errors": errors,
        "of_another_model": None if facts is None else facts.is_of_another_model(log.findings),
    }
    yield json.dumps(whole, indent=2) + "\n"


WRITERS: Final = {"text": text, "json": document}
