"""IRs with graphs inside their layers: the bodies of If, Loop and TensorIterator."""

import pytest

from tests.formats.ir import Graph

pytest.importorskip("defusedxml")

from dmlsplit.formats import openvino


def nested(depth):
    """A Split inside `depth` bodies."""
    weights = bytearray()

    def graph(level):
        g = Graph(weights)
        x = g.parameter((6,), name="inner")
        g.split(x, g.const(0), level + 1, [None] * (level + 1), name=f"s{level}")
        if level < depth:
            kind, body = [("If", "then_body"), ("Loop", "body"), ("TensorIterator", "body")][level % 3]
            inside = f"<{body}>\n{graph(level + 1).text()}</{body}>\n"
            g.layer(kind, (x,), [((6,), "f32")], "opset8", f"{kind}_{level}", inside)
        return g

    return graph(0)


def test_bodies_are_walked(tmp_path):
    nodes = openvino.read(nested(3).write(tmp_path, version=11))
    found = [(node.name, node.graph, node.lengths) for node in nodes]
    assert found == [
        ("s0", "", (6,)),
        ("s1", "If_0/then_body", (3, 3)),
        ("s2", "If_0/then_body/Loop_1/body", (2, 2, 2)),
        ("s3", "If_0/then_body/Loop_1/body/TensorIterator_2/body", (None,) * 4),
    ]
    assert [node.report.index for node in nodes] == [0, 1, 2, 3]
    assert nodes[3].report.errors[0].path.startswith("If_0/then_body/Loop_1/body/TensorIterator_2/body/s3.")
    assert nodes[3].report.diagnostics[0].line > 10


def test_else_body_and_shapes_given_in_a_body(tmp_path):
    graph = Graph()
    x = graph.parameter((6,))
    bodies = ""
    for body in ("then_body", "else_body"):
        inner = Graph(graph.weights)
        inner.split(inner.parameter((None,), name="p"), inner.const(0), 2, [None, None])
        bodies += f"<{body}>{inner.text()}</{body}>"
    graph.layer("If", (x,), [((3,), "f32")], "opset8", "if", bodies)
    nodes = openvino.read(graph.write(tmp_path, version=11), shapes={"if/else_body/p": (4,)})
    assert [node.lengths for node in nodes] == [(None, None), (2, 2)]
