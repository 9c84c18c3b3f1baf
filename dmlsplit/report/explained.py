"""The steps of one node in a session, as text; report.html has the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dmlsplit.report.placement import reason
from dmlsplit.report.table import wrapped
from dmlsplit.report.text import diagnostic_parts, plain
from dmlsplit.rules.graph_faults import first_names
from dmlsplit.system.printable import printable

_MOST_LISTED: Final = 12
"""The most nodes, and the most operators of a part, that are listed."""
_LEAST_COLUMNS: Final = 40
"""The least width of the second column; if it would be narrower, its text goes below the first column."""
_INDENT: Final = " " * 4

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.explaining import Explanation, NodeState, Step


def heading(found: Explanation) -> str:
    """Returns one line of text with the node and the version of ONNX Runtime."""
    kind = f"{printable(found.operator)} " if found.operator else ""
    return f"{kind}{printable(found.path)} in ONNX Runtime {found.runtime.version}"


def rows(found: Explanation, *, verbose: bool = True) -> Iterator[tuple[str, str]]:
    """Yields pairs of a subject and its text: as far as they are known, what prevents the session, the node's
    placement, its part, what is compiled and submitted, the answer and the findings; then each pass. Passes that leave
    the node unchanged are only counted unless `verbose`."""
    if found.failure is not None:
        where = f" at {printable(found.failure.node)}" if found.failure.node else ""
        yield "session", f"fails{where}: {printable(found.failure.message, None)}"
    if found.placement is not None:
        provider = {"DML": "DirectML", "CPU": "the CPU", None: "it is not known where"}[found.placement.provider]
        fused = {True: "in a fused graph", False: "not fused", None: "it is not known whether it is fused"}
        why = "" if found.placement.why is None else f": {reason(found.placement.why)}"
        types = f" ({first_names(found.placement.types)})" if found.placement.types else ""
        yield "placement", f"{provider}, {fused[found.placement.in_graph]}{why}{types}"
    if found.part is not None:
        count = len(found.part.nodes)
        doubt = "" if found.part.known else "; it is not known whether these are all, or of which sizes"
        yield f"part {found.part.index}", f"{count} node{'s' * (count > 1)}: {_listed(found.part.nodes)}{doubt}"
        if found.part.operators:
            yield "compiled", _listed([name.removeprefix("DML_OPERATOR_") or "?" for name in found.part.operators])
    if found.submitted:
        yield "submitted", ", ".join(found.submitted)
    if found.answer is not None:
        call, at = found.answer.compile, found.answer.at
        when = "" if at is None else " at session creation" if at == "init" else " at the first Run"
        flags = "" if call is None else "not known" if call.flags is None else str(call.flags)
        how = "" if call is None else f"; {call.call}, flags {flags}"
        yield "answer", f"{found.answer.outcome}{when}{how}"
        for diagnostic in found.answer.diagnostics:
            yield "answer", plain(diagnostic_parts(diagnostic, None))
    for diagnostic in (*found.of_model, *(each.diagnostic for each in found.findings)):
        yield "finding", plain(diagnostic_parts(diagnostic, None))
    shown = [step for step in found.steps if verbose or (step.made and step.fate != "unchanged")]
    for step in shown:
        yield step.name, _said(step)
    if len(shown) < len(found.steps):
        yield "unchanged", f"{'the other' if shown else 'all'} passes leave it as it is; --verbose lists them"


def text(found: Explanation, columns: int | None = None, *, verbose: bool = False) -> str:
    """Returns the heading and the rows as text in two columns, at most `columns` characters wide; None: unlimited.
    `verbose` as in rows."""
    pairs = list(rows(found, verbose=verbose))
    width = max((len(word) for word, _ in pairs), default=0)
    lines = [heading(found)]
    for word, said in pairs:
        start = f"  {word:{width}}  "
        if columns is None or len(start + said) <= columns:
            lines.append(start + said)
        elif columns - len(start) >= _LEAST_COLUMNS:
            lines += wrapped(said, columns, start, " " * len(start))
        else:
            lines += [start.rstrip(), *wrapped(said, columns, _INDENT, _INDENT)]
    return "\n".join(lines) + "\n"


def _said(step: Step) -> str:
    if not step.made:
        return f"runs only from optimization level {step.level} on"
    after = "; ".join(map(_node, step.nodes)) if step.fate in ("changed", "fused") else ""
    instead = f"{', '.join(map(printable, step.instead))} is read instead" if step.fate == "removed" else ""
    doubts = "; ".join(step.doubts) if step.fate == "unknown" else ""
    return ": ".join(filter(None, [str(step.fate), after or doubts or (instead if step.instead else "")]))


def _node(node: NodeState) -> str:
    inputs, outputs = (", ".join(map(printable, names)) for names in (node.inputs, node.outputs))
    return f"{outputs} = {printable(node.operator)}({inputs}) of {', '.join(map(printable, node.of))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(printable, names[:_MOST_LISTED])) + (", ..." if len(names) > _MOST_LISTED else "")
