"""A mean generator of descriptors: both sides of every boundary that a build of DirectML was seen to have.

Everything follows from the seed. Some arrays are shorter than is said of them: whether a build refuses before it reads
past their end is part of the prediction. Left out is an array with a null entry, which has no counterpart in C, where
arrays hold their tensors by value.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Final

from dmlsplit import OperatorDesc
from dmlsplit.descriptors.enums import UINT_MAX, TensorDataType
from dmlsplit.rules import RULES, DescriptorRule
from tests.directml.draft import MOST_DIMENSIONS, Operator, Tensor, make_pointer_safe, part_tensors
from tests.directml.layouts import (
    broadcast,
    free_where_size_is_1,
    interleaved,
    lay_out,
    near,
    packed,
    padded,
    stretched,
    tight,
    tiny,
)

CUT_SHORT: Final = 0.1
"""Of the descriptors: those with an array that is shorter than is said of it."""
SIZED_TYPES: Final = tuple(int(t) for t in TensorDataType if TensorDataType.FLOAT32 <= t <= TensorDataType.INT64)


def descriptor(seed: int, index: int) -> OperatorDesc:
    """The descriptor with that number of a seed's endless row."""
    rng = random.Random(f"{seed}:{index}")
    operator = generate(rng)
    if rng.random() < CUT_SHORT:
        for _ in range(rng.choice((1, 1, 2))):
            cut_short(rng, operator)
    return operator.build()


def generate(rng: random.Random) -> Operator:
    """One operator: a base, and none to four changes of it."""
    base = rng.choices(BASES, BASE_WEIGHTS)[0]
    operator = base(rng)
    notes = [base.__name__]
    for _ in range(rng.choices((0, 1, 2, 3, 4), (8, 7, 3, 1, 1))[0]):
        change = rng.choices(CHANGES, CHANGE_WEIGHTS)[0]
        change(rng, operator)
        notes.append(change.__name__)
    make_pointer_safe(operator)
    operator.note = ", ".join(notes)
    return operator


def cut_short(rng: random.Random, operator: Operator) -> None:
    """Takes entries from Sizes or Strides, or has the count say more than the array of tensors holds."""
    arrays = [(t, numbers) for t in operator.tensors for numbers in (t.sizes, t.strides) if numbers]
    if operator.parts is not None and (not arrays or rng.random() < 0.3):
        operator.count = len(operator.parts) + rng.choice((1, 2, 1000))
    elif arrays:
        tensor, numbers = rng.choice(arrays)
        if tensor.dimension_count is None:
            tensor.dimension_count = len(tensor.sizes or ())
        del numbers[rng.randrange(len(numbers)) :]


# Numbers


def cut(rng: random.Random, length: int, count: int) -> list[int]:
    """`length` as the sum of at most `count` positive numbers."""
    count = min(count, length)
    if count <= 1:
        return [length]
    if length > 10**6:
        marks = {rng.randrange(1, length) for _ in range(count - 1)}
    else:
        marks = set(rng.sample(range(1, length), count - 1))
    edges = [0, *sorted(marks), length]
    return [b - a for a, b in itertools.pairwise(edges)]


def factors(rng: random.Random, number: int, count: int) -> list[int]:
    """`count` sizes whose product is `number` or a little less, none above 2^32 - 1."""
    found = []
    for _ in range(count - 1):
        choices = [f for f in (1, 2, 3, 5, 16, 17, 255, 257, 65535, 65536, 65537, 2**31, UINT_MAX) if f <= number]
        found.append(rng.choice(choices))
        number //= found[-1]
    found.append(min(max(1, number), UINT_MAX))
    rng.shuffle(found)
    return found


