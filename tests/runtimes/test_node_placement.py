"""Where nodes of one graph go."""

from __future__ import annotations

import pytest

from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.node_placement import Placed, placed
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions
from tests import models

FUSED, ALONE, CPU = Placed(True, True), Placed(True, False), Placed(False, False)


def places(body, options=DEFAULTS):
    """Where each node that is left goes, by its first output."""
    sessions = OnnxSessions(loading.without_weights(models.text(body, opset=17)), no_external_data)
    (graph,) = sessions.of(find_runtime("1.24.4"), options, Inputs()).graphs
    return {node.outputs[0].name: placed(graph, node) for node in graph.order}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(float[2,6] x) => (float[?,?] o) { a, b = Split<axis=1>(x) o = Add(a, b) }", {"a": FUSED, "o": FUSED}),
        ("(float[2,N] x) => (float[?,?] o) { a = Neg(x) o = Concat<axis=0>(a, a) }", {"a": ALONE, "o": ALONE}),
        ("(string[2] x) => (string[?] o) { o = Concat<axis=0>(x, x) }", {"o": CPU}),
        ("(float[2,2] x) => (float o, float[?,?] p) { o = Det(x) p = Relu(x) }", {"o": CPU, "p": FUSED}),
        ("(float[2,0] x) => (float[?,?] o) { o = Relu(x) }", {"o": ALONE}),
        ("(float[2,3] x, int64[2] n) => (float[?,?] o) { o = Tile(x, n) }", {"o": ALONE}),
        ("(float[2,3] x) => (float[2,6] o) <int64[2] n = {1,2}> { o = Tile(x, n) }", {"o": FUSED}),
        ("(float[2] x, float[2] y) => (float[2] o) { o = Max(x, y, x) }", {"o": ALONE}),
        ("(float[2] x) => (float[2] o) { o = Identity(x) }", {"o": FUSED}),
        ("(float[N] x) => (float[N] o) { o = Identity(x) }", {"o": ALONE}),
    ],
    ids=[
        "a Split",
        "open sizes",
        "strings",
        "no kernel",
        "no elements",
        "computed repeats",
        "constant repeats",
        "a Max of three",
        "an Identity of a known size",
        "an Identity of an open size",
    ],
)
def test_where_a_node_goes(body, expected):
    assert places(body) == expected


def test_nothing_is_fused_where_the_session_does_not():
    body = "(float[2,6] x) => (float[?,?] o) { a, b = Split<axis=1>(x) o = Add(a, b) }"
    assert set(places(body, SessionOptions(graph_fusion=False)).values()) == {ALONE}


def test_nothing_is_fused_beside_a_graph_in_a_node():
    body = """(float[2,6] x, bool c) => (float[?,?] o, float[?,?] p)
    { o = Neg(x) p = If(c) <then_branch = t () => (float[2,6] y) { y = Relu(x) },
                            else_branch = e () => (float[2,6] z) { z = Abs(x) }> }"""
    sessions = OnnxSessions(loading.without_weights(models.text(body, opset=17)), no_external_data)
    graphs = sessions.of(find_runtime("1.24.4"), DEFAULTS, Inputs()).graphs
    found = {node.outputs[0].name: placed(graph, node).in_graph for graph in graphs for node in graph.order}
    assert (found["o"], found["y"], found["z"]) == (False, True, True)
