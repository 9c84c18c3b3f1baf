"""A DirectML build that answers: the harness as a process, asked through its pipes."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from dmlsplit import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, OperatorType, SplitOperatorDesc, TensorDesc

Answer: TypeAlias = int | None
"""CreateOperator's HRESULT, unsigned; None where the build ends the process."""


class HarnessError(Exception):
    """The harness itself failed: no answer of the library."""


class Library:
    """One DirectML build, its device created once; a context manager.

    `programs` is the directory that build.harness() made, `library` the shared object. `options` are the harness's:
    what the Direct3D device offers, and the minimum feature level asked for (names in harness/main.cpp).
    """

    def __init__(self, programs: Path, library: Path, options: Mapping[str, int] | None = None) -> None:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(programs)}
        settings = [f"{name}={value}" for name, value in (options or {}).items()]
        self._process = subprocess.Popen(
            [programs / "harness", library, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What the harness wrote and nobody read no longer matters.
        self._process.communicate()

    def answers(self, commands: Sequence[str]) -> list[Answer]:
        """The answers to lines that `create` made, in order."""
        if not commands:
            return []
        process = self._process
        with contextlib.suppress(BrokenPipeError):  # its reason is read below
            process.stdin.write("\n".join(commands) + "\n\n")
            process.stdin.flush()
        lines = [process.stdout.readline().rstrip("\n") for _ in commands]
        if not lines[-1]:
            raise HarnessError(process.stderr.read().strip() or f"exit status {process.wait()}")
        return [_answer(line) for line in lines]

    def judge(self, descs: Iterable[OperatorDesc]) -> list[Answer]:
        """CreateOperator's answers to descriptors."""
        return self.answers([create(desc) for desc in descs])


def _answer(line: str) -> Answer:
    if line.startswith("crash "):
        return None
    if line == "timeout":
        raise HarnessError("no answer within ten seconds")
    return int(line, 16)


def create(desc: OperatorDesc) -> str:
    """The harness's command for CreateOperator; harness/wire.h describes the form."""
    words = ["create"]
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
