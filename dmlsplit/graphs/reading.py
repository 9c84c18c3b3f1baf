"""Converts a GraphDesc to the nodes and tensors that the passes work on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.descriptors.layout import ELEMENT_BITS, is_packed
from dmlsplit.graphs.descriptors import GraphDesc, GraphNode, node_tensors, node_type
from dmlsplit.graphs.operators import (
    ACTIVATION_IDENTITY,
    BY_NUMBER,
    LEAKY_RELU,
    PARAMETERIZED_RELU,
    RELU,
    SIGN,
    Family,
    short_name,
)
from dmlsplit.graphs.program import (
    ELEMENT_BYTES,
    Node,
    Operand,
    Part,
    Rank,
    Tensor,
    Unmodelled,
    Use,
    Uses,
    bytes_of,
    depth_first,
    numbers_of,
)
from dmlsplit.graphs.traits import GraphTraits


class _Form(NamedTuple):
    """What nodes with one descriptor have in common: family, DML_OPERATOR_TYPE, the sizes and the element's bytes of
    each output, and fields of Node."""

    family: Family
    type: int
    outputs: Sequence[tuple[tuple[int, ...], int]]
    axis: int = 0
    offsets: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    keeps_positive: bool = False


class Program:
    """A graph as CompileGraph reads it, for builds with these traits.

    `assumed` maps the index of a node whose operator was not observed to the family that it is treated as. If it is
    given, tensors may have any data type, and operands of element-by-element operators may be broadcast.
    """

    def __init__(self, graph: GraphDesc, traits: GraphTraits, assumed: Mapping[int, Family] | None = None) -> None:
        self.traits = traits
        self.assumed = assumed
        self.nodes: list[Node] = []
        self.outputs: list[Tensor] = []
        self.parts: dict[Tensor, list[Tensor]] = {}
        self.lost: list[tuple[Node, int]] = []
        """Joins, each with the index of an input that is never written."""
        self.stand_ins: list[tuple[Node, int, Tensor, Part]] = []
        """Joins, the index of an input, the tensor put there, and the part that belongs there."""
        self.copies_for_outputs: set[Tensor] = set()
        self.buffers: dict[str, int] = {}
        """Bytes of each buffer."""
        self.homes_of_nodes: dict[Node, Tensor] = {}
        self._checked: dict[int, tuple[tuple[int, ...], int]] = {}
        """The sizes and the element's bytes of descriptors, by identity: many tensors share one."""
        self._read(graph)
        self.results = list(self.outputs)
        self.output_ranks: list[Rank] = [(Use.GRAPH_OUTPUT, i) for i in range(len(self.outputs))]
        """The place of each graph output among the uses of its tensor."""
        self.first_ranks: dict[Tensor, Rank] = {}
        """Maps each tensor of `outputs` to the least of its `output_ranks`."""
        self.rank_outputs()

    def rank_outputs(self) -> None:
        """Updates `first_ranks` after `outputs` or `output_ranks` changed."""
        self.first_ranks = {}
        for tensor, rank in zip(self.outputs, self.output_ranks, strict=True):
            self.first_ranks[tensor] = min(rank, self.first_ranks.get(tensor, rank))

    def _read(self, graph: GraphDesc) -> None:
        inputs = {i: self._tensor(end.desc, None, i) for i, end in enumerate(graph.inputs) if end is not None}
        tensors = {id(desc): node_tensors(desc) for desc in {id(desc): desc for desc in graph.nodes}.values()}
        """The inputs and the outputs of descriptors, by identity: many nodes share one."""
        forms: dict[tuple[int, Family | None], _Form] = {}
        assumed = self.assumed or {}
        for number, desc in enumerate(graph.nodes):
            key = id(desc), assumed.get(number)
            form = forms.get(key)
            if form is None:
                form = forms[key] = self._form(desc, number, assumed.get(number))
            node = Node(form.family, form.type, [], [], number, form.axis, form.offsets, form.steps)
            node.keeps_positive = form.keeps_positive
            node.outputs = [Tensor(*facts, node, k) for k, facts in enumerate(form.outputs)]
            self.nodes.append(node)
        operands: list[dict[int, Operand]] = [{} for _ in self.nodes]
        for edge in graph.input_edges:
            operands[edge.to_node_index][edge.to_node_input_index] = Operand(
                inputs[edge.graph_input_index], (Use.EDGE, 0)
            )
        for i, wire in enumerate(graph.intermediate_edges):
            source = self.nodes[wire.from_node_index].outputs[wire.from_node_output_index]
            operands[wire.to_node_index][wire.to_node_input_index] = Operand(source, (Use.EDGE, i))
        read: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        """The sizes and the element's bytes of inputs, by the identity of descriptors that were checked: many nodes
        share one."""
        for node, found, desc in zip(self.nodes, operands, graph.nodes, strict=True):
            node.operands = [found[i] for i in sorted(found)] if len(found) > 1 else list(found.values())
            ends = [(operand.sizes, operand.tensor.element_bytes) for operand in node.operands]
            if node.family is Family.JOIN:
                node.starts = list(accumulate([operand.sizes[node.axis] for operand in node.operands], initial=0))
            for end, tensor in zip(ends, tensors[id(desc)][0], strict=True) if read.get(id(desc)) != ends else ():
                if (
                    tensor is None
                    or tensor.desc is None
                    or (_as_read(tensor.desc.sizes, tensor.desc), self._element_bytes(tensor.data_type)) != end
                ):
                    raise Unmodelled("edges whose ends differ in sizes or data type were not observed")
                self._facts(tensor.desc)
            read[id(desc)] = ends
            differ = self.assumed is None and any(operand.sizes != node.output.sizes for operand in node.operands)
            if node.family.computes and differ:
                raise Unmodelled(f"{short_name(node.type)} of tensors of different sizes was not observed")
        by_output = {edge.graph_output_index: edge for edge in graph.output_edges}
        self.outputs = [
            self.nodes[by_output[i].from_node_index].outputs[by_output[i].from_node_output_index]
            for i in sorted(by_output)
        ]

    def _form(self, desc: GraphNode, number: int, assumed: Family | None) -> _Form:
        """Returns what nodes with a descriptor have in common; `number` is that of the first, `assumed` the family that
        they are treated as, if their operator was not observed."""
        kind = node_type(desc)
        row = BY_NUMBER.get(kind)
        family = assumed if assumed is not None else None if row is None else row.family
        if family is None:
            raise Unmodelled(f"{short_name(kind)} (node {number}) was not observed in graphs")
        outputs = [self._facts(tensor.desc if tensor else None) for tensor in node_tensors(desc)[1]]
        form = _Form(self._of_build(family, kind), kind, outputs)
        if not isinstance(desc, AnyOperatorDesc):
            return form._replace(axis=desc.axis)
        if family is Family.SLICE:
            rank = len(outputs[0][0])
            offsets, steps = [numbers_of(desc, f"InputWindow{name}", rank) for name in ("Offsets", "Strides")]
            form = form._replace(offsets=offsets, steps=steps)
        if desc.members.get("ScaleBias") is not None:
            raise Unmodelled(f"{short_name(kind)} with a scale and bias was not observed in graphs")
        alpha = desc.members.get("Alpha")
        rising = kind == LEAKY_RELU and isinstance(alpha, (int, float)) and alpha >= 0
        return form._replace(keeps_positive=kind == RELU or rising)

    def _of_build(self, family: Family, kind: int) -> Family:
        """Returns the family as which this build compiles the operator with DML_OPERATOR_TYPE `kind`: `family`, as in
        most builds, or the one that this build's traits name."""
        if family is Family.BLOCK and self.traits.normalizations_take_rows:
            return Family.WHOLE
        if kind == ACTIVATION_IDENTITY and self.traits.drops_activation_identities:
            return Family.IDENTITY
        if kind == PARAMETERIZED_RELU and self.traits.narrow_ranks:
            return Family.ACTIVATION
        if kind == SIGN and not self.traits.signs_in_place:
            return Family.WHOLE
        return family

    def _tensor(self, desc: BufferTensorDesc | None, producer: Node | None, index: int) -> Tensor:
        return Tensor(*self._facts(desc), producer, index)

    def _facts(self, desc: BufferTensorDesc | None) -> tuple[tuple[int, ...], int]:
        """Returns a tensor's sizes and the size of an element in bytes. Raises Unmodelled for a kind of tensor whose
        compilation was never recorded."""
        assert desc is not None
        if id(desc) not in self._checked:
            self._checked[id(desc)] = self._checked_facts(desc)
        return self._checked[id(desc)]

    def _checked_facts(self, desc: BufferTensorDesc) -> tuple[tuple[int, ...], int]:
        assert desc.sizes is not None
        size = self._element_bytes(desc.data_type)
        if size is None:
            raise Unmodelled(f"data type {desc.data_type!s} was not observed in graphs")
        sizes = _as_read(desc.sizes, desc)
        if desc.strides is not None and not is_packed(sizes, _as_read(desc.strides, desc)):
            raise Unmodelled("tensors with explicit strides were hardly observed in graphs")
        if desc.flags:
            raise Unmodelled("tensors that DirectML owns were not observed in graphs")
        if desc.total_tensor_size_in_bytes != bytes_of(sizes, size):
            raise Unmodelled("tensors that are larger than their elements were not observed in graphs")
        return sizes, size

    def _element_bytes(self, data_type: int) -> int | None:
        size = ELEMENT_BYTES.get(int(data_type))
        if size is None and self.assumed is not None and data_type in ELEMENT_BITS:
            return max(ELEMENT_BITS[data_type] // 8, 1)
        return size

    def uses(self) -> Uses:
        uses: Uses = defaultdict(list)
        for node in self.nodes:
            for k, operand in enumerate(node.operands):
                uses[operand.tensor].append((node, k))
        for readers in uses.values():
            if len(readers) > 1:
                readers.sort(key=_rank)
        return uses

    def topological(self) -> list[Node]:
        return depth_first(self.nodes)


def _rank(use: tuple[Node, int]) -> Rank:
    node, k = use
    return node.operands[k].rank


def _as_read(numbers: tuple[int, ...] | None, desc: BufferTensorDesc) -> tuple[int, ...]:
    """Returns the entries of Sizes or Strides (`numbers`) that DirectML reads: the first DimensionCount of `desc`; ()
    for None."""
    return (numbers or ())[: desc.dimension_count]
