"""Making a descriptor smaller while it stays interesting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from dmlsplit import OperatorDesc, TensorDataType
from tests.directml.draft import Operator, Tensor, make_pointer_safe

Test: TypeAlias = Callable[[Sequence[OperatorDesc]], list[bool]]
"""Which of some descriptors are interesting; asked in batches, since a library answers many as fast as one."""

MOST_ROUNDS: Final = 200
BATCH: Final = 50


def shrink(desc: OperatorDesc, interesting: Test) -> OperatorDesc:
    """A descriptor that is still interesting, and of which no single simplification is (or the rounds ran out)."""
    operator = Operator.of(desc)
    for _ in range(MOST_ROUNDS):
        smaller = _smaller(operator, interesting)
        if smaller is None:
            break
        operator = smaller
    return operator.build()


def _smaller(operator: Operator, interesting: Test) -> Operator | None:
    cost = _cost(operator)
    simpler = [(_cost(candidate), i, candidate) for i, candidate in enumerate(_simplified(operator))]
    simpler = sorted(entry for entry in simpler if entry[0] < cost)
    for start in range(0, len(simpler), BATCH):
        batch = [candidate for _, _, candidate in simpler[start : start + BATCH]]
        answers = interesting([candidate.build() for candidate in batch])
        for candidate, yes in zip(batch, answers, strict=True):
            if yes:
                return candidate
    return None


def _cost(operator: Operator) -> tuple[int, int, int, int, int]:
    """What a reader has to look at: tensors, dimensions, members that are not as usual, digits, numbers."""
    tensors = operator.tensors
    unusual = sum(
        (tensor.strides is not None)
        + (tensor.total is not None and tensor.total != tensor.implied_size)
        + (tensor.alignment != 0)
        + (tensor.flags != 0)
        + (tensor.dimension_count is not None)
        + (tensor.type != 1)
        + (tensor.data_type != TensorDataType.FLOAT32)
        for tensor in tensors
    )
    unusual += (operator.count is not None) + (operator.axis != 0)
    numbers = [operator.axis, operator.count or 0]
    for tensor in tensors:
        numbers += [*(tensor.sizes or ()), *(tensor.strides or ()), tensor.alignment, tensor.total or 0]
        numbers += [tensor.dimension_count or 0, tensor.data_type, tensor.flags]
    dimensions = sum(len(tensor.sizes or ()) for tensor in tensors)
    return len(tensors), dimensions, unusual, sum(number.bit_length() for number in numbers), sum(numbers)


def _simplified(operator: Operator) -> Iterator[Operator]:
    for change in (_fewer_parts, _fewer_dimensions, _usual_members, _smaller_sizes, _smaller_numbers):
        for candidate in change(operator):
            make_pointer_safe(candidate)
            yield candidate


def _fewer_parts(operator: Operator) -> Iterator[Operator]:
    for i in range(len(operator.parts or ())):
        candidate = operator.copy()
        removed = candidate.parts.pop(i)
        yield candidate
        # The same with the whole made shorter, so that the sum stays right.
        again = candidate.copy()
        if again.whole is not None and _has(again.whole, operator.axis) and _has(removed, operator.axis):
            again.whole.sizes[operator.axis] = max(0, again.whole.sizes[operator.axis] - removed.sizes[operator.axis])
            yield again


def _has(tensor: Tensor, axis: int) -> bool:
    return tensor.sizes is not None and axis < len(tensor.sizes)


def _fewer_dimensions(operator: Operator) -> Iterator[Operator]:
    most = max((len(tensor.sizes or ()) for tensor in operator.tensors), default=0)
    for i in range(most):
        candidate = operator.copy()
        for tensor in candidate.tensors:
            for numbers in (tensor.sizes, tensor.strides):
                if numbers is not None and i < len(numbers):
                    del numbers[i]
            if tensor.dimension_count:
                tensor.dimension_count -= 1
        candidate.axis -= candidate.axis > i
        yield candidate
        again = candidate.copy()
        for tensor in again.tensors:
            tensor.total = None
        yield again


USUAL: Final = {
    "strides": None,
    "total": None,
    "alignment": 0,
    "flags": 0,
    "dimension_count": None,
    "type": 1,
    "data_type": TensorDataType.FLOAT32,
}


def _usual_members(operator: Operator) -> Iterator[Operator]:
    for member, usual in USUAL.items():
        everywhere = operator.copy()
        for i, tensor in enumerate(everywhere.tensors):
            setattr(tensor, member, usual)
            candidate = operator.copy()
            setattr(candidate.tensors[i], member, usual)
            yield candidate
        yield everywhere
    for member, usual in (("count", None), ("axis", 0)):
        candidate = operator.copy()
        setattr(candidate, member, usual)
        yield candidate


def _less(number: int) -> list[int]:
    """From nothing to one less: what is left away can be nearly all, or any share down to a 2^16th."""
    return sorted({0, 1, number - 1, *(number - (number >> bits) for bits in (1, 2, 4, 8, 16))} - {number, -1})


def _smaller_sizes(operator: Operator) -> Iterator[Operator]:
    """One dimension of all tensors that have the same size in it; on the axis, one part and the whole."""
    whole, axis = operator.whole, operator.axis
    if whole is None or whole.sizes is None:
        return
    for d, size in enumerate(whole.sizes):
        if d == axis:
            for i, part in enumerate(operator.parts or ()):
                for less in _less(part.sizes[d]) if _has(part, d) else ():
                    candidate = operator.copy()
                    candidate.parts[i].sizes[d] = less
                    candidate.whole.sizes[d] = max(0, size - part.sizes[d] + less)
                    yield from _with_totals(candidate)
            continue
        for less in _less(size):
            candidate = operator.copy()
            for tensor in candidate.tensors:
                if _has(tensor, d) and tensor.sizes[d] == size:
                    tensor.sizes[d] = less
            yield from _with_totals(candidate)


def _with_totals(operator: Operator) -> Iterator[Operator]:
    """The totals as they are, and as they should be."""
    yield operator
    again = operator.copy()
    for tensor in again.tensors:
        tensor.total = None
    yield again


def _smaller_numbers(operator: Operator) -> Iterator[Operator]:
    """Each number for itself."""
    for i, tensor in enumerate(operator.tensors):
        for member in ("sizes", "strides"):
            for d, number in enumerate(getattr(tensor, member) or ()):
                for less in _less(number):
                    candidate = operator.copy()
                    getattr(candidate.tensors[i], member)[d] = less
                    yield from _with_totals(candidate)
        for member in ("total", "alignment", "flags", "dimension_count", "data_type"):
            number = getattr(tensor, member)
            for less in _less(number) if number else ():
                candidate = operator.copy()
                setattr(candidate.tensors[i], member, less)
                yield candidate
    for less in _less(operator.axis):
        candidate = operator.copy()
        candidate.axis = less
        yield candidate
