"""The harness's process, as any program may behave that is asked through pipes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dmlsplit.library import process
from dmlsplit.library.errors import HarnessError, SilentEnd
from dmlsplit.library.harness import Harness
from dmlsplit.library.process import Library

PROGRAM = """
import sys, time
for line in sys.stdin:
    word = line.strip()
    if word == "crash":
        print("crash C0000005", flush=True)
        sys.exit(1)
    if word == "fast fail":
        sys.exit(0xC0000409 & 0xFF)
    if word == "hang":
        time.sleep(600)
    if word == "silent":
        sys.exit(3)
    if word == "wrong":
        sys.exit("harness: no such command")
    if word:
        print(word.upper(), flush=True)
"""


@pytest.fixture
def library(monkeypatch):
    """A program that ends with a crash, as those under wine do."""
    monkeypatch.setattr(process, "START_SECONDS", 0.7)
    monkeypatch.setattr(process, "COMMAND_SECONDS", 0.1)
    harness = Harness((sys.executable, "-c", PROGRAM), "", {}, survives_crashes=False)
    with Library(harness, Path("library")) as asked:
        yield asked


def test_a_crash_ends_the_process_and_another_goes_on(library):
    assert library.replies(["a", "crash", "b", "fast fail", "c"]) == ["A", "crash C0000005", "B", "crash C0000409", "C"]
    assert library.answers(["a", "crash", "b"]) == ["A", None, "B"]


def test_what_does_not_answer_is_ended(library):
    start = time.monotonic()
    assert library.replies(["a", "hang", "b"]) == ["A", "timeout", "B"]
    assert time.monotonic() - start < 60
    with pytest.raises(HarnessError, match="no answer within"):
        library.answers(["hang"])


def test_a_process_that_ends_without_a_word_is_started_again_and_then_an_error(library):
    with pytest.raises(SilentEnd):
        library.replies(["silent"])


def test_what_the_harness_complains_of(library):
    with pytest.raises(HarnessError, match="harness: no such command"):
        library.replies(["wrong"])
    assert library.replies(["a"]) == ["A"]
