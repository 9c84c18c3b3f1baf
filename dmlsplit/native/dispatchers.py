"""Dispatchers of plans on ndarrays, which read arrays' members where numpy's ABI has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from dmlsplit.native import core
from dmlsplit.native.fresh import FreshArrays

_WRITEABLE: Final = 0x400
"""NPY_ARRAY_WRITEABLE."""


def array_dispatcher(
    plan: core.Plan,
    dtype: np.dtype[Any],
    layouts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    outputs: FreshArrays | None = None,
) -> core.ArrayDispatcher | None:
    """Returns a dispatcher that runs the plan on ndarrays of these sizes and strides (bytes), the whole's first; None
    for more than core.DISPATCHER_RANK dimensions, and without a GIL.

    `outputs` makes fresh arrays for everything that the plan writes; None if the caller passes the outputs.
    """
    if not core.HAS_GIL or len(layouts[0][0]) > core.DISPATCHER_RANK:
        return None
    calls = None if outputs is None else outputs.calls
    return core.ArrayDispatcher(plan, np.ndarray, dtype, layouts, members_are_known(), np.empty, calls)


@cache
def members_are_known() -> bool:
    """True if the core finds an array's members where numpy has them; tested on a writable and on a read-only array."""
    packed = np.empty((3, 5), np.int16)
    strided = np.empty((7, 11), np.float64)[::-2, 1::3]
    strided.flags.writeable = False
    return _reads(packed) and _reads(strided)


def _reads(array: np.ndarray) -> bool:
    fields = core.array_fields(array)
    address, read_only = array.__array_interface__["data"]
    told = core.ArrayFields(address, id(array.dtype), 0 if read_only else _WRITEABLE, array.shape, array.strides)
    return fields._replace(flags=fields.flags & _WRITEABLE) == told
