"""Chooses the number of threads of a copy."""

from __future__ import annotations

import os
from typing import Final, Literal, TypeAlias

from dmlsplit.system.errors import InputError
from dmlsplit.system.integers import integer, parsed_integer
from dmlsplit.system.printable import printable

NumThreads: TypeAlias = int | Literal["auto"] | None

VARIABLE: Final = "DMLSPLIT_NUM_THREADS"
AUTO_BYTES: Final = 32 << 20
""""auto" uses several threads from this many bytes copied on: waking one costs some 50 us, copying this much some 1500.
"""

MOST_THREADS: Final = 64
"""The most threads of one copy, the limit of dmlsplit_split_threads in dmlsplit.h."""


def thread_count(num_threads: NumThreads, copied_bytes: int) -> int:
    """Returns the number of threads, 1 to MOST_THREADS, for a copy of `copied_bytes`.

    None takes the environment variable DMLSPLIT_NUM_THREADS, or 1 if that is unset or empty. "auto" is one thread per
    CPU available to the process for copies of AUTO_BYTES and more, else 1. Raises ValueError for any other argument,
    InputError for any other value of the variable.
    """
    value: int | str
    if num_threads is None:
        value = os.environ.get(VARIABLE) or "1"
        name = VARIABLE
    else:
        value, name = num_threads, "num_threads"
    if isinstance(value, str) and value == "auto":
        return min(_usable_cpus(), MOST_THREADS) if copied_bytes >= AUTO_BYTES else 1
    try:
        count = parsed_integer(value) if isinstance(value, str) else integer(value, name)
    except (TypeError, ValueError):
        count = 0
    if count < 1:
        error = ValueError if num_threads is not None else InputError
        raise error(f"{name}: {printable(repr(value))} is neither a positive number nor 'auto'")
    return min(count, MOST_THREADS)


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
