"""legalize takes a model to the older opset that DirectML has kernels for, and changes nothing else."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.formats import onnx as front_end
from dmlsplit.mending import mended_model
from dmlsplit.system.errors import NotLegalizedError
from dmlsplit.targets.target import find_target
from tests import models

CONV = "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { a = Relu(x) y = Conv(a, w) }"
MIXED = """(float[1,4,8,8] x) => (float[?,?] y) {
    p = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) s = Constant<value_ints=[4,-1]>() r = Reshape(p, s)
    t = Transpose<perm=[1,0]>(r) c = Cast<to=10,saturate=1>(t) d = Cast<to=1>(c) y = Round(d)
}"""
CEILING = "(float[1,1,7,7] x) => (float[?,?,?,?] y) { y = MaxPool<kernel_shape=[2,2],strides=[2,2],ceil_mode=1>(x) }"


def legalized(model, version="1.24.4"):
    with mended_model(model, find_target(onnxruntime=version)) as found:
        return found, onnx.load_from_string(b"".join(map(bytes, found.copied())))


def opset(model):
    (found,) = [each.version for each in model.opset_import if each.domain == ""]
    return found


def feeds(model):
    random = np.random.default_rng(1)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(("text", "own", "wanted"), [(CONV, 22, 21), (CONV, 23, 21), (MIXED, 23, 21), (CONV, 21, 21)])
def test_the_opset_alone_changes(text, own, wanted):
    model = models.text(text, own)
    found, written = legalized(model)
    assert (found.refusals, found.left) == ([], [])
    assert found.outcome == ("the model changed" if own != wanted else "nothing to legalize")
    assert opset(written) == wanted
    assert written.graph == model.graph
    onnx.checker.check_model(written, full_check=True)
    assert dml.onnxruntime.session(written, "1.24.4").on_dml == 1.0
    inputs = feeds(model)
    before, after = (ReferenceEvaluator(each).run(None, inputs) for each in (model, written))
    assert [each.tobytes() for each in before] == [each.tobytes() for each in after]


def test_what_is_right_stays_byte_for_byte():
    data = models.text(CONV, 21).SerializeToString()
    assert front_end.legalize(data, onnxruntime="1.24.4").model == data


def test_an_attribute_that_means_nothing_goes():
    """QuantizeLinear has no block_size before 21; a size of 0 is none. 1.20.1 has no kernel for Transpose 21."""
    model = models.text(
        """(float[2,3] x, float s, uint8 z) => (uint8[3,2] y) {
            t = Transpose<perm=[1,0]>(x) y = QuantizeLinear<block_size=0,axis=1>(t, s, z)
        }""",
        21,
    )
    found, written = legalized(model, "1.20.1")
    assert opset(written) == 20
    assert [[a.name for a in node.attribute] for node in written.graph.node] == [["perm"], ["axis"]]
    assert [(change.path, change.names) for change in found.changes] == [
        ("", ("older-opset",)),
        ("y", ("older-opset",)),
    ]
    onnx.checker.check_model(written, full_check=True)


def test_what_cannot_be_taken_there_is_said_and_stays():
    model = models.text(CEILING, 22)
    found, written = legalized(model)
    assert (found.refusals, found.changes, written) == ([], [], model)
    (left,) = found.left
    assert left.reason == (
        "1 node (1 MaxPool) runs on the CPU, but on DirectML at opset 21: "
        "y: MaxPool 12 is not MaxPool 22: its ceil_mode of 1 is defined differently in the older version"
    )


def test_functions_go_with_the_model():
    function = '<domain: "own", opset_import: ["" : 22]> F (x, w) => (y) { c = Conv(x, w) y = Relu(c) }'
    text = "(float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) { y = own.F(x, w) }"
    model = models.text(text, 22, functions=function)
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("older-opset",)]
    assert (opset(written), written.functions[0].opset_import[0].version) == (21, 21)
    assert dml.onnxruntime.session(written, "1.24.4").on_dml == 1.0


@pytest.mark.parametrize("target", [{"feature_level": "5_0"}, {"directml": "1.15.4"}])
def test_a_target_that_is_no_runtime_keeps_the_opset(target):
    data = models.text(CONV, 22).SerializeToString()
    assert front_end.legalize(data, **target).model == data


def test_a_model_that_is_not_loaded_goes_to_an_older_opset_without_a_converter(monkeypatch):
    """1.20.1 loads opset 21: by the schemas every node means the same there, and at 20, which has Transpose."""

    def converts(*_):
        raise AssertionError("onnx's converter was asked")

    monkeypatch.setattr("dmlsplit.mending.versions.convert", converts)
    model = models.text("(float[2,3] x) => (float[3,2] y) { t = Transpose<perm=[1,0]>(x) y = Sin(t) }", 23)
    found, written = legalized(model, "1.20.1")
    assert [(each.names, each.after) for each in found.changes if each.path == ""] == [
        (("convert-opset",), ("opset 21",)),
        (("older-opset",), ("opset 20",)),
    ]
    assert (opset(written), written.graph) == (20, model.graph)


def test_types_that_a_node_with_graphs_does_not_take_are_not_converted():
    """If 16 outputs BFLOAT16, If 13 does not: the converter is not given it, and would say nothing."""
    branch = "g () => (bfloat16[2] o, bfloat16[2] p) { o, p = Split<axis=0, num_outputs=2>(x) }"
    both = f"then_branch = {branch}, else_branch = {branch}"
    made = f"(bool c, bfloat16[4] x) => (bfloat16[2] y, bfloat16[2] z) {{ y, z = If(c) <{both}> }}"
    with pytest.raises(NotLegalizedError, match="BFLOAT16"):
        front_end.legalize(models.text(made, 18), onnxruntime="1.9.0")
