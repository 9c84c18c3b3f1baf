"""Rules of operators other than Split and Join: what recorded tables say about a target, and what no build checks.

A target represented by several builds refuses what all of them refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Basis, Severity
from dmlsplit.descriptors.enums import FeatureLevel, TensorDataType
from dmlsplit.descriptors.location import Step
from dmlsplit.descriptors.schema import Member, enumerators
from dmlsplit.rules._any_view import AnyOperatorRule, AnyView, example, steps_to
from dmlsplit.rules._examples import tensor
from dmlsplit.rules._model import Finding, Findings, type_name
from dmlsplit.rules._operator_ends import ends, first_beyond
from dmlsplit.rules._sources import HEADER, OBSERVED, OURS, Source
from dmlsplit.rules._windows import WINDOWS, window_sizes
from dmlsplit.targets.operator_support import operator_support, recorded_values
from dmlsplit.targets.relations import Part, Relation

PAGES: Final = Source(
    "the operators' pages, Tensor support", "https://learn.microsoft.com/windows/win32/api/directml/#structures"
)
_BEYOND: Final = 100
"""The value with which builds were tested for all values that are in no enum."""


def _gather(indices: tuple[int, ...], dimensions: int, axis: int = 3) -> AnyOperatorDesc:
    return example(
        "GATHER",
        IndicesTensor=tensor(indices, TensorDataType.UINT32),
        OutputTensor=tensor((1, 2, 3, 2)),
        Axis=axis,
        IndexDimensions=dimensions,
    )


def _pooling(height: int) -> AnyOperatorDesc:
    return example(
        "MAX_POOLING",
        InputTensor=tensor((1, 2, 4, 4)),
        OutputTensor=tensor((1, 2, height, 2)),
        Strides=(2, 2),
        WindowSize=(2, 2),
        StartPadding=(0, 0),
        EndPadding=(0, 0),
    )


def _reduce(count: int) -> AnyOperatorDesc:
    axes: dict[str, Any] = {"Function": "SUM", "Axes": (3,), "AxisCount": count}
    return example("REDUCE", OutputTensor=tensor((1, 2, 3, 1)), **axes)


@AnyOperatorRule(
    "operator/not-in-target",
    "The operator is newer than the feature level, or the release does not have it.",
    "CreateOperator refuses a DML_OPERATOR_TYPE that the build does not know. Each operator was introduced with a "
    "feature level; two builds that report 5_0 have the operators of 5_1.",
    (HEADER, OBSERVED),
    of_tensors=True,
    bad=lambda: example("ACTIVATION_GELU"),
    good=lambda: example("ACTIVATION_RELU"),
    examples_for=FeatureLevel.FL_5_0,
)
def not_in_target(o: AnyView) -> Findings:
    if not o.support.facts:
        since = o.schema.since
        message = f"{o.schema.c_name} was introduced with feature level {since}; {o.target.name} does not have it"
        yield Finding("Type", message, str(since), o.schema.c_name)


@AnyOperatorRule(
    "operator/array-null",
    "An array is a null pointer, and its count is not 0.",
    "DirectML reads as many entries as the count says. For most arrays, the builds dereference the null pointer and "
    "crash the process; for others, they refuse it.",
    (HEADER, OBSERVED),
    ends=True,
    bad=lambda: example("REDUCE", Function="SUM", OutputTensor=tensor((1, 2, 3, 1)), Axes=None, AxisCount=1),
    good=lambda: _reduce(1),
)
def array_null(o: AnyView) -> Findings:
    for member in _arrays(o):
        count = o.members[member.count]
        if o.members[member.name] is None and count and not member.optional:
            yield Finding(member.name, f"is null, and {member.count} is {count}", f"an array of {count} entries", None)


@AnyOperatorRule(
    "operator/count-exceeds-array",
    "A count is larger than the length of its array.",
    "DirectML would read past the end of the array, which is undefined behaviour; no error is guaranteed.",
    (HEADER,),
    ends=True,
    bad=lambda: _reduce(2),
    good=lambda: _reduce(1),
)
def count_exceeds_array(o: AnyView) -> Findings:
    for member in _arrays(o):
        array, count = o.members[member.name], o.members[member.count]
        if array is not None and count > len(array):
            message = f"is {count}, {member.name} has {len(array)} entries; DirectML would read past its end"
            yield Finding(member.count, message, len(array), count)


def _arrays(o: AnyView) -> Iterator[Member]:
    return (member for member in o.schema.members if member.count)


@AnyOperatorRule(
    "operator/ends-the-process",
    "The build does not return from CreateOperator: it reads or writes outside an array, or divides by zero.",
    "Observed on every build that was asked, or on builds of some levels. Causes are: a GATHER whose IndexDimensions "
    "exceeds the number of dimensions up to its Axis, or is less than the number of its indices' dimensions; indices "
    "of a SCATTER_ND that are longer than InputDimensionCount; a BlockSize whose square is 0 in 32 bits; "
    "PARAMETERIZED_RELU fused into a convolution; HeadCount 0; quantization tensors with unsuitable ranks or sizes. "
    "The outcome depends on memory: some of these are sometimes refused instead.",
    (OBSERVED,),
    basis=Basis.OBSERVED,
    ends=True,
    bad=lambda: _gather((1, 1, 2, 2), 2, 0),
    good=lambda: _gather((1, 1, 1, 2), 1),
    examples_for="1.15.4",
)
def ends_the_process(o: AnyView) -> Findings:
    yield from ends(o)


@AnyOperatorRule(
    "operator/indices-beyond-dimensions",
    "The indices of a GATHER have sizes other than 1 before their last IndexDimensions.",
    "Builds refuse most of these descriptors; some crash the process, for example IndexDimensions 1 with sizes 2, 1, "
    "1, 2.",
    (OBSERVED,),
    severity=Severity.WARNING,
    basis=Basis.OBSERVED,
    bad=lambda: _gather((2, 1, 1, 2), 1),
    good=lambda: _gather((1, 1, 1, 2), 1),
)
def indices_beyond_dimensions(o: AnyView) -> Findings:
    indices = o.tensors.get("IndicesTensor")
    if o.schema.name != "GATHER" or indices is None:
        return
    count = o.members["IndexDimensions"]
    i = first_beyond(indices, count)
    if i is not None:
        size = (indices.sizes or ())[i]
        message = f"is {size}, before the last IndexDimensions ({count}): builds refuse this, or crash"
        yield Finding(("IndicesTensor", "Sizes", i), message, 1, size)


@AnyOperatorRule(
    "operator/tensor-missing",
    "A tensor that is not optional is a null pointer.",
    "Every build refuses the operator.",
    (HEADER, OBSERVED),
    bad=lambda: example("ELEMENT_WISE_ADD", BTensor=None),
    good=lambda: example("ELEMENT_WISE_ADD"),
)
def tensor_missing(o: AnyView) -> Findings:
    for member in o.schema.members:
        if member.type == "tensor" and not member.optional and o.members[member.name] is None:
            yield Finding(member.name, "is null, but not optional", "a tensor", None)


@AnyOperatorRule(
    "operator/data-type-not-supported",
    "The target does not accept a tensor's data type.",
    "`dmlsplit support OPERATOR` shows the operator's table.",
    (OBSERVED, PAGES),
    basis=Basis.OBSERVED,
    of_tensors=True,
    bad=lambda: example("ELEMENT_WISE_ACOS", InputTensor=tensor((1, 2, 3, 4), TensorDataType.INT32)),
    good=lambda: example("ELEMENT_WISE_ACOS"),
)
def data_type_not_supported(o: AnyView) -> Findings:
    if o.facts is None:
        return
    for relation in o.type_relations(o.facts):
        for name, allowed in _outside(relation, o.types):
            words = " ".join(type_name(TensorDataType(each)) for each in allowed) or "none"
            given = _type_text(o.types[name])
            yield Finding(_type_steps(o, name), f"is {given}; {o.target.name} accepts {words}", words, given)


@AnyOperatorRule(
    "operator/data-type-mismatch",
    "The target does not accept the combination of two tensors' data types.",
    "Some tensors must have the same type, others a matching one: `dmlsplit support OPERATOR` shows the operator's "
    "table.",
    (OBSERVED, PAGES),
    basis=Basis.OBSERVED,
    of_tensors=True,
    bad=lambda: example("ELEMENT_WISE_ADD", BTensor=tensor((1, 2, 3, 4), TensorDataType.INT32)),
    good=lambda: example("ELEMENT_WISE_ADD"),
)
def data_type_mismatch(o: AnyView) -> Findings:
    if o.facts is None:
        return
    for relation in o.type_relations(o.facts):
        for name, other, allowed in _together(relation, o.types):
            words = " ".join(type_name(TensorDataType(each)) for each in allowed) or "another"
            given = _type_text(o.types[name])
            message = f"is {given}, but {other} is {_type_text(o.types[other])}, which requires {words}"
            yield Finding(_type_steps(o, name), message, words, given)


def _type_steps(o: AnyView, name: str) -> tuple[Step, ...]:
    return steps_to(name, "DataType") if name in o.tensors else (name,)


def _type_text(value: int) -> str:
    known = {int(each) for each in TensorDataType}
    return type_name(TensorDataType(value)) if value in known else str(value)


@AnyOperatorRule(
    "operator/dimension-count-not-supported",
    "The target does not accept a tensor's number of dimensions.",
    "`dmlsplit support OPERATOR` shows the operator's table.",
    (OBSERVED, PAGES),
    basis=Basis.OBSERVED,
    of_tensors=True,
    bad=lambda: example("ACTIVATION_RELU", InputTensor=tensor((1, 2, 3)), OutputTensor=tensor((1, 2, 3))),
    good=lambda: example("ACTIVATION_RELU"),
    examples_for=FeatureLevel.FL_2_1,
)
def dimension_count_not_supported(o: AnyView) -> Findings:
    if o.facts is None:
        return
    for name, allowed in _outside(o.facts.ranks, o.ranks):
        words = ", ".join(map(str, allowed))
        message = f"is {o.ranks[name]}; {o.target.name} accepts {words}"
        yield Finding(steps_to(name, "DimensionCount"), message, words, o.ranks[name])


@AnyOperatorRule(
    "operator/dimension-count-mismatch",
    "The target does not accept the combination of two tensors' numbers of dimensions.",
    "DirectML does not add leading dimensions of size 1.",
    (OBSERVED, PAGES),
    basis=Basis.OBSERVED,
    of_tensors=True,
    bad=lambda: example("ELEMENT_WISE_ADD", BTensor=tensor((2, 3, 4))),
    good=lambda: example("ELEMENT_WISE_ADD"),
)
def dimension_count_mismatch(o: AnyView) -> Findings:
    if o.facts is None:
        return
    for name, other, allowed in _together(o.facts.ranks, o.ranks):
        words = ", ".join(map(str, allowed)) or "another"
        message = f"is {o.ranks[name]}, but {other} has {o.ranks[other]}, which requires {words}"
        yield Finding(steps_to(name, "DimensionCount"), message, words, o.ranks[name])


@AnyOperatorRule(
    "operator/sizes-differ",
    "The sizes of two tensors differ, although all tensors of the operator must have the same sizes.",
    "DirectML does not broadcast automatically: to repeat a dimension of size 1, give the full size and a stride of 0.",
    (OBSERVED, PAGES),
    basis=Basis.OBSERVED,
    of_tensors=True,
    bad=lambda: example("ELEMENT_WISE_ADD", BTensor=tensor((1, 2, 3, 1))),
    good=lambda: example("ELEMENT_WISE_ADD", BTensor=tensor((1, 2, 3, 4), strides=(6, 3, 1, 0))),
)
def sizes_differ(o: AnyView) -> Findings:
    if o.facts is None or not o.facts.same_sizes or not o.tensors:
        return
    (first, whole), *others = o.tensors.items()
    for name, each in others:
        if each.dimension_count != whole.dimension_count or not (each.sizes and whole.sizes):
            continue
        for i, (size, expected) in enumerate(zip(each.sizes, whole.sizes, strict=False)):
            if size != expected:
                yield Finding(steps_to(name, "Sizes", i), f"is {size}, but {first} has {expected}", expected, size)


def _outside(relation: Relation, values: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields each member in `values` whose value is in no combination of the relation, with the values that it may
    have."""
    for name in values:
        allowed = relation.values_of(name)
        if relation.part_of(name) is not None and values[name] not in allowed:
            yield name, allowed


