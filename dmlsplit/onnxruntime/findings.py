"""Faults of the graphs that a model's nodes become, reported on its Splits and Concats with the cure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.location import Location
from dmlsplit.graphs.traits import Fusion, traits_of
from dmlsplit.models.functions import JUDGED
from dmlsplit.onnxruntime.cures import GUARDED, MOVABLE, UNSPLIT, Cure, Fault, cures_of
from dmlsplit.onnxruntime.fused import FusedGraph, SessionGraphs
from dmlsplit.onnxruntime.graph_build import session_graphs
from dmlsplit.onnxruntime.graph_judging import GraphFault, forget_compiled, hidden, judged
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.system.printable import printable
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime, runtimes
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions

_FIRST_TO_TAKE_CONSTANTS: Final = version_key("1.13.1")
"""The first DirectML whose CompileGraph takes constants as nodes of their own."""

_PLACE: Final = re.compile(r"output (\d+) of node (\d+)|graph input (\d+)|[Nn]ode (\d+)(?: \([A-Z0-9_]+\))?")
"""How messages about a graph name its nodes and tensors."""


@dataclass(frozen=True, slots=True)
class GraphFinding:
    """One thing that a target does wrong with a model.

    `path` names the Split or Concat, `node` the node that does it; `outputs` are the tensors that come out wrong.
    `fault` and `directml` are what cures_of takes: None where it is not in the table of cures, or is only unknown.
    `happens` says it without what comes of it.
    """

    fault: Fault | None
    path: str
    node: str
    outputs: tuple[str, ...]
    cure: Cure | None
    directml: str
    diagnostic: Diagnostic
    happens: str = ""


def findings(
    model: SessionModel, runtime: Runtime, options: SessionOptions = DEFAULTS, *, complete: bool = False
) -> tuple[GraphFinding, ...]:
    """The faults of a session of `runtime` with a model, in the order of its graphs.

    `complete`: also those that will show once these are mended, and none with the other releases that do the same.
    """
    found: list[GraphFinding] = []
    fuses = options.graph_fusion
    for graph in SessionGraph.of_model(model, runtime, replace(options, graph_fusion=True)):
        if not any(node.op_type in JUDGED for node in graph.nodes):
            continue
        parts = session_graphs(graph)
        if not fuses:
            parts = replace(parts, parts=[])
        found += _of_session(parts, runtime)
        for fused in parts.fused:
            found += _of_fused(fused, runtime, complete)
    return tuple(found)


def _of_session(parts: SessionGraphs, runtime: Runtime) -> Iterator[GraphFinding]:
    """Faults that arise before DirectML sees the nodes."""
    anchor = parts.anchor
    if anchor is None:
        return
    for group in parts.doubtful:
        place = next((path for path in group.paths if path in parts.judged), None)
        if place is not None:
            message = "what comes of its graph is not known, since it is not known which nodes are fused"
            yield _finding("graph/unknown", place, message, runtime)
    for dead in parts.dead:
        message = (
            f"nothing uses what {_listed(dead)} {'computes' if len(dead) == 1 else 'compute'}: ONNX Runtime compiles a "
            "graph of no nodes, and the session is not made; remove what nothing uses"
        )
        place = next((path for path in dead if path in parts.judged), anchor)
        yield _finding(Fault.DEAD.rule, place, message, runtime, Fault.DEAD, dead[0])
    for name, path, op in parts.unwritten:
        message = (
            f"the output {printable(name, 60)} of {op} {path} is never written, since the activation behind it is put "
            "into the node: Run gives an empty value for it; put Max(t, t) between them"
        )
        yield _finding(Fault.UNWRITTEN.rule, anchor, message, runtime, Fault.UNWRITTEN, path, (name,))


def _of_fused(graph: FusedGraph, runtime: Runtime, complete: bool) -> Iterator[GraphFinding]:
    anchors = [i for i, op in enumerate(graph.ops) if op in JUDGED]
    if not anchors:
        return
    answer = judged(graph, traits_of(runtime.release), takes_constants=takes_constants(runtime))
    for each in answer.found:
        yield _of_found(graph, each, anchors, runtime, "" if complete else _ranges(graph, each))
    for each in hidden(graph, traits_of(runtime.release)) if complete else ():
        yield _of_found(graph, each, anchors, runtime, "")
    if answer.unknown:
        message = f"what comes of its graph is not known: {answer.unknown}"
        yield _finding("graph/unknown", graph.paths[anchors[0]], message, runtime)
    forget_compiled(graph, traits_of(runtime.release))


def takes_constants(runtime: Runtime) -> bool:
    """Whether constants are no nodes of their own, or DirectML takes such nodes."""
    return not runtime.traits.constants_are_nodes or version_key(runtime.directml) >= _FIRST_TO_TAKE_CONSTANTS


def _of_found(
    graph: FusedGraph, found: GraphFault, anchors: Sequence[int], runtime: Runtime, ranges: str
) -> GraphFinding:
    """The finding; `ranges`: the releases that do the same."""
    culprit = found.node if found.node is not None else anchors[0]
    nearest = graph.nearest(culprit, JUDGED)
    path = graph.paths[anchors[0] if nearest is None else nearest]
    fault = _fault_of(graph, found, culprit)
    names = tuple([graph.outputs[i] for i in found.outputs])
    if found.tensor is not None:
        names = (graph.tensors[found.tensor[0]][found.tensor[1]],)
    happens = _PLACE.sub(lambda place: _in_model(graph, place), found.message)
    cure = _cure(graph, fault, culprit, runtime) if fault is not None else None
    helps = [_worded(graph, cure, culprit)] if cure is not None else []
    parts = [_what(graph, names, happens, culprit), ranges, ", or ".join([*helps, UNSPLIT])]
    message = "; ".join(filter(None, parts))
    return _finding(found.rule, path, message, runtime, fault, graph.paths[culprit], names, cure, happens)


def _finding(
    rule: str,
    path: str,
    message: str,
    runtime: Runtime,
    fault: Fault | None = None,
    node: str = "",
    outputs: tuple[str, ...] = (),
    cure: Cure | None = None,
    happens: str = "",
) -> GraphFinding:
    diagnostic = GRAPH_RULES[rule].diagnostic(Location(node=path), message)
    return GraphFinding(fault, path, node or path, outputs, cure, runtime.directml, diagnostic, happens)


def _fault_of(graph: FusedGraph, found: GraphFault, culprit: int) -> Fault | None:
    if found.rule != Fault.PRODUCT.rule:
        return next((fault for fault in Fault if fault.rule == found.rule), None)
    chained = any(graph.ops[node] == "Mul" for node, _ in graph.sources.get(culprit, ()))
    return Fault.PRODUCT if chained else Fault.GATE


def _cure(graph: FusedGraph, fault: Fault, culprit: int, runtime: Runtime) -> Cure | None:
    """The cheapest cure that changes no bit and fits."""
    for cure in cures_of(fault, runtime.release):
        if cure.bit_exact and _fits(graph, cure, culprit):
            return cure
    return None


def _worded(graph: FusedGraph, cure: Cure, culprit: int) -> str:
    """The change, with the model's names of the parts where it speaks of them."""
    if cure.fault is not Fault.GATE:
        return cure.change
    parts = []
    for node, output in graph.sources.get(culprit, ()):
        behind = graph.sources.get(node, ()) if graph.ops[node] == "Sigmoid" else []
        parts.append(_tensor(graph, *(behind[0] if behind else (node, output))))
    named = dict(zip("ab", parts, strict=False))
    return re.sub(r"\b[ab]\b(?= and| with)", lambda m: named.get(m[0], m[0]), cure.change)


