"""Describes in lines how versions of ONNX Runtime place a model: the head of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from dmlsplit.rules import RULES
from dmlsplit.rules.graph_faults import first_names
from dmlsplit.system.printable import printable
from dmlsplit.verdicts.model_placements import GraphOutcome, Provider, Why

if TYPE_CHECKING:
    from dmlsplit.verdicts.model_placements import NodePlacement, SessionAnswer

Part: TypeAlias = tuple[str, str]
"""A piece of a line and its style: a rich style, or empty."""

GROUPS_SHOWN: Final = 8
NAMES_SHOWN: Final = 3
OPERATORS_SHOWN: Final = 4
CHANGES_SHOWN: Final = 8
SIZES_SHOWN: Final = 6
_PLACES: Final = {
    "DML": "on DirectML",
    "CPU": "on the CPU",
    "both": "on both",
    "folded": "folded",
    "unknown": "unknown",
}
_STYLES: Final = {True: "bold green", False: "bold red", None: "bold yellow"}


def reason(why: Why) -> str:
    """Returns the reason why a node is not on DirectML as a part of a sentence, without a full stop."""
    summary = RULES[why].summary.removesuffix(".")
    return summary if summary.startswith("DirectML") else summary[0].lower() + summary[1:]


def lines(placements: Sequence[SessionAnswer]) -> Iterator[list[Part]]:
    """Yields styled lines: for each version whether it creates a session and where the nodes are; then the nodes that
    are not on DirectML, by reason, and the differences between the versions."""
    for each in placements:
        head = [(f"{each.runtime.judged_by}: ", ""), (_session(each), _STYLES[each.created])]
        placed = counts(each.counts, runs=each.created is not False)
        yield [*head, (f"; {placed}{_running(each)}", "")] if each.nodes else head
        if each.nodes and (each.created is not False or each.outcomes):
            yield [("  ", ""), (_graphs(each), "")]
    groups: dict[str, list[str]] = {}
    for each in placements:
        for text in _elsewhere(each):
            groups.setdefault(text, []).append(each.runtime.version)
    shown = list(groups.items())[:GROUPS_SHOWN]
    for text, versions in shown:
        by = f" ({', '.join(versions)})" if len(versions) < len(placements) else ""
        yield [("  ", ""), (f"{text}{by}", "")]
    if len(groups) > len(shown):
        yield [("  ", ""), (f"... {len(groups) - len(shown)} more reasons", "")]
    yield from _changes(placements)


def _session(placement: SessionAnswer) -> str:
    if placement.created:
        return "session created"
    node, message = placement.failure or ("", "nodes are not known")
    why = f"{f' at {node}' if node else ''}: {message}"
    return f"session fails{why}" if placement.created is False else f"session not known{why}"


def counts(found: Mapping[Provider, int], *, runs: bool = True) -> str:
    """Returns the numbers of nodes by provider as text: "7 nodes: 5 on DirectML, 1 on the CPU, 1 folded"; with `runs`
    False: "7 nodes would be placed: 5 on DirectML, 1 on the CPU, 1 folded"."""
    total = sum(found.values())
    said = [f"{count:,} {_PLACES[provider]}" for provider, count in sorted(found.items(), key=_order) if count]
    would = "" if runs else " would be placed"
    return f"{total:,} node{'s' * (total != 1)}{would if said else ''}{': ' if said else ''}{', '.join(said)}"


def _running(placement: SessionAnswer) -> str:
    """Returns the number of nodes that run, as the end of a sentence, if it is not that of the file's nodes."""
    if not placement.created or placement.running is None:
        return ""
    of_file = len(placement.nodes) - placement.counts[Provider.FOLDED]
    return "" if placement.running == of_file else f"; {placement.running:,} run after optimization"


def _order(item: tuple[Provider, int]) -> int:
    return list(_PLACES).index(item[0])


