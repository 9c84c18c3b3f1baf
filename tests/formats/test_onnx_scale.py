"""The work on a model grows as the model does: counted, of what is judged and of what is mended."""

import gc
import sys
import tracemalloc

import pytest

from dmlsplit.checking.files import judge_file
from dmlsplit.checking.question import Question
from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.onnx import loading, tensors
from dmlsplit.graphs.execution import _Shelf
from dmlsplit.graphs.traits import Fusion
from dmlsplit.legalize import search
from dmlsplit.mending.graph_cures import Work
from dmlsplit.models import folding
from dmlsplit.models.reading import _is_given
from dmlsplit.models.scope import Scope
from dmlsplit.onnxruntime import SessionOptions, find_runtime, graph_judging, islands, onnx_session, scopes
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.errors import DmlSplitError
from dmlsplit.targets.target import find_target
from tests.effort import calls
from tests.formats.onnx_families import FAMILIES, call, concat, function, leaky, made, node, split, value

SIZE = 8
RUNTIME = "1.24.4"
TARGETS = (find_target(), find_target(onnxruntime=RUNTIME))


def growth(work):
    """By how many more calls the work grows from twice a size to four times it than it would if it were linear: none
    where it is, and six for each pair where each of so many is held against each other."""
    work(4 * SIZE)  # what is worked out once
    one, two, four = (work(count * SIZE) for count in (1, 2, 4))
    return four - 3 * two + 2 * one


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """The rounds of inference, which have a bound, are as many for each of these sizes."""
    monkeypatch.setattr("dmlsplit.onnxruntime.scopes._LARGE", 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_to_judge_is_linear(family, tmp_path):
    def work(count):
        path = tmp_path / f"{count}.onnx"
        path.write_bytes(FAMILIES[family](count).SerializeToString())
        return calls(lambda: list(judge_file(str(path), Question(TARGETS))))

    assert growth(work) < 3 * SIZE**2


@pytest.mark.parametrize("family", FAMILIES)
def test_to_mend_is_linear(family):
    def work(count):
        data = FAMILIES[family](count).SerializeToString()
        return calls(lambda: _mended(data))

    assert growth(work) < 3 * SIZE**2


def _mended(data):
    try:
        return front_end.legalize(data, onnxruntime=RUNTIME)
    except DmlSplitError as error:  # some cannot be mended
        return error


def _too_narrow(count):
    """Rows of a part in a Concat, which older builds join the whole in place of; it does not fit there."""
    nodes = [node("Relu", ["x"], ["l"])]  # one graph
    for i in range(count):
        nodes += [
            leaky("l", f"l{i}", i, count),
            node("Split", [f"l{i}"], [f"a{i}", f"b{i}"], axis=1, split=[1, 7]),
            concat(["y", f"a{i}"], f"c{i}"),
            node("Relu", [f"a{i}"], [f"r{i}"]),
            node("Sigmoid", [f"b{i}"], [f"s{i}"]),
        ]
    outputs = [f"{name}{i}" for i in range(count) for name in "crs"]
    inputs = [value("x", [2, 8, 4, 8]), value("y", [2, 1, 4, 8])]
    return made(nodes, outputs, inputs, opset=12, ir_version=8)


@pytest.mark.parametrize(
    ("model", "runtime"), [(FAMILIES["products that crash"], RUNTIME), (_too_narrow, "1.10.0")], ids=["crash", "narrow"]
)
def test_what_refuses_a_graph_is_cured_at_once(model, runtime, monkeypatch):
    tried, try_cures = [], Work.tried

    def counted(self, *cures):
        tried.append(cures)
        return try_cures(self, *cures)

    monkeypatch.setattr(Work, "tried", counted)
    found = front_end.legalize(model(SIZE).SerializeToString(), onnxruntime=runtime)
    assert len(found.changes) >= SIZE
    assert len(tried) == 1


def test_legalize_collects_no_garbage_of_a_model_in_use():
    data = FAMILIES["gates"](8 * SIZE).SerializeToString()
    before, collected = gc.get_threshold(), []
    gc.callbacks.append(noted := lambda phase, info: collected.append(phase))
    try:
        front_end.legalize(data, onnxruntime=RUNTIME)
    finally:
        gc.callbacks.remove(noted)
    assert not collected
    assert gc.get_threshold() == before


def asked_properties(count, monkeypatch):
    """How often the properties that decide on passes are asked for a model of so many graphs."""
    asked, property_of = [], SessionGraph.removes_dropouts.fget

    def noted(graph):
        asked.append(graph)
        return property_of(graph)

    monkeypatch.setattr(SessionGraph, "removes_dropouts", property(noted))
    sessions = OnnxSessions(loading.without_weights(FAMILIES["ifs"](count)), tensors.no_external_data)
    session = sessions.of(find_runtime(RUNTIME), SessionOptions())
    session.findings()
    return len(asked) / len(session.graphs)


def test_what_passes_depend_on_is_asked_a_few_times_for_each_graph(monkeypatch):
    assert asked_properties(SIZE, monkeypatch) < 3


def counted(owner, name, monkeypatch):
    """A list that gets an item for each call of a function from now on."""
    made, function_of = [], getattr(owner, name)

    def noted(*arguments, **named):
        made.append(name)
        return function_of(*arguments, **named)

    monkeypatch.setattr(owner, name, noted)
    return made


def session_of(family, count):
    sessions = OnnxSessions(loading.without_weights(FAMILIES[family](count)), tensors.no_external_data)
    return sessions.of(find_runtime(RUNTIME), SessionOptions())


def test_nodes_of_one_operator_types_and_attributes_are_looked_up_once(monkeypatch):
    asked = counted(SessionGraph, "cell_of", monkeypatch)
    for count in (SIZE, 2 * SIZE):
        session_of("gates", count).findings()
    assert len(asked) == 4 * 2  # operators, models


def test_each_graph_in_a_node_is_read_a_few_times(monkeypatch):
    session = session_of("ifs", SIZE)
    read = counted(Scope, "__init__", monkeypatch)
    session.findings()
    graphs = len(session.graphs)
    assert graphs > 2 * SIZE
    assert len(read) <= 2 * graphs


@pytest.mark.parametrize(("family", "times"), [("ifs", 0), ("gates", 0), ("reshapes", 1)])
def test_sizes_that_shape_nothing_are_not_followed(family, times, monkeypatch):
    followed = counted(scopes, "_add_known", monkeypatch)
    assert session_of(family, SIZE).model.session is not None
    assert len(followed) == times


def test_an_identity_is_folded_without_an_evaluator(monkeypatch):
    run = counted(folding, "_run", monkeypatch)
    assert len(session_of("ifs of one another", SIZE).model.branches.ifs) == SIZE
    assert not run


def test_what_is_written_last_is_read_without_a_search(monkeypatch):
    session = session_of("ladder", SIZE)
    searched = counted(_Shelf, "since", monkeypatch)
    session.findings()
    assert len(searched) < SIZE


@pytest.mark.parametrize("each", [split(["3", "4"], "a", "b"), concat(["5", "6"], "c")], ids=["Split", "Concat"])
def test_the_names_that_are_given_are_not_copied_for_each_node(each):
    given = {str(i) for i in range(10_000)}
    tracemalloc.start()
    try:
        assert _is_given(each, given, given)
        assert tracemalloc.get_traced_memory()[1] < sys.getsizeof(given) / 10
    finally:
        tracemalloc.stop()


def test_the_names_that_branches_write_are_numbered_once(monkeypatch):
    numbered = []

    class Names(list):
        def __iter__(self):
            numbered.append(len(self))
            return super().__iter__()

    in_order = onnx_session.in_order
    monkeypatch.setattr(onnx_session, "in_order", lambda written: Names(in_order(written)))
    count = 4 * SIZE
    assert session_of("ifs of one another", count).model.branches.ifs.keys() == set(range(count))
    assert count <= sum(numbered) < 8 * count


def test_a_node_of_many_calls_is_legalized_once(monkeypatch, tmp_path):
    """Functions that call one another twice are 300 Splits in a file of a few nodes."""
    searched, rewritten = [], search.rewritten

    def counted(desc, target):
        searched.append(desc)
        return rewritten(desc, target)

    monkeypatch.setattr(search, "rewritten", counted)
    functions = [function("f0", [split("x", "y", "z")])]
    for i in range(1, 8):
        functions.append(function(f"f{i}", [call(f"f{i - 1}", "x", name) for name in ("y", "z")]))
    path = tmp_path / "calls.onnx"
    huge = [1, 2**30, 6, 1]  # of a size that has to be cut into operators
    path.write_bytes(made([call("f7", "x", "y")], inputs=(value("x", huge),), functions=functions).SerializeToString())
    entries = list(judge_file(str(path), Question(TARGETS)))
    assert len(entries) >= 128
    assert len(searched) <= len(TARGETS)


def compiled(family, monkeypatch):
    """The traits of the graphs that are compiled for the faults of a session."""
    sessions = OnnxSessions(loading.without_weights(FAMILIES[family](SIZE)), tensors.no_external_data)
    found = []
    compile_graph = graph_judging.compile_graph

    def noted(graph, traits, *more):
        found.append(traits)
        return compile_graph(graph, traits, *more)

    monkeypatch.setattr(graph_judging, "compile_graph", noted)
    sessions.of(find_runtime(RUNTIME), SessionOptions()).findings()
    return found


def test_graphs_that_differ_in_names_only_are_compiled_once(monkeypatch):
    found = compiled("ifs", monkeypatch)
    assert found
    assert len(found) == len(set(found))


def test_fused_products_are_looked_for_in_builds_that_fuse(monkeypatch):
    found = compiled("gates", monkeypatch)
    assert len(found) > 1
    assert Fusion.NONE not in {traits.fusion for traits in found}


def test_a_reader_of_many_inputs_is_not_searched_for_each(monkeypatch):
    def work(count):
        session = session_of("islands", count)
        looked, steps = islands._read_on_device, []
        with monkeypatch.context() as patched:
            patched.setattr(islands, "_read_on_device", lambda *asked: steps.append(calls(lambda: looked(*asked))))
            assert session.placement.created
        assert len(steps) >= count
        return sum(steps)

    assert growth(work) == 0
