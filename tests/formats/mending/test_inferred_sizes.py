"""legalize removes allowzero where DirectML's kernel of a Reshape does not infer a size."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.mending import mended_model
from dmlsplit.onnxruntime.inferred_sizes import uninferred_sizes
from dmlsplit.onnxruntime.node_faults import faults_in
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.target import find_target
from tests import models

VERSION = "1.24.4"
RULE = "model/inferred-size"


def legalized(model, version=VERSION):
    with mended_model(model, find_target(onnxruntime=version)) as found:
        return found, onnx.load_from_string(b"".join(map(bytes, found.copied()))) if found.parts else None


def reshaped(shape, allowzero=1, sizes="2,3,4", opset=17, kind="float"):
    result = ",".join("?" for _ in shape)
    constant = f"<int64[{len(shape)}] s = {{{','.join(map(str, shape))}}}>"
    return models.text(
        f"({kind}[{sizes}] x) => ({kind}[{result}] y) {constant} {{ y = Reshape<allowzero={allowzero}>(x, s) }}", opset
    )


def joined(first):
    """A Reshape to a shape that ends with a -1; `first` computes its first size."""
    return models.text(
        f"(float[N,3,4] x) => (float[?,?] y) <int64[1] m = {{-1}}, int64[1] two = {{2}}> "
        f"{{ {first} s = Concat<axis=0>(n, m) y = Reshape<allowzero=1>(x, s) }}"
    )


OPEN = reshaped((-1, 4), sizes="N,3,4")
COMPUTED = joined("n = Shape<end=1>(x)")
OUTER = models.text(
    """(float[2,3] x, bool c) => (float[?] y) <int64[1] s = {-1}> { y = If(c) <
    then_branch = t () => (float[?] p) { p = Reshape<allowzero=1>(x, s) },
    else_branch = e () => (float[?] q) { n = Neg(x) q = Reshape(n, s) }> }"""
)


def computed(model):
    """The results for ascending numbers, an open size being 2."""
    inputs = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        sizes = [2 if each.dim_param else each.dim_value for each in tensor.shape.dim]
        inputs[value.name] = np.arange(np.prod(sizes, dtype=int)).reshape(sizes).astype(kind)
    found = ReferenceEvaluator(model).run(None, inputs)
    return [(each.shape, each.tobytes()) for each in found]


@pytest.mark.parametrize(
    ("model", "created"),
    [
        (reshaped((2, -1)), False),
        (reshaped((-1,)), False),
        (reshaped((6, 4, -1), allowzero=2), False),
        (reshaped((-1, 4), sizes="0,4"), False),
        (reshaped((2, -1), kind="bool"), False),
        (joined("d = Shape(two) n = Add(d, d)"), True),
        (OPEN, True),
        (COMPUTED, True),
        (OUTER, True),
    ],
    ids=["last", "flat", "1", "empty", "bool", "joined", "open", "computed", "outer"],
)
def test_a_size_that_the_kernel_does_not_infer(model, created):
    before = dml.onnxruntime.session(model, VERSION)
    assert before.created is created
    (said,) = [each for each in before.diagnostics if each.rule == RULE]
    sessions = OnnxSessions(model, lambda *_: None)
    (found,) = faults_in(sessions.of(find_runtime(VERSION)).graphs, uninferred_sizes)
    assert (said.location.node, found.at_run) == (found.path, created)
    mending, written = legalized(model)
    assert (mending.refusals, [each.names for each in mending.changes]) == ([], [("drop-allowzero",)])
    onnx.checker.check_model(written, full_check=True)
    after = dml.onnxruntime.session(written, VERSION)
    assert (after.created, [each.rule for each in after.diagnostics if each.rule == RULE]) == (True, [])
    assert computed(written) == computed(model)


@pytest.mark.parametrize(
    "model",
    [
        reshaped((2, -1), allowzero=0),
        reshaped((2, 12)),
        reshaped((0, 5), sizes="0,4"),
        reshaped((2, -1), kind="string"),
        reshaped((2, -1), opset=23),
        models.text("(float[2,3] x, int64[1] s) => (float[?] y) { y = Reshape<allowzero=1>(x, s) }"),
        models.text("(float[2,3] x) => (float[?] y) <int64[1] s = {-1}> { y = Reshape(x, s) }"),
        models.text(
            """(float[1,4,2] x, float[2,2] w) => (float[?,?,?] y) <float[2] b = {1,2}, int64[3] s = {4,-1,1}>
            { m = MatMul(x, w) a = Add(m, b) y = Reshape<allowzero=1>(a, s) }"""
        ),
    ],
    ids=["without", "no -1", "a 0", "strings", "on the CPU", "a given shape", "no attribute", "merged"],
)
def test_other_reshapes_stay(model):
    session = dml.onnxruntime.session(model, VERSION)
    assert (session.created, [each for each in session.diagnostics if each.rule == RULE]) == (True, [])
    mending, _ = legalized(model)
    assert "drop-allowzero" not in [name for change in mending.changes for name in change.names]


def test_a_constant_of_the_graph_around_is_known_from_1_30_on():
    assert dml.onnxruntime.session(OUTER, "1.30.0").created is False


FUNCTION = '<domain: "own", opset_import: ["" : 17]> F (x, s) => (y) { y = Reshape<allowzero=1>(x, s) }'
CALLS = """(float[2,3] x, float[Z,3] z) => (float[?] y, float[?,?] w)
    <int64[1] s = {-1}, int64[2] t = {T}> { y = own.F(x, s) w = own.F(z, t) }"""


def test_a_function_whose_calls_all_have_a_size_to_infer():
    model = models.text(CALLS.replace("Z", "5").replace("T", "5,-1"), functions=FUNCTION)
    mending, written = legalized(model)
    assert (mending.refusals, len(mending.changes)) == ([], 1)
    assert dml.onnxruntime.session(written, VERSION).created
    assert computed(written) == computed(model)


def test_a_function_with_a_call_whose_shape_has_a_0():
    mending, written = legalized(models.text(CALLS.replace("Z", "0").replace("T", "5,0"), functions=FUNCTION))
    assert written is None
    assert [each.path for each in mending.refusals] == ["y/y"]
