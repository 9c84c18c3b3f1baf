"""How often Python looks for unused objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_COLLECTIONS: Final = (4_000_000, 50, 50)
"""By default Python looks after 700 new objects, which took half the time of a large model, nearly all of whose objects
are in use until it is judged. What the model needed is freed without a look then: sessions cut their own cycles."""


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
        # What the block leaves counts as old: with the threshold lowered, all of it would be looked at at once.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(*before)
