"""Exceptions: everything dmlsplit raises for a caller's or a user's mistake derives from DmlSplitError."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dmlsplit.system.printable import printable


class DmlSplitError(Exception):
    """Base class of the package's exceptions."""


class DescriptorError(DmlSplitError, ValueError):
    """A value that the C type of a descriptor's member cannot hold; the message starts with the member's path."""


class InputError(DmlSplitError, ValueError):
    """A file or text that cannot be read in its supposed format.

    `file`, `line` and `column` (1-based) are None if unknown; `str()` gives `file:line:column: message`.
    """

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = [str(part) for part in (self.file, self.line, self.column) if part is not None]
        return ":".join(place) + ": " + self.message if place else self.message

    def in_file(self, file: str) -> InputError:
        """Returns a copy of this error with `file` filled in; this error itself if it already names a file."""
        if self.file is not None:
            return self
        return InputError(self.message, file=file, line=self.line, column=self.column)


class GivenShapeError(InputError):
    """A shape that the caller gives for the tensor named `tensor`, and that contradicts the model."""

    def __init__(
        self,
        message: str,
        *,
        tensor: str = "",
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, file=file, line=line, column=column)
        self.tensor = tensor

    def in_file(self, file: str) -> InputError:
        if self.file is not None:
            return self
        return GivenShapeError(self.message, tensor=self.tensor, file=file, line=self.line, column=self.column)


class NotLoadedError(InputError):
    """A model that no version of ONNX Runtime loads; `node` is the path of the node at fault, "" if it is not known."""

    def __init__(self, message: str, *, node: str = "") -> None:
        super().__init__(message)
        self.node = node


class DirectMLWarning(UserWarning):
    """The emulated device did something that DirectML's documentation forbids, or for which it promises no outcome."""


class BindingError(DmlSplitError, ValueError):
    """Arrays or buffers that do not fit the compiled operator; raised before anything is written."""


class NotLegalizedError(DmlSplitError, ValueError):
    """A model that cannot be legalized for a target; `reasons` name the parts of the model at fault and the causes."""

    def __init__(self, reasons: Sequence[str], target: str) -> None:
        super().__init__(f"it cannot be legalized for {target}: {'; '.join(reasons)}")
        self.reasons = tuple(reasons)
        self.target = target

    def __reduce__(self) -> tuple[type[NotLegalizedError], tuple[tuple[str, ...], str]]:
        return type(self), (self.reasons, self.target)


class NativeError(DmlSplitError, RuntimeError):
    """The C core refused a plan, or the extension is missing; `status` is the C status code or None."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def fault_of(error: Exception) -> InputError:
    """Returns an InputError that describes in one line the exception, expected or not, that ended the reading or
    judging of a file; `error` itself if it is an InputError."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, OSError):
        return InputError(error.strerror or str(error))
    if isinstance(error, MemoryError):
        return InputError("there is not enough memory to judge it")
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):  # this error has no class of its own
        return InputError("a thread cannot be started: there is not enough memory, or there are too many processes")
    if isinstance(error, ImportError):  # numpy's message ends with the system's, after a page of advice
        lines = str(error).strip().splitlines()
        return InputError(f"a module cannot be loaded: {printable(lines[-1] if lines else 'no reason is given', 300)}")
    said = f": {error}" if str(error) else ""
    return InputError(f"it could not be judged: {type(error).__name__}{printable(said, 200)}")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Context manager: an OSError in the block is raised with `path`, the user's name for the file, in place of a
    temporary name or a missing one; an InputError with `path` if it names no file."""
    try:
        yield
    except InputError as error:
        raise error.in_file(path) from None
    except BrokenPipeError:
        raise  # not an error here: the reader of the output has closed it
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), path) from None
