"""The pass dmlsplit.onnxruntime.passes.shape_input_merge."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.passes.shape_input_merge import shape_input_merge
from dmlsplit.targets.runtime_versions import find_runtime
from tests.models import text
from tests.onnxruntime.passes import NONE, left
from tests.onnxruntime.placements import placed, where

HEAD = "(float[N,6] x, float[N,6] y, float[?,6] z) => (int64[2] o, int64[2] p)"


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("o = Shape(x) p = Shape(y)", ["o = Shape(y)", "p = Shape(y)"]),
        ("o = Shape(x) p = Shape(z)", ["o = Shape(x)", "p = Shape(z)"]),
        ("o = Shape(x) t = Transpose(y) p = Shape(t)", ["o = Shape(x)", "p = Shape(t)"]),
        ("o = Shape(x) s = Shape(z) e = Expand(y, s) p = Shape(e)", ["o = Shape(x)", "p = Shape(e)"]),
    ],
    ids=["the last of the file is the first of the walk", "a size without a name", "other sizes", "computed sizes"],
)
def test_the_tensors_that_shapes_are_taken_of(body, read):
    sessions = OnnxSessions(loading.without_weights(text(f"{HEAD} {{ {body} }}")), no_external_data)
    graph = sessions.of(find_runtime("1.18.0"), NONE, Inputs()).graphs[-1].graph
    shape_input_merge(graph)
    assert [each for each in left(graph) if each[0] in "op"] == read


@pytest.mark.parametrize(("declared", "read"), [("N,6", "o = Shape(e)"), ("M,6", "o = Shape(x)")])
def test_computed_sizes_that_the_file_declares(declared, read):
    """Observed with 1.18.0."""
    made = text(f"{HEAD} {{ o = Shape(x) s = Shape(z) e = Expand(y, s) p = Shape(e) }}")
    sizes = [each if each.isalpha() else int(each) for each in declared.split(",")]
    made.graph.value_info.append(helper.make_tensor_value_info("e", TensorProto.FLOAT, sizes))
    graph = OnnxSessions(made, no_external_data).of(find_runtime("1.18.0"), NONE, Inputs()).graphs[-1].graph
    shape_input_merge(graph)
    assert read in left(graph)


@pytest.mark.parametrize(("declared", "read"), [("?,?", "o = Shape(x)"), ("2,6", "o = Shape(q)")])
def test_sizes_behind_computed_ones(declared, read):
    """Those that the file declares of an output are known at once. Observed with 1.18.0."""
    head = f"(float[2,6] x, float[?,6] z) => (int64[2] o, int64[2] p, float[{declared}] e)"
    made = text(f"{head} {{ o = Shape(x) s = Shape(z) e = Reshape(x, s) q = Relu(e) p = Shape(q) }}")
    graph = OnnxSessions(made, no_external_data).of(find_runtime("1.18.0"), NONE, Inputs()).graphs[-1].graph
    shape_input_merge(graph)
    assert read in left(graph)


@pytest.mark.parametrize(
    ("inputs", "read"),
    [("x, w, w, , , e, e", "o = Shape(q)"), ("e, w, w", "o = Shape(y)")],
    ids=["initial states", "the sequence"],
)
def test_what_decides_about_the_sizes_of_a_recurrence(inputs, read):
    """Observed with 1.18.0."""
    head = "(float[1,2,6] x, float[?,2,6] z, float[1,24,6] w, float[1,1,2,6] y) => (int64[4] o, int64[4] p)"
    body = f"o = Shape(y) s = Shape(z) e = Expand(x, s) q = LSTM<hidden_size = 6>({inputs}) p = Shape(q)"
    graph = OnnxSessions(text(f"{head} {{ {body} }}"), no_external_data).of(find_runtime("1.18.0"), NONE, Inputs())
    shape_input_merge(made := graph.graphs[-1].graph)
    assert read in left(made)


@pytest.mark.parametrize(("version", "at"), [("1.18.0", "folded"), ("1.20.1", "DML")])
def test_the_shape_of_a_branch_that_takes_its_ifs_place(version, at):
    branches = (
        "then_branch = b () => (int64[?] p) { p = Shape(x) }, else_branch = e () => (int64[?] q) { q = Shape(z) }"
    )
    body = f"[i] w = If(t) <{branches}> o = Abs(w) s = Shape(y) p = Neg(s)"
    found = placed(f"{HEAD.replace('2', '?')} <bool t = {{1}}> {{ {body} }}", version)
    assert where(found)["i.then_branch/p"] == at


@pytest.mark.parametrize(
    ("body", "created"),
    [
        ("s = Shape(d) o = ConstantOfShape(s) p = Exp(d)", True),
        ("s = Shape(d) o = ConstantOfShape(s) t = Shape(d) n = Abs(t) p = ConstantOfShape(n)", False),
        ("s = Shape(d) o = ConstantOfShape(s) t = Shape(x) n = Abs(t) p = ConstantOfShape(n)", False),
        ("s = Shape(d) o = ConstantOfShape(s) t = Shape(x) n = Abs(t) p = Expand(d, n)", False),
        ("s = Shape(p) o = ConstantOfShape(s)", True),
        ("s = Shape(p) t = Shape(x) n = Mul(s, t) o = ConstantOfShape(n)", False),
    ],
    ids=["one Shape", "two of it", "one of it and one of another", "another reader", "an output", "an output and two"],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.19.2"])
def test_the_dequantize_linear_that_a_shape_read_stays(body, created, version):
    """Each reader had its own. A graph of DirectML in which nothing is read fails the session. Observed."""
    head = "(uint8[2,6] i, float[2,6] x) => (float[?,?] o, float[?,?] p) <float k = {2}>"
    dequantized = "p" if "(p)" in body else "d"
    found = placed(f"{head} {{ {dequantized} = DequantizeLinear(i, k) {body} }}", version)
    assert found.created is (created or version == "1.19.2")


@pytest.mark.parametrize(("version", "at"), [("1.18.0", "folded"), ("1.19.2", "DML"), ("1.30.0", "DML")])
@pytest.mark.parametrize(
    ("body", "merged"),
    [
        ("[s] m = Shape(d) o = Neg(m) [t] n = Shape(d) p = Abs(n)", True),
        ("[s] m = Shape(d) o = Neg(m) [t] n = Shape(y) p = Abs(n)", True),
        ("[s] m = Shape(d) o = Neg(m) [t] n = Shape<start = 1>(d) p = Abs(n)", False),
    ],
    ids=["of one", "of another with the same sizes", "of a part"],
)
def test_shapes_that_read_one_dequantize_linear_are_one(version, at, body, merged):
    """Observed."""
    head = "(uint8[N,6] i, float[N,6] y) => (int64[?] o, int64[?] p) <float k = {2}>"
    found = where(placed(f"{head} {{ d = DequantizeLinear(i, k) {body} }}", version))
    assert [found["s"], found["t"]].count("folded") == (merged and at == "folded")
