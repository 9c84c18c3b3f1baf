"""Each input that reads a DequantizeLinear gets a copy of it. Source: ensure_unique_dq_for_node_unit.cc of ONNX
Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED


def ensure_unique_dq_for_node_unit(graph: Graph) -> None:
    """Inserts the copies, in place. The first reader keeps the model's node, unless that node computes a graph output
    or a graph in a node reads it."""
    for node in graph.nodes:
        if node.op_type != UNMERGED:
            continue
        output = node.outputs[0]
        readers = sorted(output.readers, key=lambda each: each.number)
        kept = output.is_output or any(output in each.captured for each in readers)
        places = [(each, i) for each in readers for i, value in enumerate(each.inputs) if value is output]
        for reader, place in places if kept else places[1:]:
            inputs = list(reader.inputs)
            inputs[place] = graph.insert(node, UNMERGED, node.inputs).outputs[0]
            graph.read(reader, inputs)
