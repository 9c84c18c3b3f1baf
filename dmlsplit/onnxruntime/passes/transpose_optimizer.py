"""A Transpose that undoes the one in front of it.

Source: onnx_transpose_optimization.cc of ONNX Runtime, of which this alone is followed. Over which nodes it may move
other Transposes is found in dmlsplit.onnxruntime.transposes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dmlsplit.models.graph import Graph, Node, Value, attribute


def undone_transpose(graph: Graph, node: Node) -> Value | None:
    """What the Transpose in front of this one reads, where both together change nothing."""
    before = node.inputs[0].producer
    if before is None or before.op_type != "Transpose":
        return None
    rank = len(graph.facts.shape(node.outputs[0].name) or ())
    first, second = permutation(before, rank), permutation(node, rank)
    if len(first) != len(second) or [first[i] for i in second] != list(range(len(first))):
        return None
    return before.inputs[0]


def permutation(node: Node, rank: int) -> Sequence[int]:
    """Of a Transpose; () where it is none."""
    perm = attribute(node, "perm")
    found = tuple(range(rank - 1, -1, -1)) if perm is None else tuple(perm.ints)
    return found if sorted(found) == list(range(len(found))) else ()
