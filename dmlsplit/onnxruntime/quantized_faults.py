"""Operators for quantized elements that make session creation fail: optimization replaces nodes of the model with
them."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from dmlsplit.descriptors.dims import is_static, numbers
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Node, Value, attribute
from dmlsplit.onnxruntime.node_faults import NodeFault
from dmlsplit.onnxruntime.operator_traits import MATMUL_INTEGER_TO_FLOAT, PACKED_PRODUCT, QUANTIZED
from dmlsplit.onnxruntime.operators import Types, asked, find_operator, is_known, is_on_cpu_too, is_on_dml
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes.patterns import CLIPS
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, scaling_shape
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity

_QUANTIZED: Final = frozenset({*QUANTIZED.values(), MATMUL_INTEGER_TO_FLOAT, PACKED_PRODUCT})
_SOURCES: Final = frozenset({DEQUANTIZE, "MatMulInteger", "QLinearConv", "QLinearMatMul"})
"""The operators of models that become operators for quantized elements, or are such operators."""
_DEQUANTIZED: Final = frozenset({"Conv", "MatMul"})
"""The operators that read quantizations and get a zero point if they lack one."""
_SCALED: Final = {
    "QLinearConv": ((0, 1, 2), (3, 4, 5)),
    "QLinearMatMul": ((0, 1, 2), (3, 4, 5)),
    MATMUL_INTEGER_TO_FLOAT: ((0, 2, 4), (1, 3, 5)),
}
"""For each operator that accepts vectors of scales: the indices of the inputs that are a quantized tensor, its scale
and its zero point."""
_ALONG: Final[Mapping[str, Mapping[int | None, tuple[int, ...]]]] = {
    "QLinearConv": {0: (), 3: (0,), None: ()},
    "QLinearMatMul": {0: (-2,), 3: (-1,), None: (-2,)},
    MATMUL_INTEGER_TO_FLOAT: {0: (-2,), 1: (-1,)},
    "QLinearGlobalAveragePool": {0: (-1,)},
    "QLinearSigmoid": {0: (0,), None: (0,)},
}
"""For each operator, by the index of a quantized tensor that it reads, None for the one that it writes: the dimension
along which its kernel takes a vector of scales, whatever the axis; none if it takes no vector of several. Observed."""
_OF_FIRST_SIZE: Final = frozenset({"QLinearSigmoid"})
"""The operators that do not take a vector of one element either, unless the dimension is 1."""
_MOST_RANK_OF_POOL: Final = 4
"""With more dimensions, a global pool takes other vectors of scales; which ones is not known."""
_PACKED_WITHOUT_BIAS: Final = 4
"""The inputs of a product with packed weights that has no bias."""
_QUANTIZED_WITH: Final = 3
"""The inputs for each quantized tensor: itself, its scale and its zero point."""
_SCALARS_ALONE: Final = frozenset({"QLinearAdd", "QLinearAveragePool"})
"""The operators for quantized elements whose scales must not be vectors, not even of one element."""
_TYPES: Final = frozenset({"FLOAT", "INT8", "UINT8", "INT32"})
_BYTES: Final = frozenset({"INT8", "UINT8"})
"""The only types that operators of com.microsoft for quantized elements take."""
_LARGEST_SCALE: Final = 2.0**32
"""The largest scale with which no sum or product of elements overflows FLOAT."""


class QuantizedFaultKind(enum.Enum):
    """What is wrong with an operator for quantized elements."""

    VECTORS = "its scales and zero points are vectors"
    CLIP = "it also replaces a Relu or Clip"
    KERNEL = "it has no kernel"
    COUNTS = "the numbers of its zero points and scales differ"
    ALONG = "its kernel applies its scales along another dimension"
    BIAS = "its kernel takes no bias"


MADE_LATE: Final = frozenset({QuantizedFaultKind.COUNTS, QuantizedFaultKind.ALONG, QuantizedFaultKind.BIAS})
"""The faults for which the kernel of the node cannot be created."""


class QuantizedCure(enum.Enum):
    """The remedy, as an imperative; the model computes the same, bit for bit."""

    REMOVE_CLIP = "remove the Relu or Clip"
    ZERO_POINTS = "give the quantized tensor as many zero points as scales"
    MAX_BEHIND = "insert Max(t, t) after the node, which is then computed in floating point"


@entity
class QuantizedFault(NodeFault):
    """A node of the model that is replaced with an operator for quantized elements that makes session creation fail."""

    kind: QuantizedFaultKind

    @property
    def at_run(self) -> bool:
        """True if the session is created, and the first Run fails: the kernel is created then, since a size is
        unknown."""
        return self.kind in MADE_LATE and self.graph.has_open_sizes(self.node)

    @property
    def clip(self) -> Node | None:
        """The Relu or Clip of the model behind the node that the operator also replaces; None if there is none."""
        behind = self.graph.nodes[self.node.absorbed[-1]] if self.node.absorbed else None
        return behind if behind is not None and behind.op_type in CLIPS else None

    @property
    def why(self) -> str:
        """What is wrong, as a sentence."""
        op_type, clip, named = self.node.op_type, self.clip, self.node.proto.name
        if self.kind is QuantizedFaultKind.KERNEL:
            where = "the CPU" if self.graph.on_dml(self.node.index) is False else "DirectML"
            if op_type == self.graph.nodes[self.node.index].op_type:
                read = printable(self.node.inputs[0].known_type, 60)
                return f"{self.path} has to copy the elements of {read}, but {where} has no kernel for that"
            article = "an" if _is_copy(self.graph, self.node) else "a"
            return f"{article} {op_type} replaces {self.path}, but {where} has no kernel for it"
        if self.kind is QuantizedFaultKind.COUNTS:
            (name, scales, zero_points), *_ = uneven(self.graph, self.node)
            own = op_type == self.graph.nodes[self.node.index].op_type
            taken = (
                f"{self.path} has a different number"
                if own
                else f"a {op_type} replaces {self.path}, with a different number"
            )
            return (
                f"{taken} of zero points than of scales, and its kernel cannot be created: {zero_points} and {scales} "
                f"of {printable(name, 60)}"
            )
        if self.kind is QuantizedFaultKind.BIAS:
            return f"a {op_type} takes the place of {self.path}, whose bias DirectML's kernel does not take"
        if self.kind is QuantizedFaultKind.ALONG:
            (name, scales, takes), *_ = misplaced(self.graph, self.node)
            own = op_type == self.graph.nodes[self.node.index].op_type
            taken = self.path if own else f"a {op_type} replaces {self.path}, which"
            return (
                f"{taken} has a vector of {scales} scales of {printable(name, 60)}, and its kernel cannot be created: "
                f"it needs {takes} of them, whatever their axis"
            )
        if self.kind is QuantizedFaultKind.VECTORS or clip is None:
            said = "whose scales and zero points must be scalars, not vectors"
            return f"a {op_type} replaces {self.path}, {said}"
        left = "two nodes temporarily have the same name" if named else "is left without its inputs"
        return f"a {op_type} replaces {self.path} and the {clip.op_type} after it, which changes nothing, and {left}"


def quantized_faults(graph: SessionGraph) -> Iterator[QuantizedFault]:
    """Yields the operators for quantized elements in a graph that make session creation fail, in order."""
    if not any(node.op_type in _SOURCES for node in graph.nodes):
        return
    for node in optimized(graph).nodes:
        if node.op_type in _QUANTIZED or _is_left(graph, node) or _is_copy(graph, node):
            yield from (QuantizedFault(graph, node, kind) for kind in _kinds(graph, node))


def first_quantized_faults(graph: SessionGraph) -> Iterable[QuantizedFault]:
    """Returns the first fault of each node in a graph."""
    return {found.index: found for found in reversed(list(quantized_faults(graph)))}.values()


def _kinds(graph: SessionGraph, node: Node) -> Iterator[QuantizedFaultKind]:
    """Yields the faults of a node of an optimized graph, an operator for quantized elements, that make session creation
    fail."""
    if node.op_type == PACKED_PRODUCT:
        if len(node.inputs) > _PACKED_WITHOUT_BIAS and graph.on_dml(node.index):
            yield QuantizedFaultKind.BIAS
        return
    if _is_left(graph, node):
        if not _has_kernel(graph, node, _types_left(graph, node)):
            yield QuantizedFaultKind.KERNEL
        return
    if node.op_type == graph.nodes[node.index].op_type:
        yield from _made_late(graph, node)
        return
    count = (len(node.inputs) - 1) // _QUANTIZED_WITH
    scaling = [value for i, value in enumerate(node.inputs) if i >= count * _QUANTIZED_WITH or i % _QUANTIZED_WITH]
    if node.op_type in _SCALARS_ALONE and any(
        scaling_shape(optimized(graph), value) for value in scaling if value.name
    ):
        yield QuantizedFaultKind.VECTORS
    elif node.absorbed and graph.nodes[node.absorbed[-1]].op_type in CLIPS:
        yield QuantizedFaultKind.CLIP
    if not _is_made(graph, node):
        yield QuantizedFaultKind.KERNEL
    else:
        yield from _made_late(graph, node)


def _made_late(graph: SessionGraph, node: Node) -> Iterator[QuantizedFaultKind]:
    """Yields the faults for which DirectML's kernel of a node cannot be made."""
    if not graph.on_dml(node.index):
        return
    if any(uneven(graph, node)):
        yield QuantizedFaultKind.COUNTS
    elif any(misplaced(graph, node)):
        yield QuantizedFaultKind.ALONG


