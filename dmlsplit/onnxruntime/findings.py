"""Faults of the graphs into which a model's nodes are fused, reported at its Splits and Concats with the cure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Final

from dmlsplit.descriptors.diagnostics import Diagnostic, Severity
from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.location import Location
from dmlsplit.graphs.descriptors import node_tensors
from dmlsplit.graphs.traits import Fusion, traits_of
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Graph, Value
from dmlsplit.onnxruntime.cure_places import Around
from dmlsplit.onnxruntime.cures import CURED_BY_UNSPLIT, UNSPLIT, Cure, advised
from dmlsplit.onnxruntime.empty_tensors import NAMED, empty_parts, lost_outputs
from dmlsplit.onnxruntime.fused import FusedGraph, SessionGraphs, Tensor
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.graph_judging import GraphFault, forget_compiled, hidden, judged, takes_constants
from dmlsplit.onnxruntime.graphs_of_model import graphs_of_model
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules.graph import GRAPH_RULES, GraphRule
from dmlsplit.rules.graph_faults import (
    Affected,
    Fault,
    FaultKind,
    NodeName,
    TensorName,
    in_model,
    lost_tensor,
    unknown,
)
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime, runtimes
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions

_UNKNOWN: Final = "graph/unknown"


@entity
class GraphFinding:
    """One fault of a model's graph, as a value; `diagnostic` describes it in words.

    `path` names the node at which it is reported: the nearest Split or Concat of the graph or, if it has none, the node
    at fault. `outputs` are the wrong tensors, none if the graph is refused. `fault` is None if the outcome is unknown;
    `reason` then says why.
    """

    fault: Fault | None
    path: str
    directml: str
    culprit: NodeName | None = None
    """The node at fault; for an inserted copy, the first Split or Concat."""
    outputs: tuple[str, ...] = ()
    leave: bool = False
    """True if `outputs` are outputs of the model."""
    reader: NodeName | None = None
    """The only node that reads a part of the culprit's result, if the graph is refused."""
    affected: tuple[Affected, ...] = ()
    cure: Cure | None = None
    remark: str = ""
    """The result of trying cures on the model; "" if `cure` helps there or none was tried."""
    reason: str = ""
    said: Diagnostic | None = None
    """The node's own answer about the fault, if nothing else is known about it."""

    @property
    def node(self) -> str:
        """The path of the node at fault."""
        return self.path if self.culprit is None else self.culprit.path

    @property
    def what(self) -> str:
        """What is wrong, as a sentence without releases and cures."""
        if self.said is not None:
            return self.said.message
        if self.fault is None or self.culprit is None:
            return unknown(self.reason)
        return in_model(self.fault, self.culprit, self.outputs, leave=self.leave, reader=self.reader)

    @property
    def severity(self) -> Severity:
        """The severity of `diagnostic`."""
        return self._rule.severity if self.said is None else self.said.severity

    @property
    def is_unknown(self) -> bool:
        """True if the finding is that the outcome is unknown."""
        return (self._rule.id if self.said is None else self.said.rule) == _UNKNOWN

    @property
    def _rule(self) -> GraphRule:
        return GRAPH_RULES[_UNKNOWN if self.fault is None else self.fault.rule]

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding in words: what is wrong, the releases with the same fault, and the remedy."""
        if self.said is not None:
            return self.said
        helps = [] if self.cure is None else [f"{self._remedy}{self.remark}"]
        if self.fault is not None and self.fault.kind in CURED_BY_UNSPLIT:
            helps.append(UNSPLIT)
        remark = self.remark if self.cure is None else ""
        message = "; ".join(filter(None, [self.what, *map(str, self.affected), remark, ", or ".join(helps)]))
        return self._rule.diagnostic(Location(node=self.path), message)

    @property
    def _remedy(self) -> str:
        assert self.cure is not None
        if self.fault is None or self.fault.kind is not FaultKind.GATE:
            return self.cure.sentence()
        kept, lost = map(str, self.fault.tensors)
        return self.cure.sentence(printable(lost, 60), printable(kept, 60))


def findings(
    model: SessionModel, runtime: Runtime, options: SessionOptions = DEFAULTS, *, affected: bool = True
) -> tuple[GraphFinding, ...]:
    """Returns the faults of a session of `runtime` with a model, in the order of its graphs; for each graph first those
    that make its outputs wrong, then those that would if there were no others. The latter, and all if `affected` is
    False, do not name the versions with the same fault.
    """
    found: list[GraphFinding] = []
    fuses = options.graph_fusion
    for graph in graphs_of_model(model, runtime, replace(options, graph_fusion=True)):
        parts = session_graphs(graph)
        if not fuses:
            parts = replace(parts, parts=[])
        found += _of_session(graph, parts, runtime)
        for fused in parts.fused:
            found += _of_fused(fused, runtime, affected)
        found += _of_empty(graph, parts, runtime, options)
    return tuple(found)


def _of_empty(
    graph: SessionGraph, parts: SessionGraphs, runtime: Runtime, options: SessionOptions
) -> Iterator[GraphFinding]:
    """Yields the faults of tensors without elements; `options` are the session's."""
    parts_of_splits, outputs = tuple(empty_parts(graph, options)), tuple(lost_outputs(graph))
    if not parts_of_splits and not outputs:
        return
    around = _InModel(graph.once("before optimization", graph.before_optimization), graph.shape)
    for node, kind in parts_of_splits:
        name = NodeName(node.op_type, graph.path(node.index))
        whole = kind is FaultKind.EMPTY_SECOND_PART
        lost = () if whole else tuple([v.name for v in node.outputs if v.name and 0 not in (graph.shape(v.name) or ())])
        cure = advised(kind, around, node.index, runtime.release)
        yield GraphFinding(Fault(kind, name), name.path, runtime.directml, name, lost, cure=cure)
    for empty, others, condition in outputs:
        producer = around.producer(around.value(empty.name))
        if producer is None:
            continue
        kind = FaultKind.MAY_BE_EMPTY if condition else FaultKind.EMPTY_OUTPUT
        name = NodeName(graph.nodes[producer].op_type, graph.path(producer))
        fault = Fault(kind, name, (empty.name, *others[:NAMED]), condition=condition)
        place = name.path if name.op in JUDGED else parts.anchor or name.path
        cure = advised(kind, around, producer, runtime.release)
        yield GraphFinding(fault, place, runtime.directml, name, others, leave=True, cure=cure)


