"""SARIF: what is written is valid by the schema of version 2.1.0, whatever the files hold."""

from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from dmlsplit.location import Location
from dmlsplit.report import sarif
from dmlsplit.results import Note, NotRead
from dmlsplit.rules import RULES
from tests.report.html import pages
from tests.report.sarif_schema import faults


def written(items) -> dict:
    return json.loads("".join(sarif.document(items)))


def of_file(*rules, kind=Note, file="m.onnx", steps=(), **place):
    diagnostics = tuple([RULES[rule].diagnostic(Location(steps), "said", **place) for rule in rules])
    return kind(dml.Report(diagnostics, "feature level 4_1", None, None, file))


@pytest.mark.parametrize(
    "items",
    [
        [],
        pages.small(),
        [pages.judged(pages.SUM, name, file=file) for name in (None, pages.HOSTILE) for file in ("a b%ü:c.json", "-")],
        [pages.judged(pages.SUM, file=file) for file in ("/abs/x.json", "../up.json", None, "<b>\x1b[31m\u202e\udc80")],
        [of_file("input/no-split"), of_file("input/malformed", kind=NotRead, line=3), of_file(*RULES, steps=("x",))],
        [pages.judged(desc, level=level) for desc in (pages.GOOD, pages.INT64) for level in ("1_0", "6_4")],
    ],
    ids=["nothing", "all kinds", "names", "paths", "files", "several judges"],
)
def test_valid_by_the_schema(items):
    assert faults(written(items)) == []


def test_the_schema_refuses():
    """Else the test above would prove nothing."""
    log = written([of_file("input/malformed", kind=NotRead, line=3)])
    [result] = log["runs"][0]["results"]
    result["level"] = "fatal"
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    del result["message"]
    found = " ".join(faults(log))
    assert all(word in found for word in ("fatal", "startLine", "message"))
