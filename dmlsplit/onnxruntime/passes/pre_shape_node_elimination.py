"""A Cast that only Shapes read does nothing. Source: pre_shape_node_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def pre_shape_node_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the input of a Cast if only Shapes read its output and the version removes it (old versions keep a Cast
    of version 21); else None. The Shapes, which then read another type, are marked as replaced."""
    result = node.outputs[0]
    only_shapes = bool(result.readers) and all(reader.op_type == "Shape" for reader in result.readers)
    if not graph.facts.removes_casts or result.is_output or not only_shapes:
        return None
    graph.replaced.update(reader.index for reader in result.readers)
    return node.inputs[0]


def first_pre_shape_node_elimination(graph: Graph, node: Node) -> Value | None:
    """Does the same as `pre_shape_node_elimination` before branches take the places of their Ifs: an If reads whatever
    its branches read."""
    is_read_by_if = node.outputs[0].name in graph.facts.branches.readers
    return None if is_read_by_if else pre_shape_node_elimination(graph, node)
