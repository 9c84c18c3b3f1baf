from __future__ import annotations

import io
from collections import Counter

import pytest
from rich.cells import cell_len

from dmlsplit.checking.results import Judged, NotRead
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.report import terminal
from dmlsplit.report.table import Table


@pytest.mark.parametrize(
    ("line", "column", "expected", "under"),
    [
        ('"Axis": 4', 9, '"Axis": 4', "4"),
        ("\t\t4", 3, "  4", "4"),
        ("名前x", 3, "名前x", "x"),
        ("\x1b[31mx", 6, r"\x1b[31mx", "x"),
        ("abc", 4, "abc", ""),
        ("", 1, "", ""),
    ],
    ids=["plain", "tabs", "wide", "escape", "behind the end", "empty"],
)
def test_excerpt(line, column, expected, under):
    shown, indent = terminal.excerpt(line, column)
    assert shown == expected
    before = shown[: len(shown) - len(under)]
    assert indent == cell_len(before)


@pytest.mark.parametrize("column", [1, 60, 4000, 9999, 10_000])
def test_excerpt_of_a_long_line_holds_the_column(column):
    line = "".join(chr(0x4E00 + i % 5000) for i in range(10_000))
    shown, indent = terminal.excerpt(line, column)
    assert len(shown) <= terminal.EXCERPT_WIDTH + 6
    position = next(i for i in range(len(shown)) if cell_len(shown[:i]) == indent)
    assert shown[position] == line[column - 1]


def show(file, line, column):
    diagnostic = Diagnostic("a/b", Severity.ERROR, Basis.OURS, Location(), "wrong", None, None, "", line, column)
    report = Report((diagnostic,), "x", None, None, file)
    stream = io.StringIO()
    terminal.show([NotRead(report)], terminal.console(stream))
    return stream.getvalue().splitlines()


def test_the_source_line_and_a_caret(tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes("\ufeff{\r\n  bad\r\n}".encode())
    lines = show(str(file), 2, 3)
    assert lines[2:4] == ["    2 |   bad", "      |   ^"]
    assert lines[-1] == "1 operator: 1 not read; 1 error"


@pytest.mark.parametrize(
    ("line", "column"), [(None, None), (9, 1), (1, 90)], ids=["no position", "no such line", "no such column"]
)
def test_no_excerpt_where_the_place_is_unknown(tmp_path, line, column):
    file = tmp_path / "a.json"
    file.write_text("x")
    assert len(show(str(file), line, column)) == 3


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_no_excerpt_of_what_is_no_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert len(show(name, 1, 1)) == 3


def test_no_excerpt_of_a_long_file(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    file.write_text("x")
    monkeypatch.setattr(terminal, "MAX_FILE", 0)
    assert len(show(str(file), 1, 1)) == 3


def test_markup_is_text():
    stream = io.StringIO()
    terminal.show([Judged(Report((), "x", 0, "OP", "[bold]:smile:[/nonsense]"))], terminal.console(stream))
    assert stream.getvalue().startswith("[bold]:smile:[/nonsense]: ok: OP (x, S_OK)\n")


@pytest.mark.parametrize("width", [40, 60, 80, 300])
def test_tables_fit_and_lose_nothing(width):
    stream = io.StringIO()
    console = terminal.console(stream)
    console.width = width
    header = ("Node", "Operator", "Whole", "Axis", "Lengths", "Verdict", "Level", "answer")
    row = ("a_node/" * 20, "Split 18", "FLOAT [2, 8, 288]", "2", "[96, 96, 96]", "ok", "3_0", "taken")
    terminal.show_table(Table("", header, [row]), console)
    shown = stream.getvalue()
    assert max(map(cell_len, shown.splitlines())) <= width
    printed = Counter(c for c in shown if c.isascii() and not c.isspace())
    assert printed == Counter("".join((*header, *row)).replace(" ", ""))
