"""Transposes around a Gemm become attributes of the Gemm. Source: gemm_transpose_fusion.cc of ONNX Runtime."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import RESHAPED_GEMM
from dmlsplit.onnxruntime.passes.patterns import is_read_once, reader

_FIRST_WITHOUT_C: Final = 11
"""The first version of Gemm in which C is optional."""


def gemm_transpose_fusion(graph: Graph) -> None:
    """Fuses, in place, each Gemm with the Transposes that it reads, and each Gemm without C with the Transpose that is
    its only reader."""
    if not graph.facts.fuses_transposes:
        return
    for node in graph.nodes:
        if node.op_type not in ("Gemm", RESHAPED_GEMM) or len(node.inputs) < 2 or not _has_one_reader(node):
            continue
        before = [each for each in map(_transpose, node.inputs[:2]) if each is not None]
        if any(is_read_once(each, node.inputs.count(each.outputs[0])) for each in before):
            _fuse_inputs(graph, node, before)
        elif len(node.inputs) == 2 and graph.facts.opset >= _FIRST_WITHOUT_C:
            behind = reader(node, "Transpose")
            if behind is not None:
                _fuse_output(graph, node, behind)


def _has_one_reader(node: Node) -> bool:
    return sum(each.inputs.count(node.outputs[0]) for each in node.outputs[0].readers) <= 1


def _transpose(value: Value) -> Node | None:
    """Returns the Transpose that computes a tensor; None if the tensor has no producer, or another operator computes
    it."""
    found = value.producer
    return found if found is not None and found.op_type == "Transpose" else None


def _fuse_inputs(graph: Graph, node: Node, transposes: list[Node]) -> None:
    first, second = (_transpose(value) for value in node.inputs[:2])
    a, b = _transforms(node)
    sources = [
        value if each is None else each.inputs[0] for value, each in zip(node.inputs, (first, second), strict=False)
    ]
    made = _gemm(node, a != (first is not None), b != (second is not None))
    graph.fuse([node], node.op_type, [*sources, *node.inputs[2:]], made)
    for each in dict.fromkeys(transposes):
        node.doubts |= each.doubts
        if not each.is_used:
            graph.remove(each)
            node.absorbed = (each.index, *node.absorbed)


def _fuse_output(graph: Graph, node: Node, behind: Node) -> None:
    """Fuses, in place, the Transpose behind a Gemm by swapping the factors: the transpose of A * B is B' * A'. The node
    that remains is placed as a Gemm."""
    a, b = _transforms(node)
    made, inputs, index = _gemm(node, not b, not a), node.inputs[::-1], node.index
    graph.join(node, behind)
    node.absorbed = (*[behind.index if each == index else each for each in node.absorbed],)
    node.index = index
    graph.fuse([node], node.op_type, inputs, made)


def _transforms(node: Node) -> tuple[bool, bool]:
    """Returns, for each factor of a Gemm, True if it is transposed; False for both if the node was a MatMul."""
    if node.proto.op_type != "Gemm":
        return False, False
    a, b = (attribute(node, name) for name in ("transA", "transB"))
    return a is not None and a.i != 0, b is not None and b.i != 0


def _gemm(node: Node, a: bool, b: bool) -> onnx.NodeProto:
    """Returns the NodeProto of a Gemm that transposes its first factor if `a`, its second if `b`."""
    kept = [each for each in node.proto.attribute if node.proto.op_type == "Gemm" and each.name in ("alpha", "beta")]
    made = helper.make_node("Gemm", node.proto.input, node.proto.output, node.proto.name, transA=int(a), transB=int(b))
    made.attribute.extend(kept)
    return made
