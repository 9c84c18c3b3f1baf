"""The weights and the bias of a Conv, ConvTranspose or Gemm between quantizations are quantized if they are not.

Source: weight_bias_quantization.cc of ONNX Runtime; observed: 1.22.0 requires that a QuantizeLinear reads the result,
versions also look behind a Relu or Clip. Input scales that are not constant are not modelled.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.passes.patterns import CLIPS
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE, is_scalar
from dmlsplit.onnxruntime.passes.transposed_tensors import set_attribute

_OPERATORS: Final = frozenset({"Conv", "ConvTranspose", "Gemm"})
_AXIS: Final = 1
"""The axis of a DequantizeLinear without the attribute."""


def weight_bias_quantization(graph: Graph) -> None:
    """Puts DequantizeLinears of new constants, in place, between the operators and their constant weights and biases of
    FLOAT."""
    if not graph.facts.quantizes_weights:
        return
    for node in graph.nodes:
        if node.op_type not in _OPERATORS or not _ends_quantized(graph, node):
            continue
        before, weighted = (_dequantize(value) for value in node.inputs[:2])
        if before is None or not is_scalar(graph, before.inputs[1]):
            continue
        weights, bias = node.inputs[1], next((value for value in node.inputs[2:] if value.name), None)
        if weighted is None and not _is_given(graph, weights):
            continue
        if bias is not None and not (_is_given(graph, bias) and len(graph.facts.shape(bias.known) or ()) == 1):
            continue
        if weighted is not None and (bias is None or not _has_axis(graph, node, weighted, bias)):
            continue
        scale = _new_scale(graph, weights) if weighted is None else weighted.inputs[1]
        inputs = list(node.inputs)
        if weighted is None:
            inputs[1] = _dequantized(graph, node, weights, "INT8", scale)
        if bias is not None:
            inputs[2] = _dequantized(graph, node, bias, "INT32", _product(graph, bias, before.inputs[1], scale), axis=0)
        graph.read(node, inputs)


def _dequantize(value: Value) -> Node | None:
    node = value.producer
    return node if node is not None and node.op_type == DEQUANTIZE else None


def _is_given(graph: Graph, value: Value) -> bool:
    """True for a constant of FLOAT."""
    return graph.facts.is_constant(value.name) and graph.facts.data_type(value.known_type) == "FLOAT"


def _ends_quantized(graph: Graph, node: Node) -> bool:
    """True if a QuantizeLinear alone reads the result of a node, perhaps behind Relus and Clips."""
    while (after := node.only_reader) is not None:
        if after.op_type == QUANTIZE:
            return True
        if after.op_type not in CLIPS or not graph.facts.traits.quantizes_weights_behind_clips:
            return False
        node = after
    return False


def _has_axis(graph: Graph, node: Node, weighted: Node, bias: Value) -> bool:
    """True if the weights have one scale, or one for each element of the bias."""
    scale = weighted.inputs[1]
    if is_scalar(graph, scale):
        return True
    block, axis = attribute(weighted, "block_size"), attribute(weighted, "axis")
    shape = graph.facts.shape(weighted.inputs[0].known)
    if graph.facts.shape(scale.known) != graph.facts.shape(bias.known) or shape is None or (block and block.i):
        return False
    turned = attribute(node, "transB") if node.op_type == "Gemm" else None
    wanted = int(node.op_type == "Gemm" and (turned is None or turned.i == 0))
    return (_AXIS if axis is None else axis.i) % len(shape) == wanted


def _dequantized(
    graph: Graph, node: Node, value: Value, data_type: str, scale: Value, axis: int | None = None
) -> Value:
    """Returns the result of a new DequantizeLinear of a new constant that stands for a constant `value`."""
    quantized = f"{value.name}/{data_type}"
    graph.facts.note(quantized, data_type, graph.facts.shape(value.known), True, None)
    graph.constants.add(quantized)
    made = graph.insert(node, DEQUANTIZE, [Value(quantized), scale], value)
    made.proto = helper.make_node(DEQUANTIZE, [], [])
    if axis is not None and not is_scalar(graph, scale):
        set_attribute(made, "axis", axis)
    return made.outputs[0]


def _new_scale(graph: Graph, weights: Value) -> Value:
    """Returns the one scale of weights. Its number does not matter: the scale of the bias is a product of it."""
    name = f"{weights.name}/scale"
    graph.facts.note(name, "FLOAT", (), True, np.array(1, np.float32))
    graph.constants.add(name)
    return Value(name)


def _product(graph: Graph, bias: Value, first: Value, second: Value) -> Value:
    """Returns the scale of a bias."""
    name = f"{bias.name}/{first.name}/{second.name}/scale"
    one, other = (graph.facts.elements(value.name) for value in (first, second))
    elements = None if one is None or other is None else np.asarray(one.reshape(()) * other, np.float32)
    graph.facts.note(name, "FLOAT", graph.facts.shape(second.known), True, elements)
    graph.constants.add(name)
    return Value(name)
