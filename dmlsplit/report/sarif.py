"""Reports as SARIF 2.1.0 for code scanning; https://docs.oasis-open.org/sarif/sarif/v2.1.0/"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from dmlsplit._version import __version__
from dmlsplit.checking.results import Judged, Note, NotRead, Result
from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.onnxruntime.reports import RuntimeReport, answer_json
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.rules import RULES, Rule
from dmlsplit.system.printable import printable

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
INFORMATION: Final = "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_split_operator_desc"
_MARKED: Final = re.compile(r"[\[\]\\]")
_INDEX: Final = {id: i for i, id in enumerate(RULES)}


def document(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Yields the pieces of one SARIF log with one run: a result for each diagnostic, with its place in the file or the
    node's name."""
    driver = {
        "name": "dmlsplit",
        "informationUri": INFORMATION,
        "semanticVersion": __version__,
        "rules": [_rule(rule) for rule in RULES.values()],
    }
    head = {"$schema": SCHEMA, "version": "2.1.0"}
    yield json.dumps(head)[:-1] + ', "runs": [{"tool": ' + json.dumps({"driver": driver})
    yield ', "columnKind": "unicodeCodePoints", "results": ['
    separator = "\n"
    read = True
    for result in results:
        read = read and not isinstance(result, NotRead)
        for diagnostic in result.report.diagnostics:
            yield separator + json.dumps(_result(diagnostic, result))
            separator = ",\n"
    yield '\n], "invocations": ' + json.dumps([{"executionSuccessful": read}]) + "}]}\n"


def _rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {rule.explanation}"},
        "defaultConfiguration": {"level": str(rule.severity)},
        "properties": {"basis": str(rule.basis), "sources": [str(source) for source in rule.sources]},
    }
    urls = [source.url for source in rule.sources if source.url]
    return {**found, "helpUri": urls[0]} if urls else found


def _result(diagnostic: Diagnostic, result: Result) -> dict[str, Any]:
    place = f"{diagnostic.path}: " if diagnostic.path else ""
    return {
        "ruleId": diagnostic.rule,
        "ruleIndex": _INDEX[diagnostic.rule],
        "level": str(diagnostic.severity),
        "message": {"text": _without_links(printable(f"{place}{diagnostic.message}", None))},
        "locations": [_location(diagnostic, result)],
        "properties": {
            "judgedBy": result.report.judged_by,
            "verdict": None if isinstance(result, Note) else str(result.verdict),
            "index": result.report.index,
            "expected": diagnostic.expected,
            "actual": diagnostic.actual,
            **_runtime(result.report),
        },
    }


def _runtime(report: Report) -> dict[str, Any]:
    """Returns the outcome in ONNX Runtime as a dict to merge into a result's properties; empty if the target is not a
    version of it."""
    answer = report.answer if isinstance(report, RuntimeReport) else None
    return {} if answer is None else {"onnxruntime": answer_json(answer)}


def _without_links(text: str) -> str:
    """Returns a message escaped so that viewers, which render [text](destination) as links, show it unchanged.

    The parenthesis is escaped as well, for viewers that search for "](" only. Section 3.11.6.
    """
    return _MARKED.sub(r"\\\g<0>", text).replace("](", r"]\(") if "](" in text else text


def _location(diagnostic: Diagnostic, result: Result) -> dict[str, Any]:
    location: dict[str, Any] = {}
    physical = _physical(diagnostic, result.report)
    if physical:
        location["physicalLocation"] = physical
    node = result.node if isinstance(result, Judged) else None
    name = node.path if node is not None else None if isinstance(result, Note) else result.name
    if name is not None or diagnostic.path:
        shown = None if name is None else printable(name, None)
        within = shown is None or diagnostic.location.node
        whole = diagnostic.path if within else f"{shown}/{diagnostic.path}"
        logical = {"fullyQualifiedName": whole.rstrip("/"), "kind": "object" if node is None else "function"}
        location["logicalLocations"] = [{**logical, "name": shown} if shown else logical]
    return location


def _physical(diagnostic: Diagnostic, report: Report) -> dict[str, Any]:
    if report.file is None:
        return {}
    found: dict[str, Any] = {"artifactLocation": {"uri": _uri(report.file)}}
    if diagnostic.line is not None:
        found["region"] = {"startLine": diagnostic.line}
        if diagnostic.column is not None:
            found["region"]["startColumn"] = diagnostic.column
    return found


def _uri(file: str) -> str:
    """Returns a file's URI, percent-encoded; a relative path gives a relative URI."""
    path = PurePath(file)
    name = quote(os.fsencode(path.as_posix()))
    if path.is_absolute():
        return f"file://{name}" if name.startswith("/") else f"file:///{name}"
    # A colon in the first segment would be read as a scheme, but quote has encoded it.
    return name
