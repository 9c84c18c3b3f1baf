"""The answers about the Splits and Concats of a model, including the effects of the nodes around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.tensors import element_type
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.graphs.traits import traits_of
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Node, attribute
from dmlsplit.onnxruntime import misfit_reshapes, stored_tensors
from dmlsplit.onnxruntime.attribute_values import refused_value
from dmlsplit.onnxruntime.context import in_context, lacks_only_flags
from dmlsplit.onnxruntime.contributed_schemas import column_of
from dmlsplit.onnxruntime.creation import (
    CHECKING,
    LOADING,
    MAPPING,
    OPTIMIZING,
    STORING,
    Failure,
    Place,
    failures_of,
    with_failures,
)
from dmlsplit.onnxruntime.facts import FirstRun, LengthsFrom, RuntimeFacts
from dmlsplit.onnxruntime.fused import Part, SessionGraphs
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.graph_refusals import Refusal, refusal
from dmlsplit.onnxruntime.graphs_of_model import graphs_of_model
from dmlsplit.onnxruntime.imports import DOMAINS
from dmlsplit.onnxruntime.inferred_sizes import uninferred_sizes
from dmlsplit.onnxruntime.large_tensors import large_tensor
from dmlsplit.onnxruntime.merged_casts import casts_without_kernel
from dmlsplit.onnxruntime.node_facts import facts_after, facts_in, first_run
from dmlsplit.onnxruntime.node_placement import is_created, lacks_cpu_input, placed
from dmlsplit.onnxruntime.node_prediction import LEAST_NODES_FOR_VOLATILE, diagnostic, predict
from dmlsplit.onnxruntime.operator_traits import MEMCPY_FROM_HOST, PACKED_PRODUCT, row_of
from dmlsplit.onnxruntime.operators import EXPANDED, Cell, moves_any_type
from dmlsplit.onnxruntime.optimization import indices_left, optimized
from dmlsplit.onnxruntime.passes.clip_quantizelinear import clips_that_fail
from dmlsplit.onnxruntime.passes.matmul_integer_to_float import ended_by
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE
from dmlsplit.onnxruntime.quantization_axes import off_axis, out_of_range
from dmlsplit.onnxruntime.quantized_faults import MADE_LATE, QuantizedFaultKind, quantized_faults
from dmlsplit.onnxruntime.ranks import beyond_rank, fails
from dmlsplit.onnxruntime.refused_recurrences import NETWORKS, refused_recurrence
from dmlsplit.onnxruntime.refused_shapes import (
    SUMS,
    WITH_SHAPES,
    divides_by_zero,
    misfit_function,
    refused_resize,
    refused_shapes,
    refused_sum,
)
from dmlsplit.onnxruntime.refused_slices import refused_slice
from dmlsplit.onnxruntime.refused_windows import WITH_WINDOWS, refused_window
from dmlsplit.onnxruntime.scopes import SessionModel
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules.onnxruntime import GRAPH_REFUSED
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.runtime_answers import Outcome, RuntimeAnswer

_LEAST_LOST: Final = 128
"""Constants of this many bytes and more are stored outside their proto."""
_Check: TypeAlias = Callable[[SessionGraph, Node], str]
_CHECKS: Final[Sequence[tuple[Set[str], _Check]]] = (
    (frozenset(WITH_SHAPES), refused_shapes),
    (SUMS, refused_sum),
    (frozenset({"Resize"}), refused_resize),
    (frozenset(WITH_WINDOWS), refused_window),
    (frozenset({"Slice"}), refused_slice),
    (frozenset(NETWORKS), refused_recurrence),
)
"""The checks of what kernels of DirectML take, each with the operators that it is about."""
_CHECKED: Final[Mapping[str, Sequence[_Check]]] = {
    op: [check for ops, check in _CHECKS if op in ops] for op in chain(*(ops for ops, _ in _CHECKS))
}
_FOUR_BITS: Final = frozenset({"INT4", "UINT4", "FLOAT4E2M1"})
"""Types for which only a few operators and versions have kernels."""


class _Blocks(NamedTuple):
    """The dimensions that blocks divide, and the power of their size by which they do."""

    axes: tuple[int, ...]
    power: int


_BLOCKS: Final = {"DepthToSpace": _Blocks((1,), 2), "SpaceToDepth": _Blocks((2, 3), 1)}
_RANK_OF_BLOCKS: Final = 4
_WITH_FUNCTIONS: Final = frozenset({"GroupNormalization", "SoftmaxCrossEntropyLoss"})
"""Operators that misfit_function is about."""
_OF_TRAINING: Final = "ai.onnx.preview.training"
"""A domain whose operators only builds for training have; those with DirectML are for inference. Observed."""
_OF_ONE_OUTPUT: Final = "BatchNormalization", 14
"""An operator of which DirectML's kernel computes only the first output below this opset, and that opset."""


