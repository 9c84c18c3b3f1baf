"""What explain says became of a node: the pass that does it, where it runs, what is submitted, and what is wrong."""

from __future__ import annotations

import json

import pytest

import dmlsplit as dml
from dmlsplit.onnxruntime import explain, on_onnxruntime, passes
from dmlsplit.onnxruntime.explaining import BRANCHES, Fate, NodeState, Placement
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.verdicts.model_placements import Why
from tests.effort import calls
from tests.models import text

GLU = "(float[1,8,4,4] x) => (float[1,4,4,4] o) { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"


PADS = "(float[1,2,4,4] x) => (float[?,?,?,?] o) <int64[8] p = {0,0,1,1,0,0,1,1}>"
IMAGE = "(float[1,2,4,4] x) => (float[?,?,?,?] o) <float[2,2,1,1] w = {1,2,3,4}, float[2,1,1] c = {1,2}>"
MATRIX = "(float[2,6] x, float[2,6] y, float[6,6] w) => (float[?,?] o)"
CONSTANTS = (
    "(float[2,6] x) => (float[?,?] o, float[?,?] u) <float one = {1}, float uno = {1}, float[6] r = {1,2,3,4,5,6}>"
)
VECTORS = (
    "(float[2,3,6] x, float[2,3,6] z) => (float[2,3,6] o) <float[6] g = {1,1,1,1,1,1}, float[6] b = {0,0,0,0,0,0}, "
    "float one = {1}, float two = {2}, float three = {3}, float half = {0.5}, float root = {1.4142135}, "
    "float k = {0.044715}, float c = {0.7978845608}>"
)
GELU = "d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) o = Mul(p, half)"
NORMALIZATION = (
    "m = ReduceMean<axes=[-1]>(x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean<axes=[-1]>(p) a = Add(v, half) "
    "s = Sqrt(a) n = Div(d, s) f = Mul(n, g) o = Add(f, b)"
)
CHOICE = "(float[2,6] x) => (float[2,6] o, float[2,6] u) <bool t = {1}>"
TAKEN = "<then_branch = b () => (float[2,6] p) {{ [a] p = {} }}, else_branch = e () => (float[2,6] q) {{ q = Neg(x) }}>"
CHANGED = {
    "constant_nodes": (
        f"{CONSTANTS} {{ k = Constant<value_float = 2.0>() o = Mul(x, k) u = Abs(x) }}",
        "k",
        Fate.FOLDED,
    ),
    "eliminate_identities": (f"{CONSTANTS} {{ a = Identity(x) o = Neg(a) u = Abs(x) }}", "a", Fate.REMOVED),
    "remove_first_noops": ("(float[2,6] x) => (float[2,6] o) { a = Cast<to=1>(x) o = Neg(a) }", "a", Fate.REMOVED),
    "not_where_fusion": (
        "(bool[2,6] x, float[2,6] z) => (float[2,6] o) { a = Not(x) b = Neg(z) o = Where(a, b, z) }",
        "a",
        Fate.REMOVED,
    ),
    "pad_fusion": (f"{PADS} {{ a = Pad(x, p) o = AveragePool<kernel_shape=[2,2]>(a) }}", "a", Fate.FUSED),
    "shape_input_merge": (
        "(float[N,6] x) => (int64[2] a, int64[2] u) { a = Shape(x) n = Neg(x) u = Shape(n) }",
        "a",
        Fate.CHANGED,
    ),
    "constant_sharing": (f"{CONSTANTS} {{ o = Add(x, one) u = Mul(x, uno) }}", "u", Fate.CHANGED),
    "first_subexpression_elimination": (
        f"{CHOICE} {{ a = Neg(x) b = Neg(x) o = Abs(a) e = Exp(b) u = If(t) {TAKEN.format('Abs(e)')} }}",
        "a",
        Fate.REMOVED,
    ),
    "constant_folding": (f"{CONSTANTS} {{ k = Neg(one) o = Mul(x, k) u = Abs(x) }}", "k", Fate.FOLDED),
    "identities_of_branches": (
        f"{CHOICE} {{ o = Abs(x) [i] w = If(t) {TAKEN.format('Identity(x)')} u = Neg(w) }}",
        "i.then_branch/a",
        Fate.REMOVED,
    ),
    "noops_of_branches": (
        f"{CHOICE} {{ o = Abs(x) [i] w = If(t) {TAKEN.format('Cast<to=1>(x)')} u = Neg(w) }}",
        "i.then_branch/a",
        Fate.REMOVED,
    ),
    "later_not_where_fusion": (
        "(bool[2,6] x, float[2,6] z) => (float[2,6] o) { a = Not(x) b = Not(a) o = Where(b, z, z) }",
        "a",
        Fate.REMOVED,
    ),
    "later_pad_fusion": (
        f"{PADS} {{ f = Add(p, p) a = Pad(x, f) o = AveragePool<kernel_shape=[2,2]>(a) }}",
        "a",
        Fate.FUSED,
    ),
    "shapes_of_branches": (
        "(float[N,6] x, float[N,6] z) => (int64[?] o, int64[?] u) <bool t = {1}> { [i] u = If(t) <"
        "then_branch = b () => (int64[?] p) { [a] p = Shape(x) }, else_branch = e () => (int64[?] q) { q = Shape(z) }"
        "> o = Shape(z) }",
        "o",
        Fate.CHANGED,
    ),
    "folding_behind_branches": (
        "(float[2,6] x, float[N,6] z) => (int64[?] u) <bool t = {1}> { [i] w = If(t) <"
        "then_branch = b () => (float[?,?] p) { p = Exp(x) }, else_branch = e () => (float[?,?] q) { q = Abs(z) }"
        "> a = Shape(w) u = Abs(a) }",
        "a",
        Fate.FOLDED,
    ),
    "common_subexpression_elimination": (
        f"{CHOICE} {{ a = Neg(x) o = Abs(a) [i] w = If(t) {TAKEN.format('Identity(x)')} b = Neg(w) u = Exp(b) }}",
        "a",
        Fate.REMOVED,
    ),
    "reshape_fusion": (
        "(float[2,N,6] x, int64[1] e) => (float[?,?] o) <int64[1] n = {12}> "
        "{ c = Concat<axis=0>(e, n)  o = Reshape(x, c) }",
        "c",
        Fate.FOLDED,
    ),
    "gelu_fusion": (
        "(float[2,6] x) => (float[2,6] o) <float r = {1.4142135}, float one = {1.0}, float half = {0.5}>"
        "{ d = Div(x, r) e = Erf(d) a = Add(e, one) p = Mul(x, a) o = Mul(p, half) }",
        "e",
        Fate.FUSED,
    ),
    "layer_norm_fusion": (f"{VECTORS} {{ {NORMALIZATION} }}", "v", Fate.FUSED),
    "transpose_optimizer": (
        "(float[2,6] x) => (float[?,?] o){ a = Transpose<perm=[1,0]>(x) b = Relu(a) o = Transpose<perm=[1,0]>(b) }",
        "b",
        Fate.CHANGED,
    ),
    "ensure_unique_dq_for_node_unit": (
        "(uint8[2,6] x) => (float[2,6] o, float[2,6] u) <float s = {0.5}>"
        "{ d = DequantizeLinear(x, s) o = Abs(d) u = Neg(d) }",
        "u",
        Fate.CHANGED,
    ),
    "remove_noops": (
        f"{CONSTANTS} {{ a = Neg(x) s = Shape(a) u = Expand(one, s) o = Identity(a) }}",
        "o",
        Fate.REMOVED,
    ),
    "div_mul_fusion": (f"{CONSTANTS} {{ d = Div(one, x) o = Mul(d, x) u = Abs(x) }}", "d", Fate.FUSED),
    "gemm_sum_fusion": (f"{MATRIX} {{ g = Gemm(x, w) o = Sum(g, y) }}", "g", Fate.FUSED),
    "matmul_bn_fusion": (
        f"{VECTORS.replace('2,3,6', '3,6')[:-1]}, float[6,6] w = {{{','.join('1' * 36)}}}> "
        "{ m = MatMul(x, w) o = BatchNormalization(m, g, b, b, g) }",
        "m",
        Fate.FUSED,
    ),
    "matmul_add_fusion": (f"{MATRIX} {{ a = MatMul(x, w) o = Add(a, y) }}", "o", Fate.FUSED),
    "contiguous_reshapes": (
        "(float[2,6] x) => (float[3,4] o) <int64[2] s = {4,3}, int64[2] u = {3,4}>"
        "{ a = Reshape(x, s) o = Reshape(a, u) }",
        "a",
        Fate.FUSED,
    ),
    "gemm_transpose_fusion": (f"{MATRIX} {{ t = Transpose(w) o = Gemm(x, t) }}", "t", Fate.FUSED),
    "conv_fusion": (f"{IMAGE} {{ a = Conv(x, w) o = Mul(a, c) }}", "a", Fate.FUSED),
    "relu_clip_fusion": ("(float[2,6] x) => (float[2,6] o) { a = Relu(x) o = Clip(a) }", "a", Fate.FUSED),
    "function_expansion": ("(float[2,6] x) => (float[2,6] o) { a = Neg(x) o = HardSwish(a) }", "o", Fate.CHANGED),
    "double_qdq_pairs_remover": (
        "(float[2,6] x) => (float[2,6] o) <float s = {0.5}, float t = {0.25}, uint8 z = {0}> "
        "{ a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) c = QuantizeLinear(b, t, z) "
        "o = DequantizeLinear(c, t, z) }",
        "b",
        Fate.REMOVED,
    ),
    "qdq_propagation": (
        "(uint8[2,6] x) => (float[?,?] o) <float s = {0.5}, uint8 z = {3}>"
        "{ d = DequantizeLinear(x, s, z) t = Transpose(d) o = Relu(t) }",
        "o",
        Fate.CHANGED,
    ),
    "weight_bias_quantization": (
        "(uint8[2,6] x) => (float[2,6] o) <float s = {0.5}, uint8 z = {3}, float[6] b = {1,2,3,4,5,6}, float[6,6] w = "
        f"{{{','.join('1' * 36)}}}> {{ d = DequantizeLinear(x, s, z) g = Gemm(d, w, b) q = QuantizeLinear(g, s, z) "
        "o = DequantizeLinear(q, s, z) }",
        "g",
        Fate.CHANGED,
    ),
    "where_dummy_dq": (
        "(uint8[2,6] x, bool[2,6] c) => (uint8[2,6] o) <float s = {0.5}, uint8 z = {3}, float k = {1}>"
        "{ d = DequantizeLinear(x, s, z) w = Where(c, d, k) o = QuantizeLinear(w, s, z) }",
        "w",
        Fate.CHANGED,
    ),
    "qdq_selector_action_transformer": (
        "(uint8[2,6] x) => (uint8[?,?] o) <float s = {0.5}, uint8 z = {3}>"
        "{ d = DequantizeLinear(x, s, z) t = Transpose(d) o = QuantizeLinear(t, s, z) }",
        "d",
        Fate.REMOVED,
    ),
    "matmul_integer_to_float": (
        "(uint8[2,6] x, uint8[6,6] w, float s) => (float[2,6] o) <float k = {0.5}>"
        "{ p = MatMulInteger(x, w) f = Cast<to=1>(p) t = Mul(s, k) o = Mul(f, t) }",
        "p",
        Fate.FUSED,
    ),
    "quick_gelu_fusion": (f"{MATRIX} {{ s = Sigmoid(x) o = Mul(x, s) }}", "s", Fate.FUSED),
    "fast_gelu_fusion": (
        f"{VECTORS} {{ p = Pow(x, three) q = Mul(p, k) r = Add(x, q) s = Mul(r, c)"
        "h = Tanh(s) a = Add(h, one) l = Mul(x, half) u = Mul(l, a) o = Neg(u) }",
        "h",
        Fate.FUSED,
    ),
    "contributed_gelu_fusion": (f"{VECTORS} {{ {GELU} }}", "e", Fate.FUSED),
    "later_layer_norm_fusion": (f"{VECTORS} {{ {NORMALIZATION} }}", "v", Fate.FUSED),
    "bias_gelu_fusion": (
        f"{VECTORS} {{ x2 = Add(x, g) {GELU.replace('(x,', '(x2,')} }}",
        "x2",
        Fate.FUSED,
    ),
    "later_matmul_add_fusion": (
        "(float[1,2,3] x, float[3,3] w, float[3,3] v, float[3,3] u) => (float[?,?,?] o) <float[3] r = {1,2,3}> { "
        "n = LayerNormalization(x, r) a = MatMul(n, w) b = Add(a, r) d = MatMul(n, v) e = MatMul(n, u) "
        "g = Mul(b, d) h = Mul(g, e) l = Add(h, r) o = Add(l, n) }",
        "b",
        Fate.CHANGED,
    ),
    "skip_layer_norm_fusion": (f"{VECTORS} {{ s = Add(x, z) o = LayerNormalization(s, g, b) }}", "s", Fate.FUSED),
    "matmul_transpose_fusion": (f"{MATRIX} {{ t = Transpose(w) o = MatMul(x, t) }}", "t", Fate.FUSED),
    "matmul_scale_fusion": (
        "(float[2,6] x, float[6,6] w) => (float[2,6] o) <float k = {0.5}> { m = Mul(x, k) o = MatMul(m, w) }",
        "m",
        Fate.FUSED,
    ),
    "matmul_activation_fusion": (
        f"{MATRIX} {{ t = Transpose(w) m = MatMul(x, t) o = Softmax(m) }}",
        "o",
        Fate.FUSED,
    ),
    "later_matmul_fusion": (
        "(float[2,6] x, float[6,6] w) => (float[2,6] o) <float k = {0.5}> "
        "{ t = Transpose(w) m = Mul(t, k) o = MatMul(x, m) }",
        "t",
        Fate.FUSED,
    ),
    "dml_operator_fusion": (f"{MATRIX} {{ a = Add(x, y) o = Relu(a) }}", "a", Fate.FUSED),
}
"""For each pass a model, a node of it, and what the pass makes of that node."""
OPSETS = {"not_where_fusion": 13, "later_not_where_fusion": 13, "gelu_fusion": 20, "later_layer_norm_fusion": 13}
"""Other opsets than 17."""
VERSIONS = dict.fromkeys(("shape_input_merge", "shapes_of_branches"), "1.18.0")
"""Other versions than 1.24.4."""


