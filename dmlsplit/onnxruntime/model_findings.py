"""Findings about a model as a whole in a session, each with what helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.location import Location
from dmlsplit.onnxruntime.older_opset import OlderOpset, older_opset
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules import whole_model
from dmlsplit.system.printable import printable
from dmlsplit.verdicts.model_placements import ModelPlacement, Why

_OPERATORS_SHOWN = 4


def model_findings(
    placed: ModelPlacement, graphs: Sequence[SessionGraph], whole: Callable[[], Sequence[SessionGraph]]
) -> tuple[Diagnostic, ...]:
    """The findings about a model. `graphs` are those of its session; `whole()` those of a session without
    optimization."""
    return tuple(_findings(placed, graphs, whole))


def _findings(
    placed: ModelPlacement, graphs: Sequence[SessionGraph], whole: Callable[[], Sequence[SessionGraph]]
) -> Iterator[Diagnostic]:
    if any(node.why is Why.OPSET for node in placed.nodes) and (older := older_opset(graphs, whole)):
        yield _of_older(older, graphs[-1].opset)


def _of_older(older: OlderOpset, own: int) -> Diagnostic:
    """The finding that an older opset has more nodes on DirectML."""
    rule = whole_model.OPSET_WITHOUT_KERNELS
    cure = f"it cannot be taken there as it is: {older.why}" if older.why else rule.cure
    message = (
        f"{moved_text(older)} on the CPU at opset {own}, and on DirectML at opset {older.opset}, the newest with its "
        f"kernels for {'it' if older.operators.total() == 1 else 'them'}; {cure}"
    )
    return rule.diagnostic(Location(node=older.node), message, expected=older.opset, actual=own)


def moved_text(older: OlderOpset) -> str:
    """ "12 nodes (9 Conv, 2 MaxPool, 1 Round) run"."""
    count = older.operators.total()
    most = older.operators.most_common()
    named = ", ".join(f"{many} {printable(operator, 60)}" for operator, many in most[:_OPERATORS_SHOWN])
    more = f", ... {len(most) - _OPERATORS_SHOWN} more operators" if len(most) > _OPERATORS_SHOWN else ""
    return f"{count} node{'s' * (count != 1)} ({named}{more}) run{'s' * (count == 1)}"
