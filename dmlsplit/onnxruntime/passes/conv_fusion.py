"""Scales and shifts of the channels behind a Conv are folded into its constant weights.

Source: conv_bn_fusion.cc, conv_mul_fusion.cc and conv_add_fusion.cc of ONNX Runtime.
"""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node


def conv_fusion(graph: Graph) -> None:
    """Fuses, in place, BatchNormalization, Mul and Add with constants into the Conv in front of them."""
    if not graph.facts.fuses_convs:
        return
    gone: set[Node] = set()
    for node in graph.nodes:
        if node in gone or node.op_type != "Conv" or not _are_constant(graph, node, 1):
            continue
        while (after := node.only_reader) is not None and _fits_weights(graph, node, after):
            graph.join(node, after)
            gone.add(after)


def _are_constant(graph: Graph, node: Node, first: int) -> bool:
    return all(graph.facts.is_constant(value.name) for value in node.inputs[first:])


def _fits_weights(graph: Graph, node: Node, after: Node) -> bool:
    """True if the constant weights of the Conv `node` can absorb the node `after` that reads it as its first input: a
    BatchNormalization, Mul or Add with constants for its channels. Observed: not k * Conv(x), nor
    k + Conv(x), nor one element for all of several channels, unless it is a scalar factor."""
    if after.inputs[:1] != node.outputs[:1]:
        return False
    if after.op_type == "BatchNormalization":
        return _are_constant(graph, after, 1)
    if after.op_type not in ("Mul", "Add") or len(after.inputs) != 2:
        return False
    other = after.inputs[1].name
    shape, whole = graph.facts.shape(other), graph.facts.shape(node.outputs[0].name)
    if not other or not graph.facts.is_constant(other) or shape is None or whole is None:
        return False
    if after.op_type == "Mul" and not shape:
        return True
    channels = (*whole[1:2], *(1,) * (len(whole) - 2))
    return tuple(shape) in (channels, (1, *channels))