def _of_session(graph: SessionGraph, parts: SessionGraphs, runtime: Runtime) -> Iterator[GraphFinding]:
    """Yields the faults that arise before DirectML is given a graph."""
    anchor = parts.anchor
    for group in parts.doubtful:
        place = next((path for path in group.paths if path in parts.judged), None)
        if place is not None:
            yield GraphFinding(None, place, runtime.directml, reason="it is not known which nodes are fused")
    for name, path, op in parts.perhaps_unwritten:
        reason = (
            f"whether an activation is fused into {NodeName(op, path)}, which would leave the output {name} unwritten"
        )
        yield GraphFinding(None, anchor or path, runtime.directml, reason=reason)
    if not parts.dead and not parts.unwritten:
        return
    around = _InModel(graph.once("before optimization", graph.before_optimization), graph.shape)
    for dead in parts.dead:
        origins = zip(dead.origins, dead.paths, strict=True)
        nodes = tuple([NodeName(graph.nodes[each[0]].op_type, path) for each, path in origins])
        judged_here = (path for path in dead.paths if path in parts.judged)
        # The first node that leads to no output is at fault: the others may lead to one through folded Shapes.
        useless = next((i for i, each in enumerate(dead.origins) if each[0] not in around.leading), 0)
        cure = advised(FaultKind.DEAD, around, dead.origins[useless][0], runtime.release)
        fault = Fault(FaultKind.DEAD, nodes[useless], nodes=nodes)
        place = next(judged_here, anchor or nodes[useless].path)
        yield GraphFinding(fault, place, runtime.directml, nodes[useless], cure=cure)
    for name, path, op in parts.unwritten:
        wrote = around.producer(around.value(name))
        node = NodeName(op, path) if wrote is None else NodeName(around.op(wrote), graph.path(wrote))
        cure = None if wrote is None else advised(FaultKind.UNWRITTEN, around, wrote, runtime.release)
        fault = Fault(FaultKind.UNWRITTEN, node, (name,))
        yield GraphFinding(fault, anchor or node.path, runtime.directml, node, (name,), leave=True, cure=cure)


