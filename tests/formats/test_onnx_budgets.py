"""What a file may use is counted for the file: whichever sessions, branches and rounds ask."""

import onnx
import pytest
from onnx import helper

from dmlsplit import InputError, find_runtime
from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx import loading
from dmlsplit.models import inference
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.formats.onnx_families import FAMILIES, TRUE, X, branch, call, choice, function, made
from tests.models import node

LONG = Limit.ONNX_NAME.most - 1


@pytest.fixture
def budgets(monkeypatch):
    """The budgets of time that are made."""
    found = []
    begin = inference.Inference.__init__

    def noted(self):
        found.append(self)
        begin(self)

    monkeypatch.setattr(inference.Inference, "__init__", noted)
    return found


@pytest.mark.parametrize("family", ["ifs in ifs that are taken", "ifs of one another", "twins"])
def test_the_time_of_inferences_is_one_for_a_file(family, budgets):
    model = FAMILIES[family](6)
    on_onnxruntime(model, "1.24.4")
    assert len(budgets) == 1
    for read in front_end.read(model):
        for version in ("1.18.1", "1.24.4"):
            read.on_onnxruntime(find_runtime(version))
    assert len(budgets) == 2
    front_end.legalize(model.SerializeToString(), onnxruntime="1.24.4")
    assert len(budgets) == 3


def test_a_file_whose_time_is_over_infers_no_more(monkeypatch):
    monkeypatch.setattr(inference, "TIMEOUT", 0)
    budget = inference.Inference()
    with pytest.raises(inference.InferenceError, match="did not end"):
        budget.infer_shapes(FAMILIES["splits in a row"](1))


def named_calls(depth=20, nodes=80):
    """Names of functions in one another, whose names are long."""
    body = [node("Split", ["x"], ["a", "b"], axis=1), *(node("Relu", ["a"], [f"t{i}"]) for i in range(nodes))]
    functions = [function("f0", [*body, node("Concat", ["b", "a"], ["y"], axis=1)])]
    for i in range(1, depth):
        named = call(f"f{i - 1}", "x", "y")
        named.name = chr(97 + i) * LONG
        functions.append(function(f"f{i}", [named]))
    return made([call(f"f{depth - 1}", "x", "y")], ["y"], functions=functions)


def named_branches(depth=20, nodes=80):
    """The same of branches."""
    body = [node("Relu", ["x"], [f"t{i}"]) for i in range(nodes)]
    inner = branch([*body, node("Split", ["x"], ["r0", "s"], axis=1)], "r0")
    for i in range(1, depth):
        other = branch([node("Abs", ["x"], [f"e{i}"])], f"e{i}")
        taken = choice(i, inner, other, f"r{i}")
        taken.name = "n" * LONG
        inner = branch([taken], f"r{i}")
    return made(inner.node, [f"r{depth - 1}"], constants=[TRUE])


@pytest.mark.parametrize("model", [named_calls, named_branches])
def test_names_that_prefixes_make_are_counted(model):
    with pytest.raises(InputError, match=r"beyond the limit ONNX_NAMES: "):
        on_onnxruntime(model(), "1.24.4")
    assert on_onnxruntime(model(depth=2, nodes=2), "1.24.4")


def test_a_chain_of_branches_takes_one_inference_more(monkeypatch):
    """Each condition is what the branch before gives."""
    asked = []
    infer = inference.Inference.inferred
    monkeypatch.setattr(
        inference.Inference, "inferred", lambda self, model, **how: asked.append(model) or infer(self, model, **how)
    )
    on_onnxruntime(FAMILIES["ifs of one another"](30), "1.24.4")
    assert len(asked) <= 4


def test_constants_of_which_branches_get_copies_are_counted():
    large = helper.make_tensor("k", 7, [2**16], range(2**16))
    branches = [
        choice(i, *(branch([node("Gather", ["k", "k"], [f"{k}{i}"])], f"{k}{i}") for k in "te")) for i in range(200)
    ]
    model = made(
        [node("Split", ["x"], ["a", "b"], axis=1), *branches],
        ["a"],
        [X, helper.make_tensor_value_info("c", 9, [])],
        [large],
    )
    with pytest.raises(InputError, match=r"beyond the limit ONNX_COPIED: "):
        on_onnxruntime(model, "1.24.4")


def test_graphs_in_nodes_are_counted(monkeypatch):
    monkeypatch.setattr(loading, "MAX_GRAPHS", 8)
    assert on_onnxruntime(FAMILIES["ifs"](4), "1.24.4")
    with pytest.raises(InputError, match=r"beyond the limit ONNX_GRAPHS: 8 "):
        on_onnxruntime(FAMILIES["ifs"](5), "1.24.4")


def test_names_that_inference_copies_for_graphs_in_nodes_are_counted():
    """onnx copies the names around a graph for each graph in a node: as often as there are both."""
    assert inference.Inference().infer_shapes(FAMILIES["ifs"](20))
    model = FAMILIES["ifs"](4000)
    model.graph.value_info.extend(onnx.ValueInfoProto(name=f"n{i}") for i in range(30_000))
    with pytest.raises(inference.InferenceError, match="would copy more than"):
        inference.Inference().infer_shapes(model)
