"""Reading a model in a process of its own, whose memory and time are limited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_READ = """
import resource, sys
from dmlsplit.errors import InputError
from dmlsplit.formats import onnx
from dmlsplit.formats.onnx import inference
try:
    print(len(onnx.read(sys.argv[1])), "splits")
except InputError as error:
    print(error)
inference._worker.close()
scale = 1 if sys.platform == "darwin" else 1024
for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
    print(resource.getrusage(who).ru_maxrss * scale)
"""


class Reading(NamedTuple):
    answer: str
    memory: int
    """The most bytes that the process and that of its shape inference had."""


def read_alone(path, made=None, seconds=120):
    """Reads a model; `made` is written to `path` first. The time is what a hang would take, not what reading does."""
    if made is not None:
        path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    command = [sys.executable, "-c", _READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    *answer, own, worker = done.stdout.splitlines()
    assert len(answer) == 1
    return Reading(answer[0], int(own) + int(worker))
