"""A scalar constant that a Where reads beside a DequantizeLinear gets a DequantizeLinear of its own.

Source: where_dummy_dq.cc of ONNX Runtime; observed. From 1.30 on only in front of a QuantizeLinear to the same type.
Before, the process ends if the other DequantizeLinear has no zero point.
"""

from __future__ import annotations

from typing import Final

from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.passes.qdq_propagation import DEQUANTIZE, QUANTIZE

_SCALED: Final = 3
"""The number of inputs of a quantization with a zero point."""
_CHOICES: Final = ((1, 2), (2, 1))
"""The inputs of a Where between which it chooses: the quantized one, and the constant."""


def where_dummy_dq(graph: Graph) -> None:
    """Inserts the DequantizeLinears, in place."""
    if not graph.facts.dequantizes_scalars:
        return
    for node in graph.nodes:
        for first, second in _CHOICES if node.op_type == "Where" else ():
            before, scalar = node.inputs[first].producer, node.inputs[second]
            if before is not None and before.op_type == DEQUANTIZE and _is_scalar(graph, scalar):
                _insert(graph, node, before, second)
                break


def _is_scalar(graph: Graph, value: Value) -> bool:
    is_float = graph.facts.data_type(value.known_type) == "FLOAT"
    return is_float and graph.facts.is_constant(value.name) and graph.facts.shape(value.known) == ()


def _quantized_type(graph: Graph, node: Node) -> str | None:
    """Returns the type to which a QuantizeLinear that alone reads the result of a node quantizes it; None if there is
    none."""
    after = node.only_reader
    is_quantized = after is not None and after.op_type == QUANTIZE
    return graph.facts.data_type(after.outputs[0].known_type) if after is not None and is_quantized else None


def _insert(graph: Graph, node: Node, before: Node, place: int) -> None:
    """Puts a DequantizeLinear of a new constant in front of an input of a Where, in place, if the version does so for
    what the quantization `before` and the readers of the Where are."""
    facts = graph.facts
    if len(before.inputs) < _SCALED:
        if not facts.traits.dequantizes_before_quantized_alone:
            graph.failing[node] = "reads a DequantizeLinear without a zero point, at which the process ends"
        return
    data_type = facts.data_type(before.inputs[0].known_type)
    if facts.traits.dequantizes_before_quantized_alone and _quantized_type(graph, node) != data_type:
        return
    if not all(facts.is_constant(value.name) for value in before.inputs[1:]):
        return
    value, inputs, made = node.inputs[place], list(node.inputs), []
    for name, kind in (("quantized", data_type), ("scale", "FLOAT"), ("zero", data_type)):
        made.append(Value(f"{value.name}/{kind}/{name}"))
        facts.note(made[-1].name, kind, (), True, None)
        graph.constants.add(made[-1].name)
    dequantized = graph.insert(node, DEQUANTIZE, made, value)
    dequantized.proto = helper.make_node(DEQUANTIZE, [], [])
    inputs[place] = dequantized.outputs[0]
    graph.read(node, inputs)
