"""Judges descriptors of operators other than Split and Join, by the tables of what builds accept and by dmlsplit's own
rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Report, errors_of_directml
from dmlsplit.descriptors.enums import HResult, OperatorType, TensorDataType
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import RULES, Finding, TensorView
from dmlsplit.rules.any_operator import AnyOperatorRule, AnyView, fuses_no_activation
from dmlsplit.system.records import record
from dmlsplit.targets.feature_levels import TensorSupport
from dmlsplit.targets.operator_support import DOCUMENTED, OperatorSupport
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.validation import reads_undefined, run_on_tensor

_HERE: Final = Location()
_ANY_TENSOR: Final = TensorSupport("", "", tuple(range(1, 9)), frozenset(TensorDataType), "")
_BY_TABLES: Final = frozenset(
    {
        *("tensor/null", "tensor/data-type-unknown", "tensor/data-type-not-supported"),
        *("tensor/dimension-count-out-of-range", "tensor/dimension-count-not-supported"),
    }
)
"""Texts for the operator/... rules."""


@record
class TablesReport(Report):
    """The judgement of an operator by tables: `ok` means that nothing recorded refuses it, and `hresult` is then None.

    A build checks more than its tables contain; `dmlsplit ask` asks the build itself.
    """

    @property
    def basis_of_verdict(self) -> str:
        return "tables"

    @property
    def remark(self) -> str:
        return "nothing recorded refuses it" if self.ok else ""


@cache
def _rules() -> tuple[AnyOperatorRule, ...]:
    return tuple([rule for rule in RULES.values_of("operator") if isinstance(rule, AnyOperatorRule)])


@cache
def _by_id() -> Mapping[str, AnyOperatorRule]:
    return {rule.id: rule for rule in _rules()}


def evaluate_any(desc: AnyOperatorDesc, target: Target) -> TablesReport:
    """Returns the report on a descriptor by one target."""
    found: list[Diagnostic] = []
    refusal = target.invalid_argument
    if desc.known is not None and desc.type not in (OperatorType.SPLIT, OperatorType.JOIN):
        view = AnyView(desc, target)
        for rule in _rules():
            if view.is_whole or rule.of_tensors:
                found += [_reported(rule, finding, view.support) for finding in rule.check(view)]
            if found and not view.support.facts:
                break  # nothing is known about an operator that the target does not have
        else:
            found += _of_tensors(view) if view.is_whole else ()
        if len(errors_of_directml(found)) == 1 and fuses_no_activation(view):
            refusal = HResult.E_UNEXPECTED  # other faults are found before this check
    refused = bool(errors_of_directml(found))
    ends = any(d.rule in _by_id() and _by_id()[d.rule].ends for d in found)
    unknown = ends or (target.release is not None and reads_undefined(found))
    hresult = refusal if refused and not unknown else None
    return TablesReport(tuple(found), target.name, hresult, desc.operator.c_name)


def _reported(rule: AnyOperatorRule, finding: Finding, support: OperatorSupport) -> Diagnostic:
    """Returns the diagnostic for a finding; its reference is the page if the table is a documented one."""
    diagnostic = rule.report(_HERE, finding)
    if support.basis == DOCUMENTED and support.facts and rule.of_tensors:
        return replace(diagnostic, basis=Basis.DOCUMENTED, reference=support.source)
    return diagnostic


def _of_tensors(view: AnyView) -> Iterator[Diagnostic]:
    """Yields the faults that a tensor has by itself: sizes, strides, total size, alignment and flags, as for a
    Split."""
    for steps, tensor, is_output in view.tensor_steps:
        found: list[Diagnostic] = []
        run_on_tensor(TensorView(steps, tensor, is_output, _ANY_TENSOR, view.target), found)
        yield from (d for d in found if d.rule not in _BY_TABLES)
