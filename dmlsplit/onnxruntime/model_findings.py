"""Findings about a model as a whole in a session, each with its remedy."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.onnx.protobuf import domain_of, text
from dmlsplit.onnxruntime.imports import DOMAINS
from dmlsplit.onnxruntime.inferred_sizes import UninferredSize, uninferred_sizes
from dmlsplit.onnxruntime.islands import Island, cast_for_kernel, grouped, islands
from dmlsplit.onnxruntime.node_faults import faults_in
from dmlsplit.onnxruntime.older_opset import OlderOpset, older_opset
from dmlsplit.onnxruntime.operators import is_fused
from dmlsplit.onnxruntime.quantization_axes import OffAxis, off_axis
from dmlsplit.onnxruntime.quantized_faults import QuantizedFault, cure_of, first_quantized_faults
from dmlsplit.onnxruntime.ranks import BeyondRank, all_beyond_rank, merged_batch
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules import whole_model
from dmlsplit.system.printable import printable
from dmlsplit.verdicts.model_placements import Failed, Provider, SessionAnswer, Why

NAMES_SHOWN = 3
_OPERATORS_SHOWN = 4
_BY_INPUT = "python -m onnxruntime.tools.make_dynamic_shape_fixed"
"""What fixes sizes that have no names."""
_REDUCE = "run dmlsplit why, which reduces the model to the nodes that cause the failure"


def model_findings(
    placed: SessionAnswer, graphs: Sequence[SessionGraph], whole: Callable[[], Sequence[SessionGraph]]
) -> tuple[Diagnostic, ...]:
    """Returns the findings about a model as a whole. `graphs` are those of its session; `whole()` returns those of a
    session without optimization."""
    return tuple(_findings(placed, graphs, whole))


def _findings(
    placed: SessionAnswer, graphs: Sequence[SessionGraph], whole: Callable[[], Sequence[SessionGraph]]
) -> Iterator[Diagnostic]:
    older = older_opset(graphs, whole) if any(node.why is Why.OPSET for node in placed.nodes.values()) else None
    if older is not None:
        yield _of_older(older, graphs[-1].opset)
    yield from _of_ranks(list(all_beyond_rank(graphs)))
    yield from _of_quantized(faults_in(graphs, first_quantized_faults))
    yield from _of_axes(faults_in(graphs, off_axis))
    yield from _of_inferred(faults_in(graphs, uninferred_sizes))
    if placed.created is False:
        return
    yield from _of_domains(graphs)
    if found := _of_open_sizes(placed, graphs[-1]):
        yield found
    paths = placed.nodes
    opset = None if older is None or older.why else older.opset
    for group in grouped([island for graph in graphs for island in islands(graph, paths, opset)]):
        yield _of_islands(group)


def of_failure(failed: Failed, graphs: Sequence[SessionGraph] = (), cure: str = "") -> Diagnostic:
    """Returns the finding that no session is created. `graphs` are those of the session, none if there are none; `cure`
    is what helps against this failure, "" if nothing is known."""
    rule, cast = whole_model.SESSION_FAILS, cast_for_kernel(graphs, failed.node) if failed.node else ""
    known = cure or (_REDUCE if failed.node else "")  # no node causes the other failures
    cure = f"; {known}" if known else ""
    if cast:
        cure = f"; what helps: {cast}, or a model of that type"
    return rule.diagnostic(Location(node=failed.node), f"the session is not created: {failed.message}{cure}")


def _of_older(older: OlderOpset, own: int) -> Diagnostic:
    """Returns the finding that more nodes are on DirectML in the opset of `older`; `own` is the model's opset."""
    rule = whole_model.OPSET_WITHOUT_KERNELS
    cure = f"the model cannot be converted to it: {older.why}" if older.why else rule.cure
    message = (
        f"{moved_text(older)} on the CPU at opset {own}, but on DirectML at opset {older.opset}, the newest for which "
        f"DirectML has kernels for {'it' if older.operators.total() == 1 else 'them'}; {cure}"
    )
    return rule.diagnostic(Location(node=older.node), message, expected=older.opset, actual=own)


