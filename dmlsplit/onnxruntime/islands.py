"""Islands: nodes on the CPU between nodes on DirectML, the copies that they need at each Run, and how to move them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dmlsplit.descriptors.dims import is_static
from dmlsplit.formats.onnx.protobuf import text
from dmlsplit.models.graph import Node, Value
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import CASTS, EXPANDED, ON_BOTH, Cell, is_on_dml
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity
from dmlsplit.verdicts.model_placements import NodePlacement, Why

_BITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 8),
    **dict.fromkeys(("INT16", "UINT16", "FLOAT16", "BFLOAT16"), 16),
    **dict.fromkeys(("INT32", "UINT32", "FLOAT"), 32),
    **dict.fromkeys(("INT64", "UINT64", "DOUBLE"), 64),
}


class Remedy(NamedTuple):
    """The change that moves the nodes of an operator to DirectML, or why none does. `of_any`: one change moves nodes of
    other operators as well, such as the model's opset."""

    operator: str
    change: str
    of_any: bool = False

    def __str__(self) -> str:
        return f"{self.operator}: {self.change}"

    @property
    def cause(self) -> str:
        """A text that is equal for remedies that are one change."""
        return self.change if self.of_any else str(self)


@entity
class Island:
    """Nodes on the CPU that read one another, between nodes on DirectML.

    `copied` has the bytes of each tensor that is copied at each Run, to the CPU or from it (None if a size is unknown);
    `moved_by` has what moves its nodes to DirectML.
    """

    node: str
    """The path of its first node."""
    operators: Counter[str]
    copied: Sequence[int | None]
    moved_by: frozenset[Remedy]


def islands(graph: SessionGraph, placed: Mapping[str, NodePlacement], older: int | None) -> Iterator[Island]:
    """Yields the islands of a graph. `placed` has the placements of its nodes by path; `older` is the opset in which
    more of them are on DirectML, None if there is none."""
    for nodes in _components(graph):
        to_cpu = [value for value in _read(nodes) if _made_on_dml(graph, value)]
        from_cpu = [value for node in nodes for value in node.outputs if _read_on_device(graph, value)]
        if not to_cpu or not from_cpu:
            continue
        moved = [_moved_by(graph, node, placed, older) for node in nodes]
        yield Island(
            graph.path(nodes[0].index),
            Counter(_operator(node) for node in nodes),
            [_bytes(graph, value.name) for value in (*to_cpu, *from_cpu)],
            frozenset(filter(None, moved)),
        )


def _components(graph: SessionGraph) -> Iterator[list[Node]]:
    """Yields groups of nodes on the CPU: nodes that read one another are in one group, in the order of the file."""
    on_cpu = {node.index: node for node in graph.order if _on_dml(graph, node) is False}
    seen: set[int] = set()
    for start in sorted(on_cpu):
        if start in seen:
            continue
        seen.add(start)
        found, todo = [], [start]
        while todo:
            index = todo.pop()
            found.append(index)
            for near in _near(on_cpu[index]):
                if near in on_cpu and near not in seen:
                    seen.add(near)
                    todo.append(near)
        yield [on_cpu[index] for index in sorted(found)]


def _operator(node: Node) -> str:
    return printable(text(node.proto.op_type), 60)


def _near(node: Node) -> Iterator[int]:
    for value in (*node.inputs, *node.captured):
        if value.producer is not None:
            yield value.producer.index
    for value in node.outputs:
        yield from (reader.index for reader in value.readers)


def _on_dml(graph: SessionGraph, node: Node) -> bool | None:
    """Returns True if DirectML runs a node, False if the CPU does; None if it is not known, or if other nodes replace
    it."""
    cell = graph.cell(node.index)
    if cell is None or cell is Cell.FOLDED or cell in ON_BOTH:
        return None
    return is_on_dml(cell) and node.index not in graph.preferring_cpu


def _read(nodes: Sequence[Node]) -> Sequence[Value]:
    """Returns the values that the nodes read, each once."""
    return list({id(value): value for node in nodes for value in (*node.inputs, *node.captured)}.values())


def _made_on_dml(graph: SessionGraph, value: Value) -> bool:
    node = value.producer
    return node is not None and not row_of(node.op_type).on_cpu and _on_dml(graph, node) is True


