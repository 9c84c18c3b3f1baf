"""The report of a version of ONNX Runtime, and its JSON form."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.formats import any_operator_json
from dmlsplit.formats import json as operator_json
from dmlsplit.system.records import record
from dmlsplit.verdicts.model_placements import SessionAnswer
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer


@record
class RuntimeReport(Report):
    """The judgement of one operator by a version of ONNX Runtime.

    `answer` is None for an operator that is not a node of an ONNX model; the DirectML that the version ships judges it.
    `model` is set for the first operator of an ONNX model: what the model becomes as a whole.
    """

    answer: RuntimeAnswer | None = None
    model: SessionAnswer | None = None

    @property
    def ok(self) -> bool:
        """False for an error, and for a model without operators also if something is wrong with the model."""
        return Report.ok.__get__(self) and (self.operator is not None or not self.model_diagnostics(Severity.ERROR))

    @property
    def is_unknown(self) -> bool:
        """True for a model without operators if it is not known whether its session is created, or if something may be
        wrong with it."""
        if self.operator is not None or self.model is None:
            return False
        return self.model.created is None or bool(self.model_diagnostics(Severity.WARNING))

    def model_diagnostics(self, *severities: Severity) -> tuple[Diagnostic, ...]:
        """Returns the findings about the model as a whole that have one of these severities."""
        return () if self.model is None else tuple([d for d in self.model.diagnostics if d.severity in severities])

    @classmethod
    def of(cls, report: Report, answer: RuntimeAnswer | None = None) -> RuntimeReport:
        """Returns a RuntimeReport with the content of `report` and with `answer`; `report` itself, and `answer` is
        ignored, if it is a RuntimeReport already."""
        if isinstance(report, RuntimeReport):
            return report
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, answer=answer)

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form: an operator report's keys and "onnxruntime", and "model" if the report has one."""
        answer = self.answer
        found = {**Report.to_dict(self), "onnxruntime": None if answer is None else answer_json(answer)}
        return found if self.model is None else {**found, "model": model_json(self.model)}


def model_json(model: SessionAnswer) -> dict[str, object]:
    """Returns the value of the key "model" in JSON: the placement, and the operators that kernels submit."""
    operators = [
        {
            "node": each.path,
            "submitted": [any_operator_json.to_json(desc) for desc in each.operators],
            "not_judged": each.why or None,
        }
        for each in model.operators
    ]
    return {**model.to_dict(), "operators": operators}


def answer_json(answer: RuntimeAnswer) -> dict[str, Any]:
    """Returns the value of the key "onnxruntime" in JSON."""
    call = answer.compile
    return {
        "version": answer.runtime.version,
        "outcome": str(answer.outcome),
        "at": answer.at,
        "operators": [operator_json.to_json(desc) for desc in answer.operators],
        "hresults": [f"0x{hresult:08X}" for hresult in answer.hresults],
        "compile": None if call is None else {"call": call.call, "flags": call.flags},
    }
