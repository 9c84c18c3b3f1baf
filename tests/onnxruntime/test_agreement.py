"""One session, one answer: the flags of a node follow from the graph that is built, and that is the recorded one."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import Counter
from dataclasses import fields

import pytest

from dmlsplit.descriptors.enums import ExecutionFlags
from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.models.version_facts import VersionFacts
from dmlsplit.onnxruntime import passes, session_graph
from dmlsplit.onnxruntime.described import operators_in
from dmlsplit.onnxruntime.fused_parts import session_graphs
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.passes import that_may_change
from dmlsplit.onnxruntime.passes.rule_based_graph_transformer import RULES
from dmlsplit.onnxruntime.passes.transpose_handlers import handler_of
from dmlsplit.targets.runtime_traits import RuntimeTraits
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions
from dmlsplit.verdicts.runtime_answers import Outcome
from tests.models import text
from tests.onnxruntime.conftest import FRESH_SEED
from tests.onnxruntime.generator import sample
from tests.onnxruntime.recorded import lines, options_of, sample_of

VOLATILE = ExecutionFlags.DESCRIPTORS_VOLATILE
LEAST = 5
"""Nodes of a part from which on it is compiled with other flags: those that ONNX Runtime has, not those of DirectML."""


def compiled_graphs(model, version, options=DEFAULTS, inputs=None):
    """For each node that gets into a CompileGraph, and that no other one stands for: its flags, and the part that it is
    in."""
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    runtime, inputs = find_runtime(version), inputs or Inputs()
    parts = {}
    for graph in sessions.of(runtime, options, inputs).graphs:
        parts |= {graph.path(index): part for part in session_graphs(graph).parts for index in part.members}
    for node in sessions.of(runtime, options, inputs).nodes:
        call = node.answer.compile
        merged = any(found.rule == "onnxruntime/computed-once" for found in node.answer.diagnostics)
        if call is not None and call.call == "CompileGraph" and call.flags is not None and not merged:
            yield call.flags, parts[node.path]


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_flags_follow_from_the_graph_that_is_built_and_recorded(step):
    found = Counter()
    for line in list(lines())[::step]:
        sample, options = sample_of(line), options_of(line)
        if sample is None or "DirectML.dll of" in line.get("env", ""):
            continue
        graphs = [call for call in line.get("calls", ()) if call.get("call") == "CompileGraph"]
        recorded = Counter(call["nodes"] for call in graphs if call["at"] == "init" and call["hr"] == "0x00000000")
        for version in line["ort"]:
            free = Inputs(free_dimensions=sample.free_dimensions)
            for flags, part in compiled_graphs(sample.model, version, options, free):
                assert not part.least < LEAST <= part.most
                assert flags == (VOLATILE if part.least >= LEAST or options.compute_only else 0), line["name"]
                if part.is_known:
                    (graph,) = part.variants
                    assert recorded[len(graph.desc.nodes)], (line["name"], graph.ops)
                    found["graph"] += 1
                found["node"] += 1
    assert found["node"] >= 3500 // step
    assert found["graph"] >= 0.95 * found["node"]


@pytest.mark.parametrize(
    "count",
    [
        200,
        pytest.param(2_000, marks=pytest.mark.slow),
        pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.thorough]),
    ],
)
def test_flags_follow_from_the_graphs_of_fresh_models(count):
    """Repeated with DMLSPLIT_ONNXRUNTIME_SEED."""
    found = 0
    for index in range(count):
        asked = sample(FRESH_SEED, index)
        free = Inputs(free_dimensions=asked.free_dimensions)
        options = SessionOptions(optimization=asked.optimization)
        for flags, part in compiled_graphs(asked.model, "1.24.4", options, free):
            assert not part.least < LEAST <= part.most
            assert flags == (VOLATILE if part.least >= LEAST else 0), (FRESH_SEED, index)
            found += 1
    assert found >= count // 5


WEIGHTS = (
    "<float[8,8,1,1] w = {"
    + ",".join(["1"] * 64)
    + "}, float[8] s = {1,2,3,4,5,6,7,8}, float[8] m = {1,2,3,4,5,6,7,8}>"
)
ROWS = "(float[2,6] x, float[2,3] y) => (float[?,?] o, float[?,?] b)"
MODELS = {
    "Conv, BatchNormalization, Relu": (
        f"(float[1,8,4,4] x) => (float[?,?,?,?] o, float[?,?,?,?] u) {WEIGHTS} "
        "{ c = Conv(x, w) n = BatchNormalization(c, s, s, m, s) r = Relu(n) p, q = Split<axis=1>(r) o = Neg(p) "
        "u = Abs(q) }",
        4,
    ),
    "Relu, Clip": (
        f"{ROWS} <float l = {{0}}, float h = {{6}}> "
        "{ r = Relu(x) c = Clip(r, l, h) a, b = Split<axis=1>(c) n = Neg(a) o = Abs(n) }",
        4,
    ),
    "Relu, Clip and more": (
        f"{ROWS} <float l = {{0}}, float h = {{6}}> "
        "{ r = Relu(x) c = Clip(r, l, h) a, b = Split<axis=1>(c) n = Neg(a) k = Exp(n) e = Abs(k) o = Neg(e) }",
        6,
    ),
    "times 1": (
        f"{ROWS} <float one = {{1}}> {{ r = Neg(x) c = Mul(r, one) a, b = Split<axis=1>(c) n = Neg(a) o = Abs(n) }}",
        4,
    ),
    "plus 0": (f"{ROWS} <float z = {{0}}> {{ a, b = Split<axis=1>(x) s = Add(a, z) n = Neg(s) o = Abs(n) }}", 3),
    "Gemm, Relu": (
        f"{ROWS} <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}, float[3] c = {{1,2,3}}> "
        "{ a, b = Split<axis=1>(x) s = Gemm(a, w, c) t = Relu(s) u = Cos(t) n = Neg(u) o = Abs(n) }",
        5,
    ),
    "a Sum of two takes an activation": (
        f"{ROWS} {{ a, b = Split<axis=1>(x) s = Sum(a, y) r = Relu(s) n = Neg(r) o = Abs(n) }}",
        4,
    ),
    "a Sum of three is in no graph": (
        f"{ROWS} {{ a, b = Split<axis=1>(x) s = Sum(a, y, y) r = Relu(s) n = Neg(r) o = Abs(n) }}",
        1,
    ),
    "a Max of one is in no graph": (
        f"{ROWS} {{ a, b = Split<axis=1>(x) s = Max(a) r = Relu(s) n = Neg(r) o = Abs(n) }}",
        1,
    ),
    "a SiLU is two of DirectML's": (
        f"{ROWS} {{ a, b = Split<axis=1>(x) s = Sigmoid(a) m = Mul(a, s) n = Neg(m) o = Abs(n) }}",
        4,
    ),
    "a Gemm takes a Sum": (
        f"{ROWS} <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}> "
        "{ a, b = Split<axis=1>(x) g = Gemm(a, w) s = Sum(g, y) t = Cos(s) n = Neg(t) o = Abs(n) }",
        5,
    ),
    "a MatMul takes an Add": (
        f"{ROWS} <float[3,3] w = {{1,2,3,4,5,6,7,8,9}}, float[3] c = {{1,2,3}}> "
        "{ a, b = Split<axis=1>(x) m = MatMul(a, w) s = Add(m, c) n = Neg(s) o = Abs(n) }",
        4,
    ),
    "a quotient of 1": (
        f"{ROWS} <float one = {{1}}> {{ a, b = Split<axis=1>(x) d = Div(one, a) m = Mul(d, y) n = Neg(m) o = Abs(n) }}",
        4,
    ),
    "a HardSwish is two nodes": (
        f"{ROWS} {{ a, b = Split<axis=1>(x) h = HardSwish(a) n = Neg(h) o = Abs(n) }}",
        5,
    ),
    "an Unsqueeze and a Squeeze": (
        "(float[2,6] x) => (float[?,?,?] o, float[?,?] b) <int64[1] first = {0}, int64[1] last = {3}> "
        "{ a, b = Split<axis=1>(x) u = Unsqueeze(a, first) v = Unsqueeze(u, last) s = Squeeze(v, last) o = Sin(s) }",
        5,
    ),
    "a mean of no normalization": (
        "(float[2,6] x) => (float[?,?] o, float[?,?] b) "
        "{ a, b = Split<axis=1>(x) m = ReduceMean<axes=[1]>(a) n = Neg(m) s = Sin(n) o = Cos(s) }",
        5,
    ),
    "an Erf of no GELU": (
        "(float[2,6] x) => (float[?,?] o, float[?,?] b) "
        "{ a, b = Split<axis=1>(x) e = Erf(a) n = Neg(e) s = Sin(n) o = Cos(s) }",
        5,
    ),
    "what nothing reads counts": (
        "(float[2,6] x) => (float[?,?] o) { a, b = Split<axis=1>(x) s = Sin(b) c = Cos(a) n = Neg(c) o = Abs(n) }",
        5,
    ),
}
"""A model, and how many nodes ONNX Runtime 1.24.4 has in the part of the Split. Observed."""


WHOLE_LAYERS = {
    "matrix products of no attention": "(float[1,4,8] x) => (float[1,4,8] o, float[?,?,?] b) "
    f"<float[8,8] w = {{{','.join(['0.5'] * 64)}}}, float[8] c = {{{','.join(['1'] * 8)}}}> "
    "{ n = LayerNormalization(x, c, c) m = MatMul(n, w) a = Add(m, c) s, b = Split<axis=2>(a) t = Concat<axis=2>(s, s) "
    "u = MatMul(t, w) r = LayerNormalization(u, c, c) k = MatMul(r, w) q = Softmax(k) v = MatMul(q, w) o = Add(v, x) }",
    "operators for quantized elements": "(float[1,4,8] x) => (float[?,?,?] o, float[?,?,?] b) "
    "<float s = {0.5}, uint8 z = {0}> "
    "{ e = QuantizeLinear(x, s, z) f = DequantizeLinear(e, s, z) g = Sigmoid(f) h = QuantizeLinear(g, s, z) "
    "i = DequantizeLinear(h, s, z) a, b = Split<axis=2>(x) j = Add(i, x) k = QuantizeLinear(j, s, z) "
    "l = DequantizeLinear(k, s, z) m = Add(l, i) n = QuantizeLinear(m, s, z) p = DequantizeLinear(n, s, z) "
    "c = Concat<axis=2>(a, a) q = QuantizeLinear(c, s, z) r = DequantizeLinear(q, s, z) "
    "o = Concat<axis=0>(p, r) }",
}
"""Models of which every operator takes weights, or is beside one that optimization may change. ONNX Runtime 1.24.4 has
at least five nodes in the part of the Split. Observed."""


@pytest.mark.parametrize("name", WHOLE_LAYERS)
def test_what_is_never_fused_away_counts(name):
    flags = [flags for flags, part in compiled_graphs(text(WHOLE_LAYERS[name]), "1.24.4")]
    assert flags
    assert set(flags) == {VOLATILE}


@pytest.mark.parametrize("name", MODELS)
def test_flags_follow_from_the_nodes_that_are_left(name):
    body, nodes = MODELS[name]
    ((flags, part),) = compiled_graphs(text(body), "1.24.4")
    assert (part.least, part.most) == (nodes, nodes)
    assert flags == (VOLATILE if nodes >= LEAST else 0)


@pytest.mark.parametrize("name", MODELS)
def test_the_flags_are_those_of_the_version(name, made, runtime):
    """Asked live: the flags of the graph with the Split."""
    from dmlsplit.library.sessions import Query

    model = text(MODELS[name][0])
    events = runtime.ask(Query(model.SerializeToString()))["events"]
    split = {
        event["id"]
        for event in events
        if event["call"] == "CreateOperator" and event["desc"]["Type"] == "DML_OPERATOR_SPLIT"
    }
    recorded = [
        event["flags"]
        for event in events
        if event["call"] == "CompileGraph" and any(node.get("id") in split for node in event["nodes"])
    ]
    assert recorded == [flags for flags, _ in compiled_graphs(model, made.version)]


def test_a_part_whose_size_is_not_known_has_no_known_flags():
    """Of a GELU ONNX Runtime makes one node, which is not followed here. That the flags are not known makes the node's
    answer no unknown one."""
    body = """(float[2,6] x) => (float[?,?] o, float[?,?] b) <float r = {1.5}, float one = {1}, float h = {0.5}>
    { a, b = Split<axis=1>(x) d = Div(a, r) e = Erf(d) f = Add(e, one) g = Mul(a, f) o = Mul(g, h) }"""
    model = text(body)
    assert list(compiled_graphs(model, "1.24.4")) == []
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    (node,) = sessions.of(find_runtime("1.24.4"), DEFAULTS).nodes
    assert (node.answer.outcome, node.answer.compile.flags) == (Outcome.DML, None)


def test_versions_that_answer_a_pass_otherwise_share_no_graph():
    """The properties that passes ask are a part of what sessions of one model share optimized graphs by."""
    model = text(
        "(float[1,2,4,4] x) => (float[?,?,?,?] y) <float[2,2,1,1] w = {1,2,3,4}, float s = {3}>"
        "{ c = Conv(x, w) y = Mul(c, s) }",
        opset=22,
    )
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    graphs = [sessions.of(find_runtime(version)).graphs[0] for version in ("1.24.4", "1.30.0")]
    assert [graph.fuses_convs for graph in graphs] == [False, True]
    assert [len(optimized(graph).nodes) for graph in graphs] == [2, 1]
    assert [graph.fusions[-1] for graph in graphs] == [False, True]


def differing(first, second):
    """The properties that passes after placement ask of these graphs, and that differ between their versions."""
    asked = that_may_change(first.graph.operators, passes.PASSES, first.options.optimization)
    names = dict.fromkeys(name for each in asked for name in sorted(each.asks))
    return [name for name in names if first.asked(name) != second.asked(name)]


def test_versions_share_graphs_unless_a_pass_that_may_change_them_asks():
    """1.30.0 has other answers about epsilons, Shapes and folding, which nothing in this model asks."""
    model = text(f"{ROWS} {{ a, b = Split<axis=1>(x) s = Sigmoid(b) m = Mul(a, s) n = Neg(m) o = Abs(n) }}")
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    first, second = (sessions.of(find_runtime(version)).graphs[0] for version in ("1.24.4", "1.30.0"))
    assert first.asked("reads_half_epsilons") != second.asked("reads_half_epsilons")
    assert differing(first, second) == [], "make these properties False for graphs that the pass cannot change"
    assert session_graphs(first) is session_graphs(second)


@pytest.mark.parametrize(
    ("body", "shared"),
    [
        ("r = Reshape(x, k) o = Neg(r)", True),
        ("r = Reshape(x, k) s = Unsqueeze(r, i) o = Neg(s)", False),
        ("r = Reshape(x, k) s = MatMul(r, x) o = Neg(s)", False),
    ],
    ids=["one Reshape", "an Unsqueeze behind it", "a product, which gets some"],
)
def test_versions_share_fused_graphs_unless_reshapes_can_be_merged(body, shared):
    head = "(float[2,2] x) => (float[?,?,?] o) <int64[3] k = {1, 2, 2}, int64[1] i = {0}>"
    sessions = OnnxSessions(loading.without_weights(text(f"{head} {{ {body} }}")), no_external_data)
    first, second = (sessions.of(find_runtime(version)).graphs[0] for version in ("1.20.1", "1.24.4"))
    assert (session_graphs(first) is session_graphs(second)) is shared


@pytest.mark.parametrize(
    ("body", "shared"),
    [
        ("s = Shape(x) o = Abs(s) p = Neg(x)", True),
        ("s = Shape(x) o = Abs(s) t = Shape(x) p = Expand(x, t)", True),
        ("s = Shape(x) o = Abs(s) t = Shape(z) p = Expand(x, t)", True),
        ("s = Shape(x) o = Abs(s) t = Shape(y) p = Expand(x, t)", False),
    ],
    ids=["one Shape", "two of one tensor", "two of tensors of other sizes", "two of equal tensors"],
)
def test_versions_share_the_graph_before_placement_unless_shapes_can_be_merged(body, shared):
    model = text(f"(float[N,6] x, float[N,6] y, float[1,6] z) => (int64[2] o, float[N,6] p) {{ {body} }}")
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    first, second = (sessions.of(find_runtime(version)).graphs[0] for version in ("1.24.4", "1.18.0"))
    assert (first.graph is second.graph) is shared


@pytest.mark.parametrize(
    ("body", "versions", "shared"),
    [
        ("o = Neg(x)", ("1.18.0", "1.20.1"), True),
        ("o = Resize(x, , k)", ("1.18.0", "1.20.1"), False),
        ("t = Transpose<perm=[0,1,3,2]>(x) o = MatMul(x, t)", ("1.19.2", "1.20.1"), False),
    ],
    ids=["the same", "a Resize, from 1.19.0 on", "a product with a transposed tensor, from 1.20.0 on"],
)
def test_versions_share_the_operators_that_nodes_submit_unless_these_change(body, versions, shared):
    model = text(f"(float[1,1,2,2] x) => (float[?,?,?,?] o) <float[4] k = {{1, 1, 2, 2}}> {{ {body} }}")
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    first, second = (operators_in(sessions.of(find_runtime(version)).graphs[0]) for version in versions)
    assert (first is second) is shared
    assert (first[-1].operators == second[-1].operators) is shared


def test_versions_that_answer_a_pass_before_placement_otherwise_share_no_graph(monkeypatch):
    def made_up_fusion(graph):
        if graph.facts.fuses_convs:
            graph.remove(graph.nodes[-1])

    made_up = passes.Pass(1, made_up_fusion, frozenset({"Conv"}), frozenset({"fuses_convs"}))
    monkeypatch.setattr(session_graph, "BEFORE_PLACEMENT", (made_up,))
    model = text("(float[1,2,4,4] x, float[2,2,1,1] w) => (float[?,?,?,?] y) { c = Conv(x, w) y = Neg(c) }", opset=22)
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    graphs = [sessions.of(find_runtime(version)).graphs[0] for version in ("1.24.4", "1.30.0")]
    assert [[node.op_type for node in graph.graph.nodes] for graph in graphs] == [["Conv", "Neg"], ["Conv"]]


_PASSES = (*passes.BEFORE_PLACEMENT, *passes.PASSES)
_ANSWERS = {
    *[name for name, of in vars(VersionFacts).items() if isinstance(of, property) and name != "traits"],
    *[each.name for each in fields(RuntimeTraits)],
}


_CALLED = [each.change for each in _PASSES] + [rule for rules in RULES.values() for rule in rules] + [handler_of]


@pytest.mark.parametrize("module", sorted({each.change.__module__ for each in _PASSES}))
def test_passes_declare_what_they_ask_of_the_version(module):
    """Besides `folds_known_sizes`, which sessions compare node by node, and `is_main`, which no version decides."""
    declared = {name for each in _PASSES if each.change.__module__ == module for name in each.asks}
    asked = {node.attr for node in _sources(module) if isinstance(node, ast.Attribute)} & _ANSWERS
    assert asked - {"folds_known_sizes", "is_main"} == declared, "name them in the pass's row, in `asks`"


def _sources(module):
    """The syntax of a module of a pass, and of the rules, handlers and other passes that it imports."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(importlib.import_module(module)))))
    names = {(node.module, name.name) for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    called = {(each.__module__, each.__name__) for each in _CALLED}
    return nodes + [node for each, _ in sorted(names & called) if each != module for node in _sources(each)]
