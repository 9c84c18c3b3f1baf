"""Builds small graphs from their nodes: examples for the rules, and for experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.graphs.descriptors import (
    GraphDesc,
    GraphNode,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OutputGraphEdgeDesc,
    node_tensors,
)

End: TypeAlias = tuple[int | None, int]
"""A tensor of the graph under construction: the node (None: the graph's inputs) and the index of its output."""


class Sketch:
    """Builds a graph node by node; every tensor is packed. Each operator method returns the node's outputs."""

    def __init__(self, data_type: TensorDataType = TensorDataType.FLOAT32) -> None:
        self.data_type = data_type
        self.inputs: list[BufferTensorDesc] = []
        self.nodes: list[GraphNode] = []
        self.sources: list[list[End]] = []
        self.tensors: dict[End, BufferTensorDesc] = {}

    def input(self, *sizes: int) -> End:
        end = (None, len(self.inputs))
        self.tensors[end] = BufferTensorDesc(self.data_type, sizes)
        self.inputs.append(self.tensors[end])
        return end

    def split(self, source: End, axis: int, lengths: Sequence[int]) -> list[End]:
        desc = SplitOperatorDesc.from_lengths(self.tensors[source], axis, lengths)
        return self._add(desc, [source], [tensor.desc for tensor in desc.output_tensors or () if tensor])

    def join(self, sources: Sequence[End], axis: int) -> End:
        parts = [self.tensors[source] for source in sources]
        sizes = list(parts[0].sizes or ())
        sizes[axis] = sum((part.sizes or ())[axis] for part in parts)
        whole = BufferTensorDesc(self.data_type, sizes)
        return self._add(JoinOperatorDesc(parts, whole, axis), sources, [whole])[0]

    def slice(self, source: End, axis: int, start: int, length: int) -> End:
        before = self.tensors[source].sizes or ()
        sizes = [length if d == axis else size for d, size in enumerate(before)]
        members: dict[str, object] = {
            "DimensionCount": len(sizes),
            "InputWindowOffsets": tuple(start if d == axis else 0 for d in range(len(sizes))),
            "InputWindowSizes": tuple(sizes),
            "InputWindowStrides": (1,) * len(sizes),
        }
        return self._neighbour("SLICE1", [source], sizes, members)

    def __call__(self, operator: str, *sources: End, sizes: Sequence[int] | None = None, **members: object) -> End:
        """Adds an operator with one output, which has the sizes of the first input unless others are given, and returns
        that output."""
        own = self.tensors[sources[0]].sizes or ()
        return self._neighbour(operator, sources, own if sizes is None else sizes, members)

    def _neighbour(
        self, operator: str, sources: Sequence[End], sizes: Sequence[int], members: Mapping[str, object]
    ) -> End:
        output = BufferTensorDesc(self.data_type, sizes)
        inputs = [self.tensors[source] for source in sources]
        return self._add(AnyOperatorDesc.of_tensors(operator, inputs, [output], members), sources, [output])[0]

    def _add(self, desc: GraphNode, sources: Iterable[End], outputs: Iterable[BufferTensorDesc | None]) -> list[End]:
        number = len(self.nodes)
        self.nodes.append(desc)
        self.sources.append(list(sources))
        ends: list[End] = []
        for k, tensor in enumerate(outputs):
            assert tensor is not None
            ends.append((number, k))
            self.tensors[number, k] = tensor
        return ends

    def graph(self, *outputs: End) -> GraphDesc:
        """Returns the graph built so far with `outputs` as its outputs, in order."""
        inputs, wires = [], []
        for node, sources in enumerate(self.sources):
            for k, (start, index) in enumerate(sources):
                if start is None:
                    inputs.append(InputGraphEdgeDesc(index, node, k))
                else:
                    wires.append(IntermediateGraphEdgeDesc(start, index, node, k))
        ends = [OutputGraphEdgeDesc(node or 0, index, i) for i, (node, index) in enumerate(outputs)]
        tensors = [self.tensors[output] for output in outputs]
        return GraphDesc(self.inputs, tensors, self.nodes, inputs, ends, wires)


def gated(cured: bool) -> GraphDesc:
    """Returns the graph of a * sigmoid(b), where a and b are the halves of a Split; if `cured`, of two Slices."""
    g = Sketch()
    x = g.input(1, 8, 1, 16)
    a, b = (g.slice(x, 1, 0, 4), g.slice(x, 1, 4, 4)) if cured else g.split(x, 1, (4, 4))
    return g.graph(g("ELEMENT_WISE_MULTIPLY", a, g("ACTIVATION_SIGMOID", b)))


def joined(cured: bool) -> GraphDesc:
    """Returns the graph of relu(Join(tanh(x), y)), in which tanh(x) is also a graph output; if `cured`, so is the
    Join's output."""
    g = Sketch()
    v, y = g("ACTIVATION_TANH", g.input(1, 4, 1, 16)), g.input(1, 4, 1, 16)
    j = g.join((v, y), 1)
    return g.graph(g("ACTIVATION_RELU", j), v, *([j] if cured else []))


def repeated(cured: bool) -> GraphDesc:
    """Returns the graph of a Join that takes tanh(x) twice; if `cured`, the second is computed by a separate node."""
    g = Sketch()
    x = g.input(1, 4, 1, 16)
    v = g("ACTIVATION_TANH", x)
    return g.graph(g.join((v, g("ACTIVATION_TANH", x) if cured else v), 1))


def half(cured: bool) -> GraphDesc:
    """Returns the graph of tanh of the first half of sigmoid(x); if `cured`, the second half is a graph output."""
    g = Sketch()
    a, b = g.split(g("ACTIVATION_SIGMOID", g.input(1, 8, 1, 16)), 1, (4, 4))
    return g.graph(g("ACTIVATION_TANH", a), *([b] if cured else []))


def five_dimensions(cured: bool) -> GraphDesc:
    """Returns the graph of a Split of five dimensions; if `cured`, of four."""
    g = Sketch()
    x = g.input(6, 4, 2, 2) if cured else g.input(2, 3, 4, 2, 2)
    return g.graph(*g.split(x, 1 if cured else 2, (2, 2)))


def joined_in_rows(cured: bool) -> GraphDesc:
    """Returns the graph of the Join of b and y in rows, and of relu(b), where b is a half of x; if `cured`, the Join
    takes a Slice of x instead of b."""
    g = Sketch()
    x, y = g.input(2, 8, 1, 16), g.input(2, 4, 1, 16)
    _, b = g.split(x, 1, (4, 4))
    part = g.slice(x, 1, 4, 4) if cured else b
    return g.graph(g.join((part, y), 1), g("ACTIVATION_RELU", b))


def chained(cured: bool) -> GraphDesc:
    """Returns the graph of (b * v) * sigmoid(v), where b is a half of x and v is tanh(y); if `cured`, of b * (v *
    sigmoid(v))."""
    g = Sketch()
    _, b = g.split(g.input(1, 8, 1, 16), 1, (4, 4))
    v = g("ACTIVATION_TANH", g.input(1, 4, 1, 16))
    gate = g("ACTIVATION_SIGMOID", v)
    if cured:
        return g.graph(g("ELEMENT_WISE_MULTIPLY", b, g("ELEMENT_WISE_MULTIPLY", v, gate)))
    return g.graph(g("ELEMENT_WISE_MULTIPLY", g("ELEMENT_WISE_MULTIPLY", b, v), gate))


_T: Final = BufferTensorDesc(TensorDataType.FLOAT32, (1, 8, 1, 16))
_WITH_ONE_STRIDE: Final = replace(_T, strides=(1,))


def broken_relu(**members: object) -> Callable[[bool], GraphDesc]:
    """Returns a function that makes the graph of relu(x): with these members of GraphDesc replaced, or unchanged if its
    argument `cured` is true."""

    def made(cured: bool) -> GraphDesc:
        changes: Any = {} if cured else members
        return replace(chain(AnyOperatorDesc.of_tensors("ACTIVATION_RELU", [_T], [_T])), **changes)

    return made


def chain(*operators: GraphNode) -> GraphDesc:
    """Returns the graph of operators with one input, each of which reads the first output of the previous one. The
    first one's inputs and the last one's outputs are the graph's."""
    ends = [node_tensors(node) for node in operators]
    last = len(operators) - 1
    wires = [IntermediateGraphEdgeDesc(i, 0, i + 1, 0) for i in range(last)]
    return GraphDesc(
        ends[0][0], ends[last][1], operators, [InputGraphEdgeDesc(0, 0, 0)], [OutputGraphEdgeDesc(last, 0, 0)], wires
    )


def unary(operator: str, *sizes: int, data_type: TensorDataType = TensorDataType.FLOAT32) -> AnyOperatorDesc:
    """Returns the descriptor of an operator with one packed input and an output of equal size and type."""
    tensor = BufferTensorDesc(data_type, sizes)
    return AnyOperatorDesc.of_tensors(operator, [tensor], [tensor])


def resized(cured: bool) -> GraphDesc:
    """Returns the graph of tanh(relu(x)), in which tanh declares half the size of relu's output; if `cured`, the whole
    size."""
    return chain(unary("ACTIVATION_RELU", 1, 8, 1, 16), unary("ACTIVATION_TANH", 1, 8 if cured else 4, 1, 16))


def retyped(cured: bool) -> GraphDesc:
    """Returns the graph of tanh(relu(x)), in which tanh reads the bytes of FLOAT32 elements as twice as many FLOAT16;
    if `cured`, as FLOAT32."""
    half = unary("ACTIVATION_TANH", 1, 16, 1, 16, data_type=TensorDataType.FLOAT16)
    return chain(unary("ACTIVATION_RELU", 1, 8, 1, 16), unary("ACTIVATION_TANH", 1, 8, 1, 16) if cured else half)


def lacking(cured: bool) -> GraphDesc:
    """Returns the graph of x + y in which no edge feeds the second operand; if `cured`, y does."""
    g = Sketch()
    desc = g.graph(g("ELEMENT_WISE_ADD", g.input(1, 8, 1, 16), g.input(1, 8, 1, 16)))
    return desc if cured else replace(desc, inputs=desc.inputs[:1], input_edges=desc.input_edges[:1])


def unused(cured: bool) -> GraphDesc:
    """Returns the graph of relu(x) and tanh(x) in which tanh(x) is not a graph output; if `cured`, it is one."""
    g = Sketch()
    x = g.input(1, 8, 1, 16)
    ends = [g("ACTIVATION_RELU", x), g("ACTIVATION_TANH", x)]
    return g.graph(*ends[: 2 if cured else 1])


def circular(cured: bool) -> GraphDesc:
    """Returns the graph of tanh(x + y) in which y is the output of the tanh; if `cured`, a graph input."""
    g = Sketch()
    desc = g.graph(g("ACTIVATION_TANH", g("ELEMENT_WISE_ADD", g.input(1, 8, 1, 16), g.input(1, 8, 1, 16))))
    if cured:
        return desc
    wires = (*desc.intermediate_edges, IntermediateGraphEdgeDesc(1, 0, 0, 1))
    return replace(desc, inputs=desc.inputs[:1], input_edges=desc.input_edges[:1], intermediate_edges=wires)


def unobserved(cured: bool) -> GraphDesc:
    """Returns the graph of a Split that reads the output of an operator whose compilation was never recorded; if
    `cured`, of a relu."""
    operator = AnyOperatorDesc.of_tensors("ACTIVATION_RELU" if cured else 53, [_T], [_T])
    return chain(operator, SplitOperatorDesc.from_lengths(_T, 1, (8,)))


EXAMPLES: Final[Mapping[str, Callable[[bool], GraphDesc]]] = {
    "graph/index-range": broken_relu(output_edges=[OutputGraphEdgeDesc(0, 0, 0), OutputGraphEdgeDesc(0, 0, 1)]),
    "graph/edge-size": resized,
    "graph/edge-data-type": retyped,
    "graph/input-unconnected": lacking,
    "graph/output-unconnected": broken_relu(outputs=[_T, _T]),
    "graph/node-unused": unused,
    "graph/edge-twice": broken_relu(
        inputs=[_T, _T], input_edges=[InputGraphEdgeDesc(0, 0, 0), InputGraphEdgeDesc(1, 0, 0)]
    ),
    "graph/cycle": circular,
    "graph/empty": broken_relu(inputs=[], outputs=[], nodes=[], input_edges=[], output_edges=[]),
    "graph/tensor-null": broken_relu(nodes=[AnyOperatorDesc.of_tensors("ACTIVATION_RELU", [None], [_T])]),
    "graph/tensor-short": broken_relu(inputs=[_WITH_ONE_STRIDE]),
    "graph/fused-wrongly": gated,
    "graph/memory-overwritten": joined,
    "graph/place-not-written": repeated,
    "graph/memory-too-small": half,
    "graph/fusion-crashes": chained,
    "graph/five-dimensions": five_dimensions,
    "graph/whole-for-part": joined_in_rows,
    "graph/unknown": unobserved,
}
"""Maps each rule to a function that makes a graph that breaks it, or the cured graph."""