@record
class NodeOnRuntime:
    """One Split or Concat of a model, and the answer of a runtime."""

    path: str
    """The path in diagnostics: that of its graph, then its name, or that of its first output."""
    op: str
    facts: RuntimeFacts
    answer: RuntimeAnswer


class Answers(NamedTuple):
    """The answers about the Splits and Concats of a model, and everything that may make its session creation fail."""

    nodes: list[NodeOnRuntime]
    failures: list[Failure]


def answers(
    model: SessionModel, runtime: Runtime, options: SessionOptions, not_loaded: Iterable[Failure] = ()
) -> Answers:
    """Returns the answers about the Split and Concat nodes of all graphs of a model, inner graphs first, and everything
    that makes, or may make, its session creation fail; the answers take these failures into account. `not_loaded` are
    failures of the file with this version."""
    found: list[tuple[NodeOnRuntime, Place]] = []
    failures = [*not_loaded, *(Failure(LOADING, why) for why in model.refused)]
    if (fault := model.folding_fault) is not None and fault.operator not in JUDGED:
        name = f"{fault.operator} {printable(fault.name, 60)}".strip()
        failures.append(Failure(OPTIMIZING, f"{name}, once what it reads is folded: {printable(fault.message, 200)}"))
    if model.not_loaded_by:
        column = column_of(runtime)
        failures += [
            Failure(LOADING, why, node=path) for path, why, columns in model.not_loaded_by if column in columns
        ]
    graphs = graphs_of_model(model, runtime, options)
    for graph, place in zip(graphs, _places(graphs), strict=True):
        # a graph in a removed node is not compiled
        found += _of_graph(graph, place, [] if graph.is_removed else failures)
    placed = [(node.path, place, node.answer) for node, place in found]
    failures += failures_of(placed)
    known = with_failures(placed, failures)
    nodes = [
        node if answer is node.answer else replace(node, answer=answer)
        for (node, _), answer in zip(found, known, strict=True)
    ]
    return Answers(nodes, failures)


def _places(graphs: Sequence[SessionGraph]) -> list[Place]:
    """Returns, for each graph in order, the place of its nodes that are not fused. `graphs` has each graph after the
    graphs inside its nodes.

    Fused graphs are created in the order of the walk over nodes, kernels in the order of the file.
    """
    number = {id(graph): i for i, graph in enumerate(graphs)}

    def way(graph: SessionGraph) -> tuple[tuple[int, int], ...]:
        """Returns the nodes around a graph, from the outside in, as (position in the walk over the nodes, number of the
        graph inside the node); position -1 for a node that optimization removed, () for the model's own graph."""
        around = graph.parent
        if around is None:
            return ()
        return *way(around), (around.walk.get(graph.scope.steps[-1][0], -1), number[id(graph)])

    behind = max(len(graph.nodes) for graph in graphs), 0
    inward = {id(graph): i for i, graph in enumerate(sorted(graphs, key=lambda graph: (*way(graph), behind)))}
    outward = sorted(graphs, key=lambda graph: [place for _, place in way(graph)])
    found = {id(graph): Place(inward[id(graph)], i, None, 0) for i, graph in enumerate(outward)}
    return [found[id(graph)] for graph in graphs]


