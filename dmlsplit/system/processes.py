"""Processes that judge files: an executor that survives the end of one of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from dmlsplit.system.errors import InputError
from dmlsplit.system.garbage import collect_rarely
from dmlsplit.system.signals import interrupts_blocked

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")
Call = TypeVar("Call", bound=tuple[Any, ...])
AHEAD: Final = 64
"""The most calls submitted ahead of the first unread result."""


class Processes(Executor):
    """Processes, started with the first file, and restarted after a file that ended one of them."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        while True:
            fresh = self._pool is None
            self._pool = self._pool or self._started()
            try:
                with interrupts_blocked(), _current_folder_ignored():  # processes are started here
                    return self._pool.submit(function, *args, **kwargs)
            except BrokenExecutor:
                if fresh:
                    raise
                self._pool.shutdown()
                self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        if os.name == "posix":
            from multiprocessing import resource_tracker

            with _current_folder_ignored():
                resource_tracker.ensure_running()  # its start unblocks SIGINT
        # A fork of a process with threads or pipes of its own is not reliable.
        return ProcessPoolExecutor(self._jobs, multiprocessing.get_context("spawn"), collect_rarely)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and self._pool is not None:
            # An interrupt: the answers are not wanted any more, and the next one may take long.
            for process in list((self._pool._processes or {}).values()):
                process.kill()
        self.shutdown()


@contextmanager
def _current_folder_ignored() -> Iterator[None]:
    """Context manager: Python processes started in the block do not import from the current folder, which may be
    untrusted: multiprocessing starts them by `python -c`, which looks there first."""
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def at_once(
    executor: Executor, function: Callable[P, T], calls: Iterable[Call], here: Callable[[Call], bool]
) -> Iterator[tuple[Call, Callable[[], T] | None]]:
    """Yields the arguments of each call, in order, with a function that returns the call's result or raises its error;
    None for a call for which `here` is true, which the caller makes in this process. A call whose process ended is
    repeated in a process of its own."""
    remaining = iter(calls)
    waiting: deque[tuple[Call, Future[T] | None]] = deque()
    with Processes(1) as alone:
        while True:
            for call in islice(remaining, AHEAD - len(waiting)):
                waiting.append((call, None if here(call) else _submitted(executor, function, call)))
            if not waiting:
                return
            call, future = waiting.popleft()
            yield call, None if here(call) else partial(_result, future, alone, function, call)


def _submitted(executor: Executor, function: Callable[..., T], call: tuple[Any, ...]) -> Future[T] | None:
    """Returns the future of `function(*call)`; None if the executor is broken, or a process cannot be started."""
    try:
        return executor.submit(function, *call)
    except (BrokenExecutor, OSError, MemoryError):
        return None


def _result(future: Future[T] | None, alone: Executor, function: Callable[..., T], call: tuple[Any, ...]) -> T:
    try:
        if future is not None:
            return future.result()
    except BrokenExecutor:
        pass
    # Another call ended the process that this one shared, which is not this one's fault.
    try:
        return alone.submit(function, *call).result()
    except BrokenExecutor:
        said = "it could not be judged: the process that read it was ended, as it is where memory is short"
        raise InputError(said) from None
