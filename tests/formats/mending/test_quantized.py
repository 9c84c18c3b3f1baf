"""legalize removes Relus and Clips that quantization makes useless, and keeps other nodes in floating point."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.mending import mended_model
from dmlsplit.targets.target import find_target
from tests import models

NEWEST = "1.24.4"
HEAD = """(uint8[1,3,4,4] x, int8[3,3,1,1] w, uint8[1,3,4,4] v) => (uint8[?,?,?,?] y) <float s = {0.05}, uint8 z = {0},
    uint8 o = {128}, float lo = {0}, float hi = {12.75}, float low = {-9}, float high = {9}, float large = {1e30},
    float[1] vs = {0.05}, uint8[1] vz = {0}, float[3] t = {0.01,0.02,0.03}, int8[3] n = {0,0,0}, int8 b = {2},
    uint8[3] p = {1,2,3}, int8[4,3] m = {1,-2,3,-4,5,-6,7,-8,9,-10,11,-12}>"""
FRONT = "d = DequantizeLinear(x, s, z)"
PRODUCT = f"{FRONT} e = DequantizeLinear(m, t) c = MatMul(d, e)"
DYNAMIC = """f = Cast<to=1>(x) q, qs, qz = DynamicQuantizeLinear(f) i = MatMulInteger(q, m, qz, b) g = Cast<to=1>(i)
    k = Mul(qs, t) c = Mul(g, k)"""
CONV = f"{FRONT} e = DequantizeLinear<axis=0>(w, t, n) c = Conv(d, e)"


def legalized(model, version=NEWEST):
    with mended_model(model, find_target(onnxruntime=version)) as found:
        return found, onnx.load_from_string(b"".join(map(bytes, found.copied()))) if found.parts else None


def computed(model):
    random = np.random.default_rng(1)
    types = {v.name: v.type.tensor_type for v in model.graph.input}
    inputs = {
        name: random.integers(-128, 128, [d.dim_value for d in kind.shape.dim]).astype(
            np.int8 if kind.elem_type == onnx.TensorProto.INT8 else np.uint8
        )
        for name, kind in types.items()
    }
    with np.errstate(all="ignore"):
        return [each.tobytes() for each in ReferenceEvaluator(model).run(None, inputs)]


@pytest.mark.parametrize(
    ("version", "body", "name", "left"),
    [
        ("1.24.4", f"{CONV} r = Relu(c) y = QuantizeLinear(r, s, z)", "remove-clip", "Conv QuantizeLinear"),
        ("1.24.4", f"{CONV} r = Relu(c) y = QuantizeLinear(r, s)", "remove-clip", "Conv QuantizeLinear"),
        ("1.22.0", f"{CONV} r = Clip(c, lo, hi) y = QuantizeLinear(r, s, z)", "remove-clip", "Conv QuantizeLinear"),
        ("1.30.0", f"{FRONT} c = Add(d, d) [r] r = Relu(c) y = QuantizeLinear(r, s, z)", "remove-clip", None),
        (
            "1.24.4",
            f"{FRONT} c = Add(d, d) i = Identity(c) r = Relu(i) y = QuantizeLinear(r, s, z)",
            "max-quantized",
            None,
        ),
        ("1.24.4", f"{FRONT} c = Add(d, d) y = QuantizeLinear(c, vs, vz)", "max-quantized", "Add Max QuantizeLinear"),
        (
            "1.22.0",
            f"{FRONT} c = Softmax(d) y = QuantizeLinear(c, s, z)",
            "max-quantized",
            "Softmax Max QuantizeLinear",
        ),
        (
            "1.24.4",
            "d = DequantizeLinear(x, large, z) e = DequantizeLinear(v, large, z) c = Add(d, e) r = Relu(c) "
            "y = QuantizeLinear(r, s, z)",
            "max-quantized",
            None,
        ),
        (
            "1.24.4",
            f"{FRONT} e = DequantizeLinear(w, s, b) c = Conv(d, e) y = QuantizeLinear<axis=1>(c, t, p)",
            "max-quantized",
            "Conv Max QuantizeLinear",
        ),
        ("1.24.4", f"{PRODUCT} y = QuantizeLinear(c, s, z)", "zero-points", "Constant MatMul QuantizeLinear"),
        ("1.20.1", f"{PRODUCT} y = Cast<to=2>(c)", "zero-points", "Constant MatMul Cast"),
        ("1.30.0", f"{DYNAMIC} y = Cast<to=2>(c)", "zero-points", None),
        (
            "1.18.0",
            f"{FRONT} e = DequantizeLinear<axis=0>(w, t) c = Conv(d, e) y = QuantizeLinear(c, s, z)",
            "zero-points",
            None,
        ),
    ],
    ids=[
        "Relu",
        "without zero point",
        "Clip",
        "with a name",
        "behind an Identity",
        "vectors",
        "no kernel",
        "elements may overflow",
        "a convolution to several scales",
        "a product by column",
        "a product in floats",
        "dynamic quantization",
        "a convolution by channel",
    ],
)
def test_operators_for_quantized_elements(version, body, name, left):
    model = models.text(f"{HEAD} {{ {body} }}", 19)
    assert dml.onnxruntime.session(model, version).created is False
    found, written = legalized(model, version)
    assert (found.refusals, [each.names for each in found.changes]) == ([], [(name,)])
    onnx.checker.check_model(written, full_check=True)
    assert dml.onnxruntime.session(written, version).created is True
    assert computed(written) == computed(model)
    if left is not None:
        assert [node.op_type for node in written.graph.node if node.op_type != "DequantizeLinear"] == left.split()


def test_a_kernel_that_is_made_as_the_model_runs():
    head = HEAD.replace("uint8[1,3,4,4] x", "uint8[N,3,4,4] x")
    model = models.text(f"{head} {{ {PRODUCT} y = QuantizeLinear(c, s, z) }}", 19)
    session = dml.onnxruntime.session(model, NEWEST)
    (said,) = [each for each in session.diagnostics if each.rule == "model/quantized"]
    assert session.created is True
    assert "1 and 3 of m: Run fails; give the quantized tensor as many zero points as scales" in said.message
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("zero-points",)]
    assert "model/quantized" not in [each.rule for each in dml.onnxruntime.session(written, NEWEST).diagnostics]


def test_a_tensor_that_two_products_read_gets_its_zero_points_once():
    model = models.text(f"{HEAD} {{ {PRODUCT} f = MatMul(d, e) h = Sub(c, f) y = QuantizeLinear(h, s, z) }}", 19)
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("zero-points",)]
    assert dml.onnxruntime.session(written, NEWEST).created is True


def test_zero_points_that_are_computed():
    """MatMulInteger has one for all columns, which is an input here: no change is known."""
    head = HEAD.replace("uint8[1,3,4,4] v)", "uint8[1,3,4,4] v, int8 u)")
    found, written = legalized(models.text(f"{head} {{ {DYNAMIC.replace('qz, b', 'qz, u')} y = Cast<to=2>(c) }}", 19))
    assert written is None
    assert [each.reason for each in found.refusals] == [
        "a MatMulIntegerToFloat replaces c, with a different number of zero points than of scales, and its kernel "
        "cannot be created: 1 and 3 of m"
    ]


@pytest.mark.parametrize(
    "behind", ["y = Cast<to=2>(c)", "h = Add(c, t) y = Cast<to=2>(h)"], ids=["alone", "with a bias"]
)
def test_a_product_without_zero_points_gets_none(behind):
    model = models.text(f"{HEAD} {{ {DYNAMIC.replace(', b)', ')')} {behind} }}", 19)
    assert dml.onnxruntime.session(model, NEWEST).created is True


def test_a_sum_with_a_scale_for_each_channel():
    body = f"{FRONT} e = DequantizeLinear<axis=0>(p, t) c = Add(d, e) y = QuantizeLinear(c, s, z)"
    model = models.text(f"{HEAD.replace('[1,3,4,4]', '[1,3,4,3]')} {{ {body} }}", 19)
    assert dml.onnxruntime.session(model, NEWEST).created is False
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("max-quantized",)]
    assert dml.onnxruntime.session(written, NEWEST).created is True


def test_operators_for_quantized_elements_of_the_model():
    body = "y = QLinearConv(x, s, z, w, t, {}, s, z)"
    created = [dml.onnxruntime.session(models.text(f"{HEAD} {{ {body.format(n)} }}"), NEWEST).created for n in "nb"]
    assert created == [True, False]


def test_what_check_says_is_what_legalize_does():
    model = models.text(f"{HEAD} {{ {CONV} r = Relu(c) y = QuantizeLinear(r, s, z) }}", 19)
    (said,) = [each for each in dml.onnxruntime.session(model, NEWEST).diagnostics if each.rule == "model/quantized"]
    assert said.message.endswith("the session is not created; remove the Relu or Clip, as dmlsplit legalize does")
    assert said.location.node == "c"


def test_a_clip_that_changes_something_stays():
    body = f"{CONV} r = Clip(c, low, high) y = QuantizeLinear(r, s, z)"
    found, written = legalized(model := models.text(f"{HEAD} {{ {body} }}", 19))
    assert (found.changes, written) == ([], model)


def test_a_clip_whose_bounds_are_in_the_wrong_order_stays():
    """All that it gives is its higher bound: it is no Clip that changes nothing, whatever the bounds are."""
    body = f"{CONV} r = Clip(c, high, low) y = QuantizeLinear(r, s, o)"
    found, written = legalized(model := models.text(f"{HEAD} {{ {body} }}", 19))
    assert (found.changes, written) == ([], model)


def test_a_clip_of_a_function_stays():
    """Other calls may need it: their scales are others."""
    function = """<domain: "own", opset_import: ["" : 19]> F (c, s, z) => (y) { d = DequantizeLinear(c, s, z)
        a = Add(d, d) r = Relu(a) y = QuantizeLinear(r, s, z) }"""
    model = models.text(f"{HEAD} {{ f = own.F(x, s, z) y = own.F(f, s, o) }}", 19, functions=function)
    found, written = legalized(model)
    assert [each.names for each in found.changes] == [("max-quantized",)]
    assert [node.op_type for node in written.functions[0].node][1:4] == ["Add", "Max", "Relu"]
    assert computed(written) == computed(model)
