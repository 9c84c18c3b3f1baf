"""legalize computes DequantizeLinears along their axis where the kernel does not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.mending import mended_model
from dmlsplit.targets.target import find_target
from tests import models

VERSION = "1.24.4"
RULE = "model/quantization-axis"


def legalized(model, version=VERSION):
    with mended_model(model, find_target(onnxruntime=version)) as found:
        return found, onnx.load_from_string(b"".join(map(bytes, found.copied()))) if found.parts else None


def dequantized(sizes, axis, zero_points="", opset=21, kind="int8"):
    """A model with one DequantizeLinear with several scales; `zero_points` are elements, "" for none."""
    shape, count = ",".join(map(str, sizes)), sizes[axis]
    scales = ",".join(str(0.1 * (i + 1)) for i in range(count))
    given = f", {kind}[{count}] z = {{{zero_points}}}" if zero_points else ""
    result = ",".join("?" for _ in sizes)
    head = f"({kind}[{shape}] x, float[{shape}] u) => (float[{result}] y) <float[{count}] s = {{{scales}}}{given}>"
    read = "x, s, z" if zero_points else "x, s"
    return models.text(f"{head} {{ d = DequantizeLinear<axis={axis}>({read}) y = Add(d, u) }}", opset)


def computed(model):
    random = np.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        sizes = [each.dim_value for each in value.type.tensor_type.shape.dim]
        inputs[value.name] = (random.standard_normal(sizes) * 100).astype(kind)
    return [each.tobytes() for each in ReferenceEvaluator(model).run(None, inputs)]


@pytest.mark.parametrize(
    ("model", "created"),
    [
        (dequantized((6, 4), 0), False),
        (dequantized((4, 4), 0), True),
        (dequantized((2, 3, 4), 0, "1,-2"), True),
        (dequantized((2, 3, 4), 1, "1,-2,3"), False),
        (dequantized((3, 4, 1, 1), -3, "100,-128,127,5"), False),
        (dequantized((4, 4, 1, 1), 0, "1,200,3,4", kind="uint8"), False),
    ],
    ids=["fails", "a square", "a block", "between", "from the end", "a convolution"],
)
def test_dequantized_along_another_axis(model, created):
    before = dml.onnxruntime.session(model, VERSION)
    assert before.created is created
    (said,) = [each for each in before.diagnostics if each.rule == RULE]
    assert said.message.split(": ")[1].startswith("the result is wrong" if created else "the session is not")
    found, written = legalized(model)
    assert (found.refusals, [each.names for each in found.changes]) == ([], [("dequantize-by-axis",)])
    onnx.checker.check_model(written, full_check=True)
    after = dml.onnxruntime.session(written, VERSION)
    assert (after.created, [each.rule for each in after.diagnostics if each.rule == RULE]) == (True, [])
    assert computed(written) == computed(model)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        (dequantized((6, 4), 1), VERSION),
        (dequantized((6, 4), -1), VERSION),
        (dequantized((6,), 0), VERSION),
        (dequantized((1, 4), 0), VERSION),
        (dequantized((6, 4), 0, opset=19), VERSION),
        (dequantized((6, 4), 0), "1.30.0"),
        (dequantized((6, 4), 0), "1.19.2"),
    ],
    ids=[
        "the last axis",
        "the last from the end",
        "a vector",
        "one scale",
        "an older opset",
        "corrected",
        "on the CPU",
    ],
)
def test_dequantized_as_it_says(model, version):
    session = dml.onnxruntime.session(model, version)
    assert (session.created, [each.rule for each in session.diagnostics if each.rule == RULE]) == (True, [])
    found, _ = legalized(model, version)
    assert (found.refusals, "dequantize-by-axis" in str(found.changes)) == ([], False)


def test_weights_of_a_convolution_for_quantized_elements():
    """The DequantizeLinear becomes part of the operator, which knows no axis."""
    model = models.text(
        """(uint8[1,4,5,5] x) => (uint8[?,?,?,?] y) <int8[3,4,1,1] w = {1,2,3,4,5,6,7,8,9,1,2,3}, float s = {0.5},
        uint8 z = {3}, float[3] t = {0.1,0.2,0.3}, int8[3] n = {0,0,0}> {
        d = DequantizeLinear(x, s, z) e = DequantizeLinear<axis=0>(w, t, n) c = Conv(d, e)
        y = QuantizeLinear(c, s, z) }""",
        21,
    )
    session = dml.onnxruntime.session(model, VERSION)
    assert (session.created, session.diagnostics) == (True, ())


def test_what_is_quantized_by_axis_is_refused():
    model = models.text(
        "(float[6,4] x) => (uint8[6,4] y) <float[6] s = {1,2,3,4,5,6}, uint8[6] z = {1,2,3,4,5,6}> "
        "{ a = Relu(x) y = QuantizeLinear<axis=0>(a, s, z) }",
        21,
    )
    assert dml.onnxruntime.session(model, VERSION).created is False
    found, written = legalized(model)
    assert written is None
    assert [each.reason for each in found.refusals] == [
        "y has 6 scales along axis 0, but its kernel applies them along the last one, and it rounds"
    ]


def test_a_function_with_another_rank_at_each_call():
    function = '<domain: "own", opset_import: ["" : 21]> F (x, s) => (y) { y = DequantizeLinear<axis=0>(x, s) }'
    text = """(int8[6,4] x, int8[6,4,5] z) => (float[6,4] y, float[6,4,5] w) <float[6] s = {1,2,3,4,5,6}>
        { y = own.F(x, s) w = own.F(z, s) }"""
    found, _ = legalized(models.text(text, 21, functions=function))
    assert [each.reason.split(", and ")[-1] for each in found.refusals] == [
        "its ranks differ between the calls of its function"
    ]