def test_every_pass_has_a_model_and_is_a_step():
    names = [each.change.__name__ for each in (*passes.BEFORE_PLACEMENT, *passes.PASSES)]
    assert list(CHANGED) == names, "CHANGED has a model for each pass, in their order"
    assert [step.name for step in explain(text(GLU), "a", "1.24.4").steps] == names


@pytest.mark.parametrize(("name", "case"), CHANGED.items(), ids=CHANGED)
def test_the_pass_that_changes_a_node(name, case):
    body, node, fate = case
    steps = explain(text(body, OPSETS.get(name, 17)), node, VERSIONS.get(name, "1.24.4")).steps
    assert [(step.name, step.fate) for step in steps if step.fate is not Fate.UNCHANGED] == [(name, fate)]


def test_the_node_that_is_left():
    found = explain(text(CHANGED["matmul_add_fusion"][0]), "a", "1.24.4")
    assert found.steps[-1].nodes == (NodeState("Gemm", ("x", "w", "y"), ("o",), ("a", "o")),)
    assert (found.is_gone, found.part.nodes, found.submitted) == (False, ("o",), ("DML_OPERATOR_GEMM",))


def test_what_is_read_in_place_of_a_removed_node():
    found = explain(text(CHANGED["common_subexpression_elimination"][0]), "a", "1.24.4")
    step = next(step for step in found.steps if step.fate is Fate.REMOVED)
    assert (step.instead, found.is_gone, found.placement, found.part) == (("b",), True, None, None)


