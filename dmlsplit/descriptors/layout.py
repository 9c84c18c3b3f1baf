"""Where a tensor's elements lie: element sizes, packed strides, implied size, overlap. Exact integers throughout.

Sizes and strides count elements, as in DML_BUFFER_TENSOR_DESC. Element (i0, i1, ...) lies at sum(i * stride).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.system.integers import integer, integers

ELEMENT_BITS: Final[dict[int, int]] = {t: int(re.sub(r"\D", "", t.name)) for t in TensorDataType if t}
"""Bits per element, parsed from the type's name; UNKNOWN and values outside the enum have no entry."""

OVERLAP_SEARCH_LIMIT: Final = 20_000
"""Steps after which elements_overlap gives up; some 10 milliseconds."""
_HUGE: Final = 2**512


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides, in elements, of a tensor without gaps, the last dimension innermost."""
    strides = [1] * len(sizes)
    for i in range(len(sizes) - 2, -1, -1):
        strides[i] = strides[i + 1] * sizes[i + 1]
    return tuple(strides)


def is_packed(sizes: Sequence[int], strides: Sequence[int] | None) -> bool:
    """True if `strides` is None or places every element where packed strides do; strides of dimensions of size 1 do not
    matter."""
    if strides is None:
        return True
    packed = packed_strides(sizes)
    return strides == packed or all(
        size == 1 or stride == wanted for size, stride, wanted in zip(sizes, strides, packed, strict=True)
    )


def extent(sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Returns the distance in elements from the lowest address to the highest, both included; every size must be at
    least 1. `strides` None means packed."""
    if strides is None:
        return _product(sizes)
    last = 0
    for size, stride in zip(sizes, strides, strict=True):
        last += (size - 1) * stride
    return last + 1


def _product(sizes: Sequence[int]) -> int:
    """Returns the product of sizes; only a lower bound of it for a huge product of more than 8 sizes, which no valid
    tensor has."""
    if len(sizes) <= 8:
        return math.prod(sizes)
    product = 1
    for size in sizes:
        product *= size
        if product > _HUGE:
            break
    return product


def implied_size(data_type: int, sizes: Sequence[int] | None, strides: Sequence[int] | None = None) -> int | None:
    """Returns the result of DMLCalcBufferTensorSize in exact arithmetic: bytes, rounded up to a multiple of 4.

    None if the helper's result is meaningless: a data type without a size, no sizes, a size of 0 (the helper subtracts
    1 from it), or strides and sizes of different lengths.
    """
    bits = ELEMENT_BITS.get(data_type)
    if bits is None or not sizes or 0 in sizes or (strides is not None and len(strides) != len(sizes)):
        return None
    return (extent(sizes, strides) * bits + 31) // 32 * 4


def calc_buffer_tensor_size(data_type: int, sizes: Iterable[int], strides: Iterable[int] | None = None) -> int:
    """Returns the minimum TotalTensorSizeInBytes of a tensor: DirectML's helper DMLCalcBufferTensorSize without its
    overflows.

    `sizes` and `strides` count elements; the result is in bytes, rounded up to a multiple of 4. Like the helper it
    returns 0 for a data type without a size; it also returns 0 if the helper's result is meaningless (no dimensions, a
    size of 0). Raises ValueError if `strides` and `sizes` differ in length or a number is negative, TypeError for
    values that are not integers.

    Source: DirectML helper functions, DirectMLX.h (which counts bits, for the 4-bit types).
    """
    data_type = integer(data_type, "data_type")
    sizes = integers(sizes, "sizes")
    strides = None if strides is None else integers(strides, "strides")
    if strides is not None and len(strides) != len(sizes):
        raise ValueError(f"{len(strides)} strides for {len(sizes)} sizes")
    if min(sizes, default=0) < 0 or min(strides or (), default=0) < 0:
        raise ValueError("sizes and strides are unsigned")
    return implied_size(data_type, sizes, strides) or 0


def elements_overlap(sizes: Sequence[int], strides: Sequence[int] | None) -> bool | None:
    """Returns True if two different elements share an address, False if no two do; None if a bounded search did not
    decide.

    Nested strides (each larger than everything inside it spans) are decided at once, and so is a tensor with more
    elements than places. Otherwise two elements coincide exactly if some difference vector d, not all zero and with
    abs(d[i]) < sizes[i], gives sum(d * strides) == 0; the search runs from the largest stride to the smallest and drops
    a branch as soon as the inner dimensions cannot bring the sum back to 0 (too far, or not a multiple of their
    greatest common divisor).
    """
    return False if strides is None else _overlap(tuple(sizes), tuple(strides))


@lru_cache(1024)
def _overlap(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool | None:
    """Returns what `elements_overlap` does. Cached."""
    dims = sorted(((stride, size - 1) for size, stride in zip(sizes, strides, strict=True) if size > 1), reverse=True)
    if not dims:
        return False
    if dims[-1][0] == 0:
        return True
    reach = [0]  # reach[k]: how far the k innermost dimensions extend
    divisor = [0]
    for stride, steps in reversed(dims):
        reach.append(reach[-1] + stride * steps)
        divisor.append(math.gcd(divisor[-1], stride))
    if all(stride > reach[len(dims) - 1 - i] for i, (stride, _) in enumerate(dims)):
        return False
    if math.prod(steps + 1 for _, steps in dims) > reach[-1] + 1:
        return True
    return _difference_vector_exists(dims, reach, divisor)


def _difference_vector_exists(dims: list[tuple[int, int]], reach: list[int], divisor: list[int]) -> bool | None:
    """Returns True if some vector of index differences other than 0 leads to the same address, False if none does; None
    if OVERLAP_SEARCH_LIMIT steps do not decide. `dims` are (stride, largest difference), the largest stride first;
    `reach` and `divisor`: how far the k innermost dimensions extend, and the greatest common divisor of their strides.
    """
    budget = OVERLAP_SEARCH_LIMIT

    def search(left: int, total: int, nonzero: bool) -> bool:
        nonlocal budget
        if left == 0:
            return nonzero and total == 0
        stride, steps = dims[len(dims) - left]
        inner = reach[left - 1]
        # d and -d name the same pair of elements, so the first non-zero coordinate is taken positive.
        low = max(-steps if nonzero else 0, -((total + inner) // stride))
        high = min(steps, (inner - total) // stride)
        for d in _outward(low, high):
            budget -= 1
            if budget < 0:
                return False
            rest = total + d * stride
            reachable = rest % divisor[left - 1] == 0 if divisor[left - 1] else rest == 0
            if reachable and search(left - 1, rest, nonzero or d != 0):
                return True
        return False

    found = search(len(dims), 0, False)
    return None if budget < 0 and not found else found


def _outward(low: int, high: int) -> Iterator[int]:
    """Yields the integers from `low` to `high`, those nearest to 0 first: short difference vectors are the likely
    ones."""
    start = min(max(low, 0), high)
    below = start - 1
    for above in range(start, high + 1):
        yield above
        if below >= low:
            yield below
            below -= 1
    while below >= low:
        yield below
        below -= 1