def _of_graph(graph: SessionGraph, place: Place, failures: list[Failure]) -> list[tuple[NodeOnRuntime, Place]]:
    """Returns the answers about one graph's Split and Concat nodes, each with its place in session creation. `place` is
    the place of a node of the graph that is not fused. The failures of the session that other nodes, fused parts and
    constants cause are appended to `failures`."""
    options = graph.options if graph.fuses == graph.options.graph_fusion else replace(graph.options, graph_fusion=False)
    facts, after = facts_in(graph), facts_after(graph)
    graphs = session_graphs(graph)
    places = graph.once(("places", graphs), lambda: _places_in(graph, graphs, place))
    parts = {index: part for part in graphs.parts for index in part.members}
    against = _refusals(graph, graphs)
    key = "failures", graphs, _traits_of_failures(graph)
    failures += graph.once(key, lambda: _failures(graph, graphs, facts, places))
    parted = {index for part in graphs.parts if part.complete for index in part.members}
    fused = {index for index in parted if graph.on_dml(index) is not False}  # a node cannot be on both providers
    failures += lost_constants(graph, fused)
    failures += _of_merged_casts(graph)
    failures += stored_tensors.failures(graph)
    failures += stored_tensors.of_four_bits(graph, fused, places)
    types = _types_of_splits(graph)
    found = []
    settled: set[Part] = set()
    """The parts of which an answer says what becomes of them."""
    for index, known in facts.items():
        kept, path, run = graph.once(("asked", index), partial(_asked, graph, index))
        part = parts.get(kept)
        count = _count(part)
        submitted = after[kept]
        if types.get(kept, submitted.data_type) != submitted.data_type:
            submitted = replace(submitted, data_type=types[kept])
        answer = predict(submitted, graph.runtime, path=path, first_run=run, options=options, graph_nodes=count)
        if part is not None and not lacks_only_flags(graph, graph.nodes[kept], answer):
            settled.add(part)
        answer = in_context(graph, graph.nodes[kept], path, answer, part, None if part is None else against.get(part))
        if kept != index and answer.outcome in (Outcome.DML, Outcome.CPU, Outcome.UNKNOWN):
            note = diagnostic("onnxruntime/computed-once", path, f"it computes the same as {graph.path(kept)}")
            answer = replace(answer, diagnostics=(*answer.diagnostics, note))
        if answer.outcome is Outcome.UNKNOWN and known.given in (LengthsFrom.CONSTANT, LengthsFrom.OUTER):
            why = f"it is not known whether the lengths of {path} fit: they are constants that are not known"
            failures += [Failure(LOADING, why, certain=False, node=path)] if known.lengths is None else []
        found.append((NodeOnRuntime(path, graph.nodes[index].op_type, known, answer), places[kept]))
    for refused, (why, certain) in against.items():
        if certain and refused not in settled:
            compiled = places[refused.origins[0][0]].compilation
            failures.append(Failure(compiled, why, node=refused.paths[0], rule=GRAPH_REFUSED.id))
    return found


def _types_of_splits(graph: SessionGraph) -> dict[int, str]:
    """Maps the index of each Split that optimization leaves to its element type after optimization: the quantized type,
    if the quantizations around it were removed."""
    splits = {node.index: node.inputs[0] for node in optimized(graph).nodes if node.op_type == "Split" and node.inputs}
    types = {index: graph.data_type(value.known_type) for index, value in splits.items()}
    return {index: kind for index, kind in types.items() if kind is not None}


def _asked(graph: SessionGraph, index: int) -> tuple[int, str, FirstRun | None]:
    """Returns the index of the node that computes the outputs of node `index` after optimization (`index` itself, or an
    equal node kept in its place), the path of node `index`, and the sizes of the first Run (None if unknown)."""
    kept = graph.graph.kept(graph.nodes[index]).index
    return kept, graph.path(index), first_run(graph, kept)