def test_passes_that_the_optimization_level_leaves_out():
    options = dml.onnxruntime.SessionOptions(optimization=0)
    found = explain(text(CHANGED["dml_operator_fusion"][0]), "a", "1.24.4", options=options)
    made = {step.name for step in found.steps if step.made}
    assert made == {each.change.__name__ for each in (*passes.BEFORE_PLACEMENT, *passes.PASSES) if each.level == 0}
    assert {step.fate for step in found.steps} == {Fate.UNCHANGED}


def test_a_concat_that_becomes_the_shape_of_a_reshape():
    body = (
        "(float[2,N,6] x) => (float[?,?] o) <int64[1] n = {12}, int64 zero = {0}, int64[1] first = {0}> "
        "{ s = Shape(x)  d = Gather(s, zero)  e = Unsqueeze(d, first)  c = Concat<axis=0>(e, n)  o = Reshape(x, c) }"
    )
    found = explain(text(body), "c", "1.24.4")
    (step,) = [step for step in found.steps if step.fate is not Fate.UNCHANGED]
    assert (step.name, step.fate, found.is_gone) == ("reshape_fusion", Fate.FOLDED, True)


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_a_judged_node_has_the_answer_of_on_onnxruntime(version):
    glu = text(GLU)
    (node,) = on_onnxruntime(glu, version)
    found = explain(glu, node.path, version)
    assert (found.path, found.operator, found.answer) == ("a", "Split", node.answer)
    assert found.placement == Placement("DML", True)
    assert (found.part.nodes, found.submitted) == (("a", "s", "o"), ("DML_OPERATOR_SPLIT",))
    assert found.part.operators == (
        "DML_OPERATOR_SPLIT",
        "DML_OPERATOR_ACTIVATION_SIGMOID",
        "DML_OPERATOR_ELEMENT_WISE_MULTIPLY",
    )


