"""The effects of the nodes around a Split or Concat on its prediction."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import Final, NamedTuple

from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.graph import Doubt, Node
from dmlsplit.onnxruntime.fused import Part
from dmlsplit.onnxruntime.graph_refusals import Refusal
from dmlsplit.onnxruntime.node_prediction import diagnostic
from dmlsplit.onnxruntime.optimization import judged_after
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

_TWIN: Final = "another Split differs only in its outputs"


class _Change(NamedTuple):
    """The outcome that the nodes around a node give it, which replaces the outcome by its own facts, and the reason."""

    outcome: Outcome
    habit: str
    message: str


def in_context(
    graph: SessionGraph, node: Node, path: str, answer: RuntimeAnswer, part: Part | None, refusal: Refusal | None
) -> RuntimeAnswer:
    """Returns the answer about a node, `answer`, changed by the nodes around it. `part` is the fused part that contains
    it, `refusal` the reason why CompileGraph may refuse that part; either may be None."""
    if answer.outcome in (Outcome.CPU, Outcome.DML) and _may_become_constant(graph, node):
        note = diagnostic(
            "onnxruntime/context-unknown", path, "it may be folded into a constant for the Reshape that reads it"
        )
        return replace(answer, outcome=Outcome.UNKNOWN, diagnostics=(*answer.diagnostics, note))
    if answer.outcome is Outcome.UNKNOWN and Doubt.TWINS_DIFFER in node.doubts:
        note = diagnostic("onnxruntime/twins-differ", path, _TWIN)
        return replace(answer, diagnostics=(*answer.diagnostics, note))
    if answer.outcome is not Outcome.DML or not answer.operators:
        return answer
    changed = _change(graph, node, answer, part, refusal)
    if changed is None:
        return answer
    if changed.outcome is not Outcome.UNKNOWN and _lacks_flags(answer):
        message = "it is not known which nodes its fused graph has"
        changed = _Change(Outcome.UNKNOWN, "onnxruntime/context-unknown", message)
    notes = (*answer.diagnostics, diagnostic(changed.habit, path, changed.message))
    if changed.habit == "onnxruntime/not-read":
        # its kernel is created, but none of its operators goes into the fused graph
        answer = replace(answer, operators=answer.operators[:1], hresults=answer.hresults[:1])
    return replace(answer, outcome=changed.outcome, compile=None, diagnostics=notes)


def _change(
    graph: SessionGraph, node: Node, answer: RuntimeAnswer, part: Part | None, refusal: Refusal | None
) -> _Change | None:
    """Returns the first reason why the answer about a node on DirectML does not hold in its graph; None if it holds."""
    if node in behind_twins(graph):
        if Doubt.TWINS_DIFFER in node.doubts:
            return _Change(Outcome.UNKNOWN, "onnxruntime/twins-differ", _TWIN)
        message = "it depends on a Split that differs from another one only in its outputs"
        return _Change(Outcome.UNKNOWN, "onnxruntime/context-unknown", message)
    if answer.compile is None or answer.compile.call != "CompileGraph":
        part = None
    if part is not None and not part.leading:
        message = "nothing reads the results of its fused graph"
        return _Change(Outcome.SESSION_FAILS, "onnxruntime/graph-without-outputs", message)
    if _may_be_transposed(graph, node):
        message = "it is between Transposes, which may be moved across it"
        return _Change(Outcome.UNKNOWN, "onnxruntime/context-unknown", message)
    if part is not None and refusal is not None:
        if not refusal.certain:
            return _Change(Outcome.UNKNOWN, "onnxruntime/context-unknown", refusal.why)
        return _Change(Outcome.SESSION_FAILS, "onnxruntime/graph-refused", refusal.why)
    if part is not None and node.index not in part.leading:
        return _Change(Outcome.DML, "onnxruntime/not-read", "nothing reads its outputs")
    return None


def _may_be_transposed(graph: SessionGraph, node: Node) -> bool:
    """True if it is not known whether a Transpose is moved over a node."""
    after = judged_after(graph).get(node.index)
    return after is not None and Doubt.TRANSPOSED in after.doubts


def _may_become_constant(graph: SessionGraph, node: Node) -> bool:
    """True if a Concat may become the constant shape of a Reshape, or may be removed with a Concat that reads it."""
    return Doubt.CONSTANT in node.doubts and node in graph.graph


def behind_twins(graph: SessionGraph) -> Set[Node]:
    """Returns the Splits that differ from another Split only in their number of outputs, and all nodes behind them,
    which may get the sizes of the other Split."""

    def found() -> Set[Node]:
        twins = [node for node in graph.graph.nodes if Doubt.TWINS_DIFFER in node.doubts]
        return set(depth_first(twins, lambda node: list(node.readers)))

    return graph.once("behind twins", found)


def lacks_only_flags(graph: SessionGraph, node: Node, answer: RuntimeAnswer) -> bool:
    """True if everything about a node on DirectML is known except the flags of its fused graph. `answer` is the answer
    by its own facts."""
    return _lacks_flags(answer) and not node.doubts and node not in behind_twins(graph)


def _lacks_flags(answer: RuntimeAnswer) -> bool:
    return answer.compile is not None and answer.compile.flags is None
