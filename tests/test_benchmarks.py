"""The programs in benchmarks/ run, on a case or two; what they measure is not looked at."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dmlsplit.native import core

FOLDER = Path(__file__).parents[1] / "benchmarks"
NO_TIME = ("--seconds", "0.01")

pytestmark = pytest.mark.slow


def output_of(program, *arguments, statuses=(0,)):
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    command = [sys.executable, str(FOLDER / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode in statuses, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--isa", "any"),
        ("--kernel", "scalar"),
        ("--profile", "intel-early"),
        ("--threads", "2"),
        ("--clock", "cpu"),
    ],
    ids=" ".join,
)
def test_cases(tmp_path, options):
    path = tmp_path / "cases.json"
    said = output_of("run.py", "--cases", "f1,a4,join-d6", "--peers", "none", *NO_TIME, "--json", str(path), *options)
    rows = json.loads(path.read_text("utf-8"))["cases"]
    assert [row["name"] for row in rows] == ["f1", "a4", "join-d6"]
    for row in rows:
        assert not [name for name, result in row["results"].items() if "wrong" in result]
        assert row["results"]["dmlsplit"]["ns"] > 0
        assert f"| {row['name']} {row['title']} |" in said


def test_read_back_and_several_processes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results -->\nold\n<!-- /results -->\nafter\n")
    options = ("--cases", "a4", "--peers", "none", *NO_TIME, "--read", "--processes", "2", "--markdown", str(page))
    output_of("run.py", *options)
    text = page.read_text("utf-8")
    assert text.startswith("before\n<!-- results -->\n")
    assert text.endswith("<!-- /results -->\nafter\n")
    assert "median of 2 processes" in text
    assert "old" not in text.split("\n")


@pytest.mark.skipif(not {"avx2"} & {*core.cpu_features()}, reason="one regime of stores only")
def test_profiles():
    said = output_of("profile.py", "--most", "300000", *NO_TIME)
    assert "| contiguous | 262144 |" in said
    assert "send all of this" in said


@pytest.mark.skipif(not (FOLDER.parent / ".git").exists(), reason="no repository")
@pytest.mark.skipif(not {"avx2"} & {*core.cpu_features()}, reason="one instruction set only")
def test_against(tmp_path):
    """A commit, and a profile; the status depends on times."""
    options = ("--rounds", "1", "--cases", "a4,d7", "--builds", str(tmp_path), *NO_TIME)
    said = output_of("against.py", "HEAD", "--isa", "ssse3", *options, statuses=(0, 1))
    assert said.count('"isa": "ssse3", ') == 2
    said += output_of("against.py", "--profile", "intel", *options, statuses=(0, 1))
    assert said.count("\n2 cases, geometric mean of B/A ") == 2
    assert said.count("\n| d7 |") == 2
    assert "WRONG" not in said


def test_neighbours_and_kernels():
    assert "16 points in 1 series; 0 wrong" in output_of("sweep.py", "--quick", "--series", "outputs of width 5, u1")
    assert "| channels | 1 | scalar |" in output_of("kernels.py", "--cases", "e2", *NO_TIME)


def test_drawn_cases():
    drawn = ("drawn.py", "--count", "2", "--peers", "none", *NO_TIME)
    assert "2 cases, " in output_of(*drawn)


def test_calls():
    assert "| bound dispatch |" in output_of("calls.py", "--seconds", "0.1")


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config on the path")
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake on the path")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path")
@pytest.mark.thorough
def test_ways():
    said = output_of("ways.py", "--cases", "small rows,one small*", "--seconds", "0.01", statuses=(0, 1))
    assert [line.split(" | ")[0] for line in said.splitlines()[2:]] == ["| small rows", "| one small split"]
