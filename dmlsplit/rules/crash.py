"""Reads that a release performs before any check, so that a call may end the process instead of returning.

Observed with arrays that end at an unreadable page. On a user's machine a read past an array is undefined behaviour and
need not crash. If a release refuses the descriptor before such a read, its HRESULT is known.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Severity
from dmlsplit.descriptors.enums import UINT_MAX, OperatorType
from dmlsplit.descriptors.location import Step
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import Finding, Findings, operator_rules
from dmlsplit.rules._sources import OBSERVED
from dmlsplit.rules._views import Aspect, OperatorView, TensorView

_CRASH: Final = "this release crashes here"


class Refused:
    """The release refuses the descriptor before it reads further."""


REFUSED: Final = Refused()


@operator_rules(
    "split/crash",
    "join/crash",
    summary="The release dereferences a null pointer, or reads past the end of an array, before it checks the "
    "descriptor.",
    explanation="Every build first reads a split's InputTensor and its Desc. Builds of level 2_1 compare the sizes "
    "of a split's outputs and input before any other check; every build does so for a join. The call does not "
    "return, so there is no HRESULT to predict.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    spoils={Aspect.DESC, Aspect.READABLE, Aspect.ARRAY},
    bad=lambda make: eg.with_whole(make(), None),
    good=lambda make: make(),
    examples_for="1.15.4",
)
def crash(o: OperatorView, parts: Sequence[TensorView]) -> Findings:
    found = _first_looks(o)
    if isinstance(found, Finding):
        yield found


def _first_looks(o: OperatorView) -> Finding | Refused | None:
    """Returns the outcome of a release's first checks, which come before those of each tensor: the finding of a crash,
    REFUSED, or None if they pass. Also None for a target that is not a release."""
    release = o.target.release
    if release is None:
        return None
    whole = o.whole
    is_split = o.type is OperatorType.SPLIT
    if o.count == 0 and not (is_split and release.traits.split_reads_input_first):
        return REFUSED
    walks = _walks_sizes(o)
    if is_split and walks and o.axis >= max(whole.support.dimension_counts):
        return REFUSED  # before the input is read
    if whole.tensor is None or whole.tensor.desc is None:
        return _crash(whole, "" if whole.tensor is None else "Desc")
    dimensions = whole.desc.dimension_count
    if o.count == 0 or (
        dimensions not in whole.support.dimension_counts if is_split and walks else o.axis >= dimensions
    ):
        return REFUSED
    if not walks:
        return None
    if o.array is None:
        return Finding(o.array_name, f"is null: {_CRASH}", "a pointer", None)
    return _walk(o)


def _walks_sizes(o: OperatorView) -> bool:
    release = o.target.release
    return o.type is OperatorType.JOIN or (release is not None and release.traits.split_walks_sizes_unchecked)


def _walk(o: OperatorView) -> Finding | Refused | None:
    """Returns the outcome of a build's comparison of sizes, which comes before the checks of the tensors themselves:
    the finding of a crash, REFUSED, or None if the sizes agree. A split uses the input's DimensionCount for every
    output, a join each input's for the output."""
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
            # The product is 32 bits wide and compared as a signed number, hence the bound of 2^31 - 1 elements.
            if math.prod((sizes or ())[:dimensions]) % 2**32 >= 2**31:
                return REFUSED
        for d in range(dimensions):
            if sizes is None or d >= len(sizes):
                return _crash(part, "Sizes")
            if d == o.axis:
                total += sizes[d]
                if total > UINT_MAX:
                    return REFUSED
                continue
            expected = _size(o.whole, d)
            if expected is None:
                return _crash(o.whole, "Sizes")
            if sizes[d] != expected:
                return REFUSED
    if o.count > len(o.parts):
        return None  # the next tensor lies past the array's end
    expected = _size(o.whole, o.axis)
    if expected is None:
        return _crash(o.whole, "Sizes")
    tensors = (o.whole, *o.parts) if is_join else ()
    if total != expected or any(t.desc.dimension_count not in t.support.dimension_counts for t in tensors):
        return REFUSED
    return None


def _size(tensor: TensorView, d: int) -> int | None:
    """Returns the size at index `d`; None if Sizes is null or too short."""
    sizes = tensor.desc.sizes
    return None if sizes is None or d >= len(sizes) else sizes[d]


def _crash(tensor: TensorView, member: str) -> Finding:
    message = f"is read before any check: {_CRASH}"
    return Finding(member, message, "a pointer to enough readable memory", None, tensor)


_BEFORE_ARRAYS: Final = frozenset(
    {
        *("tensor/type-not-buffer", "tensor/desc-null", "tensor/data-type-unknown", "tensor/data-type-not-supported"),
        *("tensor/flags-unknown", "tensor/dimension-count-out-of-range", "tensor/sizes-null"),
    }
)
"""Rules by which a release refuses a tensor before it reads Sizes and Strides."""
_COMPARED_ELSEWHERE: Final = "tensor/dimension-count-not-supported"
"""Whether a build compares an operator's ranks before checking all tensors, or after."""


def reads_past_an_array(o: OperatorView, found: Sequence[Diagnostic]) -> bool:
    """True if a release reads past the end of an array before it refuses the operator; `found` are the operator's
    faults.

    The order of checks, observed with arrays that end at an unreadable page: first those of `_first_looks`, then each
    tensor in turn: its members up to the pointers, then Sizes, Strides and the rest.
    """
    if isinstance(_first_looks(o), Refused):
        return False
    if _walks_sizes(o) and o.count > len(o.parts):
        return True
    is_split = o.type is OperatorType.SPLIT
    output_first = is_split or (o.target.release is not None and o.target.release.traits.join_checks_output_first)
    refused: dict[tuple[Step, ...], set[str]] = {}
    for d in found:
        if d.severity is Severity.ERROR and d.basis is not Basis.OURS and d.rule.startswith("tensor/"):
            refused.setdefault(d.location.tensor, set()).add(d.rule)
    for tensor in (o.whole, *o.parts) if output_first else o.parts:
        rules = refused.get(tensor.steps, set()) - {_COMPARED_ELSEWHERE}
        if rules & _BEFORE_ARRAYS:
            return False
        if _too_short(tensor):
            return not _refused_by_sizes(tensor)
        whole, part = o.whole.desc, tensor.desc
        alike = part.data_type == whole.data_type and part.dimension_count == whole.dimension_count
        if rules or (not is_split and output_first and not alike):  # compared before the next tensor is read
            return False
    if o.array is not None and o.count > len(o.array):
        return True
    if output_first or refused.get(o.whole.steps, set()) & _BEFORE_ARRAYS:
        return False
    return _too_short(o.whole) and not _refused_by_sizes(o.whole)


def _too_short(tensor: TensorView) -> bool:
    arrays = (tensor.desc.sizes, tensor.desc.strides)
    return any(array is not None and len(array) < tensor.desc.dimension_count for array in arrays)


def _refused_by_sizes(tensor: TensorView) -> bool:
    """True if Sizes, multiplied one by one up to the first 0 or the bound, make the release refuse before it reads
    Strides."""
    return any(not 0 < product <= UINT_MAX for product in itertools.accumulate(tensor.sizes, operator.mul))
