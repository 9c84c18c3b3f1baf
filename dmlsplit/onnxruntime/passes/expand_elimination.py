"""An Expand to sizes that its input has already does nothing. Source: expand_elimination.cc of ONNX Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph, Node, Value


def expand_elimination(graph: Graph, node: Node) -> Value | None:
    """Returns the first input of an Expand by a constant, not empty shape of at most its rank if each size, from the
    last on, is at most 1 or that of the input; else None. Open sizes of the input keep their place."""
    value, target = node.inputs[0], node.inputs[1].name
    sizes = graph.facts.shape(value.name)
    if sizes is None or not graph.facts.is_constant(target):
        return None
    wanted = graph.facts.elements(target)
    if wanted is None or wanted.ndim != 1 or not 0 < len(wanted) <= len(sizes):
        return None
    pairs = zip(sizes[len(sizes) - len(wanted) :], map(int, wanted), strict=True)
    return value if all(size in (1, own) or size < 1 for own, size in pairs) else None
