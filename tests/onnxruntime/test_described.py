"""The operators that kernels submit, derived: equal to what ONNX Runtime submitted for models of one node."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import pytest

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.schema import operators
from dmlsplit.formats import any_operator_json
from dmlsplit.onnxruntime.described import operators_in, refusals
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import NodeOperators
from tests import models
from tests.onnxruntime import kernels
from tests.onnxruntime.kernels import OTHERS, as_json, without_flags

NEWEST = "1.24.4"
RESHAPED = "(float[2,3] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Reshape(x, s) }"
WITHOUT_KERNEL = {"CastLike", "LpNormalization"}
"""The operators in models of the table that have no row in KERNELS."""
UNASKED = "(float[2,3,4] x) => (float[2,3,4] y) { a = Relu(x) y = Sigmoid(a) }"


@cache
def table():
    return kernels.read()


def test_other_versions_keep_their_answers_where_one_is_asked():
    before = {
        "versions": ["1.18.0", "1.24.4"],
        "rows": [["a", 17, [["x"], ["y"]], [0, 1]], ["gone", 17, [["z"]], [0, 0]]],
    }
    after = {"versions": ["1.18.0", "1.20.1", "1.24.4"], "rows": [["a", 17, [["x"], ["y"]], [0, 1, 1]]]}
    assert kernels.table({"1.20.1": [["a", 17, ["y"]]]}, before) == after


def test_all_versions_are_asked_about_a_new_model(monkeypatch):
    before = {"versions": ["1.18.0", "1.24.4"], "rows": [["a", 17, [["x"]], [0, 0]]]}
    monkeypatch.setattr(kernels, "samples", lambda: [("a", 17), ("b", 17)])
    assert kernels.unasked(["1.24.4"], before) == "1 models are new, first b: ask 1.18.0 too"
    assert kernels.unasked(["1.24.4", "1.18.0"], before) == ""


def derived(model, version=NEWEST):
    sessions = OnnxSessions(model, lambda *_: None)
    return [
        each for graph in sessions.of(find_runtime(version), SessionOptions()).graphs for each in operators_in(graph)
    ]


def differences(desc, expected):
    """Each member that a derived operator has otherwise than the submitted one of its type: derived, submitted."""
    alike = next((each["Desc"] for each in expected if each["Type"] == desc["Type"]), {})
    return {name: (value, alike.get(name)) for name, value in desc["Desc"].items() if value != alike.get(name)}


def test_a_row_of_the_operator_table_has_the_operator_that_was_submitted():
    numbers = {f"DML_OPERATOR_{operator.name}": operator.number for operator in operators()}
    submitted = defaultdict(set)
    for graph, opset, answers, _ in table()["rows"]:
        nodes = models.text(graph, opset).graph.node
        if len(nodes) == 1:
            submitted[nodes[0].op_type].update(numbers[each["Type"]] for answer in answers for each in answer or ())
    assert len(submitted) > 80
    rows = {name: row_of(name).dml for name, found in submitted.items() if found}
    assert {name: dml for name, dml in rows.items() if dml not in (None, *submitted[name])} == {}


@pytest.mark.parametrize("version", table()["versions"])
def test_derived_operators_are_those_that_were_submitted(version):
    """Splits, Joins and the Clip behind a Cast to BOOL are not derived here."""
    column = table()["versions"].index(version)
    right, left = 0, set()
    for graph, opset, answers, of_version in table()["rows"]:
        submitted = answers[of_version[column]]
        if submitted is None:
            continue
        expected = [
            without_flags(json.loads(any_operator_json.dumps(any_operator_json.loads(json.dumps(each)))))
            for each in submitted
        ]
        model = kernels.model(graph, opset)
        entries = derived(model, version)
        found = [as_json(desc) for each in entries for desc in each.operators]
        for desc in found:
            assert desc in expected, (graph, opset, desc["Type"], differences(desc, expected))
            right += 1
        ops = {node.name or node.output[0]: node.op_type for node in model.graph.node}
        reasons = {(ops.get(each.path, each.path), each.why) for each in entries if each.why}
        left |= reasons
        missing = [each for each in expected if each not in found and each["Type"] not in OTHERS]
        assert reasons or not missing or "Cast<to=9>" in graph, (graph, opset)
    assert right > 900
    assert len(left) < 12, left
    assert {op for op, why in left if why == "the operators of its kernel are not modelled"} == WITHOUT_KERNEL


def test_what_is_not_derived_is_named():
    found = derived(models.text("(float[2,3] x, int64[2] i) => (float[2,3] y) { y = Trilu(x) }"))
    assert all(each.why for each in found if each.path == "y")


def test_open_sizes_are_not_derived():
    (found,) = derived(models.text("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }"))
    assert (found.operators, found.why) == ((), "its sizes are open")


def test_a_fused_activation_is_in_the_operator_in_front_of_it():
    text = "(float[1,3,4,4] x, float[2,3,3,3] w) => (float[1,2,2,2] y) { c = Conv(x, w) y = LeakyRelu<alpha=0.5>(c) }"
    (found,) = derived(models.text(text))
    (operator,) = found.operators
    assert found.path == "y"
    assert as_json(operator)["Desc"]["FusedActivation"] == {
        "Type": "DML_OPERATOR_ACTIVATION_LEAKY_RELU",
        "Desc": {"Alpha": 0.5},
    }


def test_a_refusal_is_reported_on_the_node():
    tensor = {"DataType": "UINT32", "Sizes": [1, 1, 2, 3]}
    refused = AnyOperatorDesc(
        "ACTIVATION_RELU",
        {
            name: any_operator_json.loads(
                json.dumps({"Type": "ELEMENT_WISE_IDENTITY", "Desc": {"InputTensor": tensor, "OutputTensor": tensor}})
            ).members["InputTensor"]
            for name in ("InputTensor", "OutputTensor")
        },
    )
    found = list(refusals([NodeOperators("node", (refused,))], find_runtime(NEWEST)))
    assert found
    assert {each.location.node for each in found} == {"node"}
    assert all(each.rule.startswith("operator/") for each in found)


def test_nothing_is_refused_of_a_usual_model():
    found = derived(models.text(UNASKED))
    assert list(refusals(found, find_runtime(NEWEST))) == []
    assert [desc.operator.name for each in found for desc in each.operators] == [
        "ACTIVATION_RELU",
        "ACTIVATION_SIGMOID",
    ]


@pytest.mark.parametrize(("third", "is_derived"), [("MatMul(n, l)", False), ("Abs(n)", True)])
def test_products_of_what_may_be_an_attention_are_not_derived(third, is_derived):
    """AttentionFusion looks for a LayerNormalization that three of them read."""
    text = f"""(float[2,3,4] x, float[4,4] w) => (float[?,?,?] a, float[?,?,?] b, float[?,?,?] c)
        <float[4] g = {{1,1,1,1}}> {{
        n = LayerNormalization(x, g, g) k = Abs(w) l = Neg(w) p = MatMul(n, w) a = Mul(p, x) q = MatMul(n, k)
        b = Softmax(q) c = {third}
    }}"""
    found = {each.path: not each.why for each in derived(models.text(text))}
    assert [found[name] for name in "pab"] == [is_derived] * 3


@pytest.mark.parametrize(
    ("exponent", "operator"),
    [("", "ELEMENT_WISE_POW"), ("k = Constant<value_float=2.0>()", "ELEMENT_WISE_CONSTANT_POW")],
)
def test_the_operators_of_a_fused_graph_inside_a_node(exponent, operator):
    """The kernels of such a graph do not see the constants of a graph around it."""
    outer = "" if exponent else "k = Constant<value_float=2.0>()"
    text = f"""(bool c, float[2,3] x) => (float[2,3] y) {{
        {outer} y = If(c) <
            then_branch = t () => (float[2,3] a) {{ {exponent} a = Pow(x, k) }},
            else_branch = e () => (float[2,3] b) {{ b = Abs(x) }}
        >
    }}"""
    found = {each.path: [desc.operator.name for desc in each.operators] for each in derived(models.text(text))}
    assert found == {"y.then_branch/a": [operator], "y.else_branch/b": ["ELEMENT_WISE_ABS"]}


def test_a_node_inside_a_node_and_outside_of_fused_graphs_is_not_derived():
    text = """(bool c, float[2,3] x, float[N,3] z) => (float[?,?] y) {
        y = If(c) <
            then_branch = t () => (float[?,?] a) { a = Relu(z) },
            else_branch = e () => (float[?,?] b) { b = Abs(x) }
        >
    }"""
    found = {each.path: each.why for each in derived(models.text(text))}
    assert found["y.then_branch/a"] == "it is in a subgraph of a node, and in no fused graph"
    assert found["y.else_branch/b"] == ""


@pytest.mark.parametrize(
    ("sizes", "repeats", "tiled", "counts"),
    [
        ((2, 1, 1, 3, 5), (1, 1, 2, 1, 1), (2, 1, 3, 5), (1, 2, 1, 1)),
        ((2, 1, 1, 5), (1, 1, 2, 1), (1, 2, 1, 5), (1, 1, 2, 1)),
        ((1, 128, 4, 1, 5), (1, 1, 1, 2, 1), (128, 4, 1, 5), (1, 1, 2, 1)),
        ((2, 3, 4, 5, 6), (2, 1, 1, 2, 1), (2, 3, 4, 5, 6), (2, 1, 1, 2, 1)),
        ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)),
    ],
)
def test_a_tile_has_no_dimensions_that_stay_1(sizes, repeats, tiled, counts):
    """Observed with 1.18.0, 1.20.1 and 1.24.4."""
    whole = [size * count for size, count in zip(sizes, repeats, strict=True)]
    shapes = [",".join(map(str, each)) for each in (sizes, whole, repeats)]
    text = "(float[{}] x) => (float[{}] y) <int64[{}] r = {{{}}}> {{ y = Tile(x, r) }}"
    ((operator,),) = (
        each.operators for each in derived(models.text(text.format(*shapes[:2], len(repeats), shapes[2])))
    )
    members = operator.members
    assert (members["InputTensor"].sizes, members["Repeats"]) == (tiled, counts)


@pytest.mark.parametrize(
    ("body", "sizes", "read"),
    [
        ("ReduceMax<axes = [1], keepdims = 0>(t)", "2,3", (2, 3, 4)),
        ("ReduceMax<axes = [1], keepdims = 1>(t)", "2,1,3", (2, 3, 4)),
        ("Slice(t, a, b, a)", "2,1,3", (2, 3, 4)),
        ("Relu(t)", "2,4,3", (1, 2, 4, 3)),
    ],
)
def test_a_transpose_is_moved_over_what_leaves_fewer_dimensions(body, sizes, read):
    """It costs less behind it: dimensions of size 1 do not count. Observed with 1.18.0 and 1.24.4."""
    text = f"""(float[2,3,4] x) => (float[{sizes}] y) <int64[1] a = {{1}}, int64[1] b = {{2}}> {{
        n = Neg(x) t = Transpose<perm = [0, 2, 1]>(n) y = {body}
    }}"""
    (operator,) = (desc for each in derived(models.text(text)) if each.path == "y" for desc in each.operators)
    assert operator.members["InputTensor"].sizes == read


def test_of_three_transposes_in_a_row_the_first_two_are_merged():
    """The third reads what the first does, and is moved over the reduction. Observed with 1.20.1 and 1.24.4."""
    text = """(float[3,5,1,5] x) => (float[5,1,3,5] a, float[5,3,1,5] b, float[1,3,5] y) {
        n = Neg(x) a = Transpose<perm = [1, 2, 0, 3]>(n) b = Transpose<perm = [3, 2, 1, 0]>(a)
        c = Transpose<perm = [3, 2, 1, 0]>(b) y = ReduceMax<axes = [0], keepdims = 0>(c)
    }"""
    (reduced,) = (desc for each in derived(models.text(text)) if each.path == "y" for desc in each.operators)
    assert reduced.members["InputTensor"].sizes == (3, 5, 1, 5)


def test_which_transposes_are_moved_around_quantized_elements_is_not_known():
    text = """(uint8[2,3,4] x) => (float[4,2,3] y) <float s = {1}> {
        d = DequantizeLinear(x, s) t = Transpose<perm = [0, 2, 1]>(d) r = Relu(t) y = Transpose<perm = [1, 0, 2]>(r)
    }"""
    assert all(each.why for each in derived(models.text(text)) if each.path in ("r", "t", "y"))


@pytest.mark.parametrize(("version", "moves"), [("1.22.0", ()), ("1.23.2", ("Gelu",)), ("1.30.0", ("Gelu", "Elu"))])
@pytest.mark.parametrize("operator", ["Gelu", "Elu"])
def test_only_some_versions_move_transposes_over_an_operator(operator, version, moves):
    """Observed with these versions."""
    text = f"""(float[2,3,4] x) => (float[2,3,4] y) {{
        t = Transpose<perm = [0, 2, 1]>(x) u = {operator}(t) y = Transpose<perm = [0, 2, 1]>(u)
    }}"""
    found = [desc.operator.name for each in derived(models.text(text, 20), version) for desc in each.operators]
    assert ("ELEMENT_WISE_IDENTITY" not in found) is (operator in moves)


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_transposes_beside_a_resize_on_the_cpu_may_be_moved(version):
    """1.18.0 has no kernel of its version 18 on DirectML; the CPU's removes Transposes around it. Observed."""
    text = """(float[1,3,4,5] x) => (float[1,3,8,10] y) <float[4] s = {1,2,2,1}> {
        t = Transpose<perm = [0, 2, 3, 1]>(x) r = Resize(t, , s) y = Transpose<perm = [0, 3, 1, 2]>(r)
    }"""
    found = {each.path: not each.why for each in derived(models.text(text, 18), version)}
    assert {found[path] for path in ("t", "y")} == {version == NEWEST}


