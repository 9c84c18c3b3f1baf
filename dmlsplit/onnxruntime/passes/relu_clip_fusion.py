"""A Relu is fused into the Clip behind it. Source: relu_clip_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph


def relu_clip_fusion(graph: Graph) -> None:
    """Removes, in place, each Relu that only a Clip with constant limits reads."""
    for node in graph.nodes:
        after = node.only_reader if node.op_type == "Relu" else None
        if after is None or after.op_type != "Clip" or after.inputs[0] is not node.outputs[0]:
            continue
        limits = [value.name for value in after.inputs[1:] if value.name]
        if graph.facts.opset < 11 or all(map(graph.facts.is_constant, limits)):
            graph.read(after, [node.inputs[0], *after.inputs[1:]])
            after.absorbed += (node.index,)
            graph.remove(node)
