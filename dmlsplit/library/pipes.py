"""A program that answers line by line through pipes, with a limit on every wait."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

END_SECONDS = 10
"""Seconds that a program may take to end after the last question."""


class Pipes:
    """A running program; `environment` is added to this process's."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # Not a pipe: wine's first process leaves it open in wine's services.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **environment},
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._read = b""

    def write(self, text: str) -> None:
        """Writes text to the program; if the program has ended, this does nothing, and `line` reports it."""
        data = memoryview(text.encode())
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[self._input.write(data) :]

    def line(self, seconds: float) -> str | None:
        """Returns the program's next line, without its line end; None if the program has ended. Raises TimeoutError if
        no line comes within `seconds`."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if not selector.select(max(end - time.monotonic(), 0)):
                    raise TimeoutError
                data = os.read(self._output.fileno(), 1 << 20)
                if not data:
                    return None
                self._read += data
        line, self._read = self._read.split(b"\n", 1)
        return line.decode().removesuffix("\r")

    def end(self) -> tuple[int, str]:
        """Ends the program, by closing its input or else by force, and returns its exit status and standard error."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._output.close()
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        self._errors.seek(0)
        with self._errors:
            return status, self._errors.read().strip()

    def kill(self) -> None:
        """Kills the program."""
        self._process.kill()
