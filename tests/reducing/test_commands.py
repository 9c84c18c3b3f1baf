"""A command as the check: its words, its status, and the time that it gets."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dmlsplit.reducing.commands import CommandCheck
from dmlsplit.reducing.weights import opened
from dmlsplit.system.errors import InputError
from tests.cli.conftest import posix
from tests.models import text

MODEL = text("(float[2,6] x) => (float[2,6] o) { o = Relu(x) }")


def asked(program, *words, timeout=60):
    """What a check says of MODEL, and how many models it could not tell of."""
    with (
        opened(MODEL, ()) as original,
        CommandCheck.of([sys.executable, "-c", program, *words], original, 0, timeout) as check,
    ):
        found = check(MODEL, {})
        return found, check.unclear


def _runs(pid):
    """Whether a process of Linux runs: it exists, and has not ended unobserved."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.parametrize(
    ("status", "found"), [(1, (True, 0)), (0, (False, 0)), (2, (False, 1)), (255, (False, 1))], ids=str
)
def test_the_status_is_the_answer(status, found):
    assert asked(f"raise SystemExit({status})") == found


@pytest.mark.parametrize(("words", "place"), [((), 1), (("{}", "end"), 1), (("first", "--model={}"), 2)])
def test_where_the_path_of_the_model_goes(words, place):
    program = f"import sys; sys.exit(open(sys.argv[{place}].removeprefix('--model='), 'rb').read(4) != b'')"
    assert asked(program, *words) == (True, 0)


@posix
@pytest.mark.slow
def test_what_does_not_end_is_ended_with_all_that_it_started(tmp_path):
    program = (
        f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )
    began = time.monotonic()
    assert asked(program, timeout=20) == (False, 1)
    assert time.monotonic() - began < 300
    if Path("/proc/self/stat").exists():
        child = int((tmp_path / "pid").read_text())
        # A process that is killed ends when the system gets to it.
        while _runs(child) and time.monotonic() - began < 300:
            time.sleep(0.05)
        assert not _runs(child)


def test_a_command_that_cannot_be_run(tmp_path):
    with (
        opened(MODEL, ()) as original,
        CommandCheck.of([str(tmp_path / "none")], original, 0, 1) as check,
        pytest.raises(InputError, match="cannot be run"),
    ):
        check(MODEL, {})


def test_the_folder_is_removed():
    with opened(MODEL, ()) as original, CommandCheck.of(["x"], original, 0, 1) as check:
        folder = Path(check.folder)
        assert folder.is_dir()
    assert not folder.exists()
