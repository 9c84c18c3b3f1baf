"""Nodes between DequantizeLinears and QuantizeLinears read and write quantized elements directly.

Source: qdq_selector_action_transformer.cc, qdq_selectors.cc and qdq_final_cleanup.cc of ONNX Runtime: a node that moves
elements loses the pair around it; one that computes becomes an operator for quantized elements. The provider was chosen
before that, for the original types. Rules for the CPU alone are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dmlsplit.models.graph import Doubt, Graph, Node, Value, attribute
from dmlsplit.models.schemas import since
from dmlsplit.onnxruntime.operator_traits import MATMUL_INTEGER_TO_FLOAT, PACKED_PRODUCT, QUANTIZED, RESHAPED_GEMM
from dmlsplit.onnxruntime.passes.patterns import CLIPS, keeps_range
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE, is_scalar

_BYTES: Final = frozenset({"INT8", "UINT8"})
_HALF_BYTES: Final = frozenset({"INT4", "UINT4"})
"""The types that only products by weights read directly. All types that are neither these nor wide are let through,
even if there is no kernel."""
_WIDE: Final = frozenset({"INT16", "UINT16"})
_NOT_WIDE: Final = frozenset({"ArgMax", "MaxPool", "ReduceMax", "ReduceMin", "Resize"})
"""The operators that do not move 16-bit elements."""
_ORDERED: Final = frozenset({"MaxPool", "ReduceMax", "ReduceMin"})
"""The operators that move quantized elements only if the scale is positive."""
_WITHOUT_SIGN: Final = frozenset({"Conv", "MatMul"})
"""The operators whose quantized first input must not be INT8; the type of the second may differ."""
_FIRST_POOL: Final = 12
"""The only version of MaxPool that moves quantized elements, unless the ONNX Runtime version allows newer ones."""
_TOLERANCE: Final = 0.01
_LEAST_DIFFERENCE: Final = 1e-7
"""The tolerances, relative and absolute, between the scale of a bias and the product of the other scales. Observed."""
_PRODUCTS: Final = frozenset({"Gemm", "MatMul", RESHAPED_GEMM})
"""The products that may take their weights as they are."""
_PACKED_FIRST: Final = frozenset({"MatMul"})
"""Those that do up to 1.24."""
_MATRIX: Final = 2
_LEAST_BLOCK: Final = 16
_SCALED: Final = 3
"""The number of inputs of a quantization with a zero point."""


class _Group(NamedTuple):
    """A node with the DequantizeLinears that it reads, the QuantizeLinears that read it, and a Relu or Clip in front of
    these, if it has no effect."""

    before: Sequence[Node]
    node: Node
    clip: Node | None
    after: Sequence[Node]
    read: Sequence[str | None]
    """The types of the quantized elements that the node reads."""
    written: Sequence[str | None]
    """The types of the quantized elements that the node writes."""


def qdq_selector_action_transformer(graph: Graph) -> None:
    """Merges or replaces, in place, the nodes of groups, then removes quantizations that cancel each other."""
    quantized = graph.facts.traits.quantized
    graph.unsigned = _made_unsigned(graph)
    quantizations = [node for node in graph.nodes if node.op_type in (DEQUANTIZE, QUANTIZE)]
    packed = _packed(graph)
    for node in graph.nodes:
        if node.op_type not in quantized.moved | quantized.computed | packed:
            continue
        group = _group(graph, node)
        if group is None:
            continue
        if node.op_type in quantized.moved:
            if _moves(graph, group):
                _merge(graph, group)
        elif node.op_type in quantized.computed and _computes(graph, group):
            _replace(graph, group)
        elif packed and _has_packed_weights(graph, group, quantizations):
            _pack(graph, group)
    for node in graph.nodes:
        _clean_up(graph, node)


def _made_unsigned(graph: Graph) -> set[Value]:
    """Returns the INT8 tensors between a QuantizeLinear and a DequantizeLinear on the CPU: they become UINT8. Source:
    qdq_s8_to_u8.cc of ONNX Runtime."""
    found = set()
    for node in graph.nodes:
        after = node.only_reader if node.op_type == QUANTIZE else None
        pair = after is not None and after.op_type == DEQUANTIZE and graph.facts.on_dml(after.index) is False
        scaled = len(node.inputs) == _SCALED and graph.facts.data_type(node.inputs[-1].known_type) == "INT8"
        if pair and scaled and graph.facts.on_dml(node.index) is False:
            found.add(node.outputs[0])
    return found


def _group(graph: Graph, node: Node) -> _Group | None:
    """Returns the group of a node; None if there is none."""

    def types(values: Iterable[Value]) -> list[str | None]:
        return ["UINT8" if each in graph.unsigned else graph.facts.data_type(each.known_type) for each in values]

    producers = (value.producer for value in node.inputs)
    before = [each for each in producers if each is not None and each.op_type == DEQUANTIZE]
    if not before:
        return None
    clip = node.only_reader if graph.facts.traits.quantized.behind_clips else None
    if clip is not None and (clip.op_type not in CLIPS or clip.only_reader is None):
        clip = None
    last = node if clip is None else clip
    after = [each for value in last.outputs for each in value.readers if each.op_type == QUANTIZE]
    if clip is not None and not (len(after) == 1 and keeps_range(graph, clip, after[0], bounded=True)):
        return None
    read, written = types(each.inputs[0] for each in before), types(each.outputs[0] for each in after)
    return _Group(before, node, clip, after, read, written)


def _has_all(group: _Group) -> bool:
    """True if each output of the node is read by one QuantizeLinear and by nothing else."""
    _, node, clip, after, *_ = group
    outputs = [value for value in (node if clip is None else clip).outputs if value.name]
    readers = [each for value in outputs for each in value.readers]
    ends = any(value.is_output for value in (*outputs, *node.outputs))
    return len(after) == len(outputs) == len(readers) and not ends


def _moves(graph: Graph, group: _Group) -> bool:
    """True if the node can move the quantized elements."""
    (first, *more), node = group.before, group.node
    if more or group.clip is not None or len(first.inputs) < _SCALED:
        return False
    types = {*group.read, *(() if node.op_type == "ArgMax" else group.written)}
    refused = _HALF_BYTES | _WIDE if node.op_type in _NOT_WIDE else _HALF_BYTES
    if len(types) != 1 or not types.isdisjoint({*refused, None}):
        return False
    if node.op_type == "ArgMax":
        return all(is_scalar(graph, value) for value in first.inputs[1:])
    if "INT32" in types:  # a QuantizeLinear to INT32 was inserted: the session fails before this pass
        return False
    if not _has_all(group) or not all(_are_pair(graph, first, each) for each in group.after):
        return False
    if any(Doubt.TRANSPOSED in each.doubts and each.only_reader is None for each in group.after):
        return False  # the Transpose was moved behind the pair, which stays if several nodes read it
    if node.op_type not in _ORDERED:
        return True
    first_pool_alone = graph.facts.traits.quantized.propagated["MaxPool"] is not None
    version = (since("MaxPool", graph.facts.opset) or 0) if node.op_type == "MaxPool" else _FIRST_POOL
    if version < _FIRST_POOL or (first_pool_alone and version > _FIRST_POOL):
        return False
    scale = graph.facts.elements(first.inputs[1].name)
    return scale is not None and scale.item() > 0


def _are_pair(graph: Graph, before: Node, after: Node) -> bool:
    """True if both quantizations have constant scales and zero points of one element, and these are equal."""
    pairs = zip(before.inputs[1:], after.inputs[1:], strict=False)
    return len(before.inputs) == len(after.inputs) == _SCALED and all(_are_equal(graph, *pair) for pair in pairs)


def _are_equal(graph: Graph, first: Value, second: Value) -> bool:
    """True for constants of one element that are equal."""
    found = [graph.facts.elements(value.name) for value in (first, second)]
    one, other = found
    if one is None or other is None or one.shape not in ((), (1,)) or other.shape not in ((), (1,)):
        return False
    return one.dtype == other.dtype and bool(np.array_equal(one.reshape(-1), other.reshape(-1)))


def _computes(graph: Graph, group: _Group) -> bool:
    """True if an operator for quantized elements replaces the node."""
    before, node, after = group.before, group.node, group.after
    if len(before) != sum(bool(value.name) for value in node.inputs):
        return False
    read, written = list(group.read), group.written
    if node.op_type == "Conv" and len(read) == _SCALED:
        fits = not graph.facts.traits.quantized.checks_biases or _has_fitting_bias(graph, group)
        if read.pop() != "INT32" or not fits:
            return False
    if node.op_type in _WITHOUT_SIGN and read[0] == "INT8":
        return False
    if not _HALF_BYTES.union(_WIDE, {None}).isdisjoint((*read, *written)):
        return False
    if node.op_type == "MatMul" and not after:
        return True
    alike = {*read[:1], *written} if node.op_type in _WITHOUT_SIGN else {*read, *written}
    return _has_all(group) and len(alike) == 1


def _has_fitting_bias(graph: Graph, group: _Group) -> bool:
    """True if the scale of a Conv's bias is known to be about the product of the other scales."""
    found = [graph.facts.elements(each.inputs[1].name) for each in group.before]
    known = [each.astype(np.float32).reshape(-1) for each in found if each is not None and each.dtype.kind == "f"]
    if len(known) < len(found) or known[0].size != 1 or known[2].size not in (1, known[1].size):
        return False
    return bool(np.allclose(known[2], known[0] * known[1], rtol=_TOLERANCE, atol=_LEAST_DIFFERENCE))


