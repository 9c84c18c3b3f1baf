"""JSON without an end, or with one too far away: one line that says so, in bounded memory, by every command."""

from __future__ import annotations

import os
import subprocess

import pytest

from dmlsplit.formats.limits import Limit
from tests.cli.conftest import BAD, GOOD, command, environment, posix

pytestmark = [posix, pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")]
resource = pytest.importorskip("resource")

MEMORY = 1 << 30
"""Address space: some imports take a quarter of it, a text of the longest another."""
TOO_LONG = f"is longer than {Limit.JSON_TEXT.most} bytes, the limit for JSON"


@pytest.fixture
def bounded(tmp_path):
    def run(*arguments, stdin=subprocess.DEVNULL):
        return subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=environment(OPENBLAS_NUM_THREADS="1"),
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )

    return run


@pytest.fixture
def endless():
    """A pipe that gives `[1,` without end."""
    with subprocess.Popen(["yes", "[1,"], stdout=subprocess.PIPE) as child:
        yield child.stdout
        child.kill()


ALL = ["check", "levels", "legalize", "plan", "draw"]


@pytest.mark.parametrize("name", ["check", *(pytest.param(name, marks=pytest.mark.slow) for name in ALL[1:])])
def test_a_pipe(bounded, endless, name):
    result = bounded(name, "-", stdin=endless)
    assert result.returncode == 2
    assert result.stderr == f"dmlsplit: <stdin>: the text {TOO_LONG}\n"


def test_a_line(bounded):
    """Lines end at one without end, and what stands before it is judged."""
    endless = f"printf '%s\\n' '{GOOD}'; cat /dev/zero"
    with subprocess.Popen(["sh", "-c", endless], stdout=subprocess.PIPE) as child:
        result = bounded("check", "-", stdin=child.stdout)
        child.kill()
    assert result.returncode == 2
    assert result.stderr == f"dmlsplit: <stdin>: the text {TOO_LONG}\n"


def test_many_lines_are_longer_than_a_text_may_be(bounded, tmp_path):
    blank = " " * (Limit.JSON_TEXT.most // 2)
    (tmp_path / "long.jsonl").write_text(f"{GOOD}\n{blank}\n{blank}\n{BAD}\n{blank}\n{GOOD}\n")
    result = bounded("check", "long.jsonl")
    assert (result.returncode, result.stderr) == (1, "")
    assert "3 operators: 2 ok, 1 not ok; 1 error" in result.stdout