def _is_left(graph: SessionGraph, node: Node) -> bool:
    """True for a node of the model that reads quantized elements in place of those that it reads in the file."""
    is_moved = node.op_type in graph.traits.quantized.moved and node.op_type == graph.nodes[node.index].op_type
    if not node.inputs or not is_moved:
        return False
    kind, given = graph.data_type(node.inputs[0].known_type), graph.types_of_tensors(node.index)[0]
    return kind is not None and given[0] is not None and kind.lower() != given[0]


def _is_copy(graph: SessionGraph, node: Node) -> bool:
    """True for the Identity that is created in place of a DequantizeLinear and a QuantizeLinear between an input and an
    output of the graph; it stays on the provider of the DequantizeLinear."""
    return node.op_type == "Identity" and graph.nodes[node.index].op_type == DEQUANTIZE


def _types_left(graph: SessionGraph, node: Node) -> tuple[Types, Types]:
    """Returns the types of the inputs and outputs of a node that is left with quantized elements."""
    inputs, outputs = graph.types_of_tensors(node.index)
    kind = (graph.data_type(node.inputs[0].known_type) or "").lower()
    return (kind, *inputs[1:]), outputs if node.op_type == "ArgMax" else (kind,) * len(outputs)


def _has_kernel(graph: SessionGraph, node: Node, types: tuple[Types, Types]) -> bool:
    """True if the node's provider has a kernel for it with these types of its inputs and outputs; also if that is not
    known, unless no version of the operator takes such types."""
    cell = asked(node.proto, *types, graph.opset, graph.runtime)
    if cell is None:
        operator = graph.operator(node.index)
        return operator is None or operator.takes(operator.types(*types))
    return is_on_cpu_too(cell) if graph.on_dml(node.index) is False else is_on_dml(cell)


