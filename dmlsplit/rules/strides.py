"""Rules about Strides: their number, DirectML's checks of an output's layout, and the overlaps that it accepts."""

from __future__ import annotations

import math
from typing import Final

from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.layout import elements_overlap, extent
from dmlsplit.rules import _examples as eg
from dmlsplit.rules._model import Finding, Findings, TensorRule
from dmlsplit.rules._sources import BUFFER_DESC, HEADER, OBSERVED, OURS, STRIDES_PAGE
from dmlsplit.rules._views import DIMENSIONS, LAYOUT_SIZES, Aspect, TensorView

_LAYOUT: Final = LAYOUT_SIZES | {Aspect.STRIDES_GIVEN, Aspect.STRIDES, Aspect.LAYOUT, Aspect.OUTPUT}
_PLACES: Final = _LAYOUT | {Aspect.ELEMENT_COUNT}
_OVERLAP: Final = "The order of writes to overlapping elements is not defined, so the result is a race on a GPU."
# Neither nested nor dense, and too large for the search: 537,600 elements over more than 4 * 10^9 places.
_UNDECIDED: Final = (8, 7, 8, 10, 10, 12), (71189247, 86866478, 130923340, 126580591, 107794138, 14629924)


@TensorRule(
    "tensor/strides-too-few",
    "Strides has fewer entries than DimensionCount says.",
    "DirectML would read past the end of the array, which is undefined behaviour; no error is guaranteed.",
    undefined=True,
    sources=(HEADER, BUFFER_DESC),
    needs=DIMENSIONS | {Aspect.STRIDES_GIVEN},
    spoils={Aspect.STRIDES},
    bad=lambda: eg.split(strides=(12, 2, 1), total_tensor_size_in_bytes=48),
    good=lambda: eg.split(strides=(12, 12, 2, 1)),
)
def strides_too_few(t: TensorView) -> Findings:
    assert t.strides is not None
    if len(t.strides) != t.desc.dimension_count:
        actual, expected = len(t.strides), t.desc.dimension_count
        yield Finding("Strides", f"has {actual} entries, but DimensionCount is {expected}", expected, actual)


@TensorRule(
    "tensor/strides-too-many",
    "Strides has more entries than DimensionCount says.",
    "DirectML ignores the surplus entries, so the layout differs from what the array suggests.",
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS, BUFFER_DESC),
    needs=DIMENSIONS | {Aspect.STRIDES_GIVEN},
    bad=lambda: eg.split(strides=(12, 12, 2, 1, 1), total_tensor_size_in_bytes=48),
    good=lambda: eg.split(strides=(12, 12, 2, 1)),
)
def strides_too_many(t: TensorView) -> Findings:
    actual, expected = len(t.desc.strides or ()), t.desc.dimension_count
    if actual > expected:
        yield Finding("Strides", f"has {actual} entries; DirectML reads only {expected}", expected, actual)


@TensorRule(
    "tensor/output-stride-zero",
    "An output has stride 0 in a dimension larger than 1.",
    "A stride of 0 broadcasts, which is only possible for inputs. Dimensions of size 1 may have any stride.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED, STRIDES_PAGE),
    needs=_LAYOUT,
    spoils={Aspect.LAYOUT},
    bad=lambda: eg.copy_to((1, 1, 6, 2), strides=(0, 0, 0, 1)),
    good=lambda: eg.copy_to((1, 1, 1, 2), strides=(0, 0, 0, 1)),
)
def output_stride_zero(t: TensorView) -> Findings:
    assert t.strides is not None
    for i, (size, stride) in enumerate(zip(t.sizes, t.strides, strict=True)):
        if stride == 0 and size > 1:
            message = f"is 0 in a dimension of size {size}: all its elements would be at one position"
            yield Finding(("Strides", i), message, 1, 0)


@TensorRule(
    "tensor/output-strides-equal",
    "Two dimensions of an output, both larger than 1, have the same stride.",
    "Elements (1, 0) and (0, 1) of the two dimensions would be at the same position.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    needs=_LAYOUT,
    spoils={Aspect.LAYOUT},
    bad=lambda: eg.copy_to((1, 1, 6, 2), strides=(0, 0, 7, 7)),
    good=lambda: eg.copy_to((1, 1, 6, 2), strides=(0, 0, 7, 6)),
)
def output_strides_equal(t: TensorView) -> Findings:
    assert t.strides is not None
    first: dict[int, int] = {}
    for i, (size, stride) in enumerate(zip(t.sizes, t.strides, strict=True)):
        if size > 1 and first.setdefault(stride, i) != i:
            message = (
                f"is {stride}, which is also the stride of dimension {first[stride]}: elements would share positions"
            )
            yield Finding(("Strides", i), message, f"not {stride}", stride)