def _has_packed_weights(graph: Graph, group: _Group, quantizations: list[Node]) -> bool:
    """True for a product by constant weights with one scale for each block of at least 16 rows; from 1.30 on also by
    8-bit weights with one scale, or one for each column, if the graph has no other quantization than that of the bias
    (observed). `quantizations` lists all quantizations; those no longer in the graph are removed from its end."""
    node, before = group.node, {each.outputs[0]: each for each in group.before}
    weighted = before.pop(node.inputs[1], None) if node.op_type in _packed(graph) else None
    if weighted is None or not before.keys() <= {*node.inputs[2:]} or group.clip is not None:
        return False
    weights, *scales = weighted.inputs
    if not all(graph.facts.is_constant(value.name) for value in weighted.inputs):
        return False
    quantized = graph.facts.traits.quantized
    packed = _HALF_BYTES | (_BYTES if quantized.packs_weights else frozenset())
    shape, types = graph.facts.shape(weights.known), graph.facts.data_type(weights.known_type)
    if shape is None or len(shape) != _MATRIX or types not in packed or not _is_plain(graph, node, shape[1]):
        return False
    axis, block = [None if (each := attribute(weighted, name)) is None else each.i for name in ("axis", "block_size")]
    if block:
        return axis == 0 and block >= _LEAST_BLOCK and block & (block - 1) == 0
    if types in _HALF_BYTES or _has_others(graph, quantizations, group.before):
        return False
    by_column = shape[1:] if axis in (None, 1) else ()
    given = {graph.facts.shape(value.known) for value in scales}
    return given in ({()}, {by_column})