def test_a_copy_outside_fused_graphs_submits_nothing():
    """Observed with 1.18.0, 1.24.4 and 1.30.0."""
    sessions = OnnxSessions(models.text(RESHAPED), lambda *_: None)
    (graph,) = sessions.of(find_runtime(NEWEST), SessionOptions(graph_fusion=False)).graphs
    assert [(each.operators, each.why) for each in operators_in(graph)] == [((), "")]


@pytest.mark.parametrize(("version", "operator"), [("1.18.0", "RESAMPLE2"), ("1.19.2", "RESAMPLE3")])
def test_the_operator_of_a_resize(version, operator):
    """Observed with these versions."""
    text = "(float[1,3,4,5] x) => (float[1,3,8,10] y) <float[4] s = {1,1,2,2}> { y = Resize(x, , s) }"
    ((found,),) = (each.operators for each in derived(models.text(text), version))
    assert found.operator.name == operator


@pytest.mark.parametrize(("kind", "is_derived"), [("int64", False), ("uint64", False), ("int32", True)])
def test_the_nodes_that_replace_an_operator_are_not_derived(kind, is_derived):
    """PRelu has no kernel for INT64: the operators of its function run, not ACTIVATION_PARAMETERIZED_RELU."""
    (found,) = derived(models.text(f"({kind}[2,4] x, {kind}[4] s) => ({kind}[2,4] y) {{ y = PRelu(x, s) }}", 16))
    assert bool(found.operators) is is_derived
    assert found.why == ("" if is_derived else "the nodes of its function replace it")
    assert list(refusals([found], find_runtime(NEWEST))) == []
