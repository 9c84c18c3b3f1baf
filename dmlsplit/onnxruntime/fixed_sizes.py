"""Advice about open sizes, tried on the model: its symbols get sizes, and what is wrong is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.onnxruntime.model_findings import free_dimensions, open_batches, open_symbols
from dmlsplit.rules.whole_model import OPEN_SIZES
from dmlsplit.system.errors import DmlSplitError
from dmlsplit.system.printable import printable
from dmlsplit.verdicts.model_placements import Failed, SessionAnswer

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.creation import Failure
    from dmlsplit.onnxruntime.findings import GraphFinding
    from dmlsplit.onnxruntime.session_graph import SessionGraph

_SIZES: Final = (64, 256)
"""The sizes that all symbols get in a trial: what is wrong with both is taken to be wrong with any. In one more trial,
the first dimensions of the inputs are 1, the most frequent batch."""


class Wrong(NamedTuple):
    """What is wrong with a model: at a node, "" if it is not at one, a reason why the session is not created or, if it
    is created, the rule of a fused graph's fault."""

    node: str
    what: str
    created: bool


class Session(Protocol):
    """What is tried: an OnnxSession, whose members are documented there."""

    @property
    def placement(self) -> SessionAnswer: ...
    @property
    def places(self) -> SessionAnswer: ...
    @property
    def graphs(self) -> Sequence[SessionGraph]: ...
    @property
    def failure(self) -> Failure | None: ...
    def findings(self, *, affected: bool = True) -> tuple[GraphFinding, ...]: ...
    def with_sizes(self, sizes: Mapping[str, int]) -> Session | None: ...


def tried(session: Session) -> SessionAnswer:
    """Returns `session.placement`, with what a trial adds: to the advice to fix sizes, what is wrong then; to the
    reason why the session is not created, that it is with fixed sizes."""
    placed = session.placement
    said, failure = placed.diagnostics, placed.failure
    if placed.created is False and failure is not None and placed.nodes:
        symbols = open_symbols(session.graphs[-1])
        if any(each.places.created for each in _trials(session, symbols)):
            message = f"{failure.message}; it is created with fixed sizes ({free_dimensions(symbols)})"
            return replace(placed, failure=Failed(failure.node, message))
        return placed
    if not any(each.rule == OPEN_SIZES.id for each in said) or any(each.severity is Severity.ERROR for each in said):
        return placed  # or something else has to be mended first
    graph = session.graphs[-1]
    symbols, batches = open_symbols(graph), open_batches(graph)
    if wrong := _wrong_with_sizes(session, symbols):
        advice = _if_fixed(symbols, wrong)
    elif wrong := _wrong_with_one(session, symbols, batches):
        advice = _if_one(symbols, batches, wrong)
    else:
        return placed
    return replace(
        placed, diagnostics=tuple([_advised(each, *advice) if each.rule == OPEN_SIZES.id else each for each in said])
    )


def _trials(session: Session, symbols: Sequence[str], ones: Sequence[str] = ()) -> Iterator[Session]:
    """Yields the sessions of the model with the sizes of a trial, as far as they may be judged and do not contradict
    the model. `ones`: symbols that are 1."""
    for size in _SIZES if symbols else ():
        made = session.with_sizes({**dict.fromkeys(symbols, size), **dict.fromkeys(ones, 1)})
        if made is None:
            return
        try:
            made.places  # noqa: B018
        except DmlSplitError:
            return
        yield made


def _wrong_with_sizes(session: Session, symbols: Sequence[str]) -> Wrong | None:
    """Returns what becomes wrong with a model, whatever sizes these symbols are given; None if nothing does, or if that
    is not known."""
    known = set(_errors(session))
    found: list[Wrong] = []
    for made in _trials(session, symbols):
        wrong = next((each for each in _errors(made) if each not in known), None)
        if wrong is None or (found and found[0] != wrong):  # or it is the size that is wrong
            return None
        found.append(wrong)
    return found[0] if len(found) == len(_SIZES) else None


def _wrong_with_one(session: Session, symbols: Sequence[str], ones: Sequence[str]) -> Wrong | None:
    """Returns what becomes wrong with a model if the symbols `ones` are 1; None if nothing does, or if that is not
    known."""
    known = set(_errors(session))
    for made in _trials(session, symbols, ones) if ones else ():
        return next((each for each in _errors(made) if each not in known), None)
    return None


def _errors(session: Session) -> Iterator[Wrong]:
    """Yields the reason why the session is not created or, if it is created, the faults of its graphs."""
    if session.failure is not None:
        yield Wrong(session.failure.node, session.failure.why, created=False)
        return
    for each in session.findings(affected=False):
        if each.severity is Severity.ERROR:
            yield Wrong(each.diagnostic.location.node, each.diagnostic.rule, created=True)


def _if_fixed(symbols: Sequence[str], wrong: Wrong) -> tuple[str, str]:
    """Returns the advice for a model in which something is wrong once these symbols have sizes, in place of the rule's,
    and nothing to add to that."""
    mended = f"leave them open, or fix them in the file with dmlsplit legalize {free_dimensions(symbols)}, which mends"
    if wrong.created:
        return f"with fixed sizes {_said(wrong)}: {mended} the graph", ""
    return f"leave them open: with fixed sizes {_said(wrong)}", ""


def _if_one(symbols: Sequence[str], ones: Sequence[str], wrong: Wrong) -> tuple[str, str]:
    """Returns the rule's advice for a model in which something is wrong once the symbols `ones` are 1, and that."""
    sizes = " and ".join(f"{printable(name, 60)} = 1" for name in ones)
    return "", f"; with {sizes}, {_said(wrong)}: dmlsplit legalize {free_dimensions(symbols)} mends the file if it can"


def _said(wrong: Wrong) -> str:
    at = f" at {printable(wrong.node, 60)}" if wrong.node else ""
    if wrong.created:
        return f"a fused graph is wrong ({wrong.what}{at})"
    return f"the session is not created{at}: {wrong.what}"


def _advised(found: Diagnostic, instead: str, added: str) -> Diagnostic:
    """Returns the finding about open sizes with other advice, if there is any, and with an addition."""
    said, _, _ = found.message.partition(f"; {OPEN_SIZES.cure}")
    return replace(found, message=f"{said}; {instead}" if instead else f"{found.message}{added}")