def _graphs(placement: SessionAnswer) -> str:
    """Returns the fused graphs of a session as text and, unless it fails, its copies and whether it can be captured."""
    sizes = [size.text for size in placement.graphs]
    more = ", ..." if len(sizes) > SIZES_SHOWN else ""
    nodes = "node" if sizes == ["1"] else "nodes"
    of = f" of {', '.join(sizes[:SIZES_SHOWN])}{more} {nodes}" if sizes else ""
    fused = f"{len(sizes)} fused graph{'s' * (len(sizes) != 1)}{of}{_outcomes(placement)}"
    if placement.created is False:
        return fused
    copies = placement.copies
    copied = (
        "copies between devices: not known"
        if copies is None
        else f"copies: {copies[0]} to the CPU, {copies[1]} from it"
    )
    return f"{fused}; {copied}; graph capture: {_capture(placement)}"


def _outcomes(placement: SessionAnswer) -> str:
    """Returns the outcomes of a session's graphs as the end of a sentence: ", right", ", 2 right, 1 unknown (Einsum)";
    "" if there are no graphs."""
    found = placement.outcomes
    said = str(next(iter(found))) if found.total() == len(placement.graphs) and len(found) == 1 else outcomes(found)
    undecided = dict.fromkeys(op for graph in placement.graphs if graph.outcome in found for op in graph.undecided)
    named = f" ({first_names(list(undecided))})" if undecided else ""
    return f", {said}{named}" if said else ""


def outcomes(found: Mapping[GraphOutcome, int]) -> str:
    """Returns the numbers of graphs by outcome as text: "2 right, 1 unknown"; "" if there are none."""
    return ", ".join([f"{found[outcome]:,} {outcome}" for outcome in GraphOutcome if found.get(outcome)])


def _capture(placement: SessionAnswer) -> str:
    reason = placement.capture_prevented_by
    return f"no, {printable(reason)}" if reason else "accepted" if placement.capture else "not known"


def _elsewhere(placement: SessionAnswer) -> Iterator[str]:
    """Yields a line for each operator and reason for which nodes are not on DirectML; nodes of several operators that
    only compute sizes, and need no change, share one line."""
    sizes = [nodes for nodes in placement.elsewhere() if nodes[0].why is Why.SIZES]
    for nodes in placement.elsewhere():
        if nodes[0].why is Why.SIZES and len(sizes) > 1:
            continue
        names = ", ".join(node.path for node in nodes[:NAMES_SHOWN])
        more = f", ... {len(nodes) - NAMES_SHOWN} more" if len(nodes) > NAMES_SHOWN else ""
        typed = f" of {first_names(nodes[0].types)}" if nodes[0].types else ""
        yield f"{_PLACES[nodes[0].provider]}: {len(nodes)} {nodes[0].op}{typed}: {_why(nodes[0])} ({names}{more})"
    if len(sizes) > 1:
        count = sum(map(len, sizes))
        named = ", ".join(f"{len(nodes)} {nodes[0].op}" for nodes in sizes[:OPERATORS_SHOWN])
        more = f", ... {len(sizes) - OPERATORS_SHOWN} more operators" if len(sizes) > OPERATORS_SHOWN else ""
        yield f"on the CPU: {count} nodes: they compute sizes, which ONNX Runtime leaves there ({named}{more})"


def _why(node: NodePlacement) -> str:
    said = "" if node.why is None else reason(node.why)
    if node.version is not None and node.newest is not None:
        return f"{said} (version {node.version}, kernels for {node.newest})"
    return said


def _changes(placements: Sequence[SessionAnswer]) -> Iterator[list[Part]]:
    """Yields a line for each kind of change of nodes from one provider to another between two versions."""
    for before, after in pairwise(placements):
        was = {node.path: node.provider for node in before.nodes.values()}
        moved: dict[str, list[str]] = {}
        for node in after.nodes.values():
            old = was.get(node.path, node.provider)
            if old is not node.provider:
                moved.setdefault(f"{_PLACES[old]} -> {_PLACES[node.provider]}", []).append(node.path)
        for text, paths in list(moved.items())[:CHANGES_SHOWN]:
            names = ", ".join(paths[:NAMES_SHOWN])
            more = f", ... {len(paths) - NAMES_SHOWN} more" if len(paths) > NAMES_SHOWN else ""
            versions = f"{before.runtime.version} -> {after.runtime.version}"
            yield [("  ", ""), ("changes", "bold cyan"), (f": {versions}: {len(paths)} {text} ({names}{more})", "")]
