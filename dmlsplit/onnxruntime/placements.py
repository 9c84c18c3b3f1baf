"""Where each node of a model is placed in a session, and the consequences: copies, graph capture, session creation.

Source: fallback_cpu_capability.cc, transformer_memcpy.cc and inference_session.cc of ONNX Runtime; observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

import onnx

from dmlsplit.formats.onnx.protobuf import domain_of, has_graphs
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.graph import Doubt, Node, Value, attribute
from dmlsplit.onnxruntime.answers import lost_constants
from dmlsplit.onnxruntime.creation import LOADING, Failure, first_of
from dmlsplit.onnxruntime.expansion import Body, body_of, has_body
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.graph_judging import outcome_of
from dmlsplit.onnxruntime.merged_casts import MergedCasts, Tensor, Widened, merged_casts
from dmlsplit.onnxruntime.node_placement import cell_after, is_created, prefers_cpu
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import EXPANDED, ON_BOTH, Cell, Types, asked, is_on_dml, operator_of
from dmlsplit.onnxruntime.optimization import indices_left, moved, optimized, standing_for
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import numbered, printable
from dmlsplit.verdicts.model_placements import (
    Failed,
    FusedSize,
    GraphOutcome,
    NodePlacement,
    Provider,
    SessionAnswer,
    Why,
)

_OLDEST_OPSET: Final = 7
_WITH_CONVS: Final = frozenset({"Add", "BatchNormalization", "HardSigmoid", "Sum"})
_OF_CHANNELS: Final = frozenset({(0, 2, 3, 1), (0, 3, 1, 2)})
"""The permutations that move channels behind the sizes of an image, and back."""


def session_answer(graphs: Sequence[SessionGraph], failures: Sequence[Failure]) -> SessionAnswer:
    """Returns the provider of each node of a model's graphs, the fused graphs, the copies between devices, and whether
    the session is created. `graphs` has each graph after those in its nodes; `failures` are the reasons why session
    creation fails."""
    runtime, first = graphs[-1].runtime, first_of(failures)
    if first is not None and first.moment == LOADING:
        return SessionAnswer(runtime, False, Failed(first.node, first.why))
    nodes: list[NodePlacement] = []
    sizes: list[FusedSize] = []
    for graph in graphs:
        fused = {} if graph.is_removed else _fused(graph, sizes)
        left, standing = indices_left(graph), standing_for(graph)
        for index, node in enumerate(graph.nodes):
            if node.op_type != "Constant":
                placed = standing.get(index, index)
                nodes.append(_placed(graph, index, placed, fused.get(placed), placed in left))
    doubts = [each for each in failures if not each.certain]
    lost = any(node.provider is Provider.UNKNOWN for node in nodes)
    created = False if first is not None else None if doubts or lost else True
    failure = first or next(iter(doubts), None)
    running = [graph for graph in graphs if not graph.is_removed]
    copies = _copies(running)
    prevented_by = _prevents_capture(running, copies)
    return SessionAnswer(
        runtime,
        created,
        None if failure is None else Failed(failure.node, failure.why),
        _by_path(nodes),
        tuple(sizes),
        None if copies is None else (copies.to_cpu, copies.from_cpu),
        None if prevented_by is None else not prevented_by,
        prevented_by or None,
        running=_running(running),
    )


def _running(graphs: Sequence[SessionGraph]) -> int | None:
    """Returns the number of nodes that run; None if it is not known, for versions that were not observed, and where it
    is not known which Transposes are removed, or which nodes replace one."""
    count = 0
    for graph in graphs:
        if not graph.runtime.observed or _may_lose_transposes(graph) or _fuses_on_cpu(graph):
            return None
        merged = merged_casts(graph)
        if merged is None:
            return None
        for node in optimized(graph).nodes:
            made = 0 if node in merged.gone else _replacing(graph, node)
            if made is None:
                return None
            count += made
    return count


def _may_lose_transposes(graph: SessionGraph) -> bool:
    """True if it is not known which Transposes are moved, and one may be: over a node, or into the constant in front of
    a DequantizeLinear."""
    transposes = [node for node in graph.graph.nodes if node.op_type == "Transpose"]
    if not transposes or moved(graph) is not None:
        return False
    left = optimized(graph).nodes
    return any(Doubt.TRANSPOSED in node.doubts for node in left) or any(
        each.op_type == UNMERGED for node in transposes for each in node.producers
    )


def _fuses_on_cpu(graph: SessionGraph) -> bool:
    """True if the CPU may fuse nodes with a Conv of its own: some behind it, and Transposes behind those that take its
    layout, which depends on the processor. Source: nchwc_transformer.cc and conv_activation_fusion.cc of ONNX
    Runtime."""
    nodes = optimized(graph).nodes
    if not graph.fuses_convs or not any(map(_may_fit_conv, nodes)):
        return False

    def is_on_cpu(node: Node) -> bool:
        return _where(graph, node, cell_after(graph, node)) is Provider.CPU

    convs = [node for node in nodes if node.op_type == "Conv" and is_on_cpu(node)]
    before = [value.producer for node in convs for value in node.inputs[:1] if value.producer is not None]
    behind = depth_first(convs, lambda node: filter(is_on_cpu, node.readers))
    return any(map(_may_fit_conv, chain(filter(is_on_cpu, before), behind)))


def _may_fit_conv(node: Node) -> bool:
    """True for a node of an operator that may become part of a Conv on the CPU, or of the change of its layout."""
    if node.op_type == "Transpose":
        perm = attribute(node, "perm")
        return perm is not None and tuple(perm.ints) in _OF_CHANNELS
    return node.op_type in _WITH_CONVS


def _replacing(graph: SessionGraph, node: Node) -> int | None:
    """Returns the number of nodes that replace a node of the optimized graph: 1 if it has a kernel, or if one node of
    the CPU replaces it; None if it is not known."""
    if not graph.is_expanded(node.index) or is_created(graph, node):
        return 1
    if not has_body(node.proto, graph.opset):
        return 1
    body = graph.once(("body", node), partial(_body, graph, node))
    return None if body is None else _count(graph, body)


def _count(graph: SessionGraph, body: Body) -> int | None:
    """Returns the number of nodes of a function's body that are not folded, where nodes without a kernel are replaced
    as well; None if it is not known."""
    count = 0
    constants = {""}
    for each in body.nodes:
        if each.op_type == "Constant" or (each.input and constants.issuperset(each.input)):
            constants.update(each.output)
            continue
        cell, taken = _cell_in(graph, body, each)
        inner = _body_of(graph, each, taken) if cell in EXPANDED or cell is Cell.NO_KERNEL else None
        number = 1 if inner is None else _count(graph, inner)
        if number is None:
            return None
        count += number
    return count


def _cell_in(graph: SessionGraph, body: Body, node: onnx.NodeProto) -> tuple[Cell | None, Types]:
    """Returns the table's answer about a node of a function's body, and the types of its inputs."""
    taken, made = [
        tuple([body.types.get(name) if name else "" for name in names]) for names in (node.input, node.output)
    ]
    return asked(node, taken, made, graph.opset, graph.runtime), taken


def _by_path(nodes: Iterable[NodePlacement]) -> dict[str, NodePlacement]:
    """Maps nodes by path; of equal paths, all but the first get a number: "y", "y (2)"."""
    taken: Counter[str] = Counter()
    numbers = [(node, numbered(node.path, taken)) for node in nodes]
    return {path: node if path == node.path else replace(node, path=path) for node, path in numbers}


def _fused(graph: SessionGraph, sizes: list[FusedSize]) -> dict[int, int]:
    """Maps the indices of nodes to the number of their fused graph, and appends the fused graphs' sizes and outcomes to
    `sizes`."""
    found: dict[int, int] = {}
    graphs = session_graphs(graph)
    unwritten = {path for _, path, _ in graphs.unwritten}
    for part in graphs.parts:
        if part.complete:
            found |= dict.fromkeys(part.members, len(sizes))
        count = len(part.paths)
        most = count if part.complete else None if part.most >= 1 << 32 else part.most
        outcome, undecided = outcome_of(part, graph.runtime)
        if outcome is GraphOutcome.RIGHT and unwritten and not unwritten.isdisjoint(map(graph.path, part.members)):
            outcome = GraphOutcome.WRONG
        sizes.append(FusedSize(count, most, outcome, undecided))
    return found


def _placed(graph: SessionGraph, own: int, index: int, fused: int | None, is_left: bool) -> NodePlacement:
    """Returns the placement of the node with index `own`: that of the node with `index`, into which it was fused before
    nodes were placed, or which it is. `is_left`: that one remains after all passes, in the fused graph `fused` if there
    is one."""
    node, path = graph.nodes[own].proto, graph.path(own)
    domain = domain_of(node)
    op = printable(f"{domain}.{node.op_type}" if domain else node.op_type)
    if not is_left:
        return NodePlacement(path, op, Provider.FOLDED)
    operator = graph.operator(index)
    version = None if operator is None else operator.version
    cell = graph.cell(index)
    if cell is None or graph.is_unsettled(index):
        return NodePlacement(path, op, Provider.UNKNOWN, Why.UNASKED, version)
    if index in graph.preferring_cpu:
        return NodePlacement(path, op, Provider.CPU, Why.SIZES, version)
    if is_on_dml(cell):
        return NodePlacement(path, op, Provider.DML, None, version, None, fused)
    if cell is Cell.FOLDED:
        return NodePlacement(path, op, Provider.UNKNOWN, Why.UNASKED, version)
    provider = Provider.BOTH if cell in ON_BOTH else Provider.CPU
    why, newest = _why(graph, index, cell)
    types = operator.without_kernel(graph.types_of(index)) if operator is not None and why is Why.TYPES else ()
    return NodePlacement(path, op, provider, why, version, newest, types=tuple([each.upper() for each in types]))


def _why(graph: SessionGraph, index: int, cell: Cell) -> tuple[Why, int | None]:
    """Returns why a node is not on DirectML and, if the reason is the model's opset, the newest schema version of its
    operator with which DirectML would run the node; None for any other reason."""
    if cell is Cell.NO_KERNEL:
        return Why.NO_KERNEL, None
    node = graph.nodes[index].proto
    if domain_of(node) == "":
        for older in range(graph.scope.origin.opset - 1, _OLDEST_OPSET - 1, -1):
            found = graph.cell_at(index, older)
            if found is not None and is_on_dml(found):
                operator = operator_of(node, older, graph.runtime)
                return Why.OPSET, None if operator is None else operator.version
    operator = graph.operator(index)
    if operator is None or not operator.is_on_dml_at_all:
        return Why.OPERATOR, None
    return (Why.ATTRIBUTES if graph.is_refused(index) else Why.TYPES), None


# Copies and capture.


class _Step(NamedTuple):
    """A node in the computation of copies between devices: the tensors that it reads and writes, each with the provider
    of its memory."""

    reads: Sequence[tuple[Hashable, Provider]]
    writes: Sequence[tuple[Hashable, Provider]]
    provider: Provider


class _Copies(NamedTuple):
    """The numbers of tensors copied to the CPU and from it. `for_dml` counts the tensors copied to the CPU that no node
    on the CPU reads; kernels of DirectML read them there."""

    to_cpu: int
    from_cpu: int
    for_dml: int


def _copies(graphs: Sequence[SessionGraph]) -> _Copies | None:
    """Returns the copies in all graphs; None if it is not known where a tensor is computed or read, or if Transposes
    may be moved elsewhere."""
    to_cpu = from_cpu = for_dml = 0
    if any(_may_transpose_elsewhere(graph) or merged_casts(graph) is None for graph in graphs):
        return None
    for graph in graphs:
        reads: dict[Hashable, set[Provider]] = {}
        made: dict[Hashable, Provider] = {}
        read_by_cpu: set[Hashable] = set()
        for step in _steps(graph):
            made.update(step.writes)
            for tensor, where in step.reads:
                reads.setdefault(tensor, set()).add(where)
            if step.provider is Provider.CPU:
                read_by_cpu.update(tensor for tensor, _ in step.reads)
        for tensor, readers in reads.items():
            where = made.get(tensor, Provider.FOLDED)
            if Provider.UNKNOWN in (where, *readers):
                return None
            is_copied = where is Provider.DML and Provider.CPU in readers
            to_cpu += is_copied
            for_dml += is_copied and tensor not in read_by_cpu
            # an input, including one from an outer graph, is copied only if both read it; never what is removed
            comes_from_outside = isinstance(tensor, str) or _is_given(graph, tensor)
            from_cpu += Provider.DML in readers and (where is Provider.CPU or (comes_from_outside and len(readers) > 1))
    return _Copies(to_cpu, from_cpu, for_dml)


def _may_transpose_elsewhere(graph: SessionGraph) -> bool:
    """True if it is not known which Transposes are moved, and one may be moved to a node on another provider: over one
    behind it, or into the constant in front of a DequantizeLinear."""
    transposes = [node for node in graph.graph.nodes if node.op_type == "Transpose"]
    if not transposes or moved(graph) is not None:
        return False
    over = [node for node in optimized(graph).nodes if Doubt.TRANSPOSED in node.doubts]
    over += [each for node in transposes for each in node.producers if each.op_type == UNMERGED]
    return len({_where(graph, node, cell_after(graph, node)) for node in (*transposes, *over)}) > 1 and bool(over)


def _steps(graph: SessionGraph) -> Iterator[_Step]:
    """Yields the nodes of a graph after all passes; a node without a kernel is replaced with the nodes of its
    function."""
    made = optimized(graph)
    sizes: set[Hashable] = {value for name, value in made.values.items() if name in graph.left_on_cpu}
    merged = merged_casts(graph) or MergedCasts(frozenset(), {})
    widened = {tensor for tensor in merged.read.values() if isinstance(tensor, Widened)}
    for node in made.nodes:
        if node in merged.gone:
            continue
        cell = cell_after(graph, node)
        read = [merged.read.get((node, value), value) for value in node.inputs]
        inputs = [_read(graph, node, i, each) for i, each in enumerate(read)]
        outputs = [
            tensor for value in node.outputs for tensor in (_copied(graph, node, value) if value.name else (None,))
        ]
        outputs += [tensor for tensor in widened if tensor.of in node.outputs]
        body = None
        if cell in EXPANDED and not is_created(graph, node):
            body = graph.once(("body", node), partial(_body, graph, node))
        if body is not None:
            yield from _in_place_of(graph, (node,), inputs, outputs, body, sizes)
        else:
            yield _step(node.op_type, _where(graph, node, cell), inputs, outputs)


def _read(graph: SessionGraph, node: Node, place: int, value: Tensor) -> Hashable | None:
    """Returns a key that identifies the tensor that a node reads at a position of its inputs: a Value; (value, node,
    place) for the output of a DequantizeLinear, of which each reader has a copy of its own (source:
    ensure_unique_dq_for_node_unit.cc of ONNX Runtime); for a tensor of an outer graph, the name, a str, of the tensor
    that replaces it there; None for a constant and for an omitted one."""
    if isinstance(value, Widened):
        return value
    if not value.name or graph.is_constant(value.name):
        return None
    before = value.producer
    if before is not None:
        return (value, node, place) if before.op_type == UNMERGED else value
    return value if graph.is_own(value.name) else _around(graph, value.name)


def _around(graph: SessionGraph, name: str) -> str:
    """Returns the name of the tensor that a graph reads for the name of a tensor of an outer graph, where optimization
    may have replaced the tensor with another one."""
    outer = graph.parent
    if outer is None:
        return name
    name = optimized(outer).source(outer.graph.source(name))
    return name if outer.is_own(name) else _around(outer, name)


def _copied(graph: SessionGraph, node: Node, value: Value) -> Iterator[Hashable]:
    """Yields keys that identify the tensors of an output `value` of a node: the output itself and, for a
    DequantizeLinear, a key for each read, since each read has a copy of the node."""
    yield value
    for reader in value.readers if node.op_type == UNMERGED else ():
        yield from (_read(graph, reader, i, value) for i, read in enumerate(reader.inputs) if read is value)


def side(graph: SessionGraph, value: Value) -> Provider:
    """Returns the provider in whose memory a tensor is computed; Provider.FOLDED for a tensor that no node computes,
    which can be placed anywhere; Provider.UNKNOWN if the provider is not known."""
    node = value.producer
    if node is None:
        return Provider.FOLDED
    ((_, made),) = _step(node.op_type, _where(graph, node, cell_after(graph, node)), (), (value,)).writes
    return made


def _where(graph: SessionGraph, node: Node, cell: Cell | None) -> Provider:
    """Returns DML or CPU for a node; UNKNOWN also if other nodes on both replace it."""
    if graph.is_unsettled(node.index):
        return Provider.UNKNOWN
    on_cpu = prefers_cpu(graph, node)
    return Provider.CPU if on_cpu and cell is not None and is_on_dml(cell) else _provider(cell)


def _provider(cell: Cell | None) -> Provider:
    if cell is None or cell is Cell.FOLDED or cell in ON_BOTH:
        return Provider.UNKNOWN
    return Provider.DML if is_on_dml(cell) else Provider.CPU


def _step(
    op_type: str, provider: Provider, inputs: Iterable[Hashable | None], outputs: Iterable[Hashable | None]
) -> _Step:
    """Returns the step of a node on a provider. Inputs that are constants, omitted, or read only by a graph inside the
    node are None; that graph's own nodes read the last kind."""
    traits, on_device = row_of(op_type), provider is Provider.DML
    reads = [
        (tensor, Provider.CPU if on_device and i in traits.cpu_inputs else provider)
        for i, tensor in enumerate(inputs)
        if tensor is not None
    ]
    made = Provider.CPU if on_device and traits.on_cpu else provider
    return _Step(reads, [(tensor, made) for tensor in outputs if tensor is not None], provider)


