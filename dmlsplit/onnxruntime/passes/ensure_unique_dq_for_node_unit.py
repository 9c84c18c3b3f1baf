"""Each input that reads a DequantizeLinear gets a copy of it. Source: ensure_unique_dq_for_node_unit.cc of ONNX
Runtime."""

from __future__ import annotations

from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED


def ensure_unique_dq_for_node_unit(graph: Graph) -> None:
    """Inserts the copies, in place. The model's node stays for a graph output and for graphs in nodes, even if these
    have read it for folded nodes alone; of nodes that a branch brought in place of its If, the first reads it. If there
    is no such reader, a copy that is left without a reader is the model's node, or else that of the first reader."""
    branches = graph.facts.branches
    for node in graph.nodes:
        if node.op_type != UNMERGED:
            continue
        output = node.outputs[0]
        readers = sorted(output.readers, key=lambda each: each.number)
        places = [(each, i) for each in readers for i, value in enumerate(each.inputs) if value is output]
        has_spare = output.has_spare
        if not output.is_output and not any(output in each.captured for each in readers):
            own = list(range(len(places)))
            if output.is_captured or output.name in branches.readers:
                around = branches.chain(node.name)
                own = [i for i, (reader, _) in enumerate(places) if branches.chain(reader.name) != around]
            elif has_spare:
                own, has_spare = [], False
            for i in own[:1]:
                del places[i]
        for reader, place in places:
            inputs = list(reader.inputs)
            inputs[place] = graph.insert(node, UNMERGED, node.inputs).outputs[0]
            graph.read(reader, inputs)
        if has_spare:
            graph.insert(node, UNMERGED, node.inputs)
