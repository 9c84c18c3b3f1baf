"""What `check` advises against the faults of graphs is tried on the model first."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dmlsplit.checking import node_verdicts
from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.mending import advice, cures, graph_cures
from dmlsplit.onnxruntime.cure_places import operands
from dmlsplit.onnxruntime.cures import Cure
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.targets.runtime_versions import NEWEST
from dmlsplit.targets.target import find_target
from tests.effort import calls
from tests.formats.mending import generator
from tests.formats.mending.wrong import gate, overwritten, refused
from tests.formats.onnx_graphs.mixed import mixed
from tests.models import text

TARGET = find_target(onnxruntime="1.24.4")


def asked(model, target=TARGET, inputs=None):
    """The findings about a model, and what is advised."""
    sessions = OnnxSessions(loading.without_weights(model), no_external_data, inputs)
    found = sessions.of(target.graph_runtime, target.session_options).findings()
    return found, advice.advised(sessions, found, target)


def names(found):
    return [each.cure and each.cure.name for each in found]


@pytest.mark.parametrize(("seed", "first"), [(71000102, "max-input"), (71001194, "max-input")])
def test_a_cure_that_does_not_help_gives_way_to_the_next(seed, first):
    found, advised = asked(mixed(seed, joins=True))
    assert names(found) == [first]
    assert names(advised) == ["cut-and-join"]
    assert advised[0].diagnostic.message.endswith(f"{advised[0].cure.sentence()}, or {advice_of_setting()}")


def advice_of_setting():
    return "set ep.dml.disable_graph_fusion to 1"


@pytest.mark.parametrize(
    ("seed", "place"),
    [(71000066, 0), (71000100, 0), (71000175, 0), (71001818, 1)],
)
def test_what_is_advised_makes_the_model_right(seed, place):
    """By the model of CompileGraph, after this change alone. Where it is not the nearest place, it is named."""
    model = mixed(seed, joins=True)
    _, (advised,) = asked(model)
    judged = advice.JudgedModel.of(model, TARGET, no_external_data)
    ((key, finding),) = graph_cures.keyed(graph_cures.errors(judged)).items()
    nearest = [(advised.cure, range(1))]
    work = graph_cures.Work(judged, lambda node: node, lambda kind, directml: nearest)
    assert (work.tried({key: 0}, {key: finding}).judged.findings == ()) is (place == 0)
    nearest[0] = advised.cure, range(place, place + 1)
    trial = work.tried({key: 0}, {key: finding})
    assert trial.judged.findings == ()
    assert advised.remark == (f" ({trial.changes[0].before[0]})" if place else "")


@pytest.mark.parametrize(
    ("seed", "cure", "then"),
    [
        (91000039, "leave-out", "graph/memory-overwritten at sigmoid9"),
        (91000271, "gather", "graph/fused-wrongly at "),
    ],
)
def test_what_a_cure_brings_to_light_is_said(seed, cure, then):
    """A refused graph computes nothing; once it is compiled, what it computes is wrong elsewhere."""
    model, _ = generator.model(seed)
    _, (advised,) = asked(model)
    assert advised.cure.name == cure
    assert f"then it has {then}" in advised.remark


PART_SHOWN = Cure("part-output", FaultKind.GATE, "make {a} a graph output", places=operands("Split"))
"""Does not help: the operand is lost all the same."""


@pytest.fixture
def useless(monkeypatch):
    monkeypatch.setitem(cures.CHANGES, (FaultKind.GATE, "part-output"), cures._shown)
    monkeypatch.setattr(advice, "all_ways", lambda kind, directml: [(PART_SHOWN, range(1))])


def test_where_nothing_helps_nothing_is_advised(useless):
    _, (advised,) = asked(gate())
    assert advised.cure is None
    assert advised.diagnostic.message.endswith(f"; {advice.NONE_HELPS}; {advice_of_setting()}")


def test_a_cure_that_changes_no_model_is_what_is_left(useless, monkeypatch):
    by_run = Cure("ask", FaultKind.GATE, "ask otherwise")
    monkeypatch.setattr(advice, "of_run", lambda kind: by_run)
    _, (advised,) = asked(gate())
    assert (advised.cure, advised.remark) == (by_run, "")


def test_of_a_large_model_it_is_said_that_nothing_was_tried(monkeypatch):
    monkeypatch.setattr(advice, "MOST_NODES", 2)
    found, (advised,) = asked(gate())
    assert advised.cure == found[0].cure
    assert f"{advice.NOT_TRIED}, or" in advised.diagnostic.message


def _gates(count):
    ends = ", ".join(f"float[1,8,4] x{i}" for i in range(count)), ", ".join(f"float[1,4,4] y{i}" for i in range(count))
    bodies = (f"a{i}, b{i} = Split<axis=1>(x{i}) s{i} = Sigmoid(b{i}) y{i} = Mul(a{i}, s{i})" for i in range(count))
    return text(f"({ends[0]}) => ({ends[1]}) {{ {' '.join(bodies)} }}", 11)


def changed_models(monkeypatch):
    """The changed models that are judged from now on."""
    made, changed = [], advice.JudgedModel.changed

    def counted(self, model):
        made.append(model)
        return changed(self, model)

    monkeypatch.setattr(advice.JudgedModel, "changed", counted)
    return made


def test_many_faults_are_tried_together(monkeypatch):
    made = changed_models(monkeypatch)
    _, advised = asked(_gates(12))
    assert names(advised) == ["two-slices"] * 12
    assert len(made) == 1


def test_the_work_is_bounded(monkeypatch, useless):
    made = changed_models(monkeypatch)
    _, advised = asked(_gates(12))
    assert {each.remark for each in advised} == {advice.NONE_HELPS}
    monkeypatch.setattr(advice, "MOST_NODES", 36 * 5)
    made.clear()
    _, advised = asked(_gates(12))
    assert len(made) <= 5
    assert {each.remark for each in advised} == {advice.NONE_HELPS, advice.NOT_TRIED}


def test_the_work_for_all_targets_is_bounded(monkeypatch):
    monkeypatch.setattr(advice, "MOST_OF_ALL", 5)
    model = gate()
    sessions = OnnxSessions(loading.without_weights(model), no_external_data)
    remarks = []
    for version in ("1.24.4", "1.30.0"):
        target = find_target(onnxruntime=version)
        found = sessions.of(target.graph_runtime, target.session_options).findings()
        remarks += [each.remark for each in advice.advised(sessions, found, target)]
    assert remarks == ["", advice.NOT_TRIED]


def test_free_dimensions_are_those_of_the_session():
    open_ = text("(float[N,8,4] x) => (float[?,4,4] y) { a, b = Split<axis=1>(x) s = Sigmoid(b) y = Mul(a, s) }", 11)
    assert asked(open_) == ((), [])
    _, advised = asked(open_, inputs=Inputs(free_dimensions={"N": 2}))
    assert names(advised) == ["two-slices"]


def test_releases_have_their_own_cures():
    found, advised = asked(refused("Tanh"), find_target(directml="1.12.1"))
    assert names(found) == names(advised) == ["gather"]


@pytest.mark.parametrize("level", ["4_1", "6_4"])
def test_levels_are_asked_by_the_runtime_that_stands_for_them(level, monkeypatch):
    """Of a level that no ONNX Runtime has as its highest the newest one is."""
    targets = []

    made = advice.advised

    def noted(sessions, found, target):
        targets.append(target)
        return made(sessions, found, target)

    monkeypatch.setattr(advice, "advised", noted)
    (node,) = (each for each in onnx_nodes(overwritten("Sigmoid")) if each.op == "Concat")
    report, _ = node_verdicts.judge_node(node, node.descriptor(), find_target(level))
    assert [each.graph_runtime.version for each in targets] == [NEWEST.version]
    assert any("insert Max(v, v) before the Concat, or set" in each.message for each in report.diagnostics)


def onnx_nodes(model):
    from dmlsplit.formats.onnx import read

    return read(model)


def test_a_model_without_faults_is_not_tried(monkeypatch):
    monkeypatch.setattr(advice, "advised", None)
    right = text("(float[1,8,4] x) => (float[1,4,4] a, float[1,4,4] b) { a, b = Split<axis=1>(x) }", 11)
    (node,) = onnx_nodes(right)
    assert node_verdicts.judge_node(node, node.descriptor(), TARGET)[0].ok


def test_the_effort_grows_with_the_model(monkeypatch):
    def work(count):
        model = _gates(count)
        return calls(lambda: asked(model))

    work(2)
    assert work(16) < 2.6 * work(8)


def test_weights_are_not_needed():
    model = gate()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((200, 200), np.float32), "unused"))
    assert names(asked(model)[1]) == ["two-slices"]


def test_calls_of_one_function_share_a_change():
    function = """<domain: "own", opset_import: ["" : 11]> F (x) => (y)
        { a, b = Split<axis=1>(x)  s = Sigmoid(b)  y = Mul(a, s) }"""
    ends = "(float[1,8,4] x, float[1,8,4] z) => (float[1,4,4] o, float[1,4,4] p)"
    found, advised = asked(text(f"{ends} {{ o = own.F(x)  p = own.F(z) }}", 11, functions=function))
    assert len(found) == 2
    assert names(advised) == ["two-slices"] * 2


def test_nodes_of_functions_count_at_each_call(monkeypatch):
    monkeypatch.setattr(advice, "MOST_NODES", 30 - 1)
    function = """<domain: "own", opset_import: ["" : 11]> F (x) => (y)
        { a, b = Split<axis=1>(x)  s = Sigmoid(b)  y = Mul(a, s) }"""
    ends = ", ".join(f"float[1,8,4] x{i}" for i in range(10)), ", ".join(f"float[1,4,4] y{i}" for i in range(10))
    body = " ".join(f"y{i} = own.F(x{i})" for i in range(10))
    _, advised = asked(text(f"({ends[0]}) => ({ends[1]}) {{ {body} }}", 11, functions=function))
    assert {each.remark for each in advised} == {advice.NOT_TRIED}


def test_targets_share_the_sessions_of_models(monkeypatch):
    """Two versions that are asked about one model get one cure: the model and the changed one are read once."""
    made, changed = [], changed_models(monkeypatch)

    class Counted(OnnxSessions):
        def __init__(self, *arguments, **named):
            made.append(self)
            super().__init__(*arguments, **named)

    monkeypatch.setattr("dmlsplit.mending.judged.OnnxSessions", Counted)
    sessions = OnnxSessions(loading.without_weights(gate()), no_external_data)
    for version in ("1.24.4", "1.22.0"):
        target = find_target(onnxruntime=version)
        found = sessions.of(target.graph_runtime, target.session_options).findings()
        assert names(advice.advised(sessions, found, target)) == ["two-slices"]
    assert (len(changed), len(made)) == (2, 1)
