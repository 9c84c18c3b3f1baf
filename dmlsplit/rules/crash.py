"""What a release reads before it checks anything: there a call ends the process instead of returning.

Observed with every array ending at an unreadable page. On a user's machine a read past an array is undefined behaviour,
not a promised crash.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dmlsplit.descriptors import JoinOperatorDesc, OperatorDesc
from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.enums import UINT_MAX, OperatorType
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import OBSERVED, Finding, Findings, Member, OperatorView, Rule, TensorView

_CRASHED: Final = int(Member.DESC | Member.UNREAD)


def _reads_before_checking(o: OperatorView) -> Findings:
    release = o.judge.release
    if release is None:
        return None
    whole = o.whole
    is_split = o.type is OperatorType.SPLIT
    if o.count == 0 and not (is_split and release.split_reads_input_first):
        return None  # refused
    walks = not is_split or release.traits.split_walks_sizes_unchecked
    if is_split and walks and o.axis >= max(whole.support.dimension_counts):
        return None  # refused before the input is looked at
    if whole.tensor is None or whole.tensor.desc is None:
        return _crash(whole, "" if whole.tensor is None else "Desc")
    if not walks or o.count == 0:
        return None
    dimensions = whole.desc.dimension_count
    if dimensions not in whole.support.dimension_counts if is_split else o.axis >= dimensions:
        return None  # refused
    if o.array is None:
        o.failed |= Member.ARRAY
        return [Finding(o.array_name, f"is null: {_CRASH}", "a pointer", None)]
    return _walk(o)


def _walk(o: OperatorView) -> Findings:
    """The comparison of sizes that comes before the tensors themselves are checked.

    A split takes the input's DimensionCount for that of every output, a join each input's for that of the output.
    """
    is_join = o.type is OperatorType.JOIN
    total = 0
    for part in o.parts:
        if part.tensor is None or part.tensor.desc is None:
            return _crash(part, "" if part.tensor is None else "Desc")
        dimensions = (part if is_join else o.whole).desc.dimension_count
        sizes = part.desc.sizes
        if is_join:
            if len(sizes or ()) < dimensions:
                return _crash(part, "Sizes")
            # A 32-bit product, taken for a signed number: the bound of 2^31 - 1 elements.
            if math.prod((sizes or ())[:dimensions]) % 2**32 >= 2**31:
                return None  # refused
        for d in range(dimensions):
            if sizes is None or d >= len(sizes):
                return _crash(part, "Sizes")
            if d == o.axis:
                total += sizes[d]
                if total > UINT_MAX:
                    return None  # refused
                continue
            expected = _size(o.whole, d)
            if expected is None:
                return _crash(o.whole, "Sizes")
            if sizes[d] != expected:
                return None  # refused
    return _crash(o.whole, "Sizes") if _size(o.whole, o.axis) is None else None


def _size(tensor: TensorView, d: int) -> int | None:
    """None where there is nothing to read."""
    sizes = tensor.desc.sizes
    return None if sizes is None or d >= len(sizes) else sizes[d]


_CRASH: Final = "this release crashes here"


def _crash(tensor: TensorView, member: str) -> Findings:
    path = f"{tensor.path}.{member}" if member else tensor.path
    tensor.failed |= _CRASHED
    return [Finding(path, f"is read before anything is checked: {_CRASH}", "a pointer to as much as is read", None)]


def _rule(
    operator: OperatorType,
    explanation: str,
    bad: Callable[[], OperatorDesc],
    good: Callable[[], OperatorDesc],
    release: str,
) -> Rule:
    return Rule(
        f"{operator.name.lower()}/crash",
        Severity.ERROR,
        Basis.OBSERVED,
        "The release reads through a null pointer, or past an array, before it checks the descriptor.",
        explanation + " The call does not return, so that there is no HRESULT to predict.",
        (OBSERVED,),
        bad=bad,
        good=good,
        release=release,
        operator_check=_reads_before_checking,
    )


RULES: Final[Mapping[OperatorType, Rule]] = {
    OperatorType.SPLIT: _rule(
        OperatorType.SPLIT,
        "Every build reads a split's InputTensor and its Desc at once; the build of level 2_1 compares the sizes of "
        "outputs and input before it looks at anything else.",
        lambda: replace(eg.split(), input_tensor=None),
        lambda: eg.split(),
        "1.15.4",
    ),
    OperatorType.JOIN: _rule(
        OperatorType.JOIN,
        "Every build compares the sizes of a join's inputs and output before it looks at anything else.",
        lambda: JoinOperatorDesc(None, eg.tensor(eg.WHOLE), 2, input_count=1),
        lambda: eg.join(lengths=(6,)),
        "1.15.4",
    ),
}
"""Asked before any other rule; what they find leaves out the rules that it implies."""
