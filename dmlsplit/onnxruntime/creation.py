"""The order of session creation. It ends at the first failure; nothing after that is submitted.

Graphs inside nodes come first. The fused graphs of each graph follow in turn: the kernels of their nodes, their
operators, then CompileGraph. Kernels outside fused graphs come last, those of outer graphs first. Observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.onnxruntime.node_prediction import INIT, diagnostic
from dmlsplit.rules import RULES
from dmlsplit.rules.onnxruntime import Habit
from dmlsplit.system.records import entity
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

Moment: TypeAlias = tuple[int, ...]
"""A point in session creation; moments are ordered in time."""

LOADING: Final[Moment] = (0,)
OPTIMIZING: Final[Moment] = (1,)
CHECKING: Final[Moment] = (3,)
"""The moment of the check that every node has a kernel: after all fused graphs are created."""
STORING: Final[Moment] = (3, 1)
"""The moment at which constants outside fused graphs are stored."""
MAPPING: Final[Moment] = (4, 0, 1 << 32)
"""The moment at which the inputs of the main graph get their devices: after the kernels of its nodes are created."""

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
"""Maps a rule to the moment of its failure."""


@entity
class Place:
    """The place of a node: its graph, its fused graph (None if it is not fused), and its index in the fused graph, or
    else in the graph.

    `graph` numbers graphs from the innermost, `outward` from the outermost. `reader` is the first node of the fused
    graph that reads an output of this one.
    """

    graph: int
    outward: int
    fused: int | None
    index: int
    reader: int | None = None

    @property
    def partitioning(self) -> Moment:
        """The moment at which the graph is partitioned."""
        return 2, self.graph

    @property
    def kernel(self) -> Moment:
        """The moment at which the node's kernel, and with it the node's operator, is created."""
        return (4, self.outward, self.index) if self.fused is None else (2, self.graph, self.fused, 0, self.index)

    @property
    def operator(self) -> Moment:
        """The moment at which the node's operator for its fused graph is created; for a node that is not fused, the
        moment of its kernel."""
        return self.kernel if self.fused is None else (2, self.graph, self.fused, 1, self.index)

    @property
    def compilation(self) -> Moment:
        """The moment at which the node's fused graph is compiled; for a node that is not fused, the moment of its
        kernel."""
        return self.kernel if self.fused is None else (2, self.graph, self.fused, 2)

    def failure(self, answer: RuntimeAnswer) -> Moment:
        """Returns the moment at which session creation fails because of this node. `answer` is the answer about the
        node; its last diagnostic is the reason."""
        rule = answer.diagnostics[-1].rule
        if rule in _MOMENTS:
            return _MOMENTS[rule]
        if rule in ("onnxruntime/graph-refused", "onnxruntime/graph-without-outputs"):
            return self.compilation
        if rule in ("onnxruntime/negative-length", "onnxruntime/size-beyond-32-bits") and not answer.operators:
            return self.partitioning
        if rule == "onnxruntime/second-output-empty":
            # its sizes are found to be unknown after the reader's kernel is created, or after all kernels
            return 2, self.graph, self.fused or 0, *((1, -1) if self.reader is None else (0, self.reader, 0))
        return self.operator if len(answer.operators) > 1 else self.kernel

    def up_to(self, first: Moment, answer: RuntimeAnswer) -> RuntimeAnswer:
        """Returns the answer about this node with only the operators that are submitted up to the moment `first`, at
        which session creation fails; the compilation is kept only if it comes earlier."""
        moments = (self.kernel, self.operator) if answer.at == INIT else ()
        count = sum(moment <= first for moment in moments[: len(answer.operators)])
        compiled = answer.compile if answer.at == INIT and self.compilation < first else None
        return replace(answer, operators=answer.operators[:count], hresults=answer.hresults[:count], compile=compiled)


@entity
class Failure:
    """An event that ends session creation."""

    moment: Moment
    why: str
    certain: bool = True
    node: str = ""
    """The path of the node at fault; "" if there is no single one."""
    rule: str = ""
    """The id of the rule that the answer about a Split or Concat gives for it; "" if none does."""
    cure: str = ""
    """What helps, as an imperative; "" if nothing is known."""


def failures_of(found: Iterable[tuple[str, Place, RuntimeAnswer]]) -> list[Failure]:
    """Returns a failure for each node, given with its path and place, whose answer says that session creation fails."""
    return [
        Failure(place.failure(answer), _reason(answer.diagnostics[-1]), node=path, rule=answer.diagnostics[-1].rule)
        for path, place, answer in found
        if answer.outcome is Outcome.SESSION_FAILS
    ]


def _reason(found: Diagnostic) -> str:
    """Returns the message of a diagnostic about a Split or Concat without the rule's cure."""
    rule = RULES[found.rule]
    return found.message.removesuffix(f"; {rule.cure}") if isinstance(rule, Habit) else found.message


def first_of(failures: Iterable[Failure]) -> Failure | None:
    """Returns the first certain failure, which ends session creation; None if none is certain."""
    return min((each for each in failures if each.certain), key=lambda each: each.moment, default=None)


def with_failures(
    found: Iterable[tuple[str, Place, RuntimeAnswer]], failures: Sequence[Failure]
) -> list[RuntimeAnswer]:
    """Returns the answers in `found`, in the same order, changed for a session whose creation `failures` prevent:
    operators after the first certain failure are dropped, and nodes that do not fail themselves get its reason. If no
    failure is certain, all answers become unknown; without failures they stay the same. `failures` include those of the
    nodes."""
    first = first_of(failures)
    if first is None:
        doubt = next(iter(failures), None)
        return [answer if doubt is None else _unknown(path, answer, doubt.why) for path, _, answer in found]
    changed = []
    for path, place, answer in found:
        fails = answer.outcome is Outcome.SESSION_FAILS
        kept = place.up_to(first.moment, answer)
        if not fails or place.failure(answer) > first.moment:
            why = f"session creation fails at {first.node}: {first.why}" if first.rule else first.why
            notes = (*answer.diagnostics, diagnostic("onnxruntime/session-fails-elsewhere", path, why))
            kept = replace(kept, outcome=Outcome.SESSION_FAILS, at=INIT, diagnostics=notes)
        changed.append(kept)
    return changed


def _unknown(path: str, answer: RuntimeAnswer, why: str) -> RuntimeAnswer:
    """Returns the answer changed to unknown, because `why` may prevent session creation."""
    notes = (*answer.diagnostics, diagnostic("onnxruntime/context-unknown", path, why))
    return replace(answer, outcome=Outcome.UNKNOWN, diagnostics=notes)
