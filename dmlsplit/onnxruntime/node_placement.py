"""Where ONNX Runtime places a node: on DirectML or on the CPU, in a fused graph or separately.

Source: GraphPartitioner.cpp and GraphTransformer.cpp of ONNX Runtime's DirectML execution provider; observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import onnx

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import domain_of
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Node, Value
from dmlsplit.models.schemas import schema_of
from dmlsplit.onnxruntime.expansion import body_of
from dmlsplit.onnxruntime.facts import RuntimeFacts
from dmlsplit.onnxruntime.node_facts import facts_after
from dmlsplit.onnxruntime.node_prediction import placement_by_facts
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import EXPANDED, Cell, asked, find_operator, is_fused, is_on_dml
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.verdicts.runtime_answers import Outcome

_BESIDE_MOVED: Final = frozenset({"Squeeze", "Unsqueeze", "Gather"})
"""Operators that are created where a Transpose is moved, and not in its place."""
_MOVED: Final = _BESIDE_MOVED | {"Transpose"}
"""The operators of the nodes that are inserted where a Transpose is moved."""
_READING_OTHERS: Final = frozenset({"Identity", "Reshape"})
"""The operators of the nodes that may read other tensors after optimization."""
_ON_CPU: Final = frozenset({Cell.CPU, Cell.EXPANDED_ON_CPU})


class Placed(NamedTuple):
    """The place of a node: True if it is on DirectML, True if it can be in a fused graph; each None if unknown."""

    on_dml: bool | None
    in_graph: bool | None


def placed(graph: SessionGraph, node: Node) -> Placed:
    """Returns whether DirectML runs a node and whether the node can be in a fused graph, each None if unknown. The node
    is of `graph`, or of the same graph after further optimization."""
    if node.op_type in JUDGED:
        return _by_facts(graph, facts_after(graph).get(node.index))
    if not is_created(graph, node) and not node.is_inserted and node.op_type not in _READING_OTHERS:
        alike = graph.alike[node.index]
        return graph.once(("placed", alike), lambda: _neighbour(graph, node, graph.cell(node.index)))
    cell = cell_after(graph, node)
    # For other operators the node of the file decides; an Identity may read another tensor after optimization, and so
    # does what stands for several Reshapes.
    asked = node if node.op_type == "Identity" or _is_contiguous(node) or _is_moved(node) else node.index
    return graph.once(("placed", asked, cell), lambda: _neighbour(graph, node, cell))


def _is_contiguous(node: Node) -> bool:
    """True for a Reshape to a constant shape in place of several nodes, or in place of one and of what was inserted."""
    return node.op_type == "Reshape" and len(node.inputs) == 1 and not node.is_inserted


def _is_moved(node: Node) -> bool:
    """True for a node that was inserted where a Transpose was moved: it reads other tensors than the Transpose did."""
    return node.is_inserted and node.op_type in _MOVED


def prefers_cpu(graph: SessionGraph, node: Node) -> bool:
    """True if a node of the optimized graph is left on the CPU because it computes with sizes. What is inserted where a
    Transpose was moved is, if the node that computes its tensor is or measures sizes."""
    source = node.inputs[0].producer if _is_moved(node) and node.inputs else None
    if source is None:
        return node.index in graph.preferring_cpu
    measures = row_of(source.op_type).on_cpu and graph.implemented(source.index) is True
    return measures or source.index in graph.preferring_cpu


def is_created(graph: SessionGraph, node: Node) -> bool:
    """True for a node of the optimized graph that has another operator than the node of the file at its place."""
    return node.op_type != graph.nodes[node.index].op_type


def lacks_cpu_input(graph: SessionGraph, index: int) -> bool:
    """True if a node omits an input that the CPU reads for it, such as the `axes` of a Slice: outside of fused graphs
    its kernel is created at the first Run, not with the session. Source: AbiOpKernel of MLOperatorAuthorImpl.cpp, which
    looks for the constant of each such input; observed with ranks that kernels refuse."""
    node = graph.nodes[index].proto
    schema = schema_of(node.op_type, graph.opset, domain_of(node))
    count = 0 if schema is None else len(schema.inputs)
    given = node.input[:]
    return any(i >= len(given) or not given[i] for i in row_of(node.op_type).cpu_inputs if i < count)


def cell_after(graph: SessionGraph, node: Node) -> Cell | None:
    """Returns the table's answer about a node of the optimized graph, None if it is unknown; for a node that
    optimization created, the answer for its new operator, unless it stands for one that was left to the CPU."""
    own = graph.cell(node.index)
    is_kept = _is_of_type(graph, node) if _is_moved(node) else not is_created(graph, node)
    if is_kept or (own in _ON_CPU and node.op_type not in _MOVED):
        return own
    made = find_operator("", node.op_type, graph.opset, graph.runtime)
    if made is None:
        return own
    data_type = graph.data_type(node.inputs[0].known_type)
    return made.ask(made.types((None if data_type is None else data_type.lower(),), ()), graph.opset)


def _is_of_type(graph: SessionGraph, node: Node) -> bool:
    """True for a Transpose that has the types of the Transpose for which it was inserted."""
    if is_created(graph, node):
        return False
    data_type = graph.data_type(node.inputs[0].known_type)
    return data_type is None or data_type.lower() in graph.types_of_tensors(node.index)[0]


def in_graphs(graph: SessionGraph, nodes: Sequence[Node]) -> list[bool | None]:
    """Returns, for each of the nodes, True if it can be in a fused graph; None if that is not known."""
    facts = facts_after(graph)
    of_facts: dict[int, Placed] = {}
    """The places of Splits and Concats, by the identity of their facts: equal facts are one object."""
    found = []
    for node in nodes:
        if node.op_type in JUDGED:
            known = facts.get(node.index)
            if id(known) not in of_facts:
                of_facts[id(known)] = _by_facts(graph, known)
            found.append(of_facts[id(known)].in_graph)
        else:
            found.append(placed(graph, node).in_graph)
    return found


def _by_facts(graph: SessionGraph, facts: RuntimeFacts | None) -> Placed:
    """Returns the place of a Split or Concat with these facts; `facts` is None if too few are known."""
    if facts is None:
        return Placed(None, None)
    found = placement_by_facts(facts, graph.runtime, options=graph.options)
    if found.answer is None:
        return Placed(True, found.in_graph)
    if found.answer.outcome is Outcome.UNKNOWN:
        return Placed(None, None)
    return Placed(found.answer.outcome is not Outcome.CPU, False)


def _neighbour(graph: SessionGraph, node: Node, cell: Cell | None) -> Placed:
    """Returns the place of any other node, by the table's answer about it, its sizes, and the inputs that the CPU
    reads."""
    proto = graph.nodes[node.index].proto
    on_dml = graph.on_dml(node.index)
    if on_dml is not None and cell is not None and is_created(graph, node):
        on_dml = is_on_dml(cell) and not prefers_cpu(graph, node)
    if on_dml is False or not graph.fuses:
        return Placed(on_dml, False)
    if node.op_type == "Identity" and graph.options.optimization >= 1:
        # A remaining one computes an output of the graph.
        known = all(is_static(graph.shape(value.name)) for value in (*node.inputs, *node.outputs))
        return Placed(on_dml, on_dml if known else False)
    if is_moved := _is_moved(node):
        names, written = [[v.known for v in values if v.name] for values in (node.inputs, node.outputs)]
    else:
        names, written = [node.inputs[0].known] if _is_contiguous(node) else proto.input[:], proto.output[:]
    traits = row_of(node.op_type if is_moved else proto.op_type)
    wrong_count = traits.fused_with not in (None, len(names))
    on_cpu = traits.cpu_inputs
    computed = any(names[i] and not graph.is_initializer(names[i]) for i in on_cpu if i < len(names))
    if wrong_count or computed or (cell is not None and not is_fused(cell)):
        return Placed(on_dml, False)
    read = [name for i, name in enumerate(names) if name and i not in on_cpu]
    # The sizes of a constant are known where it is computed, regardless of what the file declares.
    shapes = [graph.shape(name) for name in read if not graph.is_constant(name)]
    shapes += [graph.shape(name) for name in written if name]
    if all(map(is_static, shapes)):
        empty = any(0 in shape for shape in shapes if shape is not None)
        return Placed(on_dml, False if empty else True if on_dml else None)
    # ONNX Runtime's inference may find shapes that this inference did not.
    lost = not graph.model.lost.isdisjoint(proto.output[:])
    unknown = not lost and all(is_static(graph.shape(name)) or not graph.is_open(name) for name in names if name)
    return Placed(on_dml, None if unknown or graph.model.is_unfinished else False)


def fused_ends(graph: SessionGraph, node: Node) -> tuple[Value, ...]:
    """Returns the outputs of a node that is replaced with others if the replacing node that computes them can be fused
    and comes after one that cannot. A replacing node with unknown sizes, or whose inputs for the CPU are computed,
    cannot be fused."""
    if not graph.is_expanded(node.index):
        return ()
    shapes = [graph.shape(name) if name else None for name in node.proto.input[:]]
    ends = _fused_ends(graph, node.proto, graph.types_of_tensors(node.index)[0], shapes)
    return tuple([value for i, value in enumerate(node.outputs) if i in ends])


def _fused_ends(
    graph: SessionGraph, node: onnx.NodeProto, types: Sequence[str | None], shapes: Sequence[Shape | None]
) -> set[int]:
    """Returns the indices of the outputs that `fused_ends` returns, for inputs of these element types and shapes."""
    body = body_of(node, types, graph.opset, graph.model.inference, shapes)
    if body is None:
        return set()
    made = {name: i for i, each in enumerate(body.nodes) if each.op_type != "Constant" for name in each.output[:]}

    def before(index: int) -> Iterator[int]:
        return (made[name] for name in body.nodes[index].input if name in made)

    def cell_of(index: int) -> Cell | None:
        each = body.nodes[index]
        read, written = [tuple([body.types.get(name) for name in names]) for names in (each.input, each.output)]
        return asked(each, read, written, graph.opset, graph.runtime)

    def fits(index: int) -> bool | None:
        each, cell = body.nodes[index], cell_of(index)
        on_cpu = row_of(each.op_type).cpu_inputs
        # an input for the CPU is not a constant if the body computes it
        if any(name in made for i, name in enumerate(each.input[:]) if i in on_cpu):
            return False
        read = [name for i, name in enumerate(each.input[:]) if name and i not in on_cpu]
        is_sized = all(is_static(body.shapes.get(name)) for name in (*read, *filter(None, each.output[:])))
        return None if cell is None else is_fused(cell) and is_sized

    found = set()
    for place, output in enumerate(body.outputs):
        if output not in made:
            continue
        last = body.nodes[made[output]]
        cell = cell_of(made[output])
        if cell in EXPANDED or cell is Cell.NO_KERNEL:
            read = [body.types.get(name) for name in last.input], [body.shapes.get(name) for name in last.input]
            inner = _fused_ends(graph, last, *read)
            found |= {place} if list(last.output).index(output) in inner else set()
            continue
        can_be_fused = [fits(index) for index in depth_first([made[output]], before)]
        if can_be_fused[-1] and False in can_be_fused:
            found.add(place)
    return found