def _is_made(graph: SessionGraph, node: Node) -> bool:
    """True if there is a kernel for an operator for quantized elements that replaces a node of the model; also if that
    is not known, unless the operator does not take such types."""
    domain = "" if is_known("", node.op_type) else "com.microsoft"
    operator = find_operator(domain, node.op_type, graph.opset if not domain else 1, graph.runtime)
    read = node.inputs[: 2 * _QUANTIZED_WITH] if node.op_type in _SCALED else node.inputs[:1]
    unsigned = optimized(graph).unsigned
    known = ["UINT8" if v in unsigned else graph.data_type(v.known_type) if v.name else "" for v in read]
    types = tuple([None if each is None else each.lower() for each in known])
    if operator is None or None in types:
        return True
    cell = operator.ask(operator.types(types, ()))
    if cell is None:
        return known[0] in _BYTES
    return is_on_cpu_too(cell) if graph.on_dml(node.index) is False else is_on_dml(cell)


def uneven(graph: SessionGraph, node: Node) -> Iterator[tuple[str, int, int]]:
    """Yields the quantized tensors that an operator reads with different numbers of scales and of zero points, each
    with both numbers. A missing zero point counts as one."""
    found = [*node.inputs, *[Value("")] * 6]
    for tensor, scale, zero_point in _SCALED.get(node.op_type, ()):
        sizes = graph.shape(found[scale].known)
        zeros = graph.shape(found[zero_point].known) if found[zero_point].name else ()
        if not found[zero_point].name and graph.nodes[node.index].op_type not in _DEQUANTIZED:
            continue
        if sizes is not None and zeros is not None and is_static(sizes) and is_static(zeros):
            counts = math.prod(numbers(sizes)), math.prod(numbers(zeros))
            if counts[0] != counts[1]:
                yield found[tensor].name, *counts


