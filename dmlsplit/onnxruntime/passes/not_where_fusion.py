"""A Where reads what a Not in front of it reads, and its other inputs the other way round.

Source: not_where_fusion.cc of ONNX Runtime: all readers of the Not have to be Wheres, which read the condition from it
as if none read anything else. Where the Not is of an input or a constant, a Where that does keeps the name of a tensor
that is gone; observed in the model's own graph alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from dmlsplit.models.graph import Graph, Node


def broken_wheres(graph: Graph) -> Iterator[tuple[Node, str]]:
    """Yields each Where that is left with the name of a Not's output, and that name."""
    for node in graph.nodes:
        if node.op_type != "Not" or len(node.inputs) != 1 or node.inputs[0].producer is not None:
            continue
        value = node.outputs[0]
        readers = list(value.readers)
        if value.is_output or any(each.op_type != "Where" or value in each.captured for each in readers):
            continue
        if any(each.inputs[0] is value for each in readers):
            yield from ((each, value.name) for each in readers if value in each.inputs[1:])
