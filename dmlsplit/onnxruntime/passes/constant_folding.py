"""Nodes with constant results become initializers.

Source: graph.cc (Constant nodes), constant_folding.cc and graph_utils.cc (RemoveNodesWithOneOutputBottomUp) of ONNX
Runtime.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.protobuf import has_graphs
from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.models.taken_branches import TakenBranches
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.operators import moves_any_type
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED
from dmlsplit.onnxruntime.passes.failing_folds import failing_fold, unnamed_output

QUANTIZE: Final = "QuantizeLinear"
_HALF: Final = frozenset({"FLOAT16", "BFLOAT16"})
_WITHOUT_HALF: Final = frozenset({"Equal", "OneHot", "Size", "Tile", "Unique", "Where"})
"""Operators for which the CPU has kernels for strings, but none for half precision."""
_FIRST_HALF: Final = {"Clip": 12, "Max": 12, "Min": 12}
"""The first opsets in which kernels of the CPU take half precision, if not the first of the operator."""


def constant_nodes(graph: Graph) -> None:
    """Makes the outputs of Constant nodes initializers, in place, as ONNX Runtime does when it loads a model, at every
    optimization level."""
    for node in graph.nodes:
        if node.op_type == "Constant":
            graph.fold(node)


def constant_folding(graph: Graph) -> None:
    """Folds, in place, nodes with only constant inputs, and Shape nodes of static tensors together with the nodes in
    front of them that nothing else needs."""
    branches = graph.facts.branches
    if branches.of:
        early = (node for node in graph.nodes if node.name not in branches.late)
        nodes: Sequence[Node] = sorted(early, key=lambda node: branches.order(node.name))
    else:
        nodes = graph.walk()
    _fold(graph, nodes, _Links(graph))
    # the model is not valid as soon as one of them is left, whatever becomes of it later
    graph.unresolved = {node: name for node, name in graph.unresolved.items() if node in graph}
    _forget_captured(graph)


def _forget_captured(graph: Graph) -> None:
    """Removes from each node, in place, the captured tensors that only folded Shapes in its graphs read."""
    for node in graph.nodes:
        if node.captured:
            left = set(map(graph.source, graph.facts.captured(node.index)))
            graph.read(node, node.inputs, [value for value in node.captured if value.name in left])


def folding_behind_branches(graph: Graph) -> None:
    """Folds, in place, the nodes that can be folded only after branches have taken the places of their Ifs."""
    if graph.facts.branches.of:
        _fold(graph, graph.walk(), _Links(graph, complete=True))


def _fold(graph: Graph, nodes: Iterable[Node], links: _Links) -> None:
    copies = reading_copies(graph)
    for node in nodes:
        if node.index not in graph.folded and _folds(graph, node, copies):
            why = failing_fold(graph.facts, node)
            if why and graph.facts.traits.folds_known_sizes:
                continue
            if why := why or unnamed_output(graph.facts, node):
                graph.failing[node] = f"is folded, which fails: {why}"
            _fold_producers(graph, node, links)
            graph.fold(node)


def _fold_producers(graph: Graph, node: Node, links: _Links) -> None:
    """Removes, in place, the nodes that compute inputs of `node`, are linked to no other reader and compute no graph
    output; then, in the same way, the nodes that compute inputs of removed ones. A node that only a graph inside a
    removed node reads stays."""
    waiting = links.producers(node, node)
    while waiting:
        each = waiting.pop()
        if each.index in graph.folded or links.is_read(each, node) or any(value.is_output for value in each.outputs):
            continue
        for value in each.outputs:
            for reader in value.readers:
                # what a graph in a node reads may come from further out: ONNX Runtime does not miss it
                if reader is not node and value in reader.inputs:
                    graph.unresolved.setdefault(reader, value.name)
        waiting += links.producers(each, node)
        graph.folded.add(each.index)
        graph.remove(each)


class _Links:
    """The links between the nodes of a graph while its nodes are folded and branches take the places of their Ifs.

    A branch is folded before it takes its If's place. In the model's own graph its nodes are then unlinked, and the
    If's links are gone, until everything is folded. In a graph inside a node they are linked, each output to its first
    reader.
    """

    def __init__(self, graph: Graph, complete: bool = False) -> None:
        """Makes the links of a graph. If `complete`, all branches have taken the places of their Ifs, so all nodes are
        linked."""
        self._graph = graph
        self._branches = TakenBranches() if complete else graph.facts.branches
        self._first: dict[Value, Node] = {}
        """Maps each tensor that is read across the boundary of a branch to its first reader there."""
        self._ifs: dict[str, list[int]] = {}
        """Maps the name of each tensor that an If reads, perhaps in place of a removed one, to the numbers of their
        branches."""
        for name, numbers in self._branches.readers.items():
            self._ifs.setdefault(graph.source(name), []).extend(numbers)
        for node in graph.nodes if self._branches.of else ():
            for value in node.inputs:
                if value.producer is not None and self._chain(value.producer) != self._chain(node):
                    first = self._first.setdefault(value, node)
                    self._first[value] = min(first, node, key=lambda each: each.number)

    def _chain(self, node: Node) -> tuple[int, ...]:
        return self._branches.chain(node.name) if self._branches.of else ()

    def _links_branches(self, folded: Node) -> bool:
        """True if, while `folded` is folded, the nodes of branches in its graph are linked to the nodes around them."""
        return not self._graph.facts.is_main or bool(self._chain(folded))

    def producers(self, node: Node, folded: Node) -> list[Node]:
        """Returns the nodes that compute inputs of `node` and are linked to it while `folded` is folded."""
        around = self._chain(folded)
        found = []
        for value in node.inputs:
            before = value.producer
            if before is None:
                continue
            chain = self._chain(before)
            if chain == around or (chain[: len(around)] == around and self._links_branches(folded)):
                linked = len(chain) <= len(self._chain(node)) or self._first.get(value) is node
                found += [before] if linked else []
        return found

    def is_read(self, node: Node, folded: Node) -> bool:
        """True if, while `folded` is folded, `node` is linked to a reader other than `folded`."""
        chain, around = self._chain(node), self._chain(folded)
        now = self._branches.places.get(folded.name, 0)
        for value in node.outputs:
            for reader in value.readers:
                other = self._chain(reader)
                if reader is folded:
                    continue
                if node.op_type == UNMERGED:  # the reader has one of its own
                    return True
                if other == chain or (chain == other[: len(chain)] and self._links_branches(folded)):
                    return True
                if len(other) < len(chain) and self._first.get(value) is reader:
                    return True
            held = value.is_captured or value.has_spare or value.name in self._branches.readers
            if node.op_type == UNMERGED and held:
                return True
            if around and around[-1] in self._branches.given.get(value.name, ()):
                return True
            ifs = self._branches.within(self._ifs.get(value.name, ()), chain) if chain == around else ()
            if any(now < self._branches.ifs[number] for number in ifs):
                return True
        return False


def reading_copies(graph: Graph) -> set[Node]:
    """Returns the nodes that read a DequantizeLinear added by ONNX Runtime: each reader except the first has a copy of
    its own; the first also has one if the output is a graph output or is read by a graph in a node."""
    found: set[Node] = set()
    inside = graph.facts.branches.readers
    for node in graph.nodes:
        for value in node.outputs if node.op_type == UNMERGED else ():
            readers = [reader for reader in value.readers if value in reader.inputs]
            stays = value.is_output or value.is_captured or value.name in inside
            found.update(readers[0 if stays else 1 :])
    return found


def shape_of_input(graph: Graph, node: Node, copies: Container[Node]) -> Shape | None:
    """Returns the shape of the first input, None if it is unknown. A node in `copies` reads a DequantizeLinear that is
    not in the file: the shape of that DequantizeLinear's first input is used instead."""
    value = node.inputs[0]
    if node in copies and value.producer is not None and value.producer.inputs:
        value = value.producer.inputs[0]
    return graph.facts.shape_at_folding(value.name)


