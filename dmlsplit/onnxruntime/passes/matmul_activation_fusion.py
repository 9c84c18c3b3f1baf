"""A FusedMatMul and the Softmax behind it are fused into one node. Source: matmul_activation_fusion.cc of ONNX
Runtime."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import helper

from dmlsplit.models.graph import Graph, attribute
from dmlsplit.onnxruntime.operator_traits import FUSED_MATMUL, FUSED_MATMUL_SOFTMAX
from dmlsplit.onnxruntime.passes.matmul_scale_fusion import matmul_scale_fusion
from dmlsplit.onnxruntime.passes.matmul_transpose_fusion import fuse_transposes
from dmlsplit.onnxruntime.passes.patterns import ROUNDS, are_on_dml, reader

_OF_LAST_AXIS: Final = 13
"""The first opset in which the default axis of a Softmax is the last one."""


def matmul_activation_fusion(graph: Graph) -> None:
    """Fuses, in place, each FusedMatMul on DirectML with the Softmax that is its only reader."""
    for node in graph.nodes:
        softmax = reader(node, "Softmax") if node.op_type == FUSED_MATMUL else None
        # a Transpose that is fused into the product may have been on the CPU
        if softmax is None or not (graph.facts.on_dml(node.index) and are_on_dml(graph, [softmax])):
            continue
        made, axis = onnx.NodeProto(), attribute(softmax, "axis")
        made.CopyFrom(node.proto)
        made.op_type, made.name, made.output[0] = FUSED_MATMUL_SOFTMAX, softmax.proto.name, softmax.outputs[0].name
        default = -1 if graph.facts.opset >= _OF_LAST_AXIS else 1
        made.attribute.append(helper.make_attribute("activation_axis", default if axis is None else axis.i))
        graph.fuse([node, softmax], FUSED_MATMUL_SOFTMAX, node.inputs[:], made)


def later_matmul_fusion(graph: Graph) -> None:
    """Repeats, in place, the fusions of Transposes, factors and Softmaxes with products, as ONNX Runtime does until
    nothing changes: a Transpose behind which a factor was fused is fused only after a Softmax behind the product."""
    for _ in range(ROUNDS - 1):
        if not fuse_transposes(graph):
            break
        matmul_scale_fusion(graph)
        matmul_activation_fusion(graph)
