"""How many threads a copy gets."""

from __future__ import annotations

import os
from typing import Final, Literal, TypeAlias

from dmlsplit.system.integers import integer, parsed_integer

NumThreads: TypeAlias = int | Literal["auto"] | None

VARIABLE: Final = "DMLSPLIT_NUM_THREADS"
AUTO_BYTES: Final = 32 << 20
"""Bytes copied from which "auto" uses several threads: waking one costs some 50 us, copying this much some 1500."""

MOST_THREADS: Final = 64
"""Of one copy: what dmlsplit.h says of dmlsplit_split_threads."""


def thread_count(num_threads: NumThreads, copied_bytes: int) -> int:
    """A number of threads, 1 to MOST_THREADS, for a copy of so many bytes.

    None is what the environment variable DMLSPLIT_NUM_THREADS says, 1 where it is not set or empty. "auto" is one
    for each CPU that the process may use where that pays, else 1. ValueError for anything else.
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
        raise ValueError(f"{name}: {value!r} is neither a positive number nor 'auto'")
    return min(count, MOST_THREADS)


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
