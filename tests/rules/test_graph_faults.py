"""The sentences of faults of graphs, by indices and by the names of a model."""

import pytest

from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.rules.graph_faults import (
    Affected,
    Fault,
    FaultKind,
    NodeName,
    TensorName,
    first_names,
    happens,
    in_model,
    of_output,
    unknown,
)
from dmlsplit.rules.onnxruntime import FAULTS

A, B = TensorName(0, 0), TensorName(0, 1)
IN_GRAPH = {
    Fault(FaultKind.GATE, 2, (B, TensorName(None, 3))): (
        "it computes q * sigmoid(q) with q = output 1 of node 0, not graph input 3 * sigmoid(q)"
    ),
    Fault(FaultKind.PRODUCT, 4, (A, B, B, A)): (
        "it computes output 0 of node 0 * r * sigmoid(r) with r = output 1 of node 0, "
        "not output 1 of node 0 * output 0 of node 0 * sigmoid(r)"
    ),
    Fault(FaultKind.PRODUCT_CRASHES, 4, numbers=(1, 1)): "the fusion reads output 1 of a node that has 1",
    Fault(FaultKind.REPEATED, 3, numbers=(1,)): "the place of input 1 of the Join (node 3) is never written",
    Fault(FaultKind.OVERWRITTEN, 5, operator="RELU"): ("node 5 (RELU) overwrites it, and its result is read instead"),
    Fault(FaultKind.OVERWRITTEN, None, operator="COPY"): "a copy overwrites it, and its result is read instead",
    Fault(FaultKind.REFUSED, 1, numbers=(512, 0, 256), buffer="temporary 2"): (
        "512 bytes at offset 0 do not fit into the 256 bytes of temporary 2"
    ),
    Fault(FaultKind.WHOLE_TOO_LARGE, 1, numbers=(512, 0, 256), buffer="output 0"): (
        "512 bytes at offset 0 do not fit into the 256 bytes of output 0"
    ),
    Fault(FaultKind.WHOLE_TOO_NARROW, 1): "its input does not fit into the place of a part",
    Fault(FaultKind.WHOLE_OVER_OTHERS, 1): (
        "the input of the Split (node 1) overwrites the places next to that of a part"
    ),
    Fault(FaultKind.WHOLE_FIRST, 1): ("the input of the Split (node 1) is joined instead of a part"),
    Fault(FaultKind.FIVE_DIMENSIONS, 0): "elements with a first index other than 0 are read from wrong positions",
    Fault(FaultKind.OUTER_SPLIT, 0, numbers=(5,)): "the Split has 5 dimensions, and splits one before the last four",
    Fault(FaultKind.OUTER_JOIN, 0, numbers=(5,)): (
        "the Join has 5 dimensions, joins along one before the last four, and copies its inputs"
    ),
    Fault(FaultKind.CONSTANT, None): "a constant is a node of the graph",
    Fault(FaultKind.EMPTY_PART, 3): (
        "node 3 has a part without elements: it is not executed, and none of its parts are written"
    ),
    Fault(FaultKind.EMPTY_SECOND_PART, 3): (
        "only the second part of node 3 has no elements: ONNX Runtime adds the node to a fused graph, and the "
        "session is not created"
    ),
    Fault(FaultKind.EMPTY_OUTPUT, 0, ("e", "y", "z")): (
        "the output e has no elements, and Run does not copy y, z from the device: nothing is written there"
    ),
    Fault(FaultKind.MAY_BE_EMPTY, 0, ("e", "y"), condition="n = 0"): (
        "if n = 0, the output e has no elements, and Run does not copy y from the device"
    ),
}
RELU, SPLIT = NodeName("Relu", "block/act"), NodeName("Split", "halves")


@pytest.mark.parametrize(("fault", "sentence"), IN_GRAPH.items(), ids=lambda value: getattr(value, "kind", ""))
def test_what_happens_in_a_graph(fault, sentence):
    assert happens(fault) == sentence
    assert fault.rule in GRAPH_RULES


def test_every_kind_has_a_sentence():
    assert {fault.kind for fault in IN_GRAPH} == set(FaultKind) - {FaultKind.UNWRITTEN, FaultKind.DEAD}


def test_of_an_output():
    assert of_output(2, Fault(FaultKind.WHOLE_TOO_NARROW, 1)).endswith("(Nodes[1])")
    assert of_output(2, Fault(FaultKind.OVERWRITTEN, None)).startswith("graph output 2 is wrong: a copy overwrites it")
    assert of_output(2, Fault(FaultKind.OVERWRITTEN, None)).endswith("(a copy)")