def _read_on_device(graph: SessionGraph, value: Value) -> bool:
    """True if a node on DirectML reads a value on the device; a Reshape's shape, for example, is read on the CPU."""
    return any(_on_dml(graph, reader) is True and _takes(reader, value) for reader in value.readers)


def _takes(reader: Node, value: Value) -> bool:
    """True if a node reads a value as an input that is not for the CPU."""
    on_cpu = row_of(reader.op_type).cpu_inputs
    if not on_cpu and not reader.captured:
        return True  # whichever of many inputs it is
    return any(each is value and i not in on_cpu for i, each in enumerate(reader.inputs))


def _bytes(graph: SessionGraph, name: str) -> int | None:
    bits, shape = _BITS.get(graph.data_type(name) or ""), graph.shape(name)
    if bits is None or shape is None or not is_static(shape):
        return None
    return math.prod(int(size) for size in shape) * bits // 8


def _moved_by(graph: SessionGraph, node: Node, placed: Mapping[str, NodePlacement], older: int | None) -> Remedy | None:
    """Returns what moves a node to DirectML; None for a node that computes sizes. `placed` and `older` as in
    `islands`."""
    path, name = graph.path(node.index), _operator(node)
    why = None if path not in placed else placed[path].why
    if why is Why.OPSET and older is not None and _is_dml(graph.cell_at(node.index, older)):
        return Remedy(name, f"opset {older}", of_any=True)
    if why is Why.OPSET:
        newest = placed[path].newest
        return Remedy(name, f"opset {newest} or a form that its version {newest} can express")
    if why is Why.TYPES:
        cast = _cast(graph, node.index)
        return Remedy(name, cast or "no other type has a kernel", of_any=bool(cast))
    if why is Why.ATTRIBUTES:
        return Remedy(name, _attribute(graph, node.index))
    return Remedy(name, "replace it, DirectML has no kernel") if why is Why.OPERATOR else None


def _is_dml(cell: Cell | None) -> bool:
    return cell is not None and is_on_dml(cell)


def cast_for_kernel(graphs: Sequence[SessionGraph], path: str) -> str:
    """Returns, as text, the cast with which the node at a path, which has no kernel, is on DirectML or is replaced with
    nodes that have one; "" if there is no such node or cast."""
    for graph in graphs:
        for node in graph.order:
            if graph.path(node.index) == path and graph.cell(node.index) is Cell.NO_KERNEL:
                return _cast(graph, node.index, lambda cell: _is_dml(cell) or cell in EXPANDED)
    return ""


def _cast(graph: SessionGraph, index: int, accepts: Callable[[Cell | None], bool] = _is_dml) -> str:
    """Returns, as text, the cast of one element type that gives DirectML a kernel for the node with this index, or a
    placement that `accepts` is true for; "" if no such cast is sufficient, or if the table of placements lacks the
    node's operator."""
    operator = graph.operator(index)
    types = graph.types_of(index)
    if operator is None:
        return ""
    for own in dict.fromkeys(filter(None, types)):
        for other in CASTS:
            if own != other and accepts(operator.ask(tuple([other if each == own else each for each in types]))):
                return f"a cast of {own.upper()} to {other.upper()} around it, which rounds differently"
    return ""


def _attribute(graph: SessionGraph, index: int) -> str:
    """Returns, as text, the attribute whose removal gives DirectML a kernel for the node; without one, that the node
    has too many outputs."""
    operator, node = graph.operator(index), graph.nodes[index].proto
    for each in node.attribute:
        without = type(node)()
        without.CopyFrom(node)
        del without.attribute[:]
        without.attribute.extend(other for other in node.attribute if other.name != each.name)
        if operator is not None and _is_dml(graph.cell_of(index, without)):
            return f"another value of {printable(text(each.name), 60)}"
    return "fewer outputs"


def grouped(found: Sequence[Island]) -> Iterator[list[Island]]:
    """Yields the islands as lists of those that the same changes move; the list with the most copied tensors comes
    first."""
    groups: dict[object, list[Island]] = defaultdict(list)
    for island in found:
        groups[frozenset(each.cause for each in island.moved_by)].append(island)
    yield from sorted(groups.values(), key=lambda each: -sum(len(island.copied) for island in each))