def _packed(graph: Graph) -> frozenset[str]:
    """Returns the products that take their weights as they are."""
    quantized = graph.facts.traits.quantized
    return _PRODUCTS if quantized.packs_weights else _PACKED_FIRST if quantized.packs_half_bytes else frozenset()


def _is_plain(graph: Graph, node: Node, columns: object) -> bool:
    """True for a product that is not scaled or transposed, with a bias for each of so many columns or none."""
    bias = next((value for value in node.inputs[2:] if value.name), None)
    numbers = {"alpha": 1.0, "transA": 0, "transB": 0} | ({} if bias is None else {"beta": 1.0})
    for name, number in numbers.items():
        given = attribute(node, name)
        if node.op_type == "Gemm" and given is not None and (given.f or given.i) != number:
            return False
    return bias is None or graph.facts.shape(bias.known) == (columns,)


def _pack(graph: Graph, group: _Group) -> None:
    """Replaces a product with the operator that takes its weights as they are, in place; its bias, if there is one, is
    the last input."""
    node = group.node
    weighted = next(each for each in group.before if each.outputs[0] is node.inputs[1])
    bias = [value for value in node.inputs[2:] if value.name]
    graph.fuse([node], PACKED_PRODUCT, [node.inputs[0], *_with_zero_point(weighted.inputs), *bias])
    graph.remove(weighted)