def _together(relation: Relation, values: Mapping[str, int]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yields, for each part of the relation whose values are accepted one by one but not together: a member, another
    member, and the values that the first may have with the other's value."""
    for part in relation.parts:
        if part.has(values) or any(True for _ in _outside(Relation((part,)), values)):
            continue
        named = [[name for name in group if name in values] for group in part.groups]
        found = _unequal(part, named, values)
        if found is not None:
            yield found


def _unequal(
    part: Part, named: Sequence[Sequence[str]], values: Mapping[str, int]
) -> tuple[str, str, tuple[int, ...]] | None:
    for group in named:
        for name in group[1:]:
            if values[name] != values[group[0]]:
                return name, group[0], (values[group[0]],)
    present = [group[0] for group in named if group]
    name, other = present[-1], present[0]
    rest = {each: values[each] for each in present[:-1]}
    allowed = [each for each in Relation((part,)).values_of(name) if part.has({**rest, name: each})]
    return name, other, tuple(allowed)


@AnyOperatorRule(
    "operator/value-not-supported",
    "The target refuses the value of an enum, or a fused activation.",
    "Newer builds accept more of them. A CONVOLUTION with a FusedActivation that the build does not know as an "
    "activation returns E_UNEXPECTED instead of E_INVALIDARG.",
    (OBSERVED,),
    basis=Basis.OBSERVED,
    bad=lambda: _padded("WRAP"),
    good=lambda: _padded("EDGE"),
    examples_for=FeatureLevel.FL_6_2,
)
def value_not_supported(o: AnyView) -> Findings:
    for member, taken in _asked_values(o):
        value = o.members[member.name]
        if member.type == "enum":
            names = {number: name for name, number in enumerators(member.enum).items()}
            if value in names and value not in taken and value in recorded_values(o.schema, member.name):
                message = f"is {names[value]}, which {o.target.name} refuses"
                yield Finding(member.name, message, _named(names, taken), names[value])
        elif member.type in ("operator", "operators"):
            entries = value if isinstance(value, tuple) else (value,)
            for i, each in enumerate(entries):
                if isinstance(each, AnyOperatorDesc) and each.operator.number not in taken:
                    steps = (member.name, i, "Type") if member.type == "operators" else (member.name, "Type")
                    message = f"{o.target.name} does not fuse {each.operator.c_name} into {o.schema.c_name}"
                    yield Finding(steps, message, "another activation", each.operator.c_name)


@AnyOperatorRule(
    "operator/value-unknown",
    "A value is not in its enum, or is not a BOOL, and the target refuses it.",
    "Builds check the values of most enums; operator/value-unchecked reports values that they do not check.",
    (HEADER, OBSERVED),
    bad=lambda: _padded(100),
    good=lambda: _padded("EDGE"),
)
def value_unknown(o: AnyView) -> Findings:
    for member, value, taken, words in _unknown_values(o):
        if not taken:
            yield Finding(member.name, f"is {value}, {words}", words.removeprefix("expected "), value)


@AnyOperatorRule(
    "operator/value-unchecked",
    "A value is not in its enum, or is not a BOOL, but the target accepts it.",
    "CreateOperator does not check the value. The operator's behaviour is then not defined.",
    (OURS, OBSERVED),
    severity=Severity.WARNING,
    basis=Basis.OURS,
    bad=lambda: _cumulated(2),
    good=lambda: _cumulated(1),
)
def value_unchecked(o: AnyView) -> Findings:
    for member, value, taken, words in _unknown_values(o):
        if taken:
            message = f"is {value}, {words}; {o.target.name} accepts it unchecked"
            yield Finding(member.name, message, words.removeprefix("expected "), value)


def _padded(mode: str | int) -> AnyOperatorDesc:
    paddings: dict[str, Any] = {"StartPadding": (0, 0, 1, 0), "EndPadding": (0, 0, 1, 0)}
    output = tensor((1, 2, 5, 4))
    return example("PADDING", OutputTensor=output, PaddingMode=mode, PaddingValue=0.0, **paddings)


def _cumulated(exclusive: int) -> AnyOperatorDesc:
    return example("CUMULATIVE_SUMMATION", Axis=3, AxisDirection="INCREASING", HasExclusiveSum=exclusive)


def fuses_no_activation(o: AnyView) -> bool:
    """True if a CONVOLUTION has a fused operator that the target lacks, or does not accept as an activation."""
    fused = o.members.get("FusedActivation") if o.schema.name == "CONVOLUTION" else None
    if not isinstance(fused, AnyOperatorDesc):
        return False
    name = fused.operator.name
    by = o.target.release or o.target.feature_level
    there = name.startswith("ACTIVATION_") and bool(operator_support(fused.operator, by).facts)
    return not there or name == "ACTIVATION_RELU_GRAD"


def _asked_values(o: AnyView) -> Iterator[tuple[Member, frozenset[int]]]:
    if o.facts is not None:
        for member in o.schema.members:
            if member.name in o.facts.values:
                yield member, o.facts.values[member.name]


def _unknown_values(o: AnyView) -> Iterator[tuple[Member, int, bool, str]]:
    """Yields (member, value, True if the target accepts it, what was expected) for each enum or bool whose value has no
    name."""
    for member, taken in _asked_values(o):
        value = o.members[member.name]
        if member.type == "bool" and value > 1:
            yield member, value, 2 in taken, "expected 0 or 1"
        elif member.type == "enum" and value not in enumerators(member.enum).values():
            asked = value if value == 2**32 - 1 else _BEYOND
            yield member, value, asked in taken, f"expected one of {member.enum}"


def _named(names: Mapping[int, str], numbers: frozenset[int]) -> str:
    return " ".join(names[each] for each in sorted(numbers) if each in names)


@AnyOperatorRule(
    "operator/window-size",
    "The output's height or width does not follow from the window, its strides and the padding.",
    "CreateOperator does not check the spatial sizes of these operators. A larger output is computed from elements "
    "after the end of the padded input.",
    (OURS, OBSERVED),
    severity=Severity.WARNING,
    basis=Basis.OURS,
    bad=lambda: _pooling(3),
    good=lambda: _pooling(2),
)
def window_size(o: AnyView) -> Findings:
    window = WINDOWS.get(o.schema.name)
    if window is None:
        return
    for tensor_name, i, expected, actual in window_sizes(window, o.members, o.tensors):
        message = f"is {actual}, the window gives {expected}; {o.target.name} does not check it"
        yield Finding((tensor_name, "Sizes", i), message, expected, actual)


__all__ = ["AnyOperatorRule", "AnyView", "fuses_no_activation"]
