"""Processes that files are judged in: an executor that goes on where one of them ends."""

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
from dmlsplit.system.signals import interrupts_blocked

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")
Call = TypeVar("Call", bound=tuple[Any, ...])
AHEAD: Final = 64
"""Calls that an executor gets before the result of the first of them is waited for."""


class Processes(Executor):
    """Processes, started when the first file comes, and anew after a file that ended one of them."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        while True:
            fresh = self._pool is None
            self._pool = self._pool or self._started()
            try:
                with interrupts_blocked(), _current_folder_ignored():  # this is where processes are started
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
                resource_tracker.ensure_running()  # where it is started, it lets SIGINT through again
        # A copy of a process that has threads or pipes of its own is not to be trusted.
        return ProcessPoolExecutor(self._jobs, multiprocessing.get_context("spawn"))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and self._pool is not None:
            # An interrupt: nobody wants the answers any more, and the next one may be long in coming.
            for process in list((self._pool._processes or {}).values()):
                process.kill()
        self.shutdown()


@contextmanager
def _current_folder_ignored() -> Iterator[None]:
    """Lets Python processes that are started in the block import nothing from the current folder, which may be
    anybody's: multiprocessing starts them by `python -c`, which looks there first."""
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
    """The arguments of each call, in order, and what gives its result or raises its error; None for a call that is to
    be made `here`, in this process. A call whose process ended is made once more, in a process that has no other."""
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
    """None where the executor is broken, or a process cannot be started."""
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
    # Another call has ended the process that this one was in; that is not to be this one's fault.
    try:
        return alone.submit(function, *call).result()
    except BrokenExecutor:
        said = "it could not be judged: the process that read it was ended, as it is where memory is short"
        raise InputError(said) from None