def _of_ranks(found: Sequence[BeyondRank]) -> Iterator[Diagnostic]:
    """Yields the findings about ranks that make session creation fail, one for each operator and each reason why
    Reshapes do not help."""
    groups: dict[tuple[str, str], list[BeyondRank]] = {}
    for node in found:
        merged = merged_batch(node)
        groups.setdefault((node.operator, merged if isinstance(merged, str) else ""), []).append(node)
    for (operator, why), (first, *others) in groups.items():
        rule = whole_model.RANK
        count = f"{1 + len(others)} {printable(operator, 60)}" if others else printable(operator, 60)
        message = (
            f"{count}: {first.why}: the session is not created; {f'no Reshape helps: {why}' if why else rule.cure}"
        )
        yield rule.diagnostic(Location(node=first.path), message, expected=first.most, actual=first.rank)


def _of_quantized(found: Iterable[QuantizedFault]) -> Iterator[Diagnostic]:
    """Yields the findings about operators for quantized elements that make session creation fail, one for each
    operator, fault and cure."""
    groups: dict[object, list[QuantizedFault]] = {}
    for fault in found:
        groups.setdefault((fault.node.op_type, fault.kind, fault.at_run, cure_of(fault)), []).append(fault)
    for first, *others in groups.values():
        rule, cure = whole_model.QUANTIZED, cure_of(first)
        count = f"{1 + len(others)} nodes: " if others else ""
        advice = (
            "no change of the model is known to help" if cure is None else f"{cure.value}, as dmlsplit legalize does"
        )
        message = f"{count}{first.why}: {'Run fails' if first.at_run else 'the session is not created'}; {advice}"
        yield rule.diagnostic(Location(node=first.path), message, actual=first.node.op_type)


def _of_axes(found: Iterable[OffAxis]) -> Iterator[Diagnostic]:
    """Yields the findings about scales along another axis than their kernel's, one for each operator, outcome and
    reason why nothing helps."""
    groups: dict[object, list[OffAxis]] = {}
    for each in found:
        groups.setdefault((each.node.op_type, each.fails, each.at_run, each.no_cure), []).append(each)
    for first, *others in groups.values():
        rule = whole_model.QUANTIZATION_AXIS
        count = f"{1 + len(others)} nodes: " if others else ""
        fails = "Run fails" if first.at_run else "the session is not created"
        what = fails if first.fails else "the result is wrong"
        advice = f"no change of the model is known to help: {first.no_cure}" if first.no_cure else rule.cure
        message = f"{count}{first.why}: {what}; {advice}"
        yield rule.diagnostic(Location(node=first.path), message, expected=first.rank - 1, actual=first.axis)


def _of_inferred(found: Iterable[UninferredSize]) -> Iterator[Diagnostic]:
    """Yields the findings about Reshapes whose kernel does not infer a size, one for each outcome."""
    groups: dict[bool, list[UninferredSize]] = {}
    for each in found:
        groups.setdefault(each.at_run, []).append(each)
    for at_run, (first, *others) in groups.items():
        rule = whole_model.INFERRED_SIZE
        count = f"{1 + len(others)} nodes: " if others else ""
        what = "Run fails" if at_run else "the session is not created"
        yield rule.diagnostic(Location(node=first.path), f"{count}{first.why}: {what}; {rule.cure}")


