"""The table of a model's nodes."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len

import dmlsplit as dml
from dmlsplit.checking.results import Judged, NodeSummary, Verdict
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.report import terminal, text
from dmlsplit.report.node_table import NodeCells, NodeTable
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.targets.target import Use

LONG = "sizes at least 1, at most 4,294,967,295 elements, at most 2,147,483,647 elements in an input"


def judged(index, *, use=Use.AS_IT_IS, by="directml 1.15.4", found=(), of_nodes=40, name=None, **summary):
    node = NodeSummary(name or f"/n{index}", "Split 13", "FLOAT", (1, 8, 4, 4), 1, (4, 4), use, **summary)
    report = Report(tuple(found), by, 0, "Split", "m.onnx", index)
    return Judged(report, node.path, node=node, of_nodes=of_nodes)


def diagnostic(index, severity=Severity.NOTE, rule="a/b"):
    return Diagnostic(rule, severity, Basis.OURS, Location((), f"/n{index}"), "said", None, None, "")


def shown(nodes, targets=1, how=AS_USUAL):
    return "".join(text.chunks(nodes, targets, how)).splitlines()


@pytest.mark.parametrize(
    ("summary", "verdict", "outcome"),
    [
        ({}, Verdict.OK, Use.AS_IT_IS),
        ({"use": Use.REWRITTEN}, Verdict.OK, Use.REWRITTEN),
        ({"use": Use.UNKNOWN}, Verdict.UNKNOWN, Use.UNKNOWN),
        ({"graph": "unknown"}, Verdict.UNKNOWN, Use.UNKNOWN),
        ({"graph": "wrong"}, Verdict.OK, Use.REFUSED),  # the report has the error
        ({"use": Use.UNKNOWN, "runtime": "DML"}, Verdict.OK, Use.AS_IT_IS),
        ({"runtime": "CPU"}, Verdict.OK, Use.ON_CPU),
        ({"runtime": "unknown"}, Verdict.UNKNOWN, Use.UNKNOWN),
        ({"runtime": "DML", "graph": "unknown"}, Verdict.UNKNOWN, Use.UNKNOWN),
        ({"runtime": "CPU", "graph": "unknown"}, Verdict.OK, Use.ON_CPU),
        ({"runtime": "session-fails"}, Verdict.OK, Use.REFUSED),
    ],
)
def test_the_verdict_of_a_node(summary, verdict, outcome):
    found = judged(0, **summary)
    assert (found.verdict, found.node.outcome) == (verdict, outcome)


def test_an_error_is_never_unknown():
    assert judged(0, use=Use.UNKNOWN, found=[diagnostic(0, Severity.ERROR)]).verdict is Verdict.NOT_OK


def test_right_wrong_and_unknown_are_counted_apart():
    nodes = [judged(0), judged(1, use=Use.UNKNOWN), judged(2, found=[diagnostic(2, Severity.ERROR)])]
    lines = shown(nodes)
    assert lines[-1] == "3 operators: 1 ok, 1 not ok, 1 unknown; 1 error"
    assert lines[0].startswith("m.onnx: error")
    assert lines[1].startswith("m.onnx: 3 Splits and Concats among 40 nodes")


def test_the_heading_where_the_number_is_not_known():
    assert shown([judged(0, of_nodes=0)])[0] == "m.onnx: 1 Split or Concat"


def test_conditions_are_remarks_each_once():
    nodes = [judged(i, condition=LONG if i % 2 else "n at least 1") for i in range(4)]
    lines = shown(nodes)
    assert [line[-len("if [1]") :] for line in lines[2:6]] == ["if [1]", "if [2]", "if [1]", "if [2]"]
    assert lines[6:8] == ["[1] n at least 1", f"[2] {LONG}"]


def test_a_long_rewriting_is_a_remark():
    rewriting = "12 operators of UINT32 and 4096 bytes of temporary memory"
    lines = shown([judged(0, use=Use.REWRITTEN, rewriting=rewriting)])
    assert lines[2].endswith("rewritten [1]")
    assert lines[3] == f"[1] rewritten: {rewriting}"


@pytest.mark.parametrize("targets", [1, 2, 3, 5, 9])
def test_what_nobody_knows_the_width_of_is_bounded(targets):
    by = [f"onnxruntime 1.{i}.4" for i in range(targets)]
    names = ["/a" * 100, "/b", "/c" * 40]
    nodes = [judged(i, by=each, name=name, condition=LONG) for i, name in enumerate(names) for each in by]
    lines = shown(nodes, targets)
    assert max(map(len, lines)) <= text.TABLE_WIDTH
    headers = [line for line in lines if line.startswith("Node ")]
    assert sum(header.count(each) for header in headers for each in by) == targets
    assert names[0] in " ".join(shown(nodes, targets, Shown(verbose=True)))


@pytest.mark.parametrize("width", [60, 80, 132])
@pytest.mark.parametrize("targets", [1, 4])
def test_a_terminals_table_fits(width, targets):
    by = [f"onnxruntime 1.{i}.4" for i in range(targets)]
    nodes = [judged(i, by=each, name="/block" * 12, condition=LONG) for i in range(3) for each in by]
    stream = io.StringIO()
    console = terminal.console(stream)
    console.width = width
    terminal.show_table(NodeTable(nodes, AS_USUAL).table("m.onnx"), console)
    assert max(map(cell_len, stream.getvalue().splitlines())) <= width


def test_no_row_has_no_heading_in_a_terminal():
    stream = io.StringIO()
    table = NodeTable([judged(0)], Shown(only_problems=True)).table("m.onnx")
    terminal.show_table(table, terminal.console(stream))
    assert stream.getvalue() == f"{table.title}\n"


def test_what_is_ok_can_be_left_out():
    warned = judged(2, found=[diagnostic(2, Severity.WARNING)])
    nodes = [judged(0), judged(1, found=[diagnostic(1)]), warned, judged(3, use=Use.UNKNOWN)]
    lines = shown(nodes, how=Shown(only_problems=True))
    assert [line.split()[0] for line in lines[3:5]] == ["/n2", "/n3"]
    assert "4 Splits and Concats among 40 nodes" in lines[1]
    assert "2 that are ok omitted" in lines[1]
    assert not any("note[" in line for line in lines)
    assert lines[-1] == "4 operators: 3 ok, 1 unknown; 1 warning, 1 note"
    assert not any("Verdict" in line for line in shown(nodes[:1], how=Shown(only_problems=True))), "no row, no heading"


def test_notes_of_a_rule_share_a_line_but_errors_do_not():
    notes = [judged(i, found=[diagnostic(i)]) for i in range(5)]
    errors = [judged(i, found=[diagnostic(i, Severity.ERROR, "c/d")]) for i in range(5, 7)]
    lines = shown([*notes, *errors])
    assert [line for line in lines if "[a/b]" in line] == ["m.onnx: note[a/b] 5 nodes (/n0, /n1, /n2, ...): said"]
    assert sum("[c/d]" in line for line in lines) == 2
    assert sum("[a/b]" in line for line in shown([*notes, *errors], how=Shown(verbose=True))) == 5


def test_errors_that_another_node_causes_share_a_line():
    errors = [judged(i, found=[diagnostic(i, Severity.ERROR, "onnxruntime/session-fails-elsewhere")]) for i in range(4)]
    lines = [line for line in shown(errors) if "error[" in line]
    assert lines == ["m.onnx: error[onnxruntime/session-fails-elsewhere] 4 nodes (/n0, /n1, /n2, ...): said"]
    assert "4 errors" in shown(errors)[-1]


def test_what_several_targets_say_alike_is_shown_and_counted_once():
    same = [diagnostic(0, Severity.WARNING)]
    lines = shown([judged(0, by="a", found=same), judged(0, by="b", found=same)], 2)
    assert sum("[a/b]" in line for line in lines) == 1
    assert lines[-1].endswith("; 1 warning")


def test_operators_of_a_file_share_lines_too():
    def result(index, *found):
        return Judged(Report(found, "directml 1.15.4", 0, "DML_OPERATOR_SPLIT", "a.jsonl", index), None, (index + 1, 1))

    warning = Diagnostic("a/b", Severity.WARNING, Basis.OURS, Location(("Axis",)), "said", None, None, "", 1, 9)
    lines = shown([result(i, warning) for i in range(4)])
    assert lines[4] == "a.jsonl: warning[a/b] 4 operators (1:1, 2:1, 3:1, ...): said"
    assert lines[5] == "4 operators: 4 ok; 4 warnings"
    assert len(lines) == 6
    assert len(shown([result(i, warning) for i in range(4)], how=Shown(verbose=True))) == 9
    assert shown([result(0), result(1, warning)], how=Shown(only_problems=True))[0].startswith("a.jsonl:2:1: ok")


def test_a_graph_of_unknown_outputs_is_unknown():
    from dmlsplit import graphs

    graph = graphs.EXAMPLES["graph/unknown"](False)
    report = dml.validate(graph, directml="1.15.4")
    assert Judged(report, graph=graph).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("summary", "level"),
    [
        ({}, "none"),
        ({"minimum_level": dml.FeatureLevel.FL_3_1}, "3_1"),
        ({"use": Use.NOT_ASKED}, "-"),
        ({"use": Use.UNKNOWN}, "?"),
        ({"graph": "unknown"}, "?"),
        ({"graph": "wrong"}, "none"),
    ],
)
def test_no_level_is_claimed_or_denied_of_what_is_unknown(summary, level):
    assert NodeCells.of(judged(0, **summary).node).level == level
