"""A command as the check: it gets the path of a model, and its exit status says whether that is still wrong."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import onnx

from dmlsplit.descriptors.dims import Shape
from dmlsplit.reducing.references import References
from dmlsplit.reducing.weights import Original, Seed, seeds_for
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

PLACE: Final = "{}"
"""The placeholder for the model's path in a command."""
_WRONG: Final = 1


@dataclass(slots=True)
class CommandCheck:
    """A command used as the check. `unclear` counts the models that it could not judge."""

    words: Sequence[str]
    timeout: float
    folder: str
    original: Original
    references: References
    seed: int
    random: bool = True
    """True if the command gets models with random weights; False if it gets the original's."""
    unclear: int = 0

    @classmethod
    @contextmanager
    def of(cls, words: Sequence[str], original: Original, seed: int, timeout: float) -> Iterator[CommandCheck]:
        """Context manager that yields the check by the command `words`; its temporary folder for models exists inside
        the block. Raises InputError if there are no words."""
        if not words:
            raise InputError("the check is an empty command")
        with tempfile.TemporaryDirectory(prefix="dmlsplit-why-", ignore_cleanup_errors=True) as folder:
            yield cls(words, timeout, folder, original, References(folder, original), seed)

    def begin(self, source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> None:
        """Runs the command for the original model, then for the original with random weights, and sets `random` if that
        is still wrong. Raises InputError if the original is not wrong."""
        path = os.path.abspath(source) if isinstance(source, str | os.PathLike) else self._written(source)
        status = self._status(path)
        if status != _WRONG:
            said = "did not end in time" if status is None else f"ends with status {status}"
            raise InputError(f"the check {said} for the model itself; it must report a wrong model with status 1")
        self.random = self(self.original.model, {})

    def seeds(self, model: onnx.ModelProto) -> dict[int, Seed]:
        """Returns the seeds of the random weights with which the command gets a model, by the tensors' indices; {} if
        it gets the original weights."""
        return seeds_for(model, self.seed) if self.random else {}

    def __call__(self, model: onnx.ModelProto, shapes: Mapping[str, Shape], /) -> bool:
        try:
            path = self._written(self.references.with_weights(model, self.seeds(model)))
        except InputError:
            self.unclear += 1
            return False
        status = self._status(path)
        self.unclear += status not in (0, _WRONG)
        return status == _WRONG

    def _written(self, model: bytes | onnx.ModelProto) -> str:
        path = os.path.join(self.folder, "model.onnx")
        with open(path, "wb") as stream:
            stream.write(model if isinstance(model, bytes) else model.SerializeToString())
        return path

    def _status(self, path: str) -> int | None:
        """Returns the exit status of the command for the model at `path`; None if it did not end in time. Raises
        InputError if it cannot be run."""
        command = [word.replace(PLACE, path) for word in self.words]
        if not any(PLACE in word for word in self.words):
            command.append(path)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            raise InputError(f"the check cannot be run: {printable(self.words[0])}: {error.strerror}") from None
        try:
            return process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills a command and all processes that it has started, and waits for it."""
    with suppress(OSError):
        if os.name == "posix":
            import signal

            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