@pytest.mark.parametrize("node", ["a", "s", "o"])
def test_a_fault_is_shown_for_each_node_of_its_graph(node):
    found = explain(text(GLU), node, "1.24.4")
    assert [(each.fault.kind, each.cure.name) for each in found.findings] == [(FaultKind.GATE, "two-slices")]
    assert [each.rule for each in found.diagnostics] == ["graph/fused-wrongly"]


def test_a_node_on_the_cpu():
    body = "(float[N,6] x) => (int64[1] a, int64[1] b, float[?] u) { s = Shape(x)  a, b = Split(s)  u = Det(x) }"
    found = explain(text(body), "a", "1.24.4")
    assert (found.placement, found.answer.outcome) == (Placement("CPU", False, Why.SIZES), "CPU")
    assert explain(text(body), "u", "1.24.4").placement == Placement("CPU", False, Why.OPERATOR)


def test_sizes_of_the_session_and_of_the_first_run():
    glu = text(GLU.replace("[1,", "[N,"))
    assert explain(glu, "a", "1.24.4", run_dims={"N": 1}).placement.in_graph is False
    assert explain(glu, "a", "1.24.4", free_dimensions={"N": 1}).placement.in_graph is True
    shapes = explain(glu, "a", "1.24.4", run_shapes={"x": (1, 8, 4, 4)})
    assert shapes.answer == on_onnxruntime(glu, "1.24.4", run_shapes={"x": (1, 8, 4, 4)})[0].answer