def _of_fused(graph: FusedGraph, runtime: Runtime, affected: bool) -> Iterator[GraphFinding]:
    answer = judged(graph, traits_of(runtime.release), takes_constants=takes_constants(runtime))
    around = _InFused(graph)
    for each in answer.found:
        yield _of_found(around, each, runtime, tuple(_affected(graph, each)) if affected else ())
    for each in hidden(graph, traits_of(runtime.release)):
        yield _of_found(around, each, runtime, ())
    if answer.unknown:
        first = next((path for path, op in zip(graph.paths, graph.ops, strict=True) if op in JUDGED), graph.paths[0])
        yield GraphFinding(None, first, runtime.directml, reason=answer.unknown)
    forget_compiled(graph, traits_of(runtime.release))


def _of_found(around: _InFused, found: GraphFault, runtime: Runtime, affected: tuple[Affected, ...]) -> GraphFinding:
    """Returns the finding about fault `found` of a fused graph, reported on the Split or Concat of the graph that is
    nearest to the node at fault or, if the graph has none, on the node at fault. `affected` are the DirectML versions
    with the same fault; `runtime` is the version whose session it is."""
    graph = around.graph
    first = next((i for i, op in enumerate(graph.ops) if op in JUDGED), 0)
    culprit = found.node if found.node is not None else first
    nearest = graph.nearest(culprit, JUDGED)
    names = tuple([graph.outputs[i] for i in found.outputs])
    if found.tensor is not None:
        names = (graph.tensors[found.tensor[0]][found.tensor[1]],)
    part = None if names else around.used_part(culprit)
    return GraphFinding(
        found.fault.named(around.name, around.tensor_name),
        graph.paths[culprit if nearest is None else nearest],
        runtime.directml,
        around.name(culprit),
        names,
        leave=set(names) <= graph.model_outputs,
        reader=None if part is None else around.name(part),
        affected=affected,
        cure=advised(found.fault.kind, around, culprit, runtime.release, around.lost(found.fault)),
    )


class _InFused(Around[Tensor]):
    """A fused graph, in the form in which cures examine it."""

    def __init__(self, graph: FusedGraph) -> None:
        self.graph = graph
        self.exits = graph.exits

    def op(self, node: int | None) -> str:
        return "" if node is None else self.graph.ops[node]

    def inputs_of(self, node: int) -> Sequence[Tensor]:
        return self.graph.reads.get(node, ())

    def outputs_of(self, node: int) -> Sequence[Tensor]:
        return self.graph.outputs_of(node)

    def producer(self, tensor: Tensor) -> int | None:
        return None if tensor[0] < 0 else tensor[0]

    def readers_of(self, tensor: Tensor) -> Sequence[int]:
        return self.graph.readers.get(tensor, ())

    def shape(self, tensor: Tensor) -> Shape | None:
        made = node_tensors(self.graph.desc.nodes[tensor[0]])[1][tensor[1]]
        return None if made is None or made.desc is None else made.desc.sizes

    def reads_unchanged(self, node: int, tensor: Tensor) -> bool:
        return self.graph.tensors[tensor[0]][tensor[1]] in self.graph.protos[node].input

    def name(self, node: int) -> NodeName:
        """Returns the model's node, by operator and path, that a node of the graph comes from."""
        return NodeName(self.graph.ops[node], self.graph.paths[node])

    def tensor_name(self, tensor: TensorName) -> str:
        """Returns the model's name of a tensor of the graph."""
        node, index = tensor
        return self.graph.inputs[index] if node is None else self.graph.tensors[node][index]

    def lost(self, fault: Fault) -> Tensor | None:
        """Returns the tensor of the graph whose elements a fault loses; None if it loses none."""
        name = lost_tensor(fault)
        return None if not isinstance(name, TensorName) else (-1 if name.node is None else name.node, name.number)

    def used_part(self, node: int) -> int | None:
        """Returns the node that reads the first Split or Slice of an output of `node` with exactly one reader; None if
        no Split or Slice that reads an output of `node` has exactly one."""
        for cut in (reader for tensor in self.outputs_of(node) for reader in self.readers_of(tensor)):
            readers = self.graph.readers_of(cut)
            if self.op(cut) in ("Split", "Slice") and len(readers) == 1:
                return readers[0]
        return None


