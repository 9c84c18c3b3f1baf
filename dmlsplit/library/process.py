"""A DirectML build as a process: the harness, which answers through pipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.library.catalogue import Build
from dmlsplit.library.errors import HarnessError, SilentEnd
from dmlsplit.library.fetching import checked_folder
from dmlsplit.library.harness import Harness, harness
from dmlsplit.library.image import image
from dmlsplit.library.pipes import Pipes

Answer: TypeAlias = int | None
"""CreateOperator's HRESULT, unsigned; None if the build ended the process."""

FAST_FAIL: Final = 0xC0000409
"""The exception code of a process that the library ended with __fastfail; no handler in the harness sees it."""
STARTS: Final = 3
"""The most processes in a row that may end before their first answer: under wine, one in some thousands does."""
COMMAND_SECONDS: Final = 20
"""Seconds after which the harness gives up a command: timeoutSeconds in harness/platform.h."""
START_SECONDS: Final = 40
CRASH: Final = "crash "
TIMEOUT: Final = "timeout"
SAID: Final = " | "
"""Separates an answer from the message of the debug layer."""


class Library:
    """One DirectML build with its device, created once; a context manager.

    `harness` is from harness(), `library` the shared object or DLL. `options` are the harness's: the capabilities of
    the Direct3D device, and the minimum feature level (names in harness/main.cpp).
    """

    def __init__(self, harness: Harness, library: Path, options: Mapping[str, int] | None = None) -> None:
        self._harness = harness
        self._command = harness.command(library, [f"{name}={value}" for name, value in (options or {}).items()])
        self._pipes: Pipes | None = None
        self._starts = 0  # since the last answer

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and self._pipes is not None:
            self._pipes.kill()
        self.close()

    def close(self) -> None:
        """Ends the process, if one runs."""
        if self._pipes is not None:
            self._end()

    def _end(self) -> tuple[int, str]:
        pipes, self._pipes = self._pipes, None
        assert pipes is not None
        return pipes.end()

    def replies(self, commands: Sequence[str]) -> list[str]:
        """Returns the harness's reply to each command, in order: "crash ..." if the build ended the process, "timeout"
        if it did not answer in time."""
        answers: list[str] = []
        while len(answers) < len(commands):
            answers += self._ask(commands[len(answers) :])
        return answers

    def answers(self, commands: Sequence[str]) -> list[str | None]:
        """Returns the replies to commands, in order, None if the build ended the process. Raises HarnessError if it did
        not answer in time."""
        found = self.replies(commands)
        if TIMEOUT in found:
            raise HarnessError(f"no answer within {COMMAND_SECONDS} seconds")
        return [None if answer.startswith(CRASH) else answer for answer in found]

    def _ask(self, commands: Sequence[str]) -> list[str]:
        """Returns the replies to all commands or, if one ends the process, to those up to it; the next call starts a
        new process."""
        if self._pipes is None:
            self._pipes = Pipes(self._command, self._harness.environment)
            self._starts += 1
        self._pipes.write("\n".join(commands) + "\n\n")
        answers: list[str] = []
        for i in range(len(commands)):
            try:
                answers.append(self._reply(len(commands) - i))
            except SilentEnd:
                if self._starts >= STARTS:
                    raise
                break  # a new process gets the remaining commands
            self._starts = 1
            ended = answers[-1] == TIMEOUT or answers[-1].startswith(CRASH)
            if self._pipes is None or (ended and not self._harness.survives_crashes):
                if self._pipes is not None:
                    self._end()
                break
        return answers

    def _reply(self, remaining: int) -> str:
        assert self._pipes is not None
        try:
            # the Linux harness answers after it has executed all commands
            line = self._pipes.line(START_SECONDS + COMMAND_SECONDS * remaining)
        except TimeoutError:
            self._pipes.kill()
            self._end()
            return TIMEOUT
        if line:
            return line
        status, message = self._end()
        if status == FAST_FAIL & 0xFF and not self._harness.survives_crashes:
            return f"{CRASH}{FAST_FAIL:08X}"
        if not message:
            raise SilentEnd(f"exit status {status}")
        raise HarnessError(message)

    def judge(self, descs: Iterable[AnyOperatorDesc | OperatorDesc]) -> list[Answer]:
        """Returns, for each descriptor in order, the HRESULT of CreateOperator; None if it ended the process."""
        answers = self.answers([f"create {image(desc)}" for desc in descs])
        return [None if answer is None else int(answer, 16) for answer in answers]

    def explain(self, descs: Iterable[AnyOperatorDesc | OperatorDesc]) -> list[tuple[Answer, str]]:
        """Returns, for each descriptor in order, the HRESULT of CreateOperator (None if it ended the process) and the
        messages of the debug layer, which needs the option debug-layer=1."""
        answers = self.answers([f"explain {image(desc)}" for desc in descs])
        words = [(None, "", "") if answer is None else answer.partition(SAID) for answer in answers]
        return [(None if code is None else int(code, 16), message) for code, _, message in words]

    def sessions(self, programs: Iterable[Sequence[str]]) -> list[list[str] | None]:
        """Returns, for each session in order, the harness's answers to its steps (harness/session.h); None if it ended
        the process. Each session has a device of its own."""
        answers = self.answers(["session " + " ; ".join(steps) for steps in programs])
        return [None if answer is None else answer.split(" ") for answer in answers]


def opened(build: Build, options: Mapping[str, int] | None = None) -> Library:
    """Returns the library of a DirectML build that was added, ready to be asked; `options` are passed to the
    harness. Raises NotAdded if the build was not added, Unavailable if it cannot be run here."""
    return Library(harness(build.platform), checked_folder(build) / build.platform.library, options)
