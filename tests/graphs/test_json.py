"""Graphs in JSON and back."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.formats.graph_json import dumps, loads
from tests.graphs.spec import executions, graph

EXAMPLE = graphs.EXAMPLES["graph/fused-wrongly"](True)


@pytest.mark.slow
def test_every_recorded_graph_comes_back():
    for execution in executions():
        desc = graph(execution.spec)
        assert loads(dumps(desc)) == desc


@pytest.mark.parametrize("id", graphs.EXAMPLES)
def test_graphs_are_pickled_and_hashed(id):
    desc = graphs.EXAMPLES[id](False)
    again = pickle.loads(pickle.dumps(desc))
    assert (again, hash(again)) == (desc, hash(desc))
    assert copy.deepcopy(desc) == desc


def test_the_form():
    form = json.loads(dumps(EXAMPLE))
    assert form["Type"] == "DML_GRAPH"
    assert list(form["Desc"]) == ["Inputs", "Outputs", "Nodes", "InputEdges", "OutputEdges", "IntermediateEdges"]
    slice_, _, sigmoid, product = form["Desc"]["Nodes"]
    assert slice_["Type"] == "DML_OPERATOR_SLICE1"
    assert slice_["Desc"]["InputWindowOffsets"] == [0, 0, 0, 0]
    assert {"InputTensor", "OutputTensor"} <= set(sigmoid["Desc"])
    assert {"ATensor", "BTensor", "OutputTensor"} == set(product["Desc"])
    assert form["Desc"]["OutputEdges"] == [{"FromNodeIndex": 3, "FromNodeOutputIndex": 0, "GraphOutputIndex": 0}]


def one_node(node):
    return graphs.GraphDesc([T4], [T4], [node], [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(0, 0, 0)])


T4 = dml.BufferTensorDesc(1, (1, 1, 2, 2))
TENSOR = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2]}


def with_node(type_, **desc):
    form = json.loads(dumps(one_node(dml.AnyOperatorDesc.of_tensors("ACTIVATION_RELU", [T4], [T4]))))
    form["Desc"]["Nodes"] = [{"Type": type_, "Desc": desc or None}]
    return loads(json.dumps(form))


@pytest.mark.parametrize("number", [53, 47, 9999])
def test_nodes_of_which_only_the_tensors_are_known(number):
    desc = one_node(dml.AnyOperatorDesc.of_tensors(number, [T4, None], [T4]))
    assert not desc.nodes[0].operator.whole
    assert (desc.nodes[0].type, len(desc.nodes[0].inputs)) == (number, 2)
    again = loads(dumps(desc))
    assert again == desc == pickle.loads(pickle.dumps(desc))
    assert hash(again) == hash(desc)
    with pytest.raises(dml.DescriptorError):
        dml.AnyOperatorDesc.of_tensors(2**32, [], [])


def test_what_is_beside_the_tensors_may_be_left_out():
    """Of the operators that were observed in graphs."""
    for members in ({}, {"Alpha": 1, "Betta": 2}, {"Alpha": None, "Beta": 1}):
        (node,) = with_node("DML_OPERATOR_ACTIVATION_LINEAR", InputTensor=TENSOR, OutputTensor=TENSOR, **members).nodes
        assert node == dml.AnyOperatorDesc.of_tensors("ACTIVATION_LINEAR", [T4], [T4])
        assert (node.operator.whole, node.operator.name) == (False, "ACTIVATION_LINEAR")
    (scaled,) = with_node(1, InputTensor=TENSOR, OutputTensor=TENSOR, ScaleBias=[2, 1]).nodes
    assert scaled.members["ScaleBias"] == (2, 1)
    (lists,) = with_node(44, Inputs=[TENSOR], Outputs=[TENSOR]).nodes
    assert lists == dml.AnyOperatorDesc("ACTIVATION_RELU", {"InputTensor": T4, "OutputTensor": T4})
    (lists,) = with_node(53, Inputs=[TENSOR, None], Outputs=[TENSOR], Mode=1, Strides=[1, 1], Fused=None).nodes
    assert lists == dml.AnyOperatorDesc.of_tensors("CONVOLUTION", [T4, None], [T4])
    (nothing,) = with_node(0).nodes
    assert (nothing.type, nothing.inputs, nothing.outputs) == (0, (None,), (None,))
    with pytest.raises(dml.InputError, match=r"Nodes\[0\]\.Desc\.OutputTensor: is missing"):
        with_node(44, InputTensor=TENSOR)
    with pytest.raises(dml.InputError, match="expected a number"):
        with_node(40, InputTensor=TENSOR, OutputTensor=TENSOR, Alpha="x", Beta=1)
    with pytest.raises(dml.InputError, match=r"Nodes\[0\]\.Desc\.FilterTensor: is missing"):
        with_node(53, InputTensor=TENSOR, OutputTensor=TENSOR)


def test_nodes_of_any_operator():
    """With all of their struct; what no model of graphs knows is named in the report."""
    a, b, c = (dml.BufferTensorDesc(1, sizes) for sizes in ((1, 1, 2, 3), (1, 1, 3, 4), (1, 1, 2, 4)))
    members = {"ATensor": a, "BTensor": b, "OutputTensor": c, "TransA": 0, "TransB": 0, "Alpha": 1, "Beta": 0}
    gemm = dml.AnyOperatorDesc("GEMM", members)
    half = dml.BufferTensorDesc(1, (1, 1, 2, 2))
    split = dml.AnyOperatorDesc("SPLIT", {"InputTensor": c, "OutputTensors": [half, half], "Axis": 3})
    starts = [dml.InputGraphEdgeDesc(0, 0, 0), dml.InputGraphEdgeDesc(1, 0, 1)]
    ends = [dml.OutputGraphEdgeDesc(1, 0, 0), dml.OutputGraphEdgeDesc(1, 1, 1)]
    wires = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)]
    desc = graphs.GraphDesc([a, b], [half, half], [gemm, split], starts, ends, wires)
    assert isinstance(desc.nodes[1], dml.SplitOperatorDesc)
    assert loads(dumps(desc)) == desc
    assert [d.rule for d in dml.validate(desc).diagnostics] == ["graph/unknown"]
    form = json.loads(dumps(desc))
    form["Desc"]["Nodes"][0]["Desc"]["TransA"] = "TRANSPOSED"
    with pytest.raises(dml.InputError, match=r"Nodes\[0\]\.Desc\.TransA: TRANSPOSED is not a DML_MATRIX_TRANSFORM"):
        loads(json.dumps(form))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("Nodes"), "Field 'Nodes' is required"),
        (lambda d: d["InputEdges"][0].pop("ToNodeIndex"), "Field 'ToNodeIndex' is required"),
        (lambda d: d["InputEdges"][0].update(ToNodeIndex=-1), "ToNodeIndex: expected an unsigned integer"),
        (
            lambda d: d["Nodes"][2].update(Type="DML_OPERATOR_SIGMOID"),
            "is not an operator; did you mean ACTIVATION_SIGMOID",
        ),
        (lambda d: d["Nodes"][2]["Desc"].pop("InputTensor"), r"Nodes\[2\]\.Desc\.InputTensor: is missing"),
        (lambda d: d["Nodes"][0]["Desc"].update(InputWindowOffsets="x"), "expected an array or null"),
        (lambda d: d.update(Inputs=3), "expected an array"),
    ],
)
def test_malformed_graphs_get_one_error_with_a_place(change, message):
    form = json.loads(dumps(EXAMPLE))
    change(form["Desc"])
    with pytest.raises(dml.InputError, match=message) as error:
        loads(json.dumps(form, indent=1))
    assert error.value.line is not None


def test_descriptors_are_not_judged():
    assert loads(dumps(graphs.GraphDesc([None], [None], [], [], []))).inputs == (None,)
    with pytest.raises(dml.DescriptorError):
        graphs.InputGraphEdgeDesc(2**32, 0, 0)
    with pytest.raises(TypeError):
        graphs.GraphDesc([], [], [3], [], [])
