"""What a release reads before it checks anything: there a call ends the process instead of returning.

Observed with every array ending at an unreadable page. On a user's machine a read past an array is undefined behaviour,
not a promised crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from dmlsplit.descriptors import JoinOperatorDesc, OperatorDesc
from dmlsplit.diagnostics import Basis, Severity
from dmlsplit.enums import OperatorType
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import OBSERVED, Finding, Findings, Member, OperatorView, Rule, TensorView

_CRASHED: Final = int(Member.DESC | Member.UNREAD)


def _reads_before_checking(o: OperatorView) -> Findings:
    release = o.judge.release
    if release is None:
        return None
    whole = o.whole
    if whole.tensor is None or whole.tensor.desc is None:
        return _crash(whole, "" if whole.tensor is None else "Desc")
    walks = o.type is OperatorType.JOIN or release.traits.split_walks_sizes_unchecked
    refused_first = o.type is OperatorType.SPLIT and whole.desc.dimension_count not in whole.support.dimension_counts
    if not walks or refused_first or o.count == 0 or o.axis >= whole.desc.dimension_count:
        return None
    if o.array is None:
        o.failed |= Member.ARRAY
        return [Finding(o.array_name, f"is null: {_CRASH}", "a pointer", None)]
    return _walk(o)


def _walk(o: OperatorView) -> Findings:
    """The comparison of sizes that comes before the tensors themselves are checked."""
    sizes = o.whole.desc.sizes
    for part in o.parts:
        if part.tensor is None or part.tensor.desc is None:
            return _crash(part, "" if part.tensor is None else "Desc")
        if o.type is OperatorType.SPLIT and part.desc.dimension_count != o.whole.desc.dimension_count:
            return None  # refused; a join does not compare these yet
        for d in range(part.desc.dimension_count):
            if part.desc.sizes is None or d >= len(part.desc.sizes):
                return _crash(part, "Sizes")
            if d == o.axis:
                continue
            if sizes is None or d >= len(sizes):
                return _crash(o.whole, "Sizes")
            if part.desc.sizes[d] != sizes[d]:
                return None  # refused
    return None


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
