"""Quantization is moved over nodes that move elements: DequantizeLinears downstream, QuantizeLinears upstream.

Source: qdq_propagation.cc of ONNX Runtime: a pair of QuantizeLinear and DequantizeLinear is inserted behind or in front
of such a node, which is then between two pairs and runs on quantized elements. The provider was chosen before that, for
the original types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.dims import Shape
from dmlsplit.models.graph import Doubt, Graph, Node, Value, attribute
from dmlsplit.models.schemas import since
from dmlsplit.onnxruntime.passes.transposed_tensors import permutation, set_attribute

DEQUANTIZE: Final = "DequantizeLinear"
QUANTIZE: Final = "QuantizeLinear"
_SCALED: Final = 3
"""The number of inputs of a quantization with a zero point."""
_AXIS: Final = 1
"""The axis of a quantization without the attribute."""
_OLDEST: Final = {"MaxPool": 12, "Reshape": 5}
"""The oldest versions of operators over which quantization is moved, if not the first."""


def qdq_propagation(graph: Graph) -> None:
    """Inserts the pairs, in place: first in front of nodes that a QuantizeLinear reads, then behind nodes that read a
    DequantizeLinear."""
    for node in graph.nodes:
        if node.op_type == QUANTIZE and _is_scalar(graph, node):
            _move_back(graph, node)
    instead: dict[Node, dict[Value, list[Value]]] = {}
    keeps = graph.facts.traits.quantized.keeps_constants
    for node in graph.nodes:
        if node.op_type != DEQUANTIZE or not _is_scalar(graph, node):
            continue
        if not (keeps and _dequantizes_constant(graph, node)):
            _move_on(graph, node, instead)
    for reader, values in instead.items():
        _redirect(graph, reader, values)
    for node in graph.nodes:
        _fold_between(graph, node)
    for node in graph.nodes:
        _fold_transpose(graph, node)


def _fold_between(graph: Graph, node: Node) -> None:
    """Replaces a DequantizeLinear of a constant, the node that alone reads it, and the inserted QuantizeLinear that
    alone reads that, with a constant, in place: ONNX Runtime folds nodes of one input between quantizations."""
    mover = node.only_reader if _dequantizes_constant(graph, node) and node in graph else None
    after = mover.only_reader if mover is not None and len(mover.inputs) == len(mover.outputs) == 1 else None
    if mover is None or after is None or not (after.op_type == QUANTIZE and after.is_inserted):
        return
    result = after.outputs[0]
    made = _constant(graph, node, mover, graph.facts.shape(mover.outputs[0].known))
    behind = list(result.readers)
    for each in behind:
        graph.redirect(each, {result: made})
    for each in (after, mover, node):
        graph.folded.add(each.index)
        graph.remove(each)
    for each in behind:
        _fold_between(graph, each)


def _fold_transpose(graph: Graph, node: Node) -> None:
    """Makes a DequantizeLinear of a constant read that constant transposed, in place, instead of the Transpose that
    alone reads its result and that one node reads. Source: onnx_transpose_optimization.cc of ONNX Runtime."""
    mover = node.only_reader if _dequantizes_constant(graph, node) else None
    if mover is None or mover.op_type != "Transpose" or not _has_one_use(mover.outputs[0]):
        return
    shape, is_scaled = graph.facts.shape(node.inputs[0].known), _is_scalar(graph, node)
    if not is_scaled and attribute(mover, "perm") is None:
        graph.failing[mover] = "is moved over a DequantizeLinear of several scales, but has no attribute perm"
        return
    if len(node.inputs) < _SCALED:
        is_signed = graph.facts.data_type(node.inputs[0].known_type) == "INT8"
        if is_signed and not is_scaled and not graph.facts.traits.quantized.keeps_constants:
            graph.failing[mover] = "is moved over a DequantizeLinear of INT8 without a zero point, which fails"
        return
    perm = permutation(mover, len(shape or ()))
    if shape is None:
        return
    if len(perm) != len(shape):
        return
    given = attribute(node, "axis")
    axis = (_AXIS if given is None else given.i) % max(len(shape), 1)
    made = _constant(graph, node, mover, tuple([shape[i] for i in perm]))
    graph.read(node, [made, *node.inputs[1:]])
    if not is_scaled:
        set_attribute(node, "axis", perm.index(axis))
    outputs = mover.outputs
    graph.folded.add(mover.index)
    graph.remove(mover)
    graph.write(node, outputs)


def _has_one_use(value: Value) -> bool:
    """True if one input reads a tensor, or if it is a graph output that no node reads."""
    return sum([each.inputs.count(value) + each.captured.count(value) for each in value.readers]) + value.is_output == 1


def _dequantizes_constant(graph: Graph, node: Node) -> bool:
    if node.op_type != DEQUANTIZE:
        return False
    return all(graph.facts.is_constant(value.name) for value in node.inputs if value.name)


def _constant(graph: Graph, node: Node, mover: Node, shape: Shape | None) -> Value:
    """Returns a constant that a DequantizeLinear can read in place of its own, after `mover` has moved its elements."""
    made = Value(f"{mover.name}/folded")
    graph.facts.note(made.name, graph.facts.data_type(node.inputs[0].known_type), shape, True, None)
    graph.constants.add(made.name)
    return made


def is_moved_over(graph: Graph, node: Node) -> bool:
    """True for a node over which a DequantizeLinear or QuantizeLinear is moved."""
    newest = graph.facts.traits.quantized.propagated
    if node.op_type not in newest:
        return False
    version = since(node.op_type, graph.facts.opset) or 0
    return _OLDEST.get(node.op_type, 1) <= version <= (newest[node.op_type] or version)


def _move_back(graph: Graph, node: Node) -> None:
    """Puts a pair with the scale of the QuantizeLinear `node` in front of each node before it that moves elements. A
    Transpose that was moved over the QuantizeLinear is no longer before it."""
    mover = None if Doubt.TRANSPOSED in node.doubts else node.inputs[0].producer
    while mover is not None and _is_read_once(mover) and is_moved_over(graph, mover):
        source = mover.inputs[0]
        before = source.producer
        if before is not None and (before.op_type == DEQUANTIZE or not _is_read_once(before)):
            return
        if before is None and graph.facts.is_constant(source.name):
            return
        pair = _dequantized(graph, _quantized(graph, source, node, node.outputs[0]), node)
        graph.read(mover, [pair.outputs[0], *mover.inputs[1:]])
        mover = before


def _redirect(graph: Graph, reader: Node, instead: Mapping[Value, Sequence[Value]]) -> None:
    """Replaces the inputs of a node that are keys of `instead` by the values there: each time that it reads such an
    input by the next one, what graphs in it read by the first."""
    left = {value: iter(values) for value, values in instead.items()}
    inputs = [next(left[value]) if value in left else value for value in reader.inputs]
    graph.redirect(reader, {value: values[0] for value, values in instead.items()})
    graph.read(reader, inputs)


def _move_on(graph: Graph, node: Node, instead: dict[Node, dict[Value, list[Value]]]) -> None:
    """Puts a pair with the scale of the DequantizeLinear `node` behind each node that moves its elements and that no
    QuantizeLinear reads. New inputs of the readers are collected in `instead`, so that a node with many inputs is
    changed only once."""
    first = node.only_reader
    todo = [] if first is None else [first]
    while todo:
        mover = todo.pop()
        output = mover.outputs[0]
        readers = sorted(output.readers, key=lambda each: each.number)
        several = len(readers) + output.is_output > 1
        if not is_moved_over(graph, mover) or (several and not graph.facts.traits.quantized.to_several):
            continue
        if not (readers or output.is_output) or any(reader.op_type == QUANTIZE for reader in readers):
            continue
        given = Value(f"{output.name}/moved", like=output)
        graph.write(mover, [given])
        first = _quantized(graph, given, node, node.inputs[0])
        for reader in readers:
            times = max(reader.inputs.count(output), 1)
            behind = [_dequantized(graph, first, node).outputs[0] for _ in range(times)]
            if is_moved_over(graph, reader):  # few inputs, may be visited again
                _redirect(graph, reader, {output: behind})
            else:
                instead.setdefault(reader, {})[output] = behind
        if output.is_output:
            graph.write(_dequantized(graph, first, node), [output])
        todo += readers


def _quantized(graph: Graph, source: Value, node: Node, typed: Value) -> Node:
    """Inserts a QuantizeLinear of `source` with the scale of `node`, to the type of `typed`, and returns it."""
    return graph.insert(node, QUANTIZE, [source, *node.inputs[1:]], source.like or source, typed)


def _dequantized(graph: Graph, quantized: Node, node: Node) -> Node:
    """Inserts a DequantizeLinear behind an inserted QuantizeLinear, with the scale of `node`, and returns it."""
    return graph.insert(node, DEQUANTIZE, [quantized.outputs[0], *node.inputs[1:]], quantized.outputs[0].like)


def _is_read_once(node: Node) -> bool:
    return len(node.outputs) == 1 and node.only_reader is not None


def _is_scalar(graph: Graph, node: Node) -> bool:
    """True if scale and zero point are constants of one element."""
    return all(is_scalar(graph, value) for value in node.inputs[1:])


def is_scalar(graph: Graph, value: Value) -> bool:
    """True for a constant of one element."""
    return graph.facts.is_constant(value.name) and scaling_shape(graph, value) in ((), (1,))


def scaling_shape(graph: Graph, value: Value) -> Shape | None:
    """Returns the shape of a scale or zero point; None if its rank is not known."""
    found = graph.facts.shape(value.known)
    widened = graph.facts.traits.quantized.widens_merged and value in graph.merged
    return (1, *found) if widened and found is not None else found