def _has_others(graph: Graph, nodes: list[Node], own: Sequence[Node]) -> bool:
    """True if more of the nodes than `own` are still in the graph; visited nodes that are not are removed from the
    list."""
    found: list[Node] = []
    while nodes and len(found) <= len(own):
        last = nodes.pop()
        if last in graph:
            found.append(last)
    nodes += reversed(found)
    return any(each not in own for each in found)


def _merge(graph: Graph, group: _Group) -> None:
    """Removes the quantizations around the node, in place; those behind an ArgMax stay."""
    (first,), node = group.before, group.node
    graph.read(node, [first.inputs[0], *node.inputs[1:]])
    if node.op_type != "ArgMax":
        outputs = [each.outputs[0] for value in node.outputs for each in value.readers]
        for each in group.after:
            graph.remove(each)
        graph.write(node, outputs)
    if not first.is_used:
        graph.remove(first)


def _replace(graph: Graph, group: _Group) -> None:
    """Replaces the group, in place, with one operator at the position of the node."""
    node, after = group.node, group.after
    given = [_with_zero_point(each.inputs) for each in group.before]
    if after:
        inputs = [value for values in given for value in values]
    else:  # the factors of a MatMul, their scales, their zero points
        inputs = [value for values in zip(*given, strict=True) for value in values]
    outputs = node.outputs
    for each in after:
        inputs += each.inputs[1:]
        outputs = each.outputs
        graph.remove(each)
    if group.clip is not None:
        graph.remove(group.clip)
        node.absorbed += group.clip.origins
    graph.write(node, outputs)
    graph.fuse([node], QUANTIZED[node.op_type] if after else MATMUL_INTEGER_TO_FLOAT, inputs)
    for each in group.before:
        if each in graph and not each.is_used:
            graph.remove(each)


def _with_zero_point(inputs: Sequence[Value]) -> list[Value]:
    """Returns the inputs of a quantization; a missing zero point becomes an omitted input."""
    return [*inputs, Value("")][:_SCALED]


def _clean_up(graph: Graph, node: Node) -> None:
    """Removes, in place, a DequantizeLinear and the QuantizeLinear behind it if the QuantizeLinear's output equals the
    DequantizeLinear's input. Between an input and an output of the graph an Identity remains."""
    after = node.only_reader if node.op_type == DEQUANTIZE else None
    if after is None or after.op_type != QUANTIZE or _uses(after.outputs[0]) != 1 or not _are_pair(graph, node, after):
        return
    source, output = node.inputs[0], after.outputs[0]
    if graph.facts.data_type(source.known_type) != graph.facts.data_type(output.known_type):
        return
    graph.remove(node)
    graph.remove(after)
    if not output.is_output:
        graph.redirect_all({output: source})
    elif source.producer is None or source.is_output:
        graph.write(graph.insert(node, "Identity", [source]), [output])
    else:
        graph.unresolved |= dict.fromkeys(source.readers, source.name)
        values = [output if value is source else value for value in source.producer.outputs]
        graph.write(source.producer, values)


def _uses(value: Value) -> int:
    """Returns how often a tensor is read, plus 1 if it is a graph output. A DequantizeLinear counts once for each use
    of its output."""
    found = int(value.is_output)
    for reader in value.readers:
        times = [_uses(each) for each in reader.outputs] if reader.op_type == DEQUANTIZE else [1]
        found += reader.inputs.count(value) * sum(times)
    return found