@TensorRule(
    "tensor/output-span-too-small",
    "An output's strides span fewer positions than it has elements.",
    "Some elements then share a position. DirectML applies this pigeonhole test, which is weaker than a test for "
    "overlap.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    needs=_PLACES,
    spoils={Aspect.LAYOUT},
    bad=lambda: eg.copy_to((1, 1, 3, 4), strides=(0, 0, 2, 1)),
    good=lambda: eg.copy_to((1, 1, 3, 4), strides=(0, 0, 4, 1)),
)
def output_span_too_small(t: TensorView) -> Findings:
    assert t.strides is not None
    count, places = math.prod(t.sizes), extent(t.sizes, t.strides)
    if count > places:
        yield Finding("Strides", f"give {count} elements only {places} positions", count, places)


@TensorRule(
    "tensor/output-span-wraps",
    "An output spans so many positions that the release's count of them wraps.",
    "Releases count the span in 32 bits up to DirectML 1.12.0, and later as bytes or bits in 64 bits. They compare "
    "the number of elements with the wrapped count, and so refuse valid strides. A tensor of that extent has no "
    "legal total size anyway.",
    basis=Basis.OBSERVED,
    sources=(OBSERVED,),
    needs=_PLACES | {Aspect.DATA_TYPE},
    spoils={Aspect.LAYOUT, Aspect.SPAN},
    limit=True,
    bad=lambda: eg.copy_to((1, 1, 2, 2), strides=(0, 0, 2**32 - 1, 1), total_tensor_size_in_bytes=16),
    good=lambda: eg.copy_to((1, 1, 2, 2), strides=(0, 0, 2**30, 1)),
    examples_for="1.8.0",
)
def output_span_wraps(t: TensorView) -> Findings:
    count, exact = math.prod(t.sizes), extent(t.sizes, t.strides)
    places = t.target.arithmetic.extent(t.bits, t.sizes, t.strides)
    if count > places and count <= exact:
        message = f"span {exact} positions, which the release counts as {places}, fewer than the {count} elements"
        yield Finding("Strides", message, count, places)


@TensorRule(
    "tensor/output-elements-overlap",
    "Elements of an output overlap although DirectML accepts the strides.",
    "The observed builds check for equal strides and for too small a span, but miss other overlaps, for example "
    "{1,1,4,3} with strides {1,1,2,3}. " + _OVERLAP,
    basis=Basis.OURS,
    sources=(OURS, OBSERVED),
    needs=_PLACES,
    bad=lambda: eg.copy_to((1, 1, 4, 3), strides=(1, 1, 2, 3)),
    good=lambda: eg.copy_to((1, 1, 3, 2), strides=(1, 1, 2, 3)),
)
def output_elements_overlap(t: TensorView) -> Findings:
    if elements_overlap(t.sizes, t.strides):
        message = f"let elements of {list(t.sizes)} overlap; DirectML accepts this, and the order of writes is a race"
        yield Finding("Strides", message, "strides without overlap", str(list(t.strides or ())))


@TensorRule(
    "tensor/output-overlap-undecided",
    "The search for overlapping elements of an output stopped without a result.",
    "If strides are not nested, overlaps have to be searched for, and the search stops at a limit. " + _OVERLAP,
    severity=Severity.WARNING,
    basis=Basis.OURS,
    sources=(OURS,),
    needs=_PLACES,
    bad=lambda: eg.copy_to(_UNDECIDED[0], TensorDataType.UINT8, strides=_UNDECIDED[1]),
    good=lambda: eg.copy_to((1, 1, 3, 2), strides=(1, 1, 2, 3)),
)
def output_overlap_undecided(t: TensorView) -> Findings:
    if elements_overlap(t.sizes, t.strides) is None:
        message = "may make elements overlap: the search stopped without a result, and the emulation does not run it"
        yield Finding("Strides", message, "strides without overlap", str(list(t.strides or ())))