def _places_in(graph: SessionGraph, graphs: SessionGraphs, place: Place) -> dict[int, Place]:
    """Maps the index of each node of a graph to its place in session creation; `place` is the place of any node of the
    graph that is not fused."""
    found: dict[int, Place] = {}
    for number, part in enumerate(graphs.parts):
        for position, (origins, reader) in enumerate(zip(part.origins, part.first_readers, strict=True)):
            found |= dict.fromkeys(origins, Place(place.graph, place.outward, number, position, reader))
    for index in range(len(graph.nodes)):
        if index not in found:
            found[index] = Place(place.graph, place.outward, None, index)
    return found


def _count(part: Part | None) -> int | None:
    """Returns the largest number of nodes that a fused part can have; None for no part, and if it is unknown whether
    the number is below 5."""
    if part is None or part.least < LEAST_NODES_FOR_VOLATILE <= part.most:
        return None
    return part.most


def _traits_of_failures(graph: SessionGraph) -> tuple[bool, ...]:
    """Returns the traits of the version that `_failures` reads, each False for a graph that does not show it."""
    traits, operators = graph.runtime.traits, graph.operators_in_file
    return (
        traits.outer_lengths_are_known,
        traits.activates_by_hard_swish,
        traits.follows_axes,
        traits.maps_shared_inputs and graph.is_main,
        traits.activations_in_any_case and not operators.isdisjoint(NETWORKS),
        traits.follows_computed_sizes and not operators.isdisjoint(_WITH_FUNCTIONS),
        traits.transposes_empty_constants and "Transpose" in operators,
        traits.loses_packed_weights and "DequantizeLinear" in operators,
    )


def _failures(
    graph: SessionGraph, graphs: SessionGraphs, facts: Container[int], places: Mapping[int, Place]
) -> list[Failure]:
    """Returns the failures of the session that are caused by nodes other than Split and Concat, and by fused parts
    without Split and Concat nodes. `facts` has the indices of the Split and Concat nodes, `places` maps each node's
    index to its place."""
    found = []
    for part in graphs.parts:
        if part.complete and not part.leading and not any(index in facts for index in part.members):
            why = f"nothing reads the results of the fused graph of {part.paths[0]}"
            is_certain = not graph.model.contradicted  # which decides about what is fused
            found.append(Failure(places[part.origins[0][0]].compilation, why, is_certain, node=part.paths[0]))
    for node, name in graph.graph.unresolved.items() if graph.is_main else ():
        found.append(Failure(OPTIMIZING, _why_unresolved(graph, node, name), node=graph.path(node.index)))
    found += _of_removals(graph)
    if not graph.runtime.traits.transposes_empty_constants:
        for node, name in optimized(graph).moved_to_empty.items():
            path = graph.path(node.index)
            ends = f"the process ends (division by zero) when {path} is moved to the constant {printable(name, 60)}"
            found.append(Failure(OPTIMIZING, f"{ends}, which has no elements", node=path))
    for node, why in (*graph.graph.failing.items(), *optimized(graph).failing.items()):
        path = graph.path(node.index)
        found.append(Failure(OPTIMIZING, f"{path} {why}", node=path))
    found += _of_packed_weights(graph, places)
    for node in ended_by(optimized(graph)):
        path = graph.path(node.index)
        why = f"the process crashes (access violation) when {path} is fused with its MatMulInteger"
        found.append(
            Failure(
                OPTIMIZING,
                f"{why}, because the rank of a factor is not known; it may be with fixed input sizes",
                node=path,
            )
        )
    for index in filter(graph.implemented, graphs.unfit):
        why = f"{graph.path(index)} {graphs.unfit[index]}, and the activation after it is fused into it"
        found.append(Failure(OPTIMIZING, why, node=graph.path(index)))
    found += _of_optimized(graph, places)
    if graph.is_main and not graph.runtime.traits.maps_shared_inputs:
        found += _shared_inputs(graph)
    left = indices_left(graph)
    unfailing: set[tuple[int, str, bool]] = set()
    """The nodes without failures: nodes that are alike fail alike."""
    for node in graph.order:
        alike = graph.alike[node.index], node.op_type, node.index in left
        if node.index in facts or alike in unfailing:
            continue
        failures = list(_of_neighbour(graph, node, places[node.index], node.index in left))
        found += failures
        if not failures and not is_created(graph, node):
            unfailing.add(alike)
    return found


