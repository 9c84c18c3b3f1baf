"""Sets how often Python collects cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_COLLECTIONS: Final = (4_000_000, 50, 50)
"""By default Python collects after 700 new objects. That took half the time of a large model, because nearly all of its
objects are in use until it is judged. A model's objects are freed without a collection, because sessions break their
own cycles."""


def collect_rarely() -> None:
    """Makes this process collect cyclic garbage rarely from now on."""
    gc.set_threshold(*_COLLECTIONS)


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Context manager: inside the block, this process collects cyclic garbage rarely."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        # Objects that the block leaves count as old: otherwise the lowered threshold would make the next collection
        # visit all of them.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*before)
