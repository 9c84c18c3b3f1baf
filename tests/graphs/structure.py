"""Graphs that are wrong whatever becomes of them, and others that look it: each with the rule that it breaks."""

from __future__ import annotations

import dmlsplit as dml
from dmlsplit import AnyOperatorDesc, graphs
from dmlsplit.graphs import GraphDesc

T4 = dml.BufferTensorDesc(1, (1, 4, 1, 16))
T8 = dml.BufferTensorDesc(1, (1, 8, 1, 16))
FLAT = dml.BufferTensorDesc(1, (1, 1, 8, 16))
HALF = dml.BufferTensorDesc(2, (1, 16, 1, 16))


def unary(name, tensor=T8):
    return AnyOperatorDesc.of_tensors(name, [tensor], [tensor])


RELU, TANH, RELU4 = unary("ACTIVATION_RELU"), unary("ACTIVATION_TANH"), unary("ACTIVATION_RELU", T4)
ADD = AnyOperatorDesc.of_tensors("ELEMENT_WISE_ADD", [T8, T8], [T8])
SPLIT = dml.SplitOperatorDesc(T8, [T4, T4], 1)
JOIN = dml.JoinOperatorDesc([T4, T4], T8, 1)


def desc(nodes, inputs=(), outputs=(), wires=(), *, ends=(T8,), results=(T8,)):
    return GraphDesc(
        ends,
        results,
        nodes,
        [graphs.InputGraphEdgeDesc(*edge) for edge in inputs],
        [graphs.OutputGraphEdgeDesc(*edge) for edge in outputs],
        [graphs.IntermediateGraphEdgeDesc(*edge) for edge in wires],
    )


CHAIN = {"nodes": [RELU, TANH], "inputs": [(0, 0, 0)], "outputs": [(1, 0, 0)]}
ONE = {"nodes": [RELU], "inputs": [(0, 0, 0)], "outputs": [(0, 0, 0)]}

REFUSED = {
    "edge size": ("graph/edge-size", desc([RELU, RELU4], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0)], results=[T4])),
    "graph input index": ("graph/index-range", desc(**ONE | {"inputs": [(1, 0, 0)]})),
    "to node": ("graph/index-range", desc(**ONE | {"inputs": [(0, 1, 0)]})),
    "to input": ("graph/index-range", desc(**ONE | {"inputs": [(0, 0, 1)]})),
    "from node": ("graph/index-range", desc(**ONE | {"outputs": [(1, 0, 0)]})),
    "from output": ("graph/index-range", desc(**ONE | {"outputs": [(0, 1, 0)]})),
    "graph output index": ("graph/index-range", desc(**ONE | {"outputs": [(0, 0, 1)]})),
    "wire from node": ("graph/index-range", desc(**CHAIN, wires=[(2, 0, 1, 0)])),
    "wire from output": ("graph/index-range", desc(**CHAIN, wires=[(0, 1, 1, 0)])),
    "wire to node": ("graph/index-range", desc(**CHAIN, wires=[(0, 0, 2, 0)])),
    "wire to input": ("graph/index-range", desc(**CHAIN, wires=[(0, 0, 1, 1)])),
    "largest index": ("graph/index-range", desc(**CHAIN, wires=[(2**32 - 1, 0, 1, 0)])),
    "unary without input": ("graph/input-unconnected", desc([RELU], [], [(0, 0, 0)])),
    "binary with one": ("graph/input-unconnected", desc([ADD], [(0, 0, 0)], [(0, 0, 0)])),
    "split without input": ("graph/input-unconnected", desc([SPLIT], [], [(0, 0, 0)], results=[T4])),
    "join with one": ("graph/input-unconnected", desc([JOIN], [(0, 0, 0)], [(0, 0, 0)], ends=[T4])),
    "node unused": ("graph/node-unused", desc([RELU, TANH], [(0, 0, 0), (0, 1, 0)], [(0, 0, 0)])),
    "split unused": ("graph/node-unused", desc([RELU, SPLIT], [(0, 0, 0)], [(0, 0, 0)], [(0, 0, 1, 0)])),
    "no graph output": ("graph/node-unused", desc([RELU], [(0, 0, 0)], results=[])),
    "two input edges": ("graph/edge-twice", desc([RELU], [(0, 0, 0), (1, 0, 0)], [(0, 0, 0)], ends=[T8, T8])),
    "cycle": ("graph/cycle", desc([ADD, TANH], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0), (1, 0, 0, 1)])),
    "cycle of one": ("graph/cycle", desc([ADD], [(0, 0, 0)], [(0, 0, 0)], [(0, 0, 0, 1)])),
    "cycle apart": (
        "graph/cycle",
        desc([RELU, TANH, TANH], [(0, 0, 0)], [(0, 0, 0)], [(1, 0, 2, 0), (2, 0, 1, 0)]),
    ),
    "no nodes": ("graph/empty", desc([], ends=[], results=[])),
}
ACCEPTED = {
    "other sizes of the same total": (
        None,
        desc([RELU, unary("ACTIVATION_TANH", FLAT)], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0)]),
    ),
    "data type of the same total": (
        "graph/edge-data-type",
        desc([RELU, unary("ACTIVATION_RELU", HALF)], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0)], results=[HALF]),
    ),
    "graph output that no edge reaches": ("graph/output-unconnected", desc(**ONE, results=[T8, T8])),
    "graph input that nothing uses": (None, desc(**ONE, ends=[T8, T8])),
    "split output that nothing uses": (None, desc([SPLIT], [(0, 0, 0)], [(0, 0, 0)], results=[T4])),
    "one tensor at two outputs": (None, desc([RELU], [(0, 0, 0)], [(0, 0, 0), (0, 0, 1)], results=[T8, T8])),
    "one operator in two nodes": (None, desc([RELU, RELU], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0)])),
}