def _of_packed_weights(graph: SessionGraph, places: Mapping[int, Place]) -> Iterator[Failure]:
    """Yields a failure for each product with packed weights in a fused graph, of which some versions make none."""
    if not graph.runtime.traits.loses_packed_weights or not graph.options.graph_fusion:
        return
    for node in optimized(graph).nodes:
        if node.op_type == PACKED_PRODUCT and graph.on_dml(node.index) and not graph.has_open_sizes(node):
            path = graph.path(node.index)
            why = f"{path} becomes a MatMulNBits, and the fused graph is not made of its packed weights"
            yield Failure(places[node.index].compilation, why, node=path)


def _of_optimized(graph: SessionGraph, places: Mapping[int, Place]) -> Iterator[Failure]:
    """Yields the failures of session creation that nodes of the optimized graph cause: quantizations, operators for
    quantized elements, and Reshapes. `places` maps each node's index to its place."""
    for node in optimized(graph).nodes:
        yield from _of_quantized(graph, node, places[node.index])
    for fault in quantized_faults(graph):
        kernel = places[fault.node.index].kernel
        moment = CHECKING if fault.kind is QuantizedFaultKind.KERNEL else OPTIMIZING
        moment = kernel if fault.kind in MADE_LATE else moment
        yield from () if fault.at_run else (Failure(moment, fault.why, node=fault.path),)
    for each in off_axis(graph):
        if each.fails and not each.at_run:
            yield Failure(places[each.node.index].kernel, each.why, node=each.path)
    for node, why in out_of_range(graph):
        yield Failure(places[node.index].kernel, why, node=graph.path(node.index))
    for size in uninferred_sizes(graph):
        made = _is_made_with_session(graph, size.node)
        if made is not False:
            yield Failure(places[size.node.index].kernel, size.why, certain=made is True, node=size.path)
    yield from misfit_reshapes.failures(graph, places)


def _shared_inputs(graph: SessionGraph) -> Iterator[Failure]:
    """Yields a failure for each input of the model that graphs in nodes of both providers read. A node that reads it
    itself mostly prevents that if it is visited before the second of these, or if the first of these is on DirectML.
    Observed up to 1.22: the process ends as inputs get their devices."""
    inputs = {value.name for value in graph.scope.graph.input if not graph.is_constant(value.name)}
    read = {value.name for node in optimized(graph).nodes for value in node.inputs}
    first: dict[str, Node] = {}
    """Maps a name to the first node with a graph inside that reads it."""
    for node in _with_copies_last(graph):
        inputs.difference_update([value.name for value in node.inputs])
        for name in inputs.intersection(map(graph.graph.source, graph.captured(node.index))):
            before = first.setdefault(name, node)
            here, there = graph.on_dml(node.index), graph.on_dml(before.index)
            if None in (here, there) or here == there:
                continue
            inputs.remove(name)
            if here or name not in read:
                cpu, dml = map(graph.path, (before.index, node.index) if here else (node.index, before.index))
                why = f"graphs in {cpu}, on the CPU, and in {dml}, on DirectML, read {printable(name, 60)}"
                yield Failure(MAPPING, f"the process ends (access violation): {why}", node=dml)


