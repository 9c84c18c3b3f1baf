"""Strides for the generator: layouts that a build should take, and layouts at the edges of its arithmetic."""

from __future__ import annotations

import math
import random
from typing import Final

from dmlsplit.descriptors.enums import UINT_MAX
from tests.directml.draft import Tensor

WORDS: Final = (2**31, 2**32, 2**63, 2**64)
"""Where a product or sum may wrap or change its sign."""


def near(rng: random.Random, number: int, distance: int = 4) -> int:
    return max(0, number + rng.randint(-distance, distance))


def nested(rng: random.Random, sizes: list[int], gap: tuple[int, ...]) -> list[int]:
    """Strides of the dimensions in any order, each one the extent of those inside it plus a gap."""
    strides = [0] * len(sizes)
    run = 1
    for i in rng.sample(range(len(sizes)), len(sizes)):
        strides[i] = run
        run = max(1, run * max(1, sizes[i]) + rng.choice(gap))
    return strides


def packed(rng: random.Random, sizes: list[int]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def padded(rng: random.Random, sizes: list[int]) -> list[int]:
    return nested(rng, sizes, (0, 0, 1, 2, 7))


def tight(rng: random.Random, sizes: list[int]) -> list[int]:
    """One element too close, often: overlaps that a test may or may not see."""
    return nested(rng, sizes, (0, 0, -1, -1, -2, 1))


def tiny(rng: random.Random, sizes: list[int]) -> list[int]:
    return [rng.randint(0, 8) for _ in sizes]


def interleaved(rng: random.Random, sizes: list[int]) -> list[int]:
    """Extents about as large as the number of elements, strides unrelated to it."""
    most = 2 + math.prod(sizes) // max(1, len(sizes))
    return [rng.randint(1, min(most, UINT_MAX)) for _ in sizes]


def broadcast(rng: random.Random, sizes: list[int]) -> list[int]:
    return [0 if rng.random() < 0.4 else stride for stride in packed(rng, sizes)]


def stretched(rng: random.Random, sizes: list[int], bits: int) -> list[int]:
    """An extent on either side of where elements, the last index, bytes or bits fill a machine word."""
    word = rng.choice(WORDS) * rng.choice((1, 1, 1, 2, 3, 5))
    reach = near(rng, rng.choice((word, word // bits, word * 8 // bits))) - rng.choice((0, 1))
    strides = [0] * len(sizes)
    dims = [i for i, size in enumerate(sizes) if size > 1]
    rng.shuffle(dims)
    for i in dims[: rng.randint(1, max(1, len(dims)))] + dims[-1:]:
        # A share of what is left, so that the next dimension can make up the rest.
        share = reach if rng.random() < 0.7 else reach // 2
        strides[i] = min(share // (sizes[i] - 1), UINT_MAX)
        reach -= strides[i] * (sizes[i] - 1)
    return strides


def free_where_size_is_1(rng: random.Random, sizes: list[int], strides: list[int]) -> None:
    for i, size in enumerate(sizes):
        if size == 1 and rng.random() < 0.3:
            strides[i] = rng.choice((0, 1, 7, 2**31, UINT_MAX))


def lay_out(rng: random.Random, tensor: Tensor, is_output: bool) -> None:
    """Strides that a build should take, if any."""
    if tensor.sizes is None or rng.random() < 0.5:
        return
    layouts = (packed, padded, padded) if is_output else (packed, padded, tight, tiny, broadcast)
    tensor.strides = rng.choice(layouts)(rng, tensor.sizes)
    free_where_size_is_1(rng, tensor.sizes, tensor.strides)
