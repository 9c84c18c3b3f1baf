"""A command that answers questions: a line of JSON on its standard input, a line of JSON on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Any, Final

from dmlsplit.conformance.suite import MOST_BYTES, read_json
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

END_SECONDS: Final = 5
"""Seconds that a command has to end after its standard input is closed."""
KILLED_SECONDS: Final = 1
"""Seconds that the pipes of a killed command have to close."""


class NoAnswer(Exception):
    """Raised for a question without a readable answer; the message says why."""


class Peer:
    """A command, which is started for a question if it is not running; a context manager. It inherits this process's
    standard error. `seconds` limit each answer."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._talk: _Talk | None = None

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(kill=kind is not None)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Returns the command's answer to a question, which has an id. Raises NoAnswer if there is none in time,
        InputError if the command cannot be started."""
        again = self._process is not None
        try:
            return self._asked(question)
        except _Ended as ended:
            # It may have ended after its last answer: some programs answer only one question.
            if not (again and ended.status == 0):
                raise
        return self._asked(question)

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        self._talk = _Talk(process.stdin, process.stdout, f"{json.dumps(question)}\n".encode())
        self._talk.start()
        try:
            line = self._talk.heard.get(timeout=self._seconds)
        except queue.Empty:
            self._end(kill=True)
            raise NoAnswer(f"no answer within {self._seconds:g} seconds") from None
        if not line.endswith(b"\n"):
            ended = len(line) <= MOST_BYTES
            status = self._end(kill=not ended)
            raise _Ended(status) if ended else NoAnswer(f"an answer longer than {MOST_BYTES:,} bytes")
        return self._read(line, question["id"])

    def _read(self, line: bytes, id: str) -> dict[str, Any]:
        try:
            answer = read_json(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != id:
            self._end(kill=True)  # its next output would answer another question
            what = "is not a JSON object" if not isinstance(answer, dict) else "has a different id"
            raise NoAnswer(f"an answer that {what}: {printable(line.decode('utf-8', 'backslashreplace').rstrip(), 80)}")
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=os.name == "posix",  # so that everything it starts ends with it
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"it cannot be started: {reason}", file=self._command[0]) from None

    def _end(self, *, kill: bool) -> int | None:
        """Ends the command, by force if `kill` or if it does not end in time, and returns its exit status; None if it
        was not running."""
        process, self._process = self._process, None
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        if kill:
            _kill(process)
        # Processes that it started in other sessions may hold the pipes open: the waiting thread is then abandoned.
        over = self._talk is None or self._talk.is_over(KILLED_SECONDS if kill else END_SECONDS)
        if over:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            return process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            return process.wait()
        finally:
            if over:
                process.stdout.close()


class _Talk(threading.Thread):
    """Writes a question and reads the first line of output into `heard`; b"" if there is none. Either may take for
    ever.

    Both happen concurrently: a command that answers before it has read everything, as cat does, fills its pipe and
    blocks.
    """

    def __init__(self, to: IO[bytes], back: IO[bytes], question: bytes) -> None:
        super().__init__(daemon=True)
        self._to, self._back, self._question = to, back, question
        self.heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def run(self) -> None:
        asking = threading.Thread(target=self._ask, daemon=True)
        asking.start()
        line = b""
        with contextlib.suppress(OSError):
            line = self._back.readline(MOST_BYTES + 1)
        asking.join()  # the next question must not begin inside this one
        self.heard.put(line)

    def _ask(self) -> None:
        with contextlib.suppress(OSError):  # the command has ended; reading its answer reports that
            self._to.write(self._question)
            self._to.flush()

    def is_over(self, seconds: float) -> bool:
        """Waits at most `seconds`, and returns True if the question was written and its answer was read."""
        self.join(seconds)
        return not self.is_alive()


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
