"""Judging a descriptor: runs the rules and predicts CreateOperator's HRESULT."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from dmlsplit.descriptors import BufferTensorDesc, JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.enums import FeatureLevel, HResult, OperatorType
from dmlsplit.feature_levels import tensor_support
from dmlsplit.rules import OPERATOR_RULES, TENSOR_RULES, Judge, OperatorView, TensorView

DEFAULT_FEATURE_LEVEL: Final = max(FeatureLevel)


@cache
def level_judge(level: FeatureLevel) -> Judge:
    """The verdict by feature level: the documented tables and rules, and what every build observed refuses."""
    operators = (OperatorType.SPLIT, OperatorType.JOIN)
    return Judge(f"feature level {level}", {operator: tensor_support(operator, level) for operator in operators})


def validate(desc: OperatorDesc, *, feature_level: FeatureLevel | int | str | None = None) -> Report:
    """Judges a descriptor at a feature level (the highest known one where none is given).

    The report holds every fault, in descriptor order. Raises ValueError for an unknown level, TypeError for what is no
    descriptor of a Split or Join.
    """
    level = DEFAULT_FEATURE_LEVEL if feature_level is None else FeatureLevel.parse(feature_level)
    return judge(desc, level_judge(level))


def operator_type(desc: OperatorDesc) -> OperatorType:
    """SPLIT or JOIN; TypeError for anything else."""
    if isinstance(desc, SplitOperatorDesc):
        return OperatorType.SPLIT
    if isinstance(desc, JoinOperatorDesc):
        return OperatorType.JOIN
    raise TypeError(f"{type(desc).__name__} is not a SplitOperatorDesc or JoinOperatorDesc")


def judge(desc: OperatorDesc, judge: Judge) -> Report:
    """The report of one judge."""
    operator = _view(desc, judge)
    found: list[Diagnostic] = []
    sound: set[BufferTensorDesc] = set()
    for tensor in (operator.whole, *operator.parts):
        _judge_tensor(tensor, sound, found)
    for rule in OPERATOR_RULES[operator.type]:
        check = rule.operator_check
        if check is None or rule.reads & operator.failed:
            continue
        findings = check(operator)
        if findings:
            operator.failed |= rule.marks
            found += [rule.diagnostic(f.member, f.message, expected=f.expected, actual=f.actual) for f in findings]
    refused = any(d.severity is Severity.ERROR and d.basis is not Basis.OURS for d in found)
    if len(found) > 1:
        found.sort(key=_descriptor_order)
    return Report(tuple(found), judge.name, judge.invalid_argument if refused else HResult.S_OK, operator.type.c_name)


def _view(desc: OperatorDesc, judge: Judge) -> OperatorView:
    kind = operator_type(desc)
    inputs, outputs = judge.support[kind]
    array: Sequence[TensorDesc | None] | None
    if isinstance(desc, SplitOperatorDesc):
        whole = TensorView("InputTensor", desc.input_tensor, False, inputs)
        array, count, path, is_output, support = (
            desc.output_tensors,
            desc.output_count,
            "OutputTensors",
            True,
            outputs,
        )
    else:
        whole = TensorView("OutputTensor", desc.output_tensor, True, outputs)
        array, count, path, is_output, support = desc.input_tensors, desc.input_count, "InputTensors", False, inputs
    parts = [TensorView(f"{path}[{i}]", tensor, is_output, support) for i, tensor in enumerate((array or ())[:count])]
    return OperatorView(kind, whole, parts, array, count, desc.axis)


def _judge_tensor(tensor: TensorView, sound: set[BufferTensorDesc], found: list[Diagnostic]) -> None:
    """Appends the tensor's faults. `sound`: part descriptors known to have none; thousands of them are often equal."""
    known = tensor.path.endswith("]") and tensor.tensor is not None and tensor.tensor.type == 1
    if known and tensor.desc in sound:
        return
    before = len(found)
    for rule in TENSOR_RULES:
        check = rule.tensor_check
        if check is None or rule.reads & tensor.failed:
            continue
        findings = check(tensor)
        if findings:
            tensor.failed |= rule.marks
            for f in findings:
                path = f"{tensor.path}.{f.member}" if f.member else tensor.path
                found.append(rule.diagnostic(path, f.message, expected=f.expected, actual=f.actual))
    if known and len(found) == before:
        sound.add(tensor.desc)


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
    return next(iter(supported_feature_levels(desc)), None)
