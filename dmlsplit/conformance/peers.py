"""A command that answers questions: a line of JSON on its standard input, a line of JSON on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

from dmlsplit.conformance.suite import MOST_BYTES
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

END_SECONDS: Final = 5
"""Seconds that a command has to end when its standard input is closed."""


class NoAnswer(Exception):
    """A question without an answer that can be read; the message says why."""


class Peer:
    """A command, started when it is asked and again after it has ended; a context manager. Its standard error is this
    process's. `seconds` limit each answer."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(kill=kind is not None)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question, which has an id. NoAnswer; InputError where the command cannot be started."""
        again = self._process is not None
        try:
            return self._asked(question)
        except _Ended as ended:
            # It may have ended after its last answer, as a program does that answers one question.
            if not (again and ended.status == 0):
                raise
        return self._asked(question)

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(self._seconds, stop)
        timer.start()
        try:
            with contextlib.suppress(OSError):  # it has ended; reading its answer says so
                process.stdin.write(f"{json.dumps(question)}\n".encode())
                process.stdin.flush()
            line = process.stdout.readline(MOST_BYTES + 1)
        finally:
            timer.cancel()
        if late.is_set():
            self._end(kill=True)
            raise NoAnswer(f"no answer within {self._seconds:g} seconds")
        if not line.endswith(b"\n"):
            ended = len(line) <= MOST_BYTES
            status = self._end(kill=not ended)
            raise _Ended(status) if ended else NoAnswer(f"an answer longer than {MOST_BYTES:,} bytes")
        return self._read(line, question["id"])

    def _read(self, line: bytes, id: str) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != id:
            self._end(kill=True)  # what it says next would answer another question
            what = "is no JSON object" if not isinstance(answer, dict) else "has another id"
            raise NoAnswer(f"an answer that {what}: {printable(line.decode('utf-8', 'backslashreplace').rstrip(), 80)}")
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=os.name == "posix",  # all that it starts ends with it
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"it cannot be started: {reason}", file=self._command[0]) from None

    def _end(self, *, kill: bool) -> int | None:
        """Ends the command and returns its exit status; None where it was not running."""
        process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        if kill:
            _kill(process)
        try:
            return process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            return process.wait()
        finally:
            process.stdout.close()


class _Ended(NoAnswer):
    def __init__(self, status: int | None) -> None:
        self.status = status
        if status is not None and status < 0:
            how = f"by {signal.Signals(-status).name}" if -status in set(signal.Signals) else f"by signal {-status}"
        else:
            how = f"with status {status}"
        super().__init__(f"it ended {how} without an answer")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
