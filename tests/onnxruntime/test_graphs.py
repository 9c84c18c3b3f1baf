"""The DirectML graphs that a model's nodes become: what is built is what ONNX Runtime hands to CompileGraph."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.graphs.descriptors import node_type
from dmlsplit.onnxruntime import SessionOptions, find_runtime
from tests.formats.onnx_graphs.recorded import free_dimensions, lines, model_of, parts_of, session_model
from tests.onnxruntime.conftest import COUNT
from tests.onnxruntime.models import Sample

pytestmark = pytest.mark.onnxruntime

LEVELS = (99, 0)


def submitted(record):
    """(types, edges between nodes, edges to outputs) of each CompileGraph; constants are no nodes here."""
    created = [event for event in record["events"] if event["call"] == "CreateOperator"]
    types = {event["id"]: dml.find_operator(event["desc"]["Type"]).number for event in created}
    found = []
    for event in record["events"]:
        if event["call"] != "CompileGraph":
            continue
        kept = [i for i, node in enumerate(event["nodes"]) if "id" in node]
        number = {old: new for new, old in enumerate(kept)}
        wires = [(number[a], b, number[c], d) for a, b, c, d in event["intermediateEdges"] if a in number]
        ends = sorted((number[a], b, c) for a, b, c in event["outputEdges"])
        found.append(([types[event["nodes"][i]["id"]] for i in kept], wires, ends))
    return sorted(graph for graph in found if graph[0])


def built(model, version, level):
    parts = parts_of(session_model(model), find_runtime(version), SessionOptions(optimization=level))
    found = []
    for graph in (graph for part in parts for graph in part.fused):
        wires = [
            (e.from_node_index, e.from_node_output_index, e.to_node_index, e.to_node_input_index)
            for e in graph.desc.intermediate_edges
        ]
        ends = sorted(
            (e.from_node_index, e.from_node_output_index, e.graph_output_index) for e in graph.desc.output_edges
        )
        found.append(([node_type(node) for node in graph.desc.nodes], wires, ends))
    return sorted(found)


def test_the_graphs_are_those_that_are_submitted(made, runtime):
    asked = [line for line in lines() if line["class"] != "H" and not free_dimensions(line)]
    step = max(1, len(asked) // COUNT)
    wrong = []
    for line in asked[::step]:
        model = model_of(line)
        for level in LEVELS:
            record = runtime.ask(Sample(line["model"], model, optimization=level).query)
            if submitted(record) != built(model, made.version, level):
                wrong.append(f"{line['set']}: {line['model']} {line.get('cure', '')}, level {level}")
    assert not wrong
