"""A version of ONNX Runtime that answers: the harness as a process, asked through its pipes."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.onnxruntime import build
from tests.onnxruntime.builds import Build
from tests.onnxruntime.models import Sample

SECONDS: Final = 120.0
"""For one answer; the first one starts wine."""
RENEW: Final = 500
"""Queries after which a new process is started: what a session leaves behind stays in memory."""


class OnnxRuntime:
    """One version; a context manager. `options` are the device's (names in harness/main.cpp)."""

    def __init__(self, made: Build, options: Mapping[str, int] | None = None) -> None:
        libraries = build.libraries(made)
        program = build.harness()
        words = [f"{name}={value}" for name, value in (options or {}).items()]
        self._command = ["wine", str(program), f"Z:{libraries}".replace("/", "\\"), *words]
        self._environment = {**os.environ, **build.environment()}
        self._folder = tempfile.TemporaryDirectory(prefix="onnxruntime-")
        # Not a pipe: the first process of wine leaves it open in wine's services.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0
        self._read = b""

    def __enter__(self) -> OnnxRuntime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        self._errors.close()
        self._folder.cleanup()

    def ask(self, sample: Sample) -> Mapping[str, Any]:
        """The record of a sample (harness/main.cpp); "crash" where it ends the process, or does not end itself."""
        if self._process is not None and self._asked >= RENEW:
            self._end()
        process = self._process or self._start()
        self._asked += 1
        path = Path(self._folder.name) / "model.onnx"
        path.write_bytes(sample.model.SerializeToString())
        assert process.stdin is not None
        process.stdin.write("".join(f"{line}\n" for line in (*_lines(sample, path), "")).encode())
        process.stdin.flush()
        answer = self._line(process)
        if answer is None:
            self._end()
            return {"crash": "no answer", "events": []}
        record: dict[str, Any] = json.loads(answer)
        if "crash" in record:
            self._end()
        return record

    def _start(self) -> subprocess.Popen[bytes]:
        self._asked, self._read = 0, b""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=self._environment,
            bufsize=0,
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """The next line; None where the process ends or the time is up."""
        assert process.stdout is not None
        end = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if not selector.select(max(end - time.monotonic(), 0)):
                    return None
                data = os.read(process.stdout.fileno(), 1 << 20)
                if not data:
                    return None
                self._read += data
        line, self._read = self._read.split(b"\n", 1)
        return line

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _lines(sample: Sample, path: Path) -> Iterator[str]:
    """A query in the form of harness/main.cpp."""
    yield f"model {_word(f'Z:{path}')}"
    yield f"optimization {sample.optimization}"
    for key, value in sample.config.items():
        yield f"config {_word(key)} {_word(value)}"
    for name, size in sample.free_dimensions.items():
        yield f"free {_word(name)} {size}"
    if sample.run is None:
        return
    yield "run"
    for entry in sample.run:
        if entry.values is not None:
            yield " ".join(["integers", _word(entry.name), str(len(entry.values)), *map(str, entry.values)])
        else:
            sizes = [str(len(entry.shape)), *map(str, entry.shape)]
            yield " ".join(["input", _word(entry.name), str(entry.element_type), *sizes])
    for output in sample.outputs:
        yield f"output {_word(output)}"


def _word(text: str) -> str:
    return urllib.parse.quote(text, safe="/:._-")