def _body(graph: SessionGraph, node: Node) -> Body | None:
    """Returns the nodes that replace a node without a kernel; None if they are not known."""
    return _body_of(graph, node.proto, graph.types_of_tensors(node.index)[0])


def _body_of(graph: SessionGraph, node: onnx.NodeProto, types: Types) -> Body | None:
    return body_of(node, types, graph.opset, graph.model.inference)


def _in_place_of(
    graph: SessionGraph,
    place: tuple[Hashable, ...],
    inputs: Sequence[Hashable | None],
    outputs: Sequence[Hashable | None],
    body: Body,
    sizes: set[Hashable],
) -> Iterator[_Step]:
    """Yields the steps of the nodes of a function body, which replace the step of the node with that function; bodies
    inside the body are expanded in the same way. `inputs` and `outputs` are the node's tensors, None for constants and
    omitted ones; `place` distinguishes the body's tensors from others. `sizes` are the tensors that stay on the CPU
    because they are computed from sizes; those of the body are added."""
    tensors: dict[str, Hashable | None] = dict(zip(body.inputs, inputs, strict=False))
    tensors |= {name: value for name, value in zip(body.outputs, outputs, strict=False) if value is not None}
    tensors[""] = None
    for each in body.nodes:
        if each.op_type == "Constant":
            tensors |= dict.fromkeys(each.output)
            continue
        read, written = [[tensors.get(name, (*place, name)) for name in names] for names in (each.input, each.output)]
        cell, taken = _cell_in(graph, body, each)
        inner = _body_of(graph, each, taken) if cell in EXPANDED or cell is Cell.NO_KERNEL else None
        if inner is not None:
            yield from _in_place_of(graph, (*place, each.output[0]), read, written, inner, sizes)
            continue
        provider = _provider(cell)
        traits = row_of(each.op_type)
        made_here = [tensor for tensor in written if tensor is not None]
        if traits.on_cpu and provider is Provider.DML:
            sizes.update(made_here)
        if not sizes.isdisjoint(read):
            stays = (
                _is_given(graph, tensor) or (tensor in sizes and i not in traits.cpu_inputs)
                for i, tensor in enumerate(read)
            )
            if provider is Provider.CPU or ("float16" not in taken and all(stays)):
                provider = Provider.CPU
                sizes.update(made_here)
        yield _step(each.op_type, provider, read, written)


