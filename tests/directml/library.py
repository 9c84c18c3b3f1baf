"""A DirectML build that answers: the harness as a process, asked through its pipes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from dmlsplit import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, OperatorType, SplitOperatorDesc, TensorDesc
from tests.directml.build import Harness

Answer: TypeAlias = int | None
"""CreateOperator's HRESULT, unsigned; None where the build ends the process."""

FAST_FAIL = 0xC0000409 & 0xFF
"""The status of a program that the library has ended with __fastfail, which no handler in the harness sees."""


STARTS = 3
"""Processes that may end before their first answer, one after another, until that is an error: under wine one in some
thousands does."""


class HarnessError(Exception):
    """The harness itself failed: no answer of the library."""


class SilentEnd(HarnessError):
    """The process ended without an answer or a word."""


class Library:
    """One DirectML build, its device created once; a context manager.

    `harness` is what build.harness() made, `library` the shared object or DLL. `options` are the harness's: what the
    Direct3D device offers, and the minimum feature level asked for (names in harness/main.cpp).
    """

    def __init__(self, harness: Harness, library: Path, options: Mapping[str, int] | None = None) -> None:
        self._harness = harness
        # Not a pipe: the first process of wine leaves it open in wine's services.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._command = harness.command(library, [f"{name}={value}" for name, value in (options or {}).items()])
        self._process = self._start()
        self._starts = 1  # since the last answer

    def _start(self) -> subprocess.Popen[str]:
        self._errors.seek(0)
        self._errors.truncate()
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **self._harness.environment},
            text=True,
        )

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end()
        self._errors.close()

    def _end(self) -> int:
        """Ends the process; what it wrote and nobody read no longer matters."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def answers(self, commands: Sequence[str]) -> list[str | None]:
        """The answers to commands, in order; None where the build ends the process."""
        answers: list[str | None] = []
        while len(answers) < len(commands):
            answers += self._ask(commands[len(answers) :])
        return answers

    def _ask(self, commands: Sequence[str]) -> list[str | None]:
        """The answers to all commands, or up to the crash that ended the process; then there is a new one."""
        if self._process.stdin.closed:  # an error before has ended it
            self._process = self._start()
            self._starts += 1
        process = self._process
        with contextlib.suppress(BrokenPipeError):  # its reason is read below
            process.stdin.write("\n".join(commands) + "\n\n")
            process.stdin.flush()
        answers: list[str | None] = []
        for _ in commands:
            try:
                answers.append(self._answer())
            except SilentEnd:
                if self._starts >= STARTS:
                    raise
                break  # the rest is asked again, of a new process
            self._starts = 1
            if answers[-1] is None and not self._harness.survives_crashes:
                self._end()
                self._process = self._start()
                break
        return answers

    def _answer(self) -> str | None:
        line = self._process.stdout.readline().rstrip("\n")
        if line == "timeout":
            raise HarnessError("no answer within ten seconds")
        if line:
            return None if line.startswith("crash ") else line
        status = self._end()
        if status == FAST_FAIL and not self._harness.survives_crashes:
            return None
        self._errors.seek(0)
        message = self._errors.read().strip()
        if not message:
            raise SilentEnd(f"exit status {status}")
        raise HarnessError(message)

    def judge(self, descs: Iterable[OperatorDesc]) -> list[Answer]:
        """CreateOperator's answers to descriptors."""
        answers = self.answers([f"create {operator(desc)}" for desc in descs])
        return [None if answer is None else int(answer, 16) for answer in answers]

    def explain(self, descs: Iterable[OperatorDesc]) -> list[tuple[Answer, str]]:
        """CreateOperator's answers with what the debug layer says; the option is debug-layer=1."""
        answers = self.answers([f"explain {operator(desc)}" for desc in descs])
        words = [(None, "", "") if answer is None else answer.partition(" ") for answer in answers]
        return [(None if code is None else int(code, 16), message) for code, _, message in words]

    def sessions(self, programs: Iterable[Sequence[str]]) -> list[list[str] | None]:
        """The answers to the steps of programs (harness/session.h), each on a device of its own."""
        answers = self.answers(["session " + " ; ".join(steps) for steps in programs])
        return [None if answer is None else answer.split(" ") for answer in answers]


def operator(desc: OperatorDesc) -> str:
    """A descriptor in the words of harness/wire.h."""
    words: list[str] = []
    if isinstance(desc, SplitOperatorDesc):
        words.append(str(int(OperatorType.SPLIT)))
        _tensor(desc.input_tensor, words)
        words.append(str(desc.output_count))
        _tensors(desc.output_tensors, words)
    elif isinstance(desc, JoinOperatorDesc):
        words += (str(int(OperatorType.JOIN)), str(desc.input_count))
        _tensors(desc.input_tensors, words)
        _tensor(desc.output_tensor, words)
    else:
        raise TypeError(f"{type(desc).__name__} is no descriptor")
    words.append(str(desc.axis))
    return " ".join(words)


def _tensors(tensors: Sequence[TensorDesc | None] | None, words: list[str]) -> None:
    if tensors is None:
        words.append("-")
        return
    words.append(str(len(tensors)))
    for tensor in tensors:
        if tensor is None:
            raise ValueError("an array holds its tensors by value: an entry cannot be null")
        _tensor(tensor, words)


def _tensor(tensor: TensorDesc | None, words: list[str]) -> None:
    if tensor is None:
        words.append("-")
        return
    words.append(str(int(tensor.type)))
    if tensor.desc is None:
        words.append("-")
    else:
        _buffer(tensor.desc, words)


def _buffer(desc: BufferTensorDesc, words: list[str]) -> None:
    if desc.total_tensor_size_in_bytes is None:
        raise ValueError("TotalTensorSizeInBytes exceeds its member")
    words.append(f"{int(desc.data_type)} {int(desc.flags)} {desc.dimension_count}")
    for numbers in (desc.sizes, desc.strides):
        words.append("-" if numbers is None else " ".join(map(str, (len(numbers), *numbers))))
    words.append(f"{desc.total_tensor_size_in_bytes} {desc.guaranteed_base_offset_alignment}")
