"""When ONNX Runtime makes what in a session: it ends with the first failure, and what would follow is not submitted.

The graphs within nodes come first. Of each graph every fused graph is made in turn: the kernels of its nodes, their
operators, then CompileGraph. The kernels outside of fused graphs follow at last, those of the outer graphs first.
Observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from dmlsplit.onnxruntime.predict import INIT, diagnostic
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

Moment: TypeAlias = tuple[int, ...]
"""Moments of a session compare as they follow one another."""

LOADING: Final[Moment] = (0,)
OPTIMIZING: Final[Moment] = (1,)
CHECKING: Final[Moment] = (3,)
"""Whether each node has a kernel, and where, is checked when all fused graphs are made."""

_MOMENTS: Final = {
    **dict.fromkeys(
        (
            "onnxruntime/opset-too-new",
            "onnxruntime/ir-version-too-new",
            "onnxruntime/type-not-loaded",
            "onnxruntime/inference-fails",
        ),
        LOADING,
    ),
    **dict.fromkeys(("onnxruntime/no-kernel", "onnxruntime/cpu-fallback-disabled"), CHECKING),
}
"""Of failures, by rule."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a node: its graph, its fused graph in that (None: it is in none), and which node of the two it is.

    `graph` counts the graphs from the inner ones on, `outward` from the outer ones on. `reader` is the first node of
    the fused graph that reads what the node gives.
    """

    graph: int
    outward: int
    fused: int | None
    index: int
    reader: int | None = None

    @property
    def partitioning(self) -> Moment:
        """When the graph is cut into parts."""
        return 2, self.graph

    @property
    def kernel(self) -> Moment:
        """When the node's kernel is made, which creates its operator."""
        return (4, self.outward, self.index) if self.fused is None else (2, self.graph, self.fused, 0, self.index)

    @property
    def operator(self) -> Moment:
        """When the operator is created that goes into the fused graph."""
        return self.kernel if self.fused is None else (2, self.graph, self.fused, 1, self.index)

    @property
    def compilation(self) -> Moment:
        """When what the node is in is compiled."""
        return self.kernel if self.fused is None else (2, self.graph, self.fused, 2)

    def failure(self, answer: RuntimeAnswer) -> Moment:
        """When a session fails at the node that this is the answer of."""
        rule = answer.diagnostics[-1].rule
        if rule in _MOMENTS:
            return _MOMENTS[rule]
        if rule in ("onnxruntime/graph-refused", "onnxruntime/graph-without-outputs"):
            return self.compilation
        if rule in ("onnxruntime/negative-length", "onnxruntime/size-beyond-32-bits") and not answer.operators:
            return self.partitioning
        if rule == "onnxruntime/second-output-empty":
            # Nothing is known of what it gives when the reader's kernel has been made, or all have.
            return 2, self.graph, self.fused or 0, *((1, -1) if self.reader is None else (0, self.reader, 0))
        return self.operator if len(answer.operators) > 1 else self.kernel

    def up_to(self, first: Moment, answer: RuntimeAnswer) -> RuntimeAnswer:
        """The answer with what is submitted up to the first failure."""
        moments = (self.kernel, self.operator) if answer.at == INIT else ()
        count = sum(moment <= first for moment in moments[: len(answer.operators)])
        compiled = answer.compile if answer.at == INIT and self.compilation < first else None
        return replace(answer, operators=answer.operators[:count], hresults=answer.hresults[:count], compile=compiled)


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that ends session creation."""

    moment: Moment
    why: str
    certain: bool = True
    node: str = ""
    """The path of the node that does it; "" for no single one."""


def failures_of(found: Iterable[tuple[str, Place, RuntimeAnswer]]) -> list[Failure]:
    """The failures that answers of nodes, by path, tell of."""
    return [
        Failure(place.failure(answer), f"{path} fails session creation", node=path)
        for path, place, answer in found
        if answer.outcome is Outcome.SESSION_FAILS
    ]


def first_of(failures: Iterable[Failure]) -> Failure | None:
    """The failure that ends session creation; None where none certainly does."""
    return min((each for each in failures if each.certain), key=lambda each: each.moment, default=None)


def with_failures(
    found: Iterable[tuple[str, Place, RuntimeAnswer]], failures: Sequence[Failure]
) -> list[RuntimeAnswer]:
    """The answers of nodes, by path, where `failures`, those of the nodes among them, keep the session from being
    made."""
    first = first_of(failures)
    if first is None:
        doubt = next(iter(failures), None)
        return [answer if doubt is None else _unknown(path, answer, doubt.why) for path, _, answer in found]
    changed = []
    for path, place, answer in found:
        fails = answer.outcome is Outcome.SESSION_FAILS
        kept = place.up_to(first.moment, answer)
        if not fails or place.failure(answer) > first.moment:
            notes = (*answer.diagnostics, diagnostic("onnxruntime/session-fails-elsewhere", path, first.why))
            kept = replace(kept, outcome=Outcome.SESSION_FAILS, at=INIT, diagnostics=notes)
        changed.append(kept)
    return changed


def _unknown(path: str, answer: RuntimeAnswer, why: str) -> RuntimeAnswer:
    """The answer where it is not known whether the session is made."""
    notes = (*answer.diagnostics, diagnostic("onnxruntime/context-unknown", path, why))
    return replace(answer, outcome=Outcome.UNKNOWN, diagnostics=notes)