class _InModel(Around[Value]):
    """A graph of a model, before any optimization, in the form in which cures examine it."""

    def __init__(self, graph: Graph, shape: Callable[[str], Shape | None]) -> None:
        self.nodes = graph.nodes
        self.value = graph.value
        self._shape = shape
        self.exits = {value for value in graph.values.values() if value.is_output}

    def op(self, node: int | None) -> str:
        return "" if node is None else self.nodes[node].op_type

    def inputs_of(self, node: int) -> Sequence[Value]:
        read = (*self.nodes[node].inputs, *self.nodes[node].captured)
        return [value for value in dict.fromkeys(read) if value.name]

    def outputs_of(self, node: int) -> Sequence[Value]:
        return [value for value in self.nodes[node].outputs if value.name]

    def producer(self, tensor: Value) -> int | None:
        return None if tensor.producer is None else tensor.producer.index

    def readers_of(self, tensor: Value) -> Sequence[int]:
        return [node.index for node in tensor.readers]

    def shape(self, tensor: Value) -> Shape | None:
        return self._shape(tensor.name)


def _affected(graph: FusedGraph, found: GraphFault) -> Sequence[Affected]:
    """Returns the DirectML versions with the same fault of the graph, in runs of successive versions."""
    rules: dict[str, frozenset[tuple[str, int | None]]] = graph.once("rules", dict)

    def is_affected(release: Release) -> bool:
        traits = traits_of(release)
        if found.rule == FaultKind.PRODUCT.rule and (traits is None or traits.fusion is Fusion.NONE):
            return False
        if release.directml not in rules:
            rules[release.directml] = _rules(graph, release)
        return (found.rule, found.node) in rules[release.directml]

    return _spans(tuple([is_affected(release) for release in _shipped().values()]))


@cache
def _shipped() -> Mapping[str, Release]:
    """Maps each DirectML version that a known ONNX Runtime ships, the oldest first, to the release whose tables and
    traits are used for it."""
    releases = {runtime.directml: runtime.release for runtime in reversed(runtimes())}
    return {directml: releases[directml] for directml in sorted(releases, key=version_key)}


@lru_cache(maxsize=256)
def _spans(affected: tuple[bool, ...]) -> Sequence[Affected]:
    """Returns the runs of successive versions in `_shipped()` that are affected, with the versions of ONNX Runtime that
    ship them; () if none is. `affected` has a flag for each version in `_shipped()`, in its order."""
    found = []
    for is_affected, versions in groupby(zip(_shipped(), affected, strict=True), lambda each: each[1]):
        if is_affected:
            span = [directml for directml, _ in versions]
            of = [runtime for runtime in runtimes() if runtime.directml in span]
            assumed = [runtime.version for runtime in of if runtime.like or not runtime.observed]
            found.append(Affected(span, [runtime.version for runtime in of], assumed))
    return tuple(found)


def _rules(graph: FusedGraph, release: Release) -> frozenset[tuple[str, int | None]]:
    """Returns the faults that a graph has with a DirectML release, each as (rule id, index of the node that causes it,
    None for a copy)."""
    return frozenset((each.rule, each.node) for each in judged(graph, traits_of(release)).found)


def by_path(found: Sequence[GraphFinding]) -> Mapping[str, Sequence[GraphFinding]]:
    """Maps the paths of nodes to the findings reported at them."""
    paths: dict[str, list[GraphFinding]] = {}
    for finding in found:
        paths.setdefault(finding.path, []).append(finding)
    return paths