def misplaced(graph: SessionGraph, node: Node) -> Iterator[tuple[str, int, str]]:
    """Yields the quantized tensors of an operator whose vector of scales its kernel does not take, each with the number
    of scales and those that the kernel takes."""
    scaled = {tensor: scale for tensor, scale, _ in _SCALED.get(node.op_type, ((0, 1, 2),))}
    count = max(scaled) // _QUANTIZED_WITH + 1
    if node.op_type == "QLinearConv" and node.op_type != graph.nodes[node.index].op_type:
        count = (len(node.inputs) - 1) // _QUANTIZED_WITH  # the bias is in front of the result's scale
    for tensor, dimensions in _ALONG.get(node.op_type, {}).items():
        place = count * _QUANTIZED_WITH if tensor is None else scaled[tensor]
        value = node.outputs[0] if tensor is None else node.inputs[tensor]
        scales = graph.shape(node.inputs[place].known) if place < len(node.inputs) else None
        whole = graph.shape(value.known)
        if scales is None or len(scales) != 1 or whole is None or not is_static((*scales, *whole)):
            continue
        if any(not -len(whole) <= each < len(whole) for each in dimensions):
            continue
        if node.op_type == "QLinearGlobalAveragePool" and len(whole) > _MOST_RANK_OF_POOL:
            continue
        sizes = {*(() if node.op_type in _OF_FIRST_SIZE else (1,)), *(whole[each] for each in dimensions)}
        if scales[0] not in sizes:
            yield value.known, numbers(scales)[0], " or ".join(map(str, sorted(numbers(tuple(sizes)))))


def cure_of(fault: QuantizedFault) -> QuantizedCure | None:
    """Returns the first cure of a fault; None if none is known."""
    if _is_removable(fault):
        return QuantizedCure.REMOVE_CLIP
    if fault.kind is QuantizedFaultKind.COUNTS and zero_points_of(fault) is not None:
        return QuantizedCure.ZERO_POINTS
    graph, node = fault.graph, fault.node
    is_made = node.op_type in QUANTIZED.values() and graph.nodes[node.index].op_type in QUANTIZED
    # in front of a Max, a product is a MatMulIntegerToFloat, which takes scales along the same dimensions
    stays = fault.kind is QuantizedFaultKind.ALONG and node.op_type == "QLinearMatMul"
    return QuantizedCure.MAX_BEHIND if is_made and not stays else None


def zero_points_of(fault: QuantizedFault) -> Mapping[str, Array] | None:
    """Returns the zero points that a fault's quantized tensors need, one for each scale, by the names of the tensors;
    None if not all are known. Each tensor's present zero point is repeated."""
    graph, node = fault.graph, fault.node
    found = {}
    if node.op_type == graph.nodes[node.index].op_type:
        return None
    for name, scales, zero_points in uneven(graph, node):
        tensor = next(at for at in _SCALED[node.op_type] if node.inputs[at[0]].name == name)
        given, kind = node.inputs[tensor[2]].name, graph.data_type(name)
        value = graph.elements(given) if given else np.zeros((), np.uint8)
        if zero_points != 1 or value is None or kind not in ("INT8", "UINT8"):
            return None
        found[name] = np.full(scales, value.item(), kind.lower())
    return found


def _is_removable(fault: QuantizedFault) -> bool:
    """True if the model without the Relu or Clip of the fault computes the same, bit for bit: its bounds are in order,
    all scales are positive, and so small that no element is infinite or NaN."""
    graph, clip = fault.graph, fault.clip
    if clip is None or fault.kind is not QuantizedFaultKind.CLIP:
        return False
    types = {value: graph.data_type(value.known_type) for value in fault.node.inputs}
    scales = [graph.elements(value.name) for value, kind in types.items() if kind == "FLOAT"]
    if not _TYPES.issuperset(types.values()) or not all(each is not None and _is_scale(each) for each in scales):
        return False
    bounds = [graph.elements(value.name) for value in clip.inputs[1:]]
    numbers = [float(each.item()) for each in bounds if each is not None]
    numbers += [found.f for name in ("min", "max") if (found := attribute(clip, name)) is not None]
    return not np.isnan(numbers).any() and numbers == sorted(numbers)


def _is_scale(array: Array) -> bool:
    return bool(((array > 0) & (array <= _LARGEST_SCALE)).all())