def _of_domains(graphs: Sequence[SessionGraph]) -> Iterator[Diagnostic]:
    """Yields a finding for each domain that ONNX Runtime does not have, at its first node."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for graph in graphs:
        for node in graph.nodes:
            if (domain := domain_of(node.proto)) not in DOMAINS:
                groups.setdefault(domain, []).append((graph.path(node.index), node.proto.op_type))
    for domain, nodes in groups.items():
        rule, operators = whole_model.UNREGISTERED, Counter(f"{domain}.{operator}" for _, operator in nodes)
        said = f"{_named(operators)}: ONNX Runtime itself has no operators of the domain {printable(domain, 60)}"
        message = f"{said}, and without them the session is not created; {rule.cure}"
        yield rule.diagnostic(Location(node=nodes[0][0]), message, actual=len(nodes))


def _of_open_sizes(placed: SessionAnswer, graph: SessionGraph) -> Diagnostic | None:
    """Returns the finding that DirectML's nodes in `graph` are in no fused graph because sizes are unknown at session
    creation; None if the whole session has at least as many nodes in fused graphs as `graph` has such nodes.

    Only nodes that could be fused if the sizes of their inputs and outputs were known are counted. None also if nothing
    in `graph` can be fused: fusion is off, or a node has a graph inside.
    """
    if not graph.fuses or not graph.has_open:
        return None
    alone = [
        path
        for node in graph.order
        if (cell := graph.cell(node.index)) is not None
        and is_fused(cell)
        and (found := placed.nodes.get(path := graph.path(node.index))) is not None
        and (found.provider, found.graph) == (Provider.DML, None)
        and any(graph.is_open(value.name) for value in (*node.inputs, *node.outputs) if value.name)
    ]
    fused = sum(node.graph is not None for node in placed.nodes.values())
    if len(alone) <= fused:
        return None
    rule, options = whole_model.OPEN_SIZES, free_dimensions(open_symbols(graph))
    nodes = "1 node on DirectML is" if len(alone) == 1 else f"{len(alone)} nodes on DirectML are"
    said = f"{nodes} in no fused graph, because sizes are unknown when the session is created"
    effect = f", as dmlsplit legalize does ({options} shows the effect)" if options else f", as {_BY_INPUT} does"
    return rule.diagnostic(Location(node=alone[0]), f"{said}; {rule.cure}{effect}", actual=len(alone))


def free_dimensions(symbols: Sequence[str]) -> str:
    """Returns the options that give the first of these symbols sizes."""
    given = [f"{printable(name, 60)}=NUMBER" for name in symbols[:_OPERATORS_SHOWN]]
    return " ".join(f"--free-dimension {shlex.quote(each)}" for each in given)


def open_symbols(graph: SessionGraph) -> list[str]:
    """Returns the symbols in the shapes of a model's inputs, in order."""
    symbols = {
        text(dim.dim_param): None
        for value in graph.scope.graph.input
        if value.name in graph.inputs
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_param
    }
    return list(symbols)


def open_batches(graph: SessionGraph) -> list[str]:
    """Returns the symbols of the first dimensions of a model's inputs, in order."""
    shapes = [value.type.tensor_type.shape.dim for value in graph.scope.graph.input if value.name in graph.inputs]
    return list(dict.fromkeys(text(dims[0].dim_param) for dims in shapes if dims and dims[0].dim_param))


def _of_islands(group: Sequence[Island]) -> Diagnostic:
    """Returns the finding that nodes on the CPU are between nodes on DirectML. `group` are islands that the same
    changes move."""
    rule, first, count = whole_model.CPU_ISLAND, group[0], len(group)
    copied = [size for island in group for size in island.copied]
    known = [size for size in copied if size is not None]
    unknown = len(copied) - len(known)
    size = (
        f"{sum(known):,} bytes{f' and {unknown} of unknown size' if unknown else ''}"
        if known
        else "all of unknown size"
    )
    operators = sum((island.operators for island in group), Counter[str]())
    is_one = operators.total() == 1
    names = ", ".join([printable(island.node, 60) for island in group[:NAMES_SHOWN]])
    said = (
        f"{count} islands ({names}{', ...' if count > NAMES_SHOWN else ''}) of {_named(operators)} are"
        if count > 1
        else f"{_named(operators)} on the CPU {'is' if is_one else 'are'}"
    )
    moved_by = sorted({str(each) for island in group for each in island.moved_by})
    more = f", ... {len(moved_by) - _OPERATORS_SHOWN} more operators" if len(moved_by) > _OPERATORS_SHOWN else ""
    message = (
        f"{said} between nodes on DirectML: each Run copies {len(copied)} tensors, {size}; to move "
        f"{'it' if is_one else 'them'} to DirectML: {', '.join(moved_by[:_OPERATORS_SHOWN]) or 'nothing known'}{more}"
    )
    return rule.diagnostic(Location(node=first.node), message, actual=len(copied))


def moved_text(older: OlderOpset) -> str:
    """Returns the nodes of an older opset as text: "12 nodes (9 Conv, 2 MaxPool, 1 Round) run"."""
    count = older.operators.total()
    return f"{count} node{'s' * (count != 1)} ({_named(older.operators)}) run{'s' * (count == 1)}"


def _named(operators: Counter[str]) -> str:
    """Returns counts of operators as text, "9 Conv, 2 MaxPool, 1 Round", the most frequent ones first."""
    most = operators.most_common()
    more = f", ... {len(most) - _OPERATORS_SHOWN} more operators" if len(most) > _OPERATORS_SHOWN else ""
    return ", ".join(f"{many} {printable(operator, 60)}" for operator, many in most[:_OPERATORS_SHOWN]) + more
