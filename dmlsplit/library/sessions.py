"""A version of ONNX Runtime as a process: the harness, which answers through pipes."""

from __future__ import annotations

import json
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from dmlsplit.library.catalogue import WINDOWS
from dmlsplit.library.errors import HarnessError
from dmlsplit.library.harness import harness
from dmlsplit.library.pipes import Pipes
from dmlsplit.system.records import record

SECONDS: Final = 120.0
"""Seconds for one answer; the first one includes the start of wine."""
RENEW: Final = 500
"""The number of queries after which a new process is started, since sessions leak memory."""


@record
class RunInput:
    """One input of a run: zeros, or `values` for an INT64 input of rank 1."""

    name: str
    element_type: int
    shape: Sequence[int]
    values: Sequence[int] | None = None


@record
class Query:
    """A session to create and, if `run` has inputs, to run. `model` is the bytes of a file, or its path.

    `directml`: the session has the DirectML execution provider.
    """

    model: bytes | Path
    optimization: int = 99
    config: Mapping[str, str] = field(default_factory=dict)
    free_dimensions: Mapping[str, int] = field(default_factory=dict)
    run: Sequence[RunInput] | None = None
    outputs: Sequence[str] = ()
    directml: bool = True


class OnnxRuntime:
    """One version, whose onnxruntime.dll and DirectML.dll are in `libraries`; a context manager.

    `options` are the device's (names in harness/sessions.cpp). Raises Unavailable if the harness cannot be run.
    """

    def __init__(self, libraries: Path, options: Mapping[str, int] | None = None) -> None:
        program = harness(WINDOWS, "sessions")
        words = [f"{name}={value}" for name, value in (options or {}).items()]
        folder = f"{program.root}{libraries.absolute()}".replace("/", "\\")
        self._command = [*program.program, folder, *words]
        self._environment = program.environment
        self._folder = tempfile.TemporaryDirectory(prefix="onnxruntime-")
        self._pipes: Pipes | None = None
        self._asked = 0

    def __enter__(self) -> OnnxRuntime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(kill=kind is not None)
        self._folder.cleanup()

    def ask(self, query: Query, seconds: float = SECONDS) -> dict[str, Any]:
        """Returns the record of a query as a dict (its form is in harness/sessions.cpp); it has the key "crash" if the
        query ended the process or did not return within `seconds`. Raises HarnessError if the harness fails."""
        if self._asked >= RENEW:
            self._end()
        if self._pipes is None:
            self._pipes, self._asked = Pipes(self._command, self._environment), 0
        self._asked += 1
        self._pipes.write("".join(f"{line}\n" for line in (*self._lines(query), "")))
        try:
            answer = self._pipes.line(seconds)
        except TimeoutError:
            self._end(kill=True)
            return {"crash": "no answer", "events": []}
        if answer is None:
            _, message = self._end()
            if message.startswith("harness: "):
                raise HarnessError(message.removeprefix("harness: "))
            return {"crash": "no answer", "events": []}
        record: dict[str, Any] = json.loads(answer)
        if "crash" in record:
            self._end()
        return record

    def _lines(self, query: Query) -> Iterator[str]:
        """Yields the query's lines in the form of harness/sessions.cpp."""
        if isinstance(query.model, Path):
            yield f"file {_word(f'Z:{query.model.absolute()}')}"
        else:
            path = Path(self._folder.name) / "model.onnx"
            path.write_bytes(query.model)
            yield f"model {_word(f'Z:{path}')}"
        yield f"optimization {query.optimization}"
        for key, value in query.config.items():
            yield f"config {_word(key)} {_word(value)}"
        for name, size in query.free_dimensions.items():
            yield f"free {_word(name)} {size}"
        if not query.directml:
            yield "cpu"
        if query.run is None:
            return
        yield "run"
        for entry in query.run:
            if entry.values is not None:
                yield " ".join(["integers", _word(entry.name), str(len(entry.values)), *map(str, entry.values)])
            else:
                sizes = [str(len(entry.shape)), *map(str, entry.shape)]
                yield " ".join(["input", _word(entry.name), str(entry.element_type), *sizes])
        for output in query.outputs:
            yield f"output {_word(output)}"

    def _end(self, kill: bool = False) -> tuple[int, str]:
        pipes, self._pipes = self._pipes, None
        if pipes is None:
            return 0, ""
        if kill:
            pipes.kill()
        return pipes.end()


def _word(text: str) -> str:
    return urllib.parse.quote(text, safe="/:._-")
