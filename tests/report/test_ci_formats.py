"""The formats for continuous integration: annotations of GitHub's workflows, and JUnit's XML."""

from __future__ import annotations

import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import dmlsplit as dml
from dmlsplit.checking.results import Note, NotJudged, NotRead
from dmlsplit.descriptors.location import Location
from dmlsplit.report import github, junit
from dmlsplit.rules import RULES
from tests.report.html import pages

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)\n")


def of_file(*rules, kind=Note, file="m.onnx", **place):
    diagnostics = tuple([RULES[rule].diagnostic(Location(), "said", **place) for rule in rules])
    return kind(dml.Report(diagnostics, "feature level 4_1", None, None, file))


def annotations(items):
    *commands, summary = github.chunks(iter(items))
    found = []
    for command in commands:
        match = COMMAND.fullmatch(command)
        assert match, command
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        found.append((match[1], {k: unquote(v) for k, v in properties.items()}, unquote(match[3])))
    return found, summary


def test_annotations_have_a_place():
    found, summary = annotations([of_file("split/axis-sizes-sum", kind=NotRead, line=3, column=7)])
    assert found[0][0] == "error"
    assert found[0][1] == {"file": "m.onnx", "line": "3", "col": "7", "title": "split/axis-sizes-sum"}
    assert summary == "1 operator: 1 not read; 1 error\n"


@pytest.mark.parametrize("hostile", ["a,b:c%.json", "x\n::error::y", "\x1b[31m"])
def test_an_annotation_is_one_command(hostile):
    found, _ = annotations([of_file("input/no-split", file=hostile)])
    (kind, properties, message) = found[0]
    assert (kind, message) == ("notice", "said (feature level 4_1)")
    assert "\n" not in properties["file"]


def test_severities():
    kinds = {rule.severity: rule.id for rule in RULES.values()}
    found, _ = annotations([of_file(id) for id in kinds.values()])
    assert {kind for kind, *_ in found} == {"error", "warning", "notice"}


def suite(items):
    (found,) = ElementTree.fromstring("".join(junit.document(iter(items))))
    return found


def cases(items):
    return suite(items).findall("testcase")


def test_the_suite_counts_its_cases():
    bad = pages.judged(pages.SUM, "bad")
    unread = of_file("input/malformed", kind=NotRead)
    counts = suite([pages.judged(pages.GOOD, "good"), bad, bad, unread]).attrib
    assert counts == {"name": "dmlsplit", "tests": "4", "failures": "2", "errors": "1", "skipped": "0"}


def test_a_finding_about_a_model_has_no_index():
    said = RULES["input/no-split"].diagnostic(Location(), "said")
    (case,) = cases([Note(dml.Report((said,), "", None, None, "m", -1))])
    assert case.get("name") == "m"


def test_what_becomes_of_an_answer():
    good, bad = pages.judged(pages.GOOD, "good"), pages.judged(pages.SUM, "bad")
    passed, failed, error, skipped = cases(
        [
            good,
            bad,
            of_file("input/malformed", kind=NotRead),
            of_file("input/operator-not-judged", kind=NotJudged, file="n.onnx"),
        ]
    )
    assert [child.tag for child in passed] == []
    (failure,) = failed
    assert (failure.tag, failure.get("type")) == ("failure", "split/axis-sizes-sum")
    assert "split/axis-sizes-sum" in failure.text
    assert [child.tag for child in error] == ["error"]
    assert [child.tag for child in skipped] == ["skipped"]
    assert len({case.get("name") for case in (passed, failed, error, skipped)}) == 4


def test_hostile_names_are_no_markup():
    (case,) = cases([pages.judged(pages.SUM, pages.HOSTILE, file='<"&>\x00\udc80.json')])
    assert case.get("name")
    assert case[0].tag == "failure"
