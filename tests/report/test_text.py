from __future__ import annotations

from dataclasses import replace

import pytest

from dmlsplit.checking.results import Judged, NotJudged, NotRead, Verdict, verdict_of
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.report import text
from dmlsplit.report.text import Tally


def diagnostic(severity=Severity.ERROR, steps=("Axis",), message="is 4", line=None, column=None):
    return Diagnostic("split/x", severity, Basis.OURS, Location(steps), message, None, 4, "somewhere", line, column)


def report(*diagnostics, hresult=0x80070057, operator="DML_OPERATOR_SPLIT", file="a.json"):
    return Report(diagnostics, "feature level 6_4", hresult, operator, file)


def result(report):
    """The result that has such a report."""
    kinds = {Verdict.NOT_JUDGED: NotJudged, Verdict.NOT_READ: NotRead}
    return kinds.get(verdict_of(report), Judged)(report)


READ = report(hresult=0)
FAULTY = report(diagnostic())
UNSAFE = report(diagnostic(), hresult=0)
OTHER = report(diagnostic(Severity.NOTE), hresult=None, operator=None)
UNREAD = report(diagnostic(), hresult=None, operator=None)
CRASHING = report(diagnostic(), hresult=None)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (READ, "a.json: ok: DML_OPERATOR_SPLIT (feature level 6_4, S_OK)"),
        (FAULTY, "a.json: not ok: DML_OPERATOR_SPLIT (feature level 6_4, HRESULT 0x80070057)"),
        (UNSAFE, "a.json: not ok: DML_OPERATOR_SPLIT (feature level 6_4, S_OK)"),
        (OTHER, "a.json: not judged"),
        (UNREAD, "a.json: not read"),
        (CRASHING, "a.json: not ok: DML_OPERATOR_SPLIT (feature level 6_4, no HRESULT)"),
        (report(hresult=0, file=None), "ok: DML_OPERATOR_SPLIT (feature level 6_4, S_OK)"),
    ],
    ids=["ok", "faulty", "unsafe", "other", "unread", "crashing", "no file"],
)
def test_verdict_line(found, expected):
    assert text.lines(result(found))[0] == expected


def test_name_and_position_of_the_operator():
    [line] = text.lines(Judged(READ, "cut", (3, 7)))
    assert line == "a.json:3:7: ok: 'cut' DML_OPERATOR_SPLIT (feature level 6_4, S_OK)"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (diagnostic(line=3, column=9), "a.json:3:9: error[split/x] Axis: is 4"),
        (diagnostic(Severity.WARNING), "a.json: warning[split/x] Axis: is 4"),
        (diagnostic(Severity.NOTE, steps=()), "a.json: note[split/x] is 4"),
        (diagnostic(message="a\x1b[2J\nb\udcff"), r"a.json: error[split/x] Axis: a\x1b[2J\nb\udcff"),
    ],
    ids=["place", "no position", "no path", "hostile"],
)
def test_diagnostic_line(found, expected):
    assert text.lines(Judged(report(found)))[1] == expected


def test_hostile_file_and_name():
    line = text.lines(Judged(report(file="\x1b]0;x\x07.json", hresult=0), "[red]\u202e\n", (1, 2)))[0]
    assert line.startswith(r"\x1b]0;x\x07.json:1:2: ok: '[red]\u202e\n' DML_OPERATOR_SPLIT")


@pytest.mark.parametrize(
    ("reports", "summary"),
    [
        ([], "0 operators"),
        ([READ], "1 operator: 1 ok"),
        (
            [UNREAD, READ, FAULTY, READ, OTHER],
            "5 operators: 2 ok, 1 not ok, 1 not judged, 1 not read; 2 errors, 1 note",
        ),
        ([report(diagnostic(Severity.WARNING), hresult=0)], "1 operator: 1 ok; 1 warning"),
    ],
    ids=["none", "one", "mixed", "warning"],
)
def test_summary(reports, summary):
    tally = Tally()
    assert [item.report for item in tally.watch(map(result, reports))] == reports
    assert tally.summary() == summary
    assert "".join(text.chunks(map(result, reports))).splitlines()[-1] == summary


@pytest.mark.parametrize(
    ("outcomes", "summary"),
    [
        ([0, 0], "1 operator, 0 verdicts that depend on the release: 2 ok"),
        ([0, 1], "1 operator, 1 verdict that depends on the release: 1 ok, 1 not ok; 1 error"),
    ],
    ids=["agree", "differ"],
)
def test_summary_of_several_targets(outcomes, summary):
    tally = Tally(targets=2)
    assert len(list(tally.watch(Judged([READ, FAULTY][outcome]) for outcome in outcomes))) == 2
    assert tally.summary() == summary


def test_what_no_release_can_read_is_said_once():
    unread = [
        replace(report(diagnostic(), hresult=None, operator=None, file=file), judged_by=release)
        for file in ("a.json", "b.json")
        for release in ("directml 1.8.0", "directml 1.15.4")
    ]
    assert "".join(text.chunks(map(NotRead, unread), 2)).splitlines() == [
        *("a.json: not read", "a.json: error[split/x] Axis: is 4"),
        *("b.json: not read", "b.json: error[split/x] Axis: is 4"),
        "2 operators, 0 verdicts that depend on the release: 2 not read; 2 errors",
    ]
