"""A Relu is fused into the Clip behind it. Source: relu_clip_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from typing import Final

from dmlsplit.models.graph import Graph

_FIRST_WITH_INPUTS: Final = 11
"""The first version of Clip whose limits are inputs."""
_TYPES: Final = frozenset({"FLOAT", "FLOAT16"})


def relu_clip_fusion(graph: Graph) -> None:
    """Removes, in place, each Relu that only a Clip reads whose lower limit is constant or omitted. Session creation
    fails with a limit of another type than FLOAT and FLOAT16."""
    for node in graph.nodes:
        after = node.only_reader if node.op_type == "Relu" else None
        if after is None or after.op_type != "Clip" or after.inputs[0] is not node.outputs[0]:
            continue
        limit = next((value for value in after.inputs[1:2] if value.name), None)
        if limit is not None and not graph.facts.is_constant(limit.name):
            continue
        data_type = None if limit is None else graph.facts.data_type(limit.known_type)
        if graph.facts.opset >= _FIRST_WITH_INPUTS and data_type is not None and data_type not in _TYPES:
            graph.failing[after] = f"is fused with the Relu before it, which fails for a limit of {data_type}"
        graph.read(after, [node.inputs[0], *after.inputs[1:]])
        after.absorbed += (node.index,)
        graph.remove(node)
