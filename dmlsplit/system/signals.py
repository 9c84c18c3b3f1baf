"""Signals that ask the process to end: raised as exceptions while a command runs, and deferred while files are renamed
and modules imported."""

from __future__ import annotations

import importlib._bootstrap as import_system
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, Final

# SIGINT comes last, because it raises outside commands: the other handlers are back in place by then.
_NUMBERS: Final = tuple(
    [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK", "SIGINT") if hasattr(signal, name)]
)


class Terminated(BaseException):
    """Raised when a signal such as SIGTERM arrives; its only argument is the signal's number."""


class Interrupted(KeyboardInterrupt):
    """Raised when SIGINT arrives while a command runs."""


@contextmanager
def raised() -> Iterator[None]:
    """Context manager that raises signals as exceptions in the block, so that work in progress is undone: Terminated,
    or Interrupted for SIGINT.

    The block then ends with that exception, whatever is raised or caught in between. While one is propagating no other
    is raised: `timeout` and a closing terminal send a signal twice, and the second must not interrupt the cleanup.
    Signals that are ignored (as under nohup) or handled by other code are left alone. A signal during an import raises
    after the import.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can set handlers
        return
    came: list[int] = []
    on_its_way: weakref.ref[BaseException] | None = None

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal on_its_way
        came.append(number)
        if on_its_way is not None and on_its_way() is not None:
            return
        error = _ending(number)
        on_its_way = weakref.ref(error)
        try:
            raise error
        finally:
            del error  # otherwise its traceback would keep it alive

    defaults = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in _NUMBERS if (handler := signal.getsignal(number)) in defaults}
    try:
        for number in before:
            signal.signal(number, end)
        with _imports_uninterrupted():
            yield
    except BaseException:
        if not came:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise _ending(came[0])


def _ending(number: int) -> Terminated | Interrupted:
    return Interrupted() if number == signal.SIGINT else Terminated(number)


@contextmanager
def held_back() -> Iterator[None]:
    """Context manager that defers signals to the end of the block, where they are delivered. For short blocks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: handler
        for number in _NUMBERS
        # None: the handler was not set from Python and cannot be restored
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    try:
        for number in before:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _imports_uninterrupted() -> Iterator[None]:
    """Context manager that defers signals in the block during the first import of a module and all that it imports.

    An extension's initialization calls Python code, and rarely expects that code to raise: onnx's then ends the process
    by SIGABRT, or by SIGSEGV if its module is freed before it is initialized. The import system itself swallows
    exceptions raised within its callbacks. `import` and importlib.import_module both call the one function that is
    replaced here, for modules that are not imported yet.
    """
    system: Any = import_system
    find_and_load = system._find_and_load
    system._find_and_load = _holding_back(find_and_load)
    try:
        yield
    finally:
        system._find_and_load = find_and_load


def _holding_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that calls `function` with signals deferred. Nested calls in the main thread set no handlers
    again, because that takes longer than many imports."""
    is_deferring = False

    @wraps(function)
    def call(*args: Any) -> Any:
        nonlocal is_deferring
        if is_deferring or threading.current_thread() is not threading.main_thread():
            return function(*args)
        is_deferring = True
        try:
            with held_back():
                return function(*args)
        finally:
            is_deferring = False

    return call


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Context manager: processes and threads started in the block never get SIGINT. For short blocks.

    A terminal sends SIGINT to all processes of a command; the command itself ends its worker processes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_by(number: int) -> None:
    """Ends the process by the signal's default action, so that its parent sees which signal ended it."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
