"""Judging a descriptor: runs the rules and predicts CreateOperator's HRESULT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from dmlsplit.descriptors import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.enums import FeatureLevel, HResult, OperatorType
from dmlsplit.feature_levels import tensor_support
from dmlsplit.releases import NEWEST, Release, find_release, release_of_level, releases
from dmlsplit.rules import (
    CRASH_RULES,
    OPERATOR_RULES,
    RULES,
    TENSOR_RULES,
    Judge,
    Member,
    OperatorView,
    Rule,
    TensorView,
)

_OPERATORS: Final = (OperatorType.SPLIT, OperatorType.JOIN)


@cache
def level_judge(level: FeatureLevel) -> Judge:
    """The verdict by feature level: the documented tables and rules, and what every build observed refuses."""
    support = {operator: tensor_support(operator, level) for operator in _OPERATORS}
    build = release_of_level(level)
    return Judge(f"feature level {level}", level, support, builds=support if build is None else build.support)


@cache
def release_judge(release: Release) -> Judge:
    """The verdict of one release, its own arithmetic and codes included."""
    return Judge(
        release.judged_by,
        release.max_feature_level,
        release.support,
        release.support,
        release,
        release.traits.arithmetic,
        release.traits.total_counts_whole_elements,
        release.invalid_argument,
    )


def find_judge(feature_level: FeatureLevel | int | str | None = None, directml: Release | str | None = None) -> Judge:
    """The judge of a feature level or of a release; the newest release where neither is given.

    ValueError where both are given or the name is unknown; it offers what is known.
    """
    if feature_level is not None and directml is not None:
        raise ValueError("feature_level and directml exclude each other")
    if feature_level is not None:
        return level_judge(FeatureLevel.parse(feature_level))
    return release_judge(NEWEST if directml is None else find_release(directml))


def validate(
    desc: OperatorDesc,
    *,
    feature_level: FeatureLevel | int | str | None = None,
    directml: Release | str | None = None,
) -> Report:
    """Judges a descriptor by a feature level or by a DirectML release (the newest known where neither is given).

    By feature level: the documented tables and rules, and what every build observed refuses. By release: what that
    build answers, as `hresult` (None where the call ends the process). The report holds every fault, in descriptor
    order.

    Raises ValueError for an unknown level or release or for both at once, TypeError for what is no descriptor of a
    Split or Join.
    """
    return judge(desc, find_judge(feature_level, directml))


def operator_type(desc: OperatorDesc) -> OperatorType:
    """SPLIT or JOIN; TypeError for anything else."""
    if isinstance(desc, SplitOperatorDesc):
        return OperatorType.SPLIT
    if isinstance(desc, JoinOperatorDesc):
        return OperatorType.JOIN
    raise TypeError(f"{type(desc).__name__} is not a SplitOperatorDesc or JoinOperatorDesc")


# (rule, check, reads, marks), the masks as plain integers: the loops over these tables are the cost of a judgement.
_Checks: TypeAlias = tuple[tuple[Rule, Any, int, int], ...]
_TENSOR_CHECKS: Final[_Checks] = tuple(
    (rule, rule.tensor_check, int(rule.reads), int(rule.marks)) for rule in TENSOR_RULES if rule.tensor_check
)
_OPERATOR_CHECKS: Final[dict[OperatorType, _Checks]] = {
    kind: tuple((rule, rule.operator_check, int(rule.reads), int(rule.marks)) for rule in rules if rule.operator_check)
    for kind, rules in OPERATOR_RULES.items()
}
# Those that hold whatever a level or build takes.
_TENSOR_CHECKS_WITHOUT_LIMITS: Final = tuple(check for check in _TENSOR_CHECKS if not check[0].limit)
_OPERATOR_CHECKS_WITHOUT_LIMITS: Final = {
    kind: tuple(check for check in checks if not check[0].limit) for kind, checks in _OPERATOR_CHECKS.items()
}


def judge(desc: OperatorDesc, judge: Judge) -> Report:
    """The report of one judge."""
    operator = _view(desc, judge)
    found: list[Diagnostic] = []
    crashes = judge.release is not None and _crashes(operator, found)
    sound: set[BufferTensorDesc] = set()
    for tensor in (operator.whole, *operator.parts):
        _judge_tensor(tensor, _TENSOR_CHECKS, sound, found)
    _judge_operator(operator, _OPERATOR_CHECKS[operator.type], found)
    refused = any(d.severity is Severity.ERROR and d.basis is not Basis.OURS for d in found)
    if len(found) > 1:
        found.sort(key=_descriptor_order)
    hresult: int | None = judge.invalid_argument if refused else HResult.S_OK
    if judge.release is not None and any(RULES[d.rule].undefined for d in found):
        hresult = None
    return Report(tuple(found), judge.name, None if crashes else hresult, operator.type.c_name)


def faults(desc: OperatorDesc) -> tuple[Diagnostic, ...]:
    """The errors that a descriptor has in itself, in descriptor order: no other descriptor does the same work.

    What a level or build merely does not take is none: ranks, data types, sizes of 0, too many elements or bytes. Of a
    tensor without elements only what its relation to the others needs is looked at.
    """
    operator = _view(desc, level_judge(max(FeatureLevel)))
    found: list[Diagnostic] = []
    sound: set[BufferTensorDesc] = set()
    for tensor in (operator.whole, *operator.parts):
        if 0 in tensor.sizes:
            tensor.failed |= int(Member.STRIDES)
        # No dimensions at all are a fault, too many of them are not.
        checks = _TENSOR_CHECKS_WITHOUT_LIMITS if tensor.desc.dimension_count else _TENSOR_CHECKS
        _judge_tensor(tensor, checks, sound, found)
    _judge_operator(operator, _OPERATOR_CHECKS_WITHOUT_LIMITS[operator.type], found)
    return in_descriptor_order([d for d in found if d.severity is Severity.ERROR])


def _crashes(operator: OperatorView, found: list[Diagnostic]) -> bool:
    """Whether the release ends the process; appends where."""
    rule = CRASH_RULES[operator.type]
    findings = rule.operator_check(operator) if rule.operator_check else None
    found += [rule.diagnostic(f.member, f.message, expected=f.expected, actual=f.actual) for f in findings or ()]
    return bool(findings)


def _view(desc: OperatorDesc, judge: Judge) -> OperatorView:
    kind = operator_type(desc)
    inputs, outputs = judge.support[kind]
    array: Sequence[TensorDesc | None] | None
    if isinstance(desc, SplitOperatorDesc):
        whole = TensorView("InputTensor", desc.input_tensor, False, inputs, judge)
        array, count, path, is_output, support = (
            desc.output_tensors,
            desc.output_count,
            "OutputTensors",
            True,
            outputs,
        )
    else:
        whole = TensorView("OutputTensor", desc.output_tensor, True, outputs, judge)
        array, count, path, is_output, support = desc.input_tensors, desc.input_count, "InputTensors", False, inputs
    parts = [
        TensorView(f"{path}[{i}]", tensor, is_output, support, judge) for i, tensor in enumerate((array or ())[:count])
    ]
    return OperatorView(kind, whole, parts, array, count, desc.axis, judge)


def _judge_tensor(tensor: TensorView, checks: _Checks, sound: set[BufferTensorDesc], found: list[Diagnostic]) -> None:
    """Appends the tensor's faults. `sound`: part descriptors known to have none; thousands of them are often equal."""
    known = tensor.path.endswith("]") and tensor.tensor is not None and tensor.tensor.type == 1
    if known and tensor.desc in sound:
        return
    before = len(found)
    for rule, check, reads, marks in checks:
        if reads & tensor.failed:
            continue
        findings = check(tensor)
        if findings:
            tensor.failed |= marks
            for f in findings:
                path = f"{tensor.path}.{f.member}" if f.member else tensor.path
                found.append(rule.diagnostic(path, f.message, expected=f.expected, actual=f.actual))
    if known and len(found) == before:
        sound.add(tensor.desc)