def _folds(graph: Graph, node: Node, copies: Container[Node]) -> bool:
    traits = row_of(node.op_type)
    if node.op_type == UNMERGED:
        reader = node.only_reader
        return reader is not None and _is_between_quantizations(graph, reader)
    if not node.op_type or traits.random or traits.computed:
        return False
    if node.op_type == "Shape" and node.inputs and is_static(shape_of_input(graph, node, copies)):
        return True
    names = [value.name for value in node.inputs if value.name]
    constant = bool(names) and (all(map(graph.facts.is_constant, names)) or _is_between_quantizations(graph, node))
    return constant and not has_graphs(node.proto) and _is_computed(graph, node, names)


def _is_between_quantizations(graph: Graph, node: Node) -> bool:
    """True for a node of one input and one output that alone is between a DequantizeLinear of a constant, of which it
    has a copy, and a QuantizeLinear: no other DequantizeLinear is folded."""
    after, before = node.only_reader, node.inputs[0].producer if len(node.inputs) == len(node.outputs) == 1 else None
    if before is None or before.op_type != UNMERGED or after is None or after.op_type != QUANTIZE:
        return False
    traits = row_of(node.op_type)
    if not node.op_type or traits.random or traits.computed or has_graphs(node.proto):
        return False
    names = [value.name for value in before.inputs if value.name]
    return all(map(graph.facts.is_constant, names)) and _is_computed(graph, before, names)


def _is_computed(graph: Graph, node: Node, names: Sequence[str]) -> bool:
    """True if the CPU computes the node before the session runs."""
    if not graph.facts.has_cpu_kernel(node.index):
        return False
    if graph.facts.traits.folds_known_sizes and not _is_sized(graph, node, names):
        return False
    types = {graph.facts.data_type(name) for name in names}
    if types.isdisjoint(_HALF):
        return True
    return takes_halves(graph, node) and (node.op_type not in graph.facts.folds_halves or "BFLOAT16" not in types)


def takes_halves(graph: Graph, node: Node) -> bool:
    """True if the CPU has a kernel of half precision for a node of the default domain: it has them only for Cast, for
    most operators that move elements, and for some others."""
    if node.op_type in graph.facts.folds_halves:
        return graph.facts.opset >= _FIRST_HALF.get(node.op_type, 1)
    is_moved = node.op_type not in _WITHOUT_HALF and moves_any_type(node.op_type, graph.facts.opset)
    return node.op_type == "Cast" or is_moved


def _is_sized(graph: Graph, node: Node, names: Sequence[str]) -> bool:
    """True if inference finds the sizes of the results of a node that reads the constants `names`, folded ones
    included: it knows their elements and sizes as soon as they are folded."""
    if all(is_static(graph.facts.shape(value.name)) for value in node.outputs if value.name):
        return True
    row = row_of(node.op_type)
    is_read_late = not all(is_static(graph.facts.shape(name)) for name in names)
    return bool(row.shaping) or (is_read_late and not row.data_dependent)
