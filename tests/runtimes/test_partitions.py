"""What becomes one fused graph."""

from __future__ import annotations

from onnx import helper

from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.partitions import partitions


def node(inputs, outputs, in_graph=True):
    return inputs.split(" "), outputs.split(" "), in_graph


def parts(*nodes, ends=()):
    """The indices of the nodes in each fused graph; `ends` are tensors that begin one."""
    graph = Graph(None, ())
    for index, (inputs, outputs, _) in enumerate(nodes):
        graph.add(index, helper.make_node("Relu", inputs, outputs), (0, index), inputs, outputs)
    made = {each: [value for value in each.outputs if value.name in ends] for each in graph.nodes}
    begun = {each: values for each, values in made.items() if values}
    found = partitions(graph.nodes, [in_graph for _, _, in_graph in nodes], begun)
    return [tuple(each.index for each in part) for part in found]


def test_a_chain_is_one_graph():
    assert parts(node("x", "a"), node("a", "b"), node("b", "c")) == [(0, 1, 2)]


def test_nodes_that_share_an_input_of_the_model_are_apart():
    assert parts(node("x", "a"), node("x", "b")) == [(0,), (1,)]


def test_a_node_merges_the_graphs_that_feed_it():
    assert parts(node("x", "a"), node("x", "b"), node("a b", "c")) == [(1, 0, 2)]


def test_a_graph_has_the_place_of_the_node_that_others_are_merged_into():
    assert parts(node("x", "a"), node("y", "b"), node("z", "c"), node("b a", "d")) == [(0, 1, 3), (2,)]


def test_what_feeds_a_node_outside_takes_no_more_nodes():
    found = parts(node("x", "a"), node("a", "b", in_graph=False), node("a", "c"), node("b c", "d"))
    assert found == [(0,), (2, 3)]


def test_the_order_decides():
    """The same nodes: what comes before the node outside belongs to the graph that feeds it."""
    assert parts(node("x", "a"), node("a", "c"), node("a", "b", in_graph=False)) == [(0, 1)]


def test_names_that_are_empty_connect_nothing():
    assert parts(node("x", "a "), node("y ", "b")) == [(0,), (1,)]


def test_what_stands_for_a_node_outside_ends_in_a_graph():
    nodes = node("x", "a"), node("a", "b c", in_graph=False), node("a", "d"), node("b", "e"), node("c", "f")
    assert parts(*nodes, ends=("b",)) == [(0,), (1, 3), (2,), (4,)]
    assert parts(*nodes, ends=("b", "c")) == [(0,), (1, 3, 4), (2,)]