def _judge_operator(operator: OperatorView, checks: _Checks, found: list[Diagnostic]) -> None:
    for rule, check, reads, marks in checks:
        if reads & operator.failed:
            continue
        findings = check(operator)
        if findings:
            operator.failed |= marks
            found += [rule.diagnostic(f.member, f.message, expected=f.expected, actual=f.actual) for f in findings]


_MEMBER_ORDER: Final = {
    name: i
    for i, name in enumerate(
        (
            "InputTensor",
            "OutputCount",
            "OutputTensors",
            "InputCount",
            "InputTensors",
            "OutputTensor",
            "Axis",
            "Type",
            "Desc",
            "DataType",
            "Flags",
            "DimensionCount",
            "Sizes",
            "Strides",
            "TotalTensorSizeInBytes",
            "GuaranteedBaseOffsetAlignment",
        )
    )
}


def in_descriptor_order(*groups: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics in the order of the members that they are about."""
    return tuple(sorted((d for group in groups for d in group), key=_descriptor_order))


def _descriptor_order(diagnostic: Diagnostic) -> tuple[tuple[int, int], ...]:
    """Orders paths as the members stand in the C structs; a member comes before its own entries."""
    return tuple(
        (_MEMBER_ORDER[step["name"]], -1 if step["index"] is None else int(step["index"]))
        for step in re.finditer(r"(?P<name>\w+)(?:\[(?P<index>\d+)\])?", diagnostic.path)
    )


def supported_feature_levels(desc: OperatorDesc) -> tuple[FeatureLevel, ...]:
    """The feature levels that take the descriptor (its report is `ok` there), the lowest first."""
    return tuple(level for level in FeatureLevel if judge(desc, level_judge(level)).ok)


def minimum_feature_level(desc: OperatorDesc) -> FeatureLevel | None:
    """The lowest feature level that takes the descriptor; None where none does."""
    return next((level for level in FeatureLevel if judge(desc, level_judge(level)).ok), None)


def supported_releases(desc: OperatorDesc) -> tuple[Release, ...]:
    """The observed releases that take the descriptor (its report is `ok` there), the oldest first."""
    return tuple(release for release in releases() if judge(desc, release_judge(release)).ok)
