"""What a release reads before it checks anything: there a call ends the process instead of returning.

Observed with every array ending at an unreadable page. On a user's machine a read past an array is undefined behaviour,
not a promised crash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dmlsplit.diagnostics import Basis
from dmlsplit.enums import UINT_MAX, OperatorType
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import Finding, Findings, operator_rules
from dmlsplit.rules._sources import OBSERVED
from dmlsplit.rules._views import Aspect, OperatorView, TensorView


@operator_rules(
    "split/crash",
    "join/crash",
    summary="The release reads through a null pointer, or past an array, before it checks the descriptor.",
    explanation="Every build reads a split's InputTensor and its Desc at once, and the build of level 2_1 compares the "
    "sizes of outputs and input before it looks at anything else; every build does so with a join's. The call does not "
    "return, so that there is no HRESULT to predict.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    spoils={Aspect.DESC, Aspect.READABLE, Aspect.ARRAY},
    bad=lambda make: eg.with_whole(make(), None),
    good=lambda make: make(),
    examples_for="1.15.4",
)
def crash(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    release = o.target.release
    if release is None:
        return
    whole = o.whole
    is_split = o.type is OperatorType.SPLIT
    if o.count == 0 and not (is_split and release.split_reads_input_first):
        return  # refused
    walks = not is_split or release.traits.split_walks_sizes_unchecked
    if is_split and walks and o.axis >= max(whole.support.dimension_counts):
        return  # refused before the input is looked at
    if whole.tensor is None or whole.tensor.desc is None:
        yield _crash(whole, "" if whole.tensor is None else "Desc")
        return
    if not walks or o.count == 0:
        return
    dimensions = whole.desc.dimension_count
    if dimensions not in whole.support.dimension_counts if is_split else o.axis >= dimensions:
        return  # refused
    if o.array is None:
        yield Finding(o.array_name, f"is null: {_CRASH}", "a pointer", None)
        return
    yield from _walk(o)


def _walk(o: OperatorView) -> Findings:
    """The comparison of sizes that comes before the tensors themselves are checked.

    A split takes the input's DimensionCount for that of every output, a join each input's for that of the output.
    """
    is_join = o.type is OperatorType.JOIN
    total = 0
    for part in o.parts:
        if part.tensor is None or part.tensor.desc is None:
            yield _crash(part, "" if part.tensor is None else "Desc")
            return
        dimensions = (part if is_join else o.whole).desc.dimension_count
        sizes = part.desc.sizes
        if is_join:
            if len(sizes or ()) < dimensions:
                yield _crash(part, "Sizes")
                return
            # A 32-bit product, taken for a signed number: the bound of 2^31 - 1 elements.
            if math.prod((sizes or ())[:dimensions]) % 2**32 >= 2**31:
                return  # refused
        for d in range(dimensions):
            if sizes is None or d >= len(sizes):
                yield _crash(part, "Sizes")
                return
            if d == o.axis:
                total += sizes[d]
                if total > UINT_MAX:
                    return  # refused
                continue
            expected = _size(o.whole, d)
            if expected is None:
                yield _crash(o.whole, "Sizes")
                return
            if sizes[d] != expected:
                return  # refused
    if _size(o.whole, o.axis) is None:
        yield _crash(o.whole, "Sizes")


def _size(tensor: TensorView, d: int) -> int | None:
    """None where there is nothing to read."""
    sizes = tensor.desc.sizes
    return None if sizes is None or d >= len(sizes) else sizes[d]


_CRASH: Final = "this release crashes here"


def _crash(tensor: TensorView, member: str) -> Finding:
    message = f"is read before anything is checked: {_CRASH}"
    return Finding(member, message, "a pointer to as much as is read", None, tensor)