def _with_copies_last(graph: SessionGraph) -> Sequence[Node]:
    """Returns the nodes in the order of `Graph.walk` with the copies between devices, which are added last."""

    def before(node: Node) -> Sequence[Node]:
        made = {value.producer: False for value in node.captured if value.producer is not None}
        for value in node.inputs:
            if value.producer is not None:
                made[value.producer] = graph.on_dml(value.producer.index) is not graph.on_dml(node.index)
        return sorted(made, key=lambda each: (made[each], each.number))

    leaves = [node for node in optimized(graph).nodes if not node.is_read]
    return list(depth_first(sorted(leaves, key=lambda node: node.number), before))


def _of_removals(graph: SessionGraph) -> Iterator[Failure]:
    """Yields the failures of session creation that removed Clips and quantizations cause."""
    for node, name in optimized(graph).unresolved.items():
        path, read = graph.path(node.index), printable(name, 60)
        why = f"{path} reads {read}, whose node computes the output of a removed QuantizeLinear instead"
        if node.op_type == "Reshape":
            why = f"{path} becomes one Reshape with the Reshape before it, and nothing can read {read}, its shape"
        yield Failure(OPTIMIZING, why, node=path)
    for node in clips_that_fail(graph.graph) if graph.options.optimization >= 1 else ():
        path = graph.path(node.index)
        yield Failure(OPTIMIZING, f"{path} is a Clip before a QuantizeLinear, and its removal fails", node=path)


def _of_merged_casts(graph: SessionGraph) -> Iterator[Failure]:
    """Yields the failures of session creation that removed Casts cause."""
    for node, data_type in () if graph.is_removed else casts_without_kernel(graph):
        path = graph.path(node.index)
        why = f"the Casts in front of {path} are removed, and DirectML has no Cast of {data_type}"
        yield Failure(CHECKING, why, node=path)


def _of_quantized(graph: SessionGraph, node: Node, place: Place) -> Iterator[Failure]:
    """Yields the failures of session creation caused by a quantization that optimization inserted."""
    if node.is_inserted and node.op_type in (DEQUANTIZE, QUANTIZE):
        path, shape = graph.path(node.index), graph.shape(node.inputs[0].known)
        if graph.data_type(node.outputs[0].known_type) == "INT32":
            why = f"{path} is moved after its reader, which requires a QuantizeLinear to INT32"
            yield Failure(OPTIMIZING, why, node=path)
        most = graph.most_rank(node.index)
        if most is not None and is_static(shape) and len(shape) > most and graph.on_dml(node.index):
            why = f"{path} is moved to a static tensor of rank {len(shape)}, but its kernel accepts at most {most}"
            yield Failure(place.kernel, why, node=path)


def _why_unresolved(graph: SessionGraph, node: Node, tensor: str) -> str:
    """Returns why no node computes any more the tensor that a node still reads."""
    path, name = graph.path(node.index), printable(tensor, 60)
    if any(each.op_type == "Not" and tensor in each.proto.output for each in graph.nodes):
        return f"{path} reads {name}, but the Not that computes it is fused into the Wheres after it and removed"
    return f"{path} replaces its If, but {name}, which it reads, was removed together with a Shape that read it"


def lost_constants(graph: SessionGraph, fused: Container[int] = ()) -> Iterator[Failure]:
    """Yields a failure for each large constant of a branch that has replaced its If and is used outside of `fused`
    nodes. Source: InlineIfSubgraph of graph.cc and SaveInitializedTensors of session_state_utils.cc: the proto is
    copied, the elements that it refers to are not; observed."""
    own = graph.model.branches.of
    if not own or not graph.runtime.traits.loses_constants_of_branches:
        return
    for value in optimized(graph).values.values():
        readers = [each.index for each in value.readers if each.index not in fused and not _reads_cast(graph, each)]
        if value.name not in own or not graph.is_constant(value.name) or not (readers or value.is_output):
            continue
        element, shape = element_type(graph.data_type(value.name)), graph.shape(value.name)
        if element is None or not is_static(shape) or math.prod(shape) * element.itemsize < _LEAST_LOST:
            continue
        user = graph.path(readers[0]) if readers else ""
        why = f"{printable(value.name, 60)} is a constant of an If's branch with {_LEAST_LOST} bytes or more: "
        yield Failure(STORING, f"{why}its elements are lost when the branch replaces the If", node=user)


