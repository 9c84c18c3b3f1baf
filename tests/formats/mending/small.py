"""Models that are mended for feature level 2_0."""

from __future__ import annotations

from onnx import TensorProto

from dmlsplit.formats import onnx as front_end
from tests.models import graph, ints, model, node, value

SPLIT = node("Split", ["x", "l"], ["a", "b"], axis=1, name="split", doc_string="mine")
LENGTHS = ints("l", 2, 2)


def five_dimensions(*more, **fields):
    return model(
        [SPLIT, *more],
        [value("x", [1, 4, 2, 2, 2])],
        ("a", "b"),
        opset=17,
        initializers=[LENGTHS],
        ir_version=8,
        **fields,
    )


def with_branch():
    inner = [node("Split", ["x", "l"], ["p", "q"], axis=1), node("Relu", ["p"], ["r"])]
    inner = graph(inner, [], (value("r", [1, 2, 2, 2, 2]),))
    other = [node("Relu", ["x"], ["s"]), node("Slice", ["s", "zero", "two", "one"], ["t"])]
    other = graph(other, [], (value("t", [1, 2, 2, 2, 2]),))
    inner.doc_string = "the inner graph"
    nodes = [node("Relu", ["x"], ["y"]), node("If", ["c"], ["o"], then_branch=inner, else_branch=other, name="if")]
    numbers = [LENGTHS, ints("zero", 0), ints("one", 1), ints("two", 2)]
    inputs = [value("x", [1, 4, 2, 2, 2]), value("c", [], TensorProto.BOOL)]
    outputs = [value("o", [1, 2, 2, 2, 2]), value("y", [1, 4, 2, 2, 2])]
    return model(nodes, inputs, outputs, opset=17, initializers=numbers, ir_version=8)


def written(data, **target):
    return front_end.legalize(data, **(target or {"feature_level": "2_0"})).model