TWINS = """(float[1,8,4,4] x, bool c) => (float[1,4,4,4] o) {
  z = If (c) <
    then_branch = t () => (float[1,4,4,4] p) { p, q = Split<axis=1>(x) },
    else_branch = e () => (float[1,4,4,4] u) { u, v = Split<axis=1>(x) }>
  o = Neg(z) }"""


def test_nodes_are_found_by_path_name_output_and_index():
    twins = text(TWINS)
    paths = [node.path for node in dml.onnx.read(twins)]
    assert [explain(twins, path, "1.24.4").path for path in paths] == paths
    assert [explain(twins, k, "1.24.4").path for k in range(2)] == paths
    assert [explain(twins, str(k), "1.24.4").path for k in range(2)] == paths
    assert explain(twins, "q", "1.24.4").path == paths[0]
    glu = text(GLU)
    glu.graph.node[1].name = "0"
    assert explain(glu, "0", "1.24.4").operator == "Sigmoid"
    assert explain(glu, 0, "1.24.4").operator == "Split"


def test_one_of_several_nodes_of_a_name():
    glu = text(GLU)
    glu.graph.node[1].name = glu.graph.node[2].name = "same"
    assert [explain(glu, f"same#{k}", "1.24.4").operator for k in range(2)] == ["Sigmoid", "Mul"]
    with pytest.raises(dml.InputError, match=r"2 nodes .*same#0 .*same#1"):
        explain(glu, "same", "1.24.4")