def _reads_cast(graph: SessionGraph, node: Node) -> bool:
    """True if the CPU computes the node in FLOAT: its constants of FLOAT16 are cast before they are stored."""
    types, _ = graph.types_of_tensors(node.index)
    return "float16" in types and graph.on_dml(node.index) is False and not moves_any_type(node.op_type, graph.opset)


def _of_neighbour(graph: SessionGraph, node: Node, place: Place, is_left: bool) -> Iterator[Failure]:
    """Yields the failures of session creation, certain or possible, caused by a node other than Split and Concat.
    `place` is that of its graph; `is_left`: optimization after placement keeps the node, which else gets no kernel."""
    path, cell, neighbour = graph.path(node.index), graph.cell(node.index), placed(graph, node)
    operator = graph.operator(node.index) if cell is None else None
    if operator is not None and operator.refuses(graph.types_of(node.index)):
        yield Failure(LOADING, f"{path} has types that only other versions of {operator.name} accept", node=path)
    if domain_of(node.proto) == _OF_TRAINING:
        yield Failure(LOADING, f"builds of ONNX Runtime without training have no operator for {path}", node=path)
    if divides_by_zero(graph, node):
        yield Failure(LOADING, f"{path} has 0 kv_num_heads, which ends the process (division by zero)", node=path)
    if doubt := _doubt(graph, node, neighbour.on_dml):
        yield Failure(LOADING, doubt, certain=False, node=path)
    rank = beyond_rank(graph, node.index) if neighbour.on_dml and is_left else None
    if rank is not None and fails(rank, neighbour):
        yield Failure(place.kernel, rank.why, node=path)
    if cell is Cell.NO_KERNEL and not _is_replaced(graph, node):
        why = f"neither DirectML nor the CPU has a kernel for {path}, {_described(graph, node)}"
        yield Failure(CHECKING, why, node=path)
    elif cell in EXPANDED and (reason := misfit_function(graph, node)):
        yield Failure(OPTIMIZING, f"the nodes that replace {path} do not fit: {reason}", node=path)
    elif is_left and _is_on_cpu(node, neighbour.on_dml) and (reason := refused_value(graph, node, on_dml=False)):
        yield Failure(place.kernel, f"the CPU's kernel for {path} cannot be created: {reason}", node=path)
    elif neighbour.on_dml and is_left and (reason := _refusal_of_kernel(graph, node, cell)):
        why = f"DirectML's kernel for {path} cannot be created: {reason}"
        with_session = neighbour.in_graph or _is_made_with_session(graph, node)
        if with_session is not False:
            yield Failure(place.kernel, why, certain=with_session is True, node=path)


def _is_replaced(graph: SessionGraph, node: Node) -> bool:
    """True for a node that passes after placement remove, or that they fuse into another operator, which has a provider
    of its own; the Identity that takes the place of quantizations has theirs."""
    made = optimized(graph)
    values = (made.values.get(each.name) for each in node.outputs)
    if any(
        value is not None and value.producer is not None and value.producer.op_type == "Identity" for value in values
    ):
        return False
    return not any(node.index in each.origins and each.op_type == node.op_type for each in made.nodes)


def _is_on_cpu(node: Node, on_dml: bool | None) -> bool:
    """True if the CPU has the kernel of a node; it also has those of recurrent networks with the batch first, whatever
    the table says of others (source: QueryRecurrentNeuralNetwork of ONNX Runtime; observed)."""
    layout = attribute(node, "layout") if node.op_type in NETWORKS else None
    return on_dml is False or (on_dml is True and layout is not None and layout.i != 0)


