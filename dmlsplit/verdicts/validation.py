"""Judges a descriptor: runs the rules and predicts CreateOperator's HRESULT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from operator import attrgetter
from typing import Final, TypeAlias

from dmlsplit.descriptors.descs import BufferTensorDesc, OperatorDesc
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Report, Severity
from dmlsplit.descriptors.enums import FeatureLevel, HResult, OperatorType, TensorType
from dmlsplit.descriptors.geometry import members_of
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import (
    CRASH_RULES,
    OPERATOR_RULES,
    TENSOR_RULES,
    Aspect,
    Finding,
    Findings,
    OperatorCheck,
    OperatorRule,
    OperatorView,
    TensorRule,
    TensorView,
    reads_past_an_array,
)
from dmlsplit.targets.releases import Release, releases
from dmlsplit.targets.target import Target, level_targets, target_of

_HERE: Final = Location()


# The loops over rules dominate the cost of a judgement, so each rule's check is looked up once.
_TensorChecks: TypeAlias = tuple[tuple[TensorRule, Callable[[TensorView], Findings]], ...]
_OperatorChecks: TypeAlias = tuple[tuple[OperatorRule, OperatorCheck], ...]


@cache
def _tensor_checks(is_output: bool, is_strided: bool, limits: bool) -> _TensorChecks:
    """Returns the rules that apply to a tensor with these properties, each with its check; without `limits`, only rules
    that do not depend on the level or build."""
    absent = {aspect for aspect, there in ((Aspect.OUTPUT, is_output), (Aspect.STRIDES_GIVEN, is_strided)) if not there}
    return tuple([(r, r.check) for r in TENSOR_RULES if r.needs.isdisjoint(absent) and (limits or not r.limit)])


@cache
def _operator_checks(kind: OperatorType, limits: bool) -> _OperatorChecks:
    return tuple([(r, r.check) for r in OPERATOR_RULES[kind] if limits or not r.limit])


_SPOILT: Final = attrgetter("spoilt")
_DESCRIPTOR_ORDER: Final = attrgetter("location.descriptor_order")
_CRASH_CHECKS: Final = {kind: ((rule, rule.check),) for kind, rule in CRASH_RULES.items()}


def evaluate(desc: OperatorDesc, target: Target) -> Report:
    """Returns the report on a Split or Join descriptor by one target."""
    operator = OperatorView(desc, target)
    found: list[Diagnostic] = []
    if target.release is not None:
        _run_operator_rules(operator, _CRASH_CHECKS[operator.type], found)
    crashes = bool(found)
    _run_tensor_rules(operator, found, limits=True)
    _run_operator_rules(operator, _operator_checks(operator.type, True), found)
    if not found:
        return _accepted(target.name, operator.type)
    found.sort(key=_DESCRIPTOR_ORDER)
    refused = any(d.severity is Severity.ERROR and d.basis is not Basis.OURS for d in found)
    hresult: int | None = target.invalid_argument if refused else HResult.S_OK
    reads_on = target.release is not None and reads_undefined(found)
    if crashes or (reads_on and reads_past_an_array(operator, found)):
        hresult = None  # the process ends, or the build reads arbitrary memory
    return Report(tuple(found), target.name, hresult, operator.type.c_name)


@cache
def _accepted(judged_by: str, kind: OperatorType) -> Report:
    return Report((), judged_by, HResult.S_OK, kind.c_name)


_UNDEFINED: Final = frozenset(
    [r.id for rules in (TENSOR_RULES, *OPERATOR_RULES.values()) for r in rules if r.undefined]
)


def reads_undefined(found: Iterable[Diagnostic]) -> bool:
    """True if one of the faults may make a release read past an array that is shorter than its count, before refusing
    the descriptor."""
    return any(d.rule in _UNDEFINED for d in found)


def faults(desc: OperatorDesc) -> tuple[Diagnostic, ...]:
    """Returns the errors that make a descriptor invalid for every target, in descriptor order; no rewriting can remove
    them.

    Limits of a level or build do not count: ranks, data types, sizes of 0, too many elements or bytes. The strides of a
    tensor without elements are not checked.
    """
    operator = OperatorView(desc, target_of(max(FeatureLevel)))
    found: list[Diagnostic] = []
    for tensor in (operator.whole, *operator.parts):
        if 0 in tensor.sizes:
            tensor.spoilt.add(Aspect.STRIDES)
    _run_tensor_rules(operator, found, limits=False)
    _run_operator_rules(operator, _operator_checks(operator.type, False), found)
    return tuple(sorted([d for d in found if d.severity is Severity.ERROR], key=_DESCRIPTOR_ORDER))


def with_faults(desc: OperatorDesc, report: Report) -> Report | None:
    """Returns the report with all `faults` of the descriptor added, in descriptor order; None if it has no faults."""
    wrong = faults(desc)
    if not wrong:
        return None
    known = {(d.rule, d.path) for d in report.diagnostics}
    every = [*report.diagnostics, *(d for d in wrong if (d.rule, d.path) not in known)]
    return replace(report, diagnostics=tuple(sorted(every, key=_DESCRIPTOR_ORDER)))


def _run_tensor_rules(operator: OperatorView, found: list[Diagnostic], *, limits: bool) -> None:
    """Appends the faults of all tensors to `found`; without `limits`, only faults that do not depend on the level
    or build. There may be thousands of parts with equal descriptors; they are judged once."""
    _run_on_tensor(operator.whole, found, limits)
    known: dict[BufferTensorDesc, tuple[TensorFindings, set[Aspect]]] = {}
    for part in operator.parts:
        if part.tensor is None or part.tensor.type != TensorType.BUFFER or part.spoilt:
            _run_on_tensor(part, found, limits)
            continue
        same = known.get(part.desc)
        if same is None:
            known[part.desc] = _run_on_tensor(part, found, limits), part.spoilt
            continue
        findings, spoilt = same
        if findings:
            part.spoilt |= spoilt
            found += [rule.report(Location(part.steps), finding) for rule, finding in findings]


def run_on_tensor(tensor: TensorView, found: list[Diagnostic]) -> None:
    """Appends the faults of one tensor to `found`."""
    _run_on_tensor(tensor, found, limits=True)


TensorFindings: TypeAlias = list[tuple[TensorRule, Finding]]


def _run_on_tensor(tensor: TensorView, found: list[Diagnostic], limits: bool) -> TensorFindings:
    spoilt = tensor.spoilt
    findings: TensorFindings = []
    # zero dimensions are a fault here; too many are not
    checks = _tensor_checks(tensor.is_output, tensor.is_strided, limits or not tensor.desc.dimension_count)
    for rule, check in checks:
        if spoilt and not rule.needs.isdisjoint(spoilt):
            continue
        for finding in check(tensor):
            findings.append((rule, finding))
            spoilt |= rule.spoils
    if findings:
        found += [rule.report(Location(tensor.steps), finding) for rule, finding in findings]
    return findings


def _run_operator_rules(operator: OperatorView, checks: _OperatorChecks, found: list[Diagnostic]) -> None:
    spoilt, whole_spoilt = operator.spoilt, operator.whole.spoilt
    some_part_spoilt = any(map(_SPOILT, operator.parts))
    for rule, check in checks:
        if (spoilt and not rule.needs.isdisjoint(spoilt)) or (
            whole_spoilt and not rule.needs_of_whole.isdisjoint(whole_spoilt)
        ):
            continue
        parts: Sequence[TensorView] = operator.parts
        if some_part_spoilt and rule.needs_of_parts:
            parts = [part for part in parts if rule.needs_of_parts.isdisjoint(part.spoilt)]
            if rule.needs_all_parts and len(parts) < len(operator.parts):
                continue
        for finding in check(operator, parts):
            found.append(rule.report(_HERE, finding))
            (operator if finding.tensor is None else finding.tensor).spoilt.update(rule.spoils)
            some_part_spoilt |= finding.tensor is not None


def supported_feature_levels(desc: OperatorDesc) -> tuple[FeatureLevel, ...]:
    """Returns the feature levels that accept the descriptor (its report is `ok`), the lowest first."""
    return tuple(target.feature_level for target in level_targets() if evaluate(desc, target).ok)


def minimum_feature_level(desc: OperatorDesc) -> FeatureLevel | None:
    """Returns the lowest feature level that accepts the descriptor; None if none does."""
    members_of(desc)  # raises TypeError for what is no descriptor, which need not be hashable
    return lowest_level(desc)


@lru_cache(maxsize=256)
def lowest_level(desc: OperatorDesc) -> FeatureLevel | None:
    """As `minimum_feature_level`, for what is known to be a descriptor."""
    return next((target.feature_level for target in level_targets() if evaluate(desc, target).ok), None)


def supported_releases(desc: OperatorDesc) -> tuple[Release, ...]:
    """Returns the releases that accept the descriptor (its report is `ok`), the oldest first; () if none does."""
    return tuple(release for release in releases() if evaluate(desc, target_of(release)).ok)
