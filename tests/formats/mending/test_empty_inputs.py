"""legalize takes the inputs without elements that it makes itself from Concats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dmlsplit.formats.onnx import legalize
from tests import models

CUT = "p, q, r = Split<axis=1>(x, k)"
LENGTHS = "<int64[3] k = {2,0,2}>"


def cut(nodes, result, kind="float"):
    return models.text(f"({kind}[2,4] x) => ({kind}[{result}] y) {LENGTHS} {{ {CUT} {nodes} }}", 17)


def legalized(model, **target):
    found = legalize(model, **(target or {"onnxruntime": "1.20.1"}))
    return found, onnx.load_from_string(found.model)


def alike(model, made):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    return all(
        np.array_equal(a, b)
        for a, b in zip(*(ReferenceEvaluator(m).run(None, {"x": x}) for m in (model, made)), strict=True)
    )


@pytest.mark.parametrize("target", [{"onnxruntime": "1.20.1"}, {"directml": "1.15.4"}, {"feature_level": "2_1"}])
def test_a_concat_reads_no_part_without_elements(target):
    # ONNX Runtime 1.18.0 to 1.23.2 end the process when they move a Transpose to a constant without elements
    model = cut("s = Relu(p) t = Concat<axis=1>(s, q, r) y = Transpose<perm=[1,0]>(t)", "4,2")
    found, made = legalized(model, **target)
    assert [(change.path, change.names) for change in found.changes] == [("p", ("cut-empty",)), ("t", ("cut-empty",))]
    (joined,) = [node for node in made.graph.node if node.op_type == "Concat"]
    assert list(joined.input) == ["s", "r"]
    assert not any("q" in node.output for node in made.graph.node)
    assert alike(model, made)


def test_a_part_that_another_node_reads_is_still_made():
    model = models.text(
        f"(float[2,4] x) => (float[2,4] y, float[2,0] z) {LENGTHS} {{ {CUT} y = Concat<axis=-1>(q, p, r) z = Neg(q) }}",
        17,
    )
    _, made = legalized(model, directml="1.15.4")
    assert [list(node.input) for node in made.graph.node if node.op_type == "Concat"] == [["p", "r"]]
    assert any("q" in node.output for node in made.graph.node)
    assert alike(model, made)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_concat_that_reads_nothing_else_stays(axis):
    text = f"(float[2,4] x) => (float[2,4] a, float[?,?] y) {LENGTHS} {{ {CUT} a = Concat<axis=1>(p, r) "
    found, made = legalized(models.text(f"{text} y = Concat<axis={axis}>(q, q) }}", 17))
    assert "p" in [change.path for change in found.changes]
    assert "y" not in [change.path for change in found.changes]
    assert alike(models.text(f"{text} y = Concat<axis={axis}>(q, q) }}", 17), made)


def test_a_tensor_of_the_file_stays():
    text = (
        "(float[2,4] x) => (float[2,4] y) <int64[3] k = {2,0,2}, float[2,0] e = {}> "
        f"{{ {CUT} y = Concat<axis=1>(e, p, q, r) }}"
    )
    _, made = legalized(models.text(text, 17))
    assert [list(node.input) for node in made.graph.node if node.op_type == "Concat"] == [["e", "p", "r"]]