def _is_given(graph: SessionGraph, tensor: Hashable | None) -> bool:
    """True for a constant, and for an input of the graph."""
    return tensor is None or (isinstance(tensor, Value) and tensor.name in graph.inputs)


def _prevents_capture(graphs: Sequence[SessionGraph], copies: _Copies | None) -> str | None:
    """Returns what prevents graph capture, as text, "" if nothing does; None if it is not known. `copies` are those of
    the graphs, None if unknown; copies that only kernels of DirectML read do not prevent it."""
    flow = [graph.path(node.index) for graph in graphs for node in _holding_graphs(graph)]
    if flow:
        return f"{flow[0]} is a control flow operator"
    copied = (path for graph in graphs for path in _with_copies(graph))
    if (path := next(copied, None)) is not None:
        return f"{path} has no kernel, and the nodes that replace it copy tensors between the CPU and the device"
    lost = (failure for graph in graphs for failure in lost_constants(graph))  # nothing is fused in a captured graph
    if (failure := next(lost, None)) is not None:
        return failure.why
    if copies is None:
        return None
    if graphs[-1].runtime.traits.captures_no_cpu_alone:
        places = {_where(graph, node, cell_after(graph, node)) for graph in graphs for node in optimized(graph).nodes}
        if places == {Provider.CPU}:
            return "no node is on DirectML"
    count = copies.to_cpu + copies.from_cpu - copies.for_dml
    return f"{count} tensor{'s are' if count > 1 else ' is'} copied between the CPU and the device" if count else ""


def _with_copies(graph: SessionGraph) -> Iterator[str]:
    """Yields the paths of nodes that are replaced by others on both providers, with copies between them."""
    for node in graph.order:
        if graph.cell(node.index) is Cell.EXPANDED_WITH_COPIES:
            yield graph.path(node.index)


def _holding_graphs(graph: SessionGraph) -> Iterator[Node]:
    return (node for node in graph.graph.nodes if has_graphs(node.proto))