def _fits(graph: FusedGraph, cure: Cure, culprit: int) -> bool:
    """Whether the condition of a cure holds: mending carries it out then."""
    if cure.fault is Fault.REFUSED:
        return _fits_cut(graph, cure, culprit)
    if cure.name == "operator-first":
        join = next((node for node, _ in graph.sources.get(culprit, ()) if graph.ops[node] == "Concat"), None)
        if join is None or not _is_movable(graph, culprit, (join, 0)):
            return False
        return not any(_is_guarded_output(graph, *before) for before in graph.sources.get(join, ()))
    if cure.name == "tile":
        inputs = graph.sources.get(culprit, ())
        return len(set(inputs)) == 1 and _input_count(graph, culprit) == len(inputs)
    return cure.name != "rename"


def _fits_cut(graph: FusedGraph, cure: Cure, culprit: int) -> bool:
    """The same of the cures of a part that alone is used of what `culprit` makes."""
    reader = _reader_of_part(graph, culprit)
    if cure.name == "operator-first":
        if reader is None or _is_guarded_output(graph, culprit, 0):
            return False
        return any(
            _is_movable(graph, reader, part)
            for part in graph.sources[reader]
            if graph.ops[part[0]] in ("Split", "Slice")
        )
    return True


def _is_movable(graph: FusedGraph, reader: int, tensor: tuple[int, int]) -> bool:
    """Whether a node can be moved over the Split or Concat that makes a tensor: it alone reads that, as it is."""
    node, output = tensor
    alone = list(graph.readers.get(node, ())) == [reader] and tensor not in graph.exits
    return alone and graph.ops[reader] in MOVABLE and graph.tensors[node][output] in graph.read[reader]