@pytest.mark.parametrize(
    ("node", "said"),
    [("gate", "'gate'"), ("Sigmoi", "'Sigmoi'"), (1, "node 1;"), (-1, "node -1;"), ("9" * 30, "'999"), ("#", "'#'")],
)
def test_nodes_that_are_not_there(node, said):
    with pytest.raises(dml.InputError, match=said):
        explain(text(GLU), node, "1.24.4")


def test_near_names_are_offered():
    glu = text(GLU)
    glu.graph.node[2].name = "encoder/gate"
    for node in ("gate", "Mul", "encoder/gaet"):
        with pytest.raises(dml.InputError, match="did you mean encoder/gate"):
            explain(glu, node, "1.24.4")


def test_the_call_of_a_function_has_its_nodes():
    function = """<domain: "own", opset_import: ["" : 17]> glu (x) => (o)
        { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"""
    called = text("(float[1,8,4,4] x) => (float[1,4,4,4] o) { o = own.glu(x) }", functions=function)
    called.graph.node[0].name = "gate"
    (node,) = dml.onnx.read(called)
    assert explain(called, node.path, "1.24.4").operator == "Split"
    with pytest.raises(dml.InputError, match=f"call of a function.*{node.path}"):
        explain(called, "gate", "1.24.4")


def test_a_branch_that_is_never_taken():
    condition = "i = Constant<value_int = 1>()  c = Cast<to=9>(i)  z = If"
    constant = text(TWINS.replace(", bool c)", ")").replace("z = If", condition))
    paths = [node.path for node in dml.onnx.read(constant)]
    fates = {}
    for path in paths:
        found = explain(constant, path, "1.24.4")
        fates[path] = (found.steps[0].name == BRANCHES, found.answer.outcome)
    assert sorted(taken for taken, _ in fates.values()) == [False, True]
    assert {outcome for taken, outcome in fates.values() if taken} == {"CPU"}


@pytest.mark.parametrize("node", ["a", "s"])
def test_json(node):
    found = explain(text(GLU), node, "1.24.4")
    said = json.loads(json.dumps(found.to_dict()))
    (state,) = found.steps[1].nodes
    assert said["steps"][1] == {
        "pass": "eliminate_identities",
        "level": 1,
        "made": True,
        "fate": "unchanged",
        "nodes": [{"operator": state.operator, "inputs": [*state.inputs], "outputs": [*state.outputs], "of": [node]}],
        "instead": [],
        "doubts": [],
    }
    assert said["placement"] == {"provider": "DML", "in_graph": True, "why": None, "types": []}
    assert said["findings"][0]["fault"] == "gate"
    assert (said["onnxruntime"] is None) == (node == "s")


def test_work_is_linear_in_the_nodes():
    def work(count):
        steps = " ".join(f"h{i + 1} = Tanh(h{i})" for i in range(count))
        chain = text(f"(float[1,8] h0) => (float[1,4] o) {{ {steps} o, p = Split<axis=1>(h{count}) }}")
        return calls(lambda: explain(chain, "o", "1.24.4"))

    work(2)
    assert work(200) < 2.5 * work(100)
