"""Logs of jobs: no name of a file, node or tensor becomes a command to the server that reads the log."""

from __future__ import annotations

import io
import json
import re

import pytest

from dmlsplit.report import terminal
from dmlsplit.report.table import Table
from dmlsplit.system.printable import inert
from tests.cli.conftest import BAD, INT64

COMMAND = re.compile(r"(?m)^\s*::\w|##\w*\[")
NAMES = {
    "first": "::error file=a.py,line=1::x",
    "spaces": " \t ::warning::x",
    "lines": "x\n::add-mask::y",
    "return": "x\r::error::y",
    "separators": "x\u2028::error::y\x85::error::z\v::error::w",
    "wrapped": "word " * 9 + "::error::" + "x" * 30 + " ::error::y" * 9,
    "actions": "a ##[error]x",
    "pipelines": "a ##vso[task.setvariable variable=x]y",
    "teamcity": "##teamcity[buildProblem description='x']",
}


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request):
    return request.param


def said(result):
    """The lines, as a server's reader of lines makes them."""
    found = COMMAND.search((result.out + result.err).replace("\r", "\n"))
    assert found is None, found
    return result.out + result.err


def operators(name):
    bad = json.loads(BAD)
    return {
        name: bad,
        f"{name} ": json.loads(INT64),
        " ": {"Type": name, "Desc": {}},
        "  ": {"Type": "SPLIT", "Desc": {name: 1}},
    }


COMMANDS = [
    ["check"],
    ["check", "--directml", "1.8.0", "--directml", "1.15.4"],
    *(["check", "--format", form] for form in ("json", "jsonl", "sarif", "junit")),
    ["levels"],
    ["levels", "--releases"],
    ["levels", "--json"],
    ["legalize", "--feature-level", "1_0"],
    ["draw"],
    ["plan"],
    ["run"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_names_of_operators(cli, tmp_path, command, name):
    (tmp_path / "a.json").write_text(
        json.dumps({"resources": {name: {}}, "dispatchables": operators(name), "commands": []})
    )
    said(cli(command[0], "a.json", *command[1:]))


@pytest.mark.parametrize(
    "command",
    [
        *([*words, "--onnxruntime", "1.24.4"] for words in COMMANDS[:6]),
        ["check", "--onnxruntime", "1.20.1", "--onnxruntime", "1.24.4"],
        ["check", "--format", "html"],
        ["levels"],
        ["levels", "--runtimes"],
        ["levels", "--releases"],
        ["legalize", "--onnxruntime", "1.24.4", "-o", "out.onnx"],
        ["legalize", "--onnxruntime", "1.24.4", "--diff"],
        ["plan"],
        ["draw"],
    ],
    ids=" ".join,
)
def test_names_of_nodes_and_tensors(cli, tmp_path, command, name):
    """Of a graph that comes out wrong, and of nodes that are refused."""
    pytest.importorskip("onnx")
    from tests.models import FLOAT, model, node, value

    x, a, b, s, y = (f"{name}{letter}" for letter in "xabsy")
    made = model(
        [
            node("Split", [x], [a, b], name=name, axis=1),
            node("Sigmoid", [b], [s], name=f"{name}2"),
            node("Mul", [a, s], [y], name=f"{name}3"),
            node("Split", [x], [f"{a}2", f"{b}2"], name=f"{name}4", axis=9),
        ],
        [value(x, [1, 8, 4, 4], FLOAT)],
        (y, f"{a}2", f"{b}2"),
        13,
        ir_version=8,
    )
    (tmp_path / "a.onnx").write_bytes(made.SerializeToString())
    assert said(cli(command[0], "a.onnx", *command[1:]))


@pytest.mark.parametrize("command", [*COMMANDS, ["split", "--axis", "0", "--sections", "1"]], ids=" ".join)
@pytest.mark.parametrize("suffix", [".json", ".onnx"])
def test_names_of_files(cli, tmp_path, command, suffix, name):
    file = name.replace("/", "") + suffix
    try:
        (tmp_path / file).write_text(json.dumps({"resources": {}, "dispatchables": operators("o"), "commands": []}))
    except OSError:
        pytest.skip("no such name of a file here")
    assert said(cli(command[0], file, *command[1:]))
    assert said(cli(command[0], f"{file} which is not there", *command[1:]))


@pytest.mark.parametrize("words", [["rule"], ["check", "--directml"], ["check", "--ignore"], [], ["check", "--axis"]])
def test_words_of_the_command_line(cli, words, name):
    assert said(cli(*words, name))


def test_cells_at_a_terminal(name):
    for width in (20, 40, 80):
        stream = io.StringIO()
        console = terminal.console(stream)
        console.width = width
        terminal.show_table(Table(name, (name, "b"), [(name, name), ("", name)]), console)
        terminal.print_parts(console, [(name, "")])
        assert COMMAND.search(stream.getvalue().replace("\r", "\n")) is None


def test_what_is_no_command_stays():
    text = '{"a": "b::c", "d": "#e [f] ## g"}\n:: '
    assert inert("std::x\n a::b # c ##\n") == "std::x\n a::b # c ##\n"
    assert inert(text) == text.replace("\n::", "\n\\u003a:")
    assert json.loads(inert(json.dumps("##[error]::x"))) == "##[error]::x"
    assert inert("::error::x ##[y]\n", colons_meant=True) == "::error::x \\u0023#[y]\n"