def _is_guarded_output(graph: FusedGraph, node: int, output: int) -> bool:
    return graph.ops[node] in GUARDED and (node, output) in graph.exits


def _reader_of_part(graph: FusedGraph, node: int) -> int | None:
    """The node that alone reads a part of what `node` computes, through a Split or Slice."""
    for cut in graph.readers.get(node, ()):
        if graph.ops[cut] in ("Split", "Slice") and len(graph.readers.get(cut, ())) == 1:
            return graph.readers[cut][0]
    return None


def _input_count(graph: FusedGraph, node: int) -> int:
    return len(graph.sources.get(node, ())) + graph.fed[node]


def _what(graph: FusedGraph, names: Sequence[str], happens: str, culprit: int) -> str:
    """The fault in the names of the model, and what comes of it."""
    reader = None if names else _reader_of_part(graph, culprit)
    if reader is not None:
        happens = f"only a part of it is used, by {_node(graph, reader)}, which works in place: {happens}"
    if not names:
        return f"CompileGraph refuses the graph at {_node(graph, culprit)}, and the session is not made: {happens}"
    kind = "the output" if set(names) <= graph.model_outputs else "the tensor"
    subject = f"{kind}s {_listed(names)} are" if len(names) > 1 else f"{kind} {_listed(names)} is"
    place = "" if _node(graph, culprit) in happens else f" ({_node(graph, culprit)})"
    return f"{subject} wrong: {happens}{place}"


def _in_model(graph: FusedGraph, place: re.Match[str]) -> str:
    output, of, fed, node = place.groups()
    if output is not None:
        return _tensor(graph, int(of), int(output))
    return printable(graph.inputs[int(fed)], 60) if fed is not None else _node(graph, int(node))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(printable(name, 60) for name in names[:4]) + (", ..." if len(names) > 4 else "")


def _tensor(graph: FusedGraph, node: int, output: int) -> str:
    return printable(graph.tensors[node][output], 60)


def _node(graph: FusedGraph, node: int) -> str:
    return f"{graph.ops[node]} {printable(graph.paths[node], 60)}"


def _ranges(graph: FusedGraph, found: GraphFault) -> str:
    """The DirectML that do the same, the versions of ONNX Runtime that ship them, and which of these are assumed to."""

    def is_affected(directml: str) -> bool:
        release = next(runtime.release for runtime in runtimes() if runtime.directml == directml)
        traits = traits_of(release)
        if found.rule == Fault.PRODUCT.rule and (traits is None or traits.fusion is Fusion.NONE):
            return False
        return (found.rule, found.node) in graph.once(("rules", release), lambda: _rules(graph, release))

    parts = []
    shipped = sorted({runtime.directml for runtime in runtimes()}, key=version_key)
    for affected, releases in groupby(shipped, is_affected):
        if not affected:
            continue
        span = list(releases)
        of = [runtime for runtime in runtimes() if runtime.directml in span]
        versions = [runtime.version for runtime in of]
        assumed = [runtime.version for runtime in of if not runtime.observed]
        text = f"DirectML {_span(span)}, that is ONNX Runtime {_span(versions)}"
        parts.append(text + (f" ({_span(assumed)} not observed)" if assumed else ""))
    return "; ".join(parts)


def _rules(graph: FusedGraph, release: Release) -> frozenset[tuple[str, int | None]]:
    """The rules of the faults by a release, each with the node that does it."""
    return frozenset((each.rule, each.node) for each in judged(graph, traits_of(release)).found)


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def by_path(found: Sequence[GraphFinding]) -> Mapping[str, tuple[Diagnostic, ...]]:
    """The diagnostics of each Split or Concat, by its path."""
    paths: dict[str, list[Diagnostic]] = {}
    for finding in found:
        paths.setdefault(finding.path, []).append(finding.diagnostic)
    return {path: tuple(dict.fromkeys(diagnostics)) for path, diagnostics in paths.items()}
