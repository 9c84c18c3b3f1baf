"""Checks that Split and Join share: the whole tensor on one side, its parts in an array on the other."""

from __future__ import annotations

from typing import Final

from dmlsplit.rules._model import DIMENSIONS, Finding, Findings, Member, OperatorView, TensorView, type_name

# What a comparison of two tensors needs of both.
SAME_RANK: Final = int(Member.DESC | Member.DIMENSION_COUNT)
_DIMENSIONS: Final = int(DIMENSIONS)
_DATA_TYPE: Final = int(Member.DESC | Member.DATA_TYPE)
_DIMENSION_COUNT: Final = int(Member.DIMENSION_COUNT)


def count_zero(o: OperatorView) -> Findings:
    if o.count != 0:
        return None
    return [Finding(o.count_name, "is 0", "at least 1", 0)]


def array_null(o: OperatorView) -> Findings:
    if o.array is not None:
        return None
    return [Finding(o.array_name, "is null", f"an array of {o.count_name} tensors", None)]


def count_exceeds_array(o: OperatorView) -> Findings:
    length = len(o.array or ())
    if o.count <= length:
        return None
    message = f"is {o.count}, {o.array_name} has {length} entries: the rest would be read past its end"
    return [Finding(o.count_name, message, length, o.count)]


def array_exceeds_count(o: OperatorView) -> Findings:
    length = len(o.array or ())
    if length <= o.count:
        return None
    message = f"has {length} entries, of which DirectML looks at {o.count} ({o.count_name})"
    return [Finding(o.array_name, message, o.count, length)]


def axis_out_of_range(o: OperatorView) -> Findings:
    count = o.whole.desc.dimension_count
    if o.whole.failed & SAME_RANK or o.axis < count:
        return None
    limit = f"0-{count - 1}"
    return [Finding("Axis", f"is {o.axis}, must be in {limit} for {count} dimensions", limit, o.axis)]


def data_type_mismatch(o: OperatorView) -> Findings:
    reads = _DATA_TYPE
    expected = o.whole.desc.data_type
    if o.whole.failed & reads:
        return None
    found = []
    for part in o.parts:
        actual = part.desc.data_type
        if actual != expected and not part.failed & reads:
            message = f"is {type_name(actual)}, {o.whole.path} has {type_name(expected)}"
            found.append(Finding(_of(part, "DataType"), message, type_name(expected), type_name(actual)))
    return found


def dimension_count_mismatch(o: OperatorView) -> Findings:
    expected = o.whole.desc.dimension_count
    if o.whole.failed & SAME_RANK:
        return None
    found = []
    for part in o.parts:
        actual = part.desc.dimension_count
        if actual != expected and not part.failed & SAME_RANK:
            part.failed |= _DIMENSION_COUNT
            message = f"is {actual}, {o.whole.path} has {expected}"
            found.append(Finding(_of(part, "DimensionCount"), message, expected, actual))
    return found


def size_mismatch(o: OperatorView) -> Findings:
    if o.whole.failed & _DIMENSIONS:
        return None
    axis, sizes = o.axis, o.whole.sizes
    before, after = sizes[:axis], sizes[axis + 1 :]
    found = []
    for part in o.parts:
        if part.failed & _DIMENSIONS or (part.sizes[:axis] == before and part.sizes[axis + 1 :] == after):
            continue
        for i, (actual, expected) in enumerate(zip(part.sizes, sizes, strict=True)):
            if i != axis and actual != expected:
                message = f"is {actual}, {o.whole.path} has {expected}; only Axis ({axis}) may differ"
                found.append(Finding(_of(part, f"Sizes[{i}]"), message, expected, actual))
    return found


def axis_sizes_sum(o: OperatorView) -> Findings:
    if o.whole.failed & _DIMENSIONS or any(part.failed & _DIMENSIONS for part in o.parts):
        return None
    expected = o.whole.sizes[o.axis]
    actual = sum([part.sizes[o.axis] for part in o.parts])
    if actual == expected:
        return None
    message = f"have sizes on axis {o.axis} that sum up to {actual}, {o.whole.path} has {expected}"
    return [Finding(o.array_name, message, expected, actual)]


def _of(part: TensorView, member: str) -> str:
    return f"{part.path}.{member}"