def _described(graph: SessionGraph, node: Node) -> str:
    """Returns what decides about a node's kernel as text: "Acos of DOUBLE in opset 17"."""
    kinds = dict.fromkeys(kind.upper() for kind in graph.types_of_tensors(node.index)[0] if kind)
    opset = f" in opset {graph.opset}" if node.op_type else ""
    return f"{printable(node.proto.op_type, 60)}{' of ' if kinds else ''}{', '.join(kinds)}{opset}"


def _refusal_of_kernel(graph: SessionGraph, node: Node, cell: Cell | None) -> str:
    """Returns why DirectML's kernel for a node is refused; "" if it is not. The CPU takes blocks that do not divide
    their tensor, and leaves the rest out."""
    if reason := refused_value(graph, node, on_dml=True):
        return reason
    for check in (*_CHECKED.get(node.op_type, ()), large_tensor):
        if reason := check(graph, node):
            return reason
    if cell in (Cell.FAILS, Cell.FAILS_WITH_CPU):
        return graph.message(node.index) or "no reason is known"
    operator, last = _OF_ONE_OUTPUT
    if node.op_type == operator and graph.opset < last and len(node.outputs) > 1:
        return f"it computes only one of {len(node.outputs)} outputs"
    divided = _BLOCKS.get(node.op_type)
    given = attribute(node, "blocksize") if divided is not None else None
    shape = graph.shape(node.inputs[0].name) if given is not None else None
    if divided is None or given is None or given.i < 1 or shape is None or len(shape) != _RANK_OF_BLOCKS:
        return ""
    sizes = [shape[axis] for axis in divided.axes]
    by = given.i**divided.power
    known = [size for size in sizes if isinstance(size, int)]
    if divided.power > 1 and not by % (1 << 32):
        return f"its blocksize {given.i} ends the process (division by zero)"
    is_empty = any(size < by for size in known)  # nothing is submitted for an empty result
    return f"sizes {sizes} are not divisible by {by}" if any(size % by for size in known) and not is_empty else ""


def _is_made_with_session(graph: SessionGraph, node: Node) -> bool | None:
    """True if the kernel of a node outside fused graphs is created with the session: the sizes of all inputs are known,
    and so is everything that the CPU reads for it. False if it is created at the first Run; None if that is not known.
    Source: AbiOpKernel of MLOperatorAuthorImpl.cpp."""
    proto = graph.nodes[node.index].proto
    open_sizes = [name for name in proto.input[:] if name and not is_static(graph.shape(name))]
    read = () if proto.op_type == MEMCPY_FROM_HOST else row_of(proto.op_type).cpu_inputs  # which copies at each Run
    on_cpu = [name for i, name in enumerate(proto.input[:]) if name and i in read]
    if lacks_cpu_input(graph, node.index) or not all(map(graph.is_known_to_kernels, on_cpu)):
        return False
    if not open_sizes:
        return True
    return None if graph.model.is_unfinished or not any(map(graph.is_open, open_sizes)) else False


def _refusals(graph: SessionGraph, graphs: SessionGraphs) -> dict[Part, Refusal]:
    """Maps each fused part of `graphs` that CompileGraph refuses, or may refuse, to the reason; {} if the behaviour of
    the session's version of ONNX Runtime was never recorded."""
    if not graph.runtime.observed:
        return {}
    traits = traits_of(graph.runtime.release)
    return {part: found for part in graphs.parts if (found := refusal(part, traits, graph.opset)) is not None}


def _doubt(graph: SessionGraph, node: Node, on_dml: bool | None) -> str:
    """Returns why a node other than Split and Concat may keep the session from being created: its domain, or 4-bit
    elements if `on_dml`, whether DirectML has a kernel for it, is None (unknown); "" for neither."""
    domain, path = domain_of(node.proto), graph.path(node.index)
    if domain not in DOMAINS:
        return f"{path} has the domain {printable(domain, 60)}, which is not part of ONNX Runtime"
    read = [graph.scope.type_of(name)[0] for name in node.proto.input[:1]] if on_dml is None else ()
    if read and read[0] in _FOUR_BITS:
        return f"whether a kernel for {path} exists is not known: {read[0]}"
    return ""