def test_a_named_fault_has_the_names_of_a_model():
    names = {B: "gate\n7", TensorName(None, 3): "x"}
    fault = Fault(FaultKind.GATE, 2, tuple(names)).named([SPLIT, SPLIT, RELU].__getitem__, names.__getitem__)
    assert (fault.node, fault.tensors, fault.index) == (RELU, ("gate\n7", "x"), None)
    assert in_model(fault, RELU, ["y"], leave=True) == (
        r"the output y is wrong: it computes q * sigmoid(q) with q = gate\n7, not x * sigmoid(q) (Relu block/act)"
    )
    assert in_model(fault, RELU, ["y", "z"]).startswith("the tensors y, z are wrong: ")


def test_the_culprit_is_named_once():
    said = in_model(Fault(FaultKind.OVERWRITTEN, RELU, operator="RELU"), RELU, ["v"])
    assert said == "the tensor v is wrong: Relu block/act overwrites it, and its result is read instead"


def test_a_refused_graph():
    fault = Fault(FaultKind.REFUSED, SPLIT, numbers=(512, 0, 256), buffer="temporary 2")
    assert in_model(fault, SPLIT, (), reader=RELU) == (
        "CompileGraph refuses the graph at Split halves, and the session is not created: only one part of it is used, "
        "by Relu block/act, which runs in place: 512 bytes at offset 0 do not fit into the 256 bytes of temporary 2"
    )
    assert fault.without_buffer == Fault(FaultKind.REFUSED, SPLIT, numbers=(512, 0, 256))
    assert in_model(Fault(FaultKind.PRODUCT_CRASHES, RELU, numbers=(1, 1)), RELU, ()) == (
        "CompileGraph crashes the process for the graph at Relu block/act: the fusion reads output 1 of a node that "
        "has 1"
    )


@pytest.mark.parametrize("kind", [FaultKind.EMPTY_SECOND_PART, FaultKind.EMPTY_OUTPUT, FaultKind.MAY_BE_EMPTY])
def test_sentences_that_say_all(kind):
    (fault,) = (each for each in IN_GRAPH if each.kind is kind)
    assert in_model(fault, SPLIT, ["v"]) == in_model(fault, SPLIT, ()) == happens(fault)


def test_what_no_graph_has():
    dead = Fault(FaultKind.DEAD, SPLIT, nodes=(SPLIT, RELU))
    assert in_model(dead, SPLIT, ()) == (
        "nothing uses what halves, block/act compute: ONNX Runtime compiles a graph without nodes, and the session is "
        "not created"
    )
    assert in_model(Fault(FaultKind.UNWRITTEN, RELU, ("v",)), RELU, ["v"], leave=True) == (
        "the output v of Relu block/act is never written, because the activation after it is fused into the node: Run "
        "returns an empty value for it"
    )
    assert unknown("why") == "the result of its graph is not known: why"


def test_affected_releases():
    affected = Affected(["1.13.1", "1.15.4"], ["1.17.0", "1.17.3", "1.24.4"], ["1.17.0", "1.17.3"])
    assert str(affected) == (
        "DirectML 1.13.1 to 1.15.4, that is ONNX Runtime 1.17.0 to 1.24.4 (1.17.0 to 1.17.3 not observed)"
    )
    around = Affected(["1.15.4"], ["1.17.0", "1.17.3", "1.24.4", "1.30.1"], ["1.17.0", "1.17.3", "1.30.1"])
    assert str(around).endswith("ONNX Runtime 1.17.0 to 1.30.1 (1.17.0 to 1.17.3 and 1.30.1 not observed)")
    three = Affected(["1.15.4"], ["1.17.0", "1.18.0", "1.20.1", "1.24.4", "1.30.0"], ["1.17.0", "1.20.1", "1.30.0"])
    assert str(three).endswith("ONNX Runtime 1.17.0 to 1.30.0 (1.17.0, 1.20.1 and 1.30.0 not observed)")
    assert str(Affected(["1.10.1"], ["1.14.1"], [])) == "DirectML 1.10.1, that is ONNX Runtime 1.14.1"


def test_the_faults_that_a_nodes_own_answer_stands_for():
    """By which the session is not made, the most frequent one first."""
    refused, *rarer = FAULTS["onnxruntime/graph-refused"]
    assert refused is FaultKind.REFUSED
    assert {kind.value for kind in rarer} == {
        *("whole-too-large", "whole-too-narrow", "outer-split", "outer-join", "constant", "product-crashes")
    }
    assert {rule: kinds for rule, kinds in FAULTS.items() if rule != "onnxruntime/graph-refused"} == {
        "onnxruntime/graph-without-outputs": (FaultKind.DEAD,),
        "onnxruntime/empty-part": (FaultKind.EMPTY_PART,),
        "onnxruntime/second-output-empty": (FaultKind.EMPTY_SECOND_PART,),
    }


def test_of_names_the_first_four_are_listed():
    assert [first_names(list("abcdef"[:count])) for count in (1, 4, 5, 6)] == [
        "a",
        "a, b, c, d",
        *["a, b, c, d, ..."] * 2,
    ]
