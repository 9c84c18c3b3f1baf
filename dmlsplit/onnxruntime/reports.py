"""Asks a version of ONNX Runtime about a node of an ONNX model, and makes the report on its answer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.formats import any_operator_json
from dmlsplit.formats import json as operator_json
from dmlsplit.onnxruntime.predict import diagnostic
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.system.errors import InputError, NotLoadedError
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.releases import WINDOWS
from dmlsplit.targets.runtime_versions import NEWEST, Runtime, runtime_of_release, runtimes
from dmlsplit.targets.session_options import options_of
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.model_placements import SessionAnswer
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

if TYPE_CHECKING:
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode
    from dmlsplit.formats.sessions import Session
    from dmlsplit.targets.session_options import SessionOptions


class _Ask(Protocol):
    """A question about the graphs of a session."""

    def __call__(self, runtime: Runtime, options: SessionOptions, /) -> tuple[Diagnostic, ...]: ...


@dataclass(frozen=True, slots=True)
class RuntimeReport(Report):
    """The judgement of one operator by a version of ONNX Runtime.

    `answer` is None for an operator that is no node of an ONNX model; the DirectML that the version ships judges it.
    `model` is set for the first operator of an ONNX model: what the model becomes as a whole.
    """

    answer: RuntimeAnswer | None = None
    model: SessionAnswer | None = None

    @classmethod
    def of(cls, report: Report, answer: RuntimeAnswer | None = None) -> RuntimeReport:
        """The report as a RuntimeReport with this answer; a RuntimeReport is returned as it is."""
        if isinstance(report, RuntimeReport):
            return report
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, answer=answer)

    def to_dict(self) -> dict[str, object]:
        """The JSON form: an operator report's keys and "onnxruntime", and "model" where the report has one."""
        answer = self.answer
        found = {**Report.to_dict(self), "onnxruntime": None if answer is None else answer_json(answer)}
        return found if self.model is None else {**found, "model": model_json(self.model)}


def judged_in_session(node: SplitNode | JoinNode, target: Target) -> tuple[RuntimeReport, RuntimeAnswer]:
    """The report of a runtime on a node of an ONNX model, and the answer behind it.

    `hresult` is that of the last CreateOperator, None where there is none.
    """
    assert target.runtime is not None
    try:
        answer = node.on_onnxruntime(target.runtime, options=options_of(target))
    except InputError as error:
        note = diagnostic("onnxruntime/context-unknown", node.path, error.message)
        answer = RuntimeAnswer(target.runtime, Outcome.UNKNOWN, diagnostics=(note,))
    # A DirectML descriptor may lack facts that ONNX Runtime does not need; its own answer says which it lacks.
    own = tuple([d for d in node.report.diagnostics if d.rule != "node/shape-unknown"])
    found = tuple(dict.fromkeys((*own, *answer.diagnostics)))
    hresult = answer.hresults[-1] if answer.hresults else None
    return RuntimeReport(found, target.name, hresult, node.report.operator, answer=answer), answer


def graph_diagnostics(node: SplitNode | JoinNode, target: Target) -> tuple[Diagnostic, ...]:
    """The faults of the DirectML graphs around a node, by the ONNX Runtime that a target is or stands for.

    Of a level that no ONNX Runtime ships as the highest one, graph/unknown where the newest ONNX Runtime, whose
    DirectML has the level, too, makes a faulty graph. What keeps every ONNX Runtime from loading the model is
    graph/not-loaded; of a runtime that is asked for its answer says so.
    """
    if node.in_session is None:
        return ()
    session, place = node.in_session.session, node.in_session.place
    return _found(partial(session.graph_diagnostics, place), Location(node=node.path), target)


def model_diagnostics(session: Session, target: Target) -> tuple[Diagnostic, ...]:
    """The faults of the DirectML graphs of a model without a Split or Concat, as `graph_diagnostics` has them."""
    return _found(session.model_diagnostics, Location(), target)


def _found(ask: _Ask, here: Location, target: Target) -> tuple[Diagnostic, ...]:
    """The answer to a question about graphs; what keeps it from being answered is reported at `here`."""
    runtime = runtime_of_graphs(target)
    if runtime is None and target.release is not None:
        return ()
    try:
        found = ask(runtime or NEWEST, options_of(target))
    except NotLoadedError as error:
        if target.runtime is not None:
            return ()
        return (GRAPH_RULES["graph/not-loaded"].diagnostic(here, error.message),)
    except InputError as error:
        if target.runtime is not None:
            return ()
        message = f"what comes of its graph is not known: {error.message}"
        return (GRAPH_RULES["graph/unknown"].diagnostic(here, message),)
    if runtime is not None:
        return found
    return tuple([_of_newest(each) for each in found])


def _of_newest(found: Diagnostic) -> Diagnostic:
    """A finding about the graphs of the newest ONNX Runtime as a finding for a level that no version stands for."""
    if found.severity is not Severity.ERROR:
        return found
    message = (
        f"no known ONNX Runtime has this feature level as its highest; with {NEWEST.judged_by}, which has it, too, "
        f"{found.message} [{found.rule}]"
    )
    return GRAPH_RULES["graph/unknown"].diagnostic(found.location, message)


@lru_cache(maxsize=64)
def runtime_of_graphs(target: Target) -> Runtime | None:
    """The version whose graphs a model's nodes become, with the DirectML that compiles them.

    Of a release, the newest one that ships it; where none does, the newest one of an older DirectML, or the oldest of
    all, with this DirectML beside it. Of a level, the newest one whose DirectML has no higher level; None where there
    is none, and for a release that no ONNX Runtime can load.
    """
    release, runtime = target.release, target.runtime
    if runtime is None and release is not None:
        runtime = runtime_of_release(release)
        if runtime is None and release.platform == WINDOWS:
            key = version_key(release.directml)
            older = [each for each in runtimes() if version_key(each.directml) < key]
            runtime = replace([*runtimes()[:1], *older][-1], directml=release.directml)
    elif runtime is None:
        of_level = [each for each in runtimes() if each.release.max_feature_level == target.feature_level]
        runtime = of_level[-1] if of_level else None
    # a version that was not observed is taken to make the graphs of an observed one
    return None if runtime is None else replace(runtime, observed=True)


def model_json(model: SessionAnswer) -> dict[str, object]:
    """The value of the key "model" in JSON: the placement, and the operators that kernels submit."""
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
    """The value of the key "onnxruntime" in JSON."""
    call = answer.compile
    return {
        "version": answer.runtime.version,
        "outcome": str(answer.outcome),
        "at": answer.at,
        "operators": [operator_json.to_json(desc) for desc in answer.operators],
        "hresults": [f"0x{hresult:08X}" for hresult in answer.hresults],
        "compile": None if call is None else {"call": call.call, "flags": call.flags},
    }
