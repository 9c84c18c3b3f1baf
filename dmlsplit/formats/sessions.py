"""The question of a node of an ONNX model to a version of ONNX Runtime, and the report on the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from dmlsplit.diagnostics import Diagnostic, Report
from dmlsplit.dims import Dim
from dmlsplit.enums import TensorDataType
from dmlsplit.errors import InputError
from dmlsplit.formats import json as operator_json
from dmlsplit.runtime_versions import runtime_of_release, runtimes
from dmlsplit.runtimes import Outcome, Runtime, RuntimeAnswer, SessionOptions, find_runtime
from dmlsplit.runtimes.facts import DEFAULTS
from dmlsplit.runtimes.predict import diagnostic
from dmlsplit.target import Target

if TYPE_CHECKING:
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is said of a model's inputs: `shapes`, `dims` (sizes of symbols) and `values` (elements of integers) of the
    first Run, and `free_dimensions`, ONNX Runtime's overrides of symbols at session creation."""

    shapes: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    free_dimensions: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> object:
        """Equal for equal inputs, and hashable."""
        return (
            tuple(sorted((name, tuple(shape)) for name, shape in self.shapes.items())),
            tuple(sorted(self.dims.items())),
            tuple(sorted((name, tuple(map(int, value))) for name, value in self.values.items())),
            tuple(sorted(self.free_dimensions.items())),
        )


class Session(Protocol):
    """A model that versions of ONNX Runtime can be asked about."""

    def answer(self, place: NodeKey, runtime: Runtime, options: SessionOptions, inputs: Inputs | None) -> RuntimeAnswer:
        """The answer for a node; `inputs` None: what was said as the model was read. InputError for what contradicts
        the model."""

    def graph_diagnostics(self, place: NodeKey, runtime: Runtime, options: SessionOptions) -> tuple[Diagnostic, ...]:
        """The faults of the DirectML graphs around a node. InputError for sizes that contradict the model."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """A node of a model; `number` counts the nodes of one operator whose path is the same."""

    op: str
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class InSession:
    """A node in the session of its model."""

    session: Session
    place: NodeKey


class SessionNode:
    """The questions about ONNX Runtime that a node of a framework's model answers."""

    __slots__ = ()
    if TYPE_CHECKING:
        in_session: InSession | None

        @property
        def path(self) -> str:
            """The node's name in diagnostics."""

    def on_onnxruntime(
        self,
        version: Runtime | str,
        *,
        run_shapes: Mapping[str, Sequence[Dim]] | None = None,
        run_values: Mapping[str, Sequence[int]] | None = None,
        free_dimensions: Mapping[str, int] | None = None,
        options: SessionOptions = DEFAULTS,
    ) -> RuntimeAnswer:
        """The answer of a version of ONNX Runtime with its DirectML execution provider about the node in its model.

        `run_shapes` and `run_values` are the model's inputs at the first Run: shapes, and the elements of integers that
        lengths come from; `free_dimensions` ONNX Runtime's overrides of symbolic dimensions at session creation.
        Where none of them is given, what was said as the model was read is said of the first Run.

        Raises ValueError for an unknown version; InputError for what contradicts the model, or is not in it, and for a
        node that is not of an ONNX model.
        """
        given = (run_shapes, run_values, free_dimensions)
        said = None if given == (None, None, None) else Inputs(run_shapes or {}, {}, run_values or {}, given[2] or {})
        runtime, place = find_runtime(version), self.in_session
        if place is None:
            raise InputError(f"{self.path}: it is not of an ONNX model, so that ONNX Runtime does nothing with it")
        return place.session.answer(place.place, runtime, options, said)


@dataclass(frozen=True, slots=True)
class RuntimeReport(Report):
    """The judgement of one operator by a version of ONNX Runtime; `answer` is None for what is no node of an ONNX
    model, which is judged by the DirectML that this version ships."""

    answer: RuntimeAnswer | None = None

    @classmethod
    def of(cls, report: Report, answer: RuntimeAnswer | None = None) -> RuntimeReport:
        """The same as a report of a runtime."""
        if isinstance(report, RuntimeReport):
            return report
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, answer=answer)

    def to_dict(self) -> dict[str, object]:
        """The JSON form: that of any report, and "onnxruntime"."""
        answer = self.answer
        return {**Report.to_dict(self), "onnxruntime": None if answer is None else answer_json(answer)}


def judged_in_session(node: SplitNode | JoinNode, target: Target) -> tuple[RuntimeReport, RuntimeAnswer]:
    """The report of a target that is a runtime on a node of an ONNX model, with the answer that it rests on.

    `hresult` is that of the last CreateOperator, None where there is none.
    """
    assert target.runtime is not None
    try:
        answer = node.on_onnxruntime(target.runtime, options=options_of(target))
    except InputError as error:
        note = diagnostic("onnxruntime/context-unknown", node.path, error.message)
        answer = RuntimeAnswer(target.runtime, Outcome.UNKNOWN, diagnostics=(note,))
    # What a DirectML descriptor lacks is not what ONNX Runtime lacks; its own answer says that.
    own = tuple([d for d in node.report.diagnostics if d.rule != "node/shape-unknown"])
    found = tuple(dict.fromkeys((*own, *answer.diagnostics)))
    hresult = answer.hresults[-1] if answer.hresults else None
    return RuntimeReport(found, target.name, hresult, node.report.operator, answer=answer), answer


def graph_diagnostics(node: SplitNode | JoinNode, target: Target) -> tuple[Diagnostic, ...]:
    """The faults of the DirectML graphs around a node, by the ONNX Runtime that a target is or stands for.

    A release or a level stands for the newest ONNX Runtime that ships it. Where none does nothing is said.
    """
    runtime = target.runtime or _shipping(target)
    if node.in_session is None or runtime is None:
        return ()
    # The graphs of a version that was not observed are taken to be those of the ones that were.
    runtime = replace(runtime, observed=True)
    try:
        return node.in_session.session.graph_diagnostics(node.in_session.place, runtime, options_of(target))
    except InputError:  # what the file says of its nodes is reported where they are judged
        return ()


def _shipping(target: Target) -> Runtime | None:
    if target.release is not None:
        return runtime_of_release(target.release)
    found = [each for each in runtimes() if each.release.max_feature_level == target.feature_level]
    return max(found, key=lambda runtime: runtime.key, default=None)


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


def options_of(target: Target) -> SessionOptions:
    """How a session is made on the device of a target."""
    return SessionOptions(float64=TensorDataType.FLOAT64 not in target.lacking, compute_only=target.compute_only)
