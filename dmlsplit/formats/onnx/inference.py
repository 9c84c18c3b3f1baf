"""onnx's shape inference at arm's length: C++ that a hostile model brings down, hence in a process of its own."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

import onnx

from dmlsplit.formats.limits import Limit

TIMEOUT: Final[float] = Limit.ONNX_INFERENCE_TIME.most
MAX_MEMORY: Final = Limit.ONNX_INFERENCE_MEMORY.most


class InferenceError(Exception):
    """Why there are no inferred shapes."""

    timed_out = False


class _Worker:
    """One process, started when first needed and again after it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def infer(self, model: bytes) -> bytes:
        with self._lock:
            process = self._running()
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            timer = threading.Timer(TIMEOUT, end)
            timer.daemon = True
            timer.start()
            try:
                answer = self._ask(process, model)
            finally:
                timer.cancel()
            if answer is None:
                self._process = None
                process.kill()
                code = process.wait()
                if late.is_set():
                    error = InferenceError(f"did not end within {TIMEOUT:.0f} seconds")
                    error.timed_out = True
                    raise error
                raise InferenceError(f"ended its process ({'signal' if code < 0 else 'status'} {abs(code)})")
        if not answer.startswith(b"\1"):
            raise InferenceError(answer[1:].decode("utf-8", "backslashreplace"))
        return answer[1:]

    def _ask(self, process: subprocess.Popen[bytes], model: bytes) -> bytes | None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(len(model).to_bytes(8, "little"))
            process.stdin.write(model)
            process.stdin.flush()
            head = process.stdout.read(8)
            size = int.from_bytes(head, "little")
            answer = process.stdout.read(size) if len(head) == 8 else b""
        except OSError:
            return None
        return answer if len(head) == 8 and len(answer) == size else None

    def _running(self) -> subprocess.Popen[bytes]:
        # After a fork the pipe is the parent's.
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            if not sys.executable:
                raise InferenceError("has no Python interpreter to run in")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("_worker.py")), str(MAX_MEMORY)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            with suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


_worker = _Worker()
atexit.register(_worker.close)


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types and shapes that onnx infers, data propagation included; InferenceError."""
    inferred = onnx.ModelProto()
    inferred.ParseFromString(_worker.infer(model.SerializeToString()))
    return inferred
