"""Processes that files are judged in: an executor that goes on where one of them ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from dmlsplit._signals import interrupts_blocked

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def executor_of(jobs: int) -> Iterator[Executor | None]:
    """Processes for files; None, this process, for one job."""
    if jobs < 2:
        yield None
        return
    with Processes(jobs) as executor:
        yield executor


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
                with interrupts_blocked():  # this is where processes are started
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