def totals(tensor: Tensor) -> list[int]:
    """Sizes in bytes that some arithmetic takes for the least or the most that TotalTensorSizeInBytes may be."""
    elements, bits = tensor.extent, tensor.bits
    size = max(1, bits // 8)
    least = [elements * size]
    for word in (2**32, 2**64):
        least += [elements * size % word, elements % word * size, ((elements - 1) % word + 1) * size]
        least.append(elements * bits % word // 8)
    if tensor.sizes:
        least.append(math.prod(tensor.sizes) * size)
    most = [UINT_MAX * size, 2**32 * size, 2**32 * size - 1, 2**31 * size, 2**32, 2**63, 2**64 - 1]
    return [total for number in least for total in (number, (number + 3) // 4 * 4)] + most + [0, 4]


# Bases


def assemble(rng: random.Random, sizes: list[int], axis: int, lengths: list[int], data_type: int) -> Operator:
    parts = [Tensor([*sizes[:axis], length, *sizes[axis + 1 :]], data_type=data_type) for length in lengths]
    return Operator(rng.random() < 0.5, Tensor(list(sizes), data_type=data_type), parts, axis)


def dimension_count(rng: random.Random) -> int:
    return rng.choice((1, 2, 3, 4, 4, 4, 4, 4, 4, 5, 5, 6, 7, 8))


def small(rng: random.Random) -> Operator:
    """Valid, with all kinds of layout."""
    sizes = [rng.choice((1, 1, 2, 3, 4, 5, 16)) for _ in range(dimension_count(rng))]
    axis = rng.randrange(len(sizes))
    lengths = [rng.randint(1, 5) for _ in range(rng.choice((1, 2, 2, 3, 3, 9)))]
    sizes[axis] = sum(lengths)
    operator = assemble(rng, sizes, axis, lengths, rng.choice(SIZED_TYPES))
    for tensor in operator.tensors:
        lay_out(rng, tensor, operator.is_output(tensor))
        tensor.alignment = rng.choice((0, 0, 0, 16, 64, 2**31))
        if rng.random() < 0.3:
            tensor.total = tensor.implied_size + rng.choice((0, 1, 3, 4, 1000))
        if not operator.is_output(tensor) and rng.random() < 0.1:
            tensor.flags = 1
    return operator


def many(rng: random.Random) -> Operator:
    """More parts than anyone needs."""
    lengths = [rng.choice((1, 1, 1, 2)) for _ in range(rng.choice((63, 64, 65, 130, 257)))]
    sizes = [1, 1, sum(lengths), 3]
    return assemble(rng, sizes, 2, lengths, rng.choice(SIZED_TYPES))


def counted(rng: random.Random) -> Operator:
    """An element count near 2^31, 2^32 or 2^64, of the whole or of a part."""
    count = near(rng, rng.choice((2**31, 2**31, 2**32, 2**32, 2**32, 2**33, 2**64)))
    sizes = factors(rng, count, dimension_count(rng))
    axis = rng.randrange(len(sizes))
    lengths = cut(rng, sizes[axis], rng.choice((1, 1, 2, 2, 3)))
    if rng.random() < 0.3 and sizes[axis] > 1:
        lengths = [sizes[axis] - 1, 1]
    operator = assemble(rng, sizes, axis, lengths, rng.choice(SIZED_TYPES))
    for tensor in operator.tensors:
        # A broadcast input needs few bytes for many elements, so that no other limit hides the one of the count.
        if rng.random() < 0.4:
            tensor.strides = [0] * len(sizes)
        elif rng.random() < 0.2:
            tensor.strides = packed(rng, tensor.sizes or [])
        limit = UINT_MAX * tensor.bits // 8
        if rng.random() < 0.5:
            tensor.total = min(tensor.implied_size, limit)
    return operator


def wide(rng: random.Random) -> Operator:
    """Few elements, or a long dimension, over a huge extent."""
    sizes = [rng.choice((1, 1, 2, 3, 5)) for _ in range(dimension_count(rng))]
    if rng.random() < 0.6:
        if rng.random() < 0.5:  # leaves the others little of the 2^32 elements that are allowed
            sizes = [1] * len(sizes)
            sizes[rng.randrange(len(sizes))] = 2
        long = rng.choice((2**15, 2**16 + 1, 2**20 + 1, 2**24, 2**28, 2**29, 2**30, 2**31, UINT_MAX - 1))
        sizes[rng.randrange(len(sizes))] = near(rng, long, 1)
    axis = rng.randrange(len(sizes))
    operator = assemble(rng, sizes, axis, cut(rng, sizes[axis], rng.choice((1, 1, 2, 3))), rng.choice(SIZED_TYPES))
    for tensor in rng.sample(operator.tensors, rng.randint(1, len(operator.tensors))):
        stretch(rng, operator, tensor)
    return operator


def crowded(rng: random.Random) -> Operator:
    """Small tensors with strides that nearly overlap, or do."""
    sizes = [rng.choice((1, 1, 2, 2, 3, 4, 7)) for _ in range(dimension_count(rng))]
    axis = rng.randrange(len(sizes))
    operator = assemble(rng, sizes, axis, cut(rng, sizes[axis], rng.choice((1, 1, 2))), rng.choice(SIZED_TYPES))
    for tensor in operator.tensors:
        if rng.random() < 0.7:
            tensor.strides = rng.choice((tight, tiny, interleaved, padded))(rng, tensor.sizes or [])
            free_where_size_is_1(rng, tensor.sizes or [], tensor.strides)
    return operator


def example(rng: random.Random) -> Operator:
    """A rule's own descriptor, from either side of its boundary; as the other operator too."""
    operator = rng.choice(EXAMPLES).copy()
    if rng.random() < 0.3:
        operator.is_split = not operator.is_split
    return operator


def _examples() -> list[Operator]:
    """Of every rule; an array with a null entry, which cannot be put into C memory, excepted."""
    made = [make() for rule in RULES.values() if isinstance(rule, DescriptorRule) for make in (rule.bad, rule.good)]
    return [Operator.of(desc) for desc in made if None not in (part_tensors(desc) or ())]


EXAMPLES: Final = _examples()


# Changes


def some_tensor(rng: random.Random, operator: Operator) -> Tensor | None:
    """The whole tensor as often as all parts together."""
    if operator.whole is not None and (rng.random() < 0.5 or not operator.parts):
        return operator.whole
    return rng.choice(operator.parts) if operator.parts else None


def stretch(rng: random.Random, operator: Operator, tensor: Tensor | None = None) -> None:
    tensor = tensor or some_tensor(rng, operator)
    if tensor is not None and tensor.sizes:
        tensor.strides = stretched(rng, tensor.sizes, tensor.bits)
        tensor.total = rng.choice(totals(tensor)) if rng.random() < 0.6 else UINT_MAX * tensor.bits // 8
        if rng.random() < 0.2:
            tensor.total = near(rng, tensor.total)


def change_total(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None:
        tensor.total = near(rng, rng.choice(totals(tensor)), rng.choice((0, 0, 1, 4, 8)))


def change_alignment(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None:
        power = 2 ** rng.randint(0, 31)
        tensor.alignment = rng.choice((power, power, power - 1, power + 1, 3 * power, UINT_MAX))


def change_flags(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None:
        tensor.flags = rng.choice((1, 1, 1, 2, 3, 2 ** rng.randint(2, 31), UINT_MAX))


def change_data_type(rng: random.Random, operator: Operator) -> None:
    """Of one tensor or of all."""
    data_type = rng.choice((0, 12, 13, 14, 2**31, UINT_MAX, *SIZED_TYPES))
    tensor = some_tensor(rng, operator)
    for changed in operator.tensors if rng.random() < 0.5 else [tensor]:
        if changed is not None:
            changed.data_type = data_type


def change_type(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None:
        tensor.type = rng.choice((0, 2, 3, UINT_MAX))


def change_dimension_count(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None:
        length = len(tensor.sizes or ())
        tensor.dimension_count = rng.choice((0, max(0, length - 1), length + 1, 8, 9, 16, 2**31, UINT_MAX))


def add_dimension(rng: random.Random, operator: Operator) -> None:
    """A leading 1: one tensor of another rank, or all of a higher one."""
    tensor = some_tensor(rng, operator)
    everyone = rng.random() < 0.5
    for changed in operator.tensors if everyone else [tensor]:
        if changed is None or changed.sizes is None or len(changed.sizes) >= MOST_DIMENSIONS:
            return
        changed.sizes.insert(0, 1)
        if changed.strides is not None:
            changed.strides.insert(0, rng.choice((0, 1, UINT_MAX)))
    operator.axis += everyone


def change_size(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None and tensor.sizes:
        i = rng.randrange(len(tensor.sizes))
        size = tensor.sizes[i]
        tensor.sizes[i] = rng.choice((0, size - 1, size + 1, 1, size * 2, 2**31, 2**32 - size, UINT_MAX))
        if rng.random() < 0.7:
            tensor.total = None


def wrap_sum(rng: random.Random, operator: Operator) -> None:
    """The parts' sizes on the axis sum up to the whole's modulo 2^32."""
    parts, axis = operator.parts or [], operator.axis
    if len(parts) >= 2 and all(part.sizes is not None and axis < len(part.sizes) for part in parts[:2]):
        first, second = parts[0].sizes, parts[1].sizes
        moved = rng.choice((2**31, UINT_MAX, 2**32 - 16))
        first[axis], second[axis] = moved, (first[axis] + second[axis] - moved) % 2**32


def change_axis(rng: random.Random, operator: Operator) -> None:
    count = len(operator.whole.sizes or ()) if operator.whole is not None else 4
    operator.axis = rng.choice((0, 1, max(0, count - 1), count, count + 1, 8, 2**31, UINT_MAX))


def change_count(rng: random.Random, operator: Operator) -> None:
    length = len(operator.parts or ())
    operator.count = rng.choice((0, 1, max(0, length - 1)))
    if rng.random() < 0.5:  # surplus entries, which nobody should look at
        operator.count = length
        operator.parts = (operator.parts or []) + [Tensor(None, data_type=99, null_desc=rng.random() < 0.5)]


def lose_part(rng: random.Random, operator: Operator) -> None:
    if operator.parts:
        operator.parts.pop(rng.randrange(len(operator.parts)))


def change_stride(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is None or not tensor.sizes:
        return
    if tensor.strides is None:
        tensor.strides = packed(rng, tensor.sizes)
    i = rng.randrange(len(tensor.strides)) if tensor.strides else 0
    if tensor.strides:
        stride = tensor.strides[i]
        other = rng.choice(tensor.strides)
        tensor.strides[i] = rng.choice((0, stride - 1, stride + 1, other, 2**31, 2**32 - stride, UINT_MAX))
    if rng.random() < 0.7:
        tensor.total = None


def new_layout(rng: random.Random, operator: Operator) -> None:
    tensor = some_tensor(rng, operator)
    if tensor is not None and tensor.sizes:
        tensor.strides = rng.choice((tight, tiny, interleaved, padded, broadcast))(rng, tensor.sizes)
        tensor.total = None


def lose_pointer(rng: random.Random, operator: Operator) -> None:
    """A null pointer where a pointer belongs."""
    tensor = some_tensor(rng, operator)
    kind = rng.randrange(6)
    if kind == 0:
        operator.whole = None
    elif kind == 1:
        operator.count = len(operator.parts or ())
        operator.parts = None
    elif tensor is not None and kind in (2, 3):
        tensor.null_desc = True
    elif tensor is not None:
        tensor.dimension_count = len(tensor.sizes or ())
        tensor.sizes = None


Base = Callable[[random.Random], Operator]
Change = Callable[[random.Random, Operator], None]

BASES: Final[tuple[Base, ...]] = (small, many, counted, wide, crowded, example)
BASE_WEIGHTS: Final = (30, 1, 15, 25, 20, 15)
CHANGES: Final[tuple[Change, ...]] = (
    stretch,
    change_total,
    change_alignment,
    change_flags,
    change_data_type,
    change_type,
    change_dimension_count,
    add_dimension,
    change_size,
    wrap_sum,
    change_axis,
    change_count,
    lose_part,
    change_stride,
    new_layout,
    lose_pointer,
)
CHANGE_WEIGHTS: Final = (8, 12, 6, 5, 5, 2, 4, 4, 8, 4, 4, 4, 3, 8, 6, 3)
