"""Worker processes that judge files: an executor that survives the end of one of its processes."""

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
"""The most calls that are submitted ahead of the first unread result."""


class Processes(Executor):
    """An executor whose processes are started with the first file, and restarted after a file that ended one of
    them."""

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
                resource_tracker.ensure_running()  # starting it unblocks SIGINT
        # Forking is unreliable if the process has threads or pipes of its own.
        return ProcessPoolExecutor(self._jobs, multiprocessing.get_context("spawn"), collect_rarely)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and self._pool is not None:
            # After an interrupt nobody wants the answers, and the next one may take long.
            for process in list((self._pool._processes or {}).values()):
                process.kill()
        self.shutdown()


@contextmanager
def _current_folder_ignored() -> Iterator[None]:
    """Context manager: Python processes started in the block do not import from the current folder, which may be
    untrusted. (multiprocessing starts them by `python -c`, which searches it first.)"""
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
    """Yields for each call, in order, its arguments and a function that returns its result or raises its error. The
    function is None if `here` is true for the call: the caller then makes it in this process. A call whose process
    ended is repeated in a separate process."""
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
    # Another call may have ended the process that this one shared.
    try:
        return alone.submit(function, *call).result()
    except BrokenExecutor:
        said = "it could not be judged: the process that read it was killed, probably because memory ran out"
        raise InputError(said) from None
