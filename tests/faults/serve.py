"""Runs commands in forks of a process that has imported everything, with one of their calls to the system changed.

A request is a line of JSON: the command, the folder whose files count, the number of the call and the fault, see
faults.c. The answer is one, too: the exit status (negative: the signal), how many calls there were, the name of the
changed one, and what was written to standard error.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import sys
from dataclasses import replace
from typing import Any

import onnx

from dmlsplit.cli import main
from dmlsplit.library import fetching
from dmlsplit.library.catalogue import onnxruntime_builds
from dmlsplit.models import inference
from dmlsplit.native import core
from dmlsplit.reducing import reduction

PROFILE = core.Profile(0, 0, 4096, core.NEVER, 0, "pages", call=7, ahead=64, streamed_height=1, cached_height=2)
LIBRARY = {"libonnxruntime.so": b"a library" * 1000, "LICENSE": b"its terms"}


def add_library(arguments: list[str]) -> int:
    """`dmlsplit library add` of a package that is here: no packages are fetched."""
    build = onnxruntime_builds()[0]
    hashes = {name: hashlib.sha256(LIBRARY.get(name, b"")).hexdigest() for name in build.files}
    fetching._packaged = lambda build, folder: (
        (name, io.BytesIO(LIBRARY.get(name, b""))) for name in (*hashes, "LICENSE")
    )  # type: ignore[assignment]
    from dmlsplit.cli import library

    library._build = lambda version: replace(build, files=hashes)  # type: ignore[assignment]
    return main(arguments)


def run(arguments: list[str]) -> int:
    return add_library(arguments) if arguments[0] == "library" else main(arguments)


def answers_kept() -> None:
    """Shape inference and onnx's evaluator are processes; a fork has the answers that its parent got."""
    infer, known = inference._worker.infer, {}
    by_onnx: Any = reduction.by_onnx
    computed: dict[bytes, Any] = {}

    def computed_before(model: onnx.ModelProto, inputs: Any) -> Any:
        key = model.SerializeToString(deterministic=True)
        if key not in computed:
            computed[key] = by_onnx(model, inputs)
        return computed[key]

    def from_memory(request: bytes, seconds: float) -> bytes:
        if request not in known:
            known[request] = infer(request, seconds)
        return known[request]

    inference._worker.infer = from_memory  # type: ignore[method-assign]
    reduction.by_onnx = computed_before


def answer(request: dict[str, Any], faults: ctypes.CDLL) -> dict[str, Any]:
    reading, writing = os.pipe()
    said, saying = os.pipe()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0), os.dup2(null, 1), os.dup2(saying, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        faults.faults_set(os.fsencode(request["folder"]), request["at"], request["fault"])
        status = run(request["command"])
        count, name = faults.faults_count(), faults.faults_name()
        faults.faults_set(b"", 0, 0)
        sys.stderr.flush()
        os.write(writing, json.dumps([status, count, name.decode()]).encode())
        os._exit(0)
    os.close(writing), os.close(saying)
    with open(reading, "rb") as answered, open(said, "rb") as complaints:
        found, complained = answered.read(), complaints.read()
    _, ended = os.waitpid(pid, 0)
    status, count, name = json.loads(found) if found else (os.waitstatus_to_exitcode(ended), 0, "")
    return {"status": status, "count": count, "name": name, "said": complained.decode("utf-8", "replace")}


def serve() -> None:
    faults = ctypes.CDLL(None)
    faults.faults_set.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
    faults.faults_count.restype, faults.faults_name.restype = ctypes.c_long, ctypes.c_char_p
    core.measure_profile = lambda: PROFILE
    answers_kept()
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        os.chdir(request["folder"])
        found = {"status": run(request["command"])} if request["at"] < 0 else answer(request, faults)
        os.write(answers, json.dumps(found).encode() + b"\n")


if __name__ == "__main__":
    serve()
