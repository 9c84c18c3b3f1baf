"""Running the command line inside the process, and as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import dmlsplit as dml
from dmlsplit.cli import main

X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
GOOD = dml.dumps(dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 3)))
BAD = dml.dumps(dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 2)))  # split/axis-sizes-sum
WARNED = dml.dumps(dml.SplitOperatorDesc(X, [X, X], 2, output_count=1))  # split/outputs-beyond-count
INT64 = dml.dumps(
    dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.INT64, (6, 2)), 0, (2, 4))
)  # from level 4_1 on
OTHER = '{"Type": "DML_OPERATOR_FUTURE", "Desc": {}}'
MALFORMED = '{"Type": '

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX only")

HOSTILE = "a\x1b[31m[bold red]b[/]\r\n\u202ec\ud800"
HOSTILE_SHOWN = r"a\x1b[31m[bold red]b[/]\r\n\u202ec\ud800"


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Runs a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Result:
        status = main(args)
        return Result(status, *capsys.readouterr())

    return run


def command(*args: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "dmlsplit", *args]


def environment(**changes: str) -> dict[str, str]:
    """This package for a child process, installed or not."""
    root = str(Path(dml.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    return {**kept, "PYTHONPATH": root, "PYTHONUTF8": "1", **changes}


def on_terminal(tmp_path, *args: str, **changes: str) -> tuple[int, str]:
    """Runs a command line with a terminal of 80 columns as its output."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    env = environment(**{"TERM": "xterm-256color", "COLUMNS": "80", **changes})
    child = subprocess.Popen(command(*args), cwd=tmp_path, env=env, stdout=follower, stderr=follower)
    os.close(follower)
    out = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # Linux's way of saying that the other end is closed
            break
        if not data:
            break
        out += data
    os.close(leader)
    return child.wait(timeout=60), out.decode().replace("\r\n", "\n")


@pytest.fixture
def process(tmp_path):
    """Runs a command line as a process in the same empty folder."""

    def run(*args: str | bytes, env: dict[str, str] | None = None, **options: object) -> subprocess.CompletedProcess:
        captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run(
            command(*args), cwd=tmp_path, env=environment(**(env or {})), timeout=60, check=False, **captured
        )

    return run
