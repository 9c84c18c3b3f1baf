"""Reading a model in a process of its own, whose memory and time are limited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_READ = """
import re, resource, sys
from dmlsplit.system.errors import InputError
from dmlsplit.formats import onnx
from dmlsplit.models import inference
try:
    print(len(onnx.read(sys.argv[1])), "splits")
except InputError as error:
    print(error)
inference._worker.close()
scale = 1 if sys.platform == "darwin" else 1024
try:
    # Linux counts what the process that started this one had for its own in ru_maxrss.
    print(int(re.search("VmHWM:[^0-9]*([0-9]+) kB", open("/proc/self/status").read())[1]) * 1024)
except OSError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * scale)
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
