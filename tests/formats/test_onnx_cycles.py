"""Nodes that need their own outputs: one error for the file, whichever command reads it."""

import pytest
from onnx import TensorProto, helper

from dmlsplit import InputError
from dmlsplit.formats import onnx as front_end
from tests.models import graph, model, node, value

X = value("x", [1, 8, 4, 4])
SPLIT = node("Split", ["x"], ["a", "b"], axis=1)
CONDITION = helper.make_tensor("c", TensorProto.BOOL, [], [True])
ROUND = [node("Add", ["x", "q"], ["p"]), node("Relu", ["p"], ["q"], name="back")]


def of_one():
    return model([node("Relu", ["y"], ["y"]), SPLIT], [X], opset=13)


def of_many():
    ring = [node("Relu", [f"t{(i + 1) % 3000}"], [f"t{i}"]) for i in range(3000)]
    return model([SPLIT, *ring], [X], ["a", "t0"], opset=13)


def through_a_split():
    return model([node("Concat", ["x", "b"], ["y"], axis=1), node("Split", ["y"], ["a", "b"], axis=1)], [X], opset=13)


def in_a_branch():
    then, other = graph([*ROUND, SPLIT], [], ["q"]), graph([node("Relu", ["x"], ["e"])], [], ["e"])
    made = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return model([made], [X], ["y"], 13, [CONDITION])


def through_a_branch():
    """The branch reads what a node behind the If computes of its output."""
    then, other = graph([node("Relu", ["z"], ["t"])], [], ["t"]), graph([node("Relu", ["x"], ["e"])], [], ["e"])
    made = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return model([made, node("Relu", ["y"], ["z"]), SPLIT], [X], ["a", "z"], 13, [CONDITION])


def in_a_loop():
    body = graph([node("Identity", ["going"], ["go"]), *ROUND], [value("i", [], 7), value("going", [], 9)], ["go", "q"])
    loop = node("Loop", ["m", ""], ["y"], body=body)
    trips = helper.make_tensor("m", TensorProto.INT64, [], [3])
    return model([loop, SPLIT], [X], ["a", "y"], 13, [trips])


def in_a_function():
    imports = [helper.make_opsetid("", 13)]
    function = helper.make_function("d", "f", ["x"], ["q"], [*ROUND, SPLIT], imports)
    return model([node("f", ["x"], ["y"], domain="d")], [X], ["y"], 13, functions=[function], domains=["d"])


def of_functions_beside():
    """The function that nothing calls."""
    made = in_a_function()
    made.graph.ClearField("node")
    made.graph.node.append(node("Split", ["x"], ["y", "z"], axis=1))
    return made


CYCLIC = [
    *(of_one, of_many, through_a_split, in_a_branch, through_a_branch, in_a_loop, in_a_function, of_functions_beside),
]


@pytest.mark.parametrize("made", CYCLIC, ids=lambda made: made.__name__)
@pytest.mark.parametrize("target", [{}, {"onnxruntime": "1.24.4"}], ids=["default", "onnxruntime"])
def test_a_cycle_is_an_error(made, target):
    with pytest.raises(InputError, match="form a cycle"):
        front_end.read(made())
    with pytest.raises(InputError, match="form a cycle"):
        front_end.legalize(made().SerializeToString(), **target)


@pytest.mark.parametrize("word", ["n" * 5000, "\x1b[31m", "a\n::error::b"])
def test_a_cycle_is_one_printable_line(word):
    with pytest.raises(InputError) as error:
        front_end.read(model([node(word, ["q"], ["q"], name=word)], [value("x", [4])]))
    assert error.value.message.isprintable()
    assert len(error.value.message) < 300


def test_what_only_looks_like_a_cycle_is_read():
    """Branches that compute names of the If's outputs, and nodes that stand in front of what they read."""
    then, other = graph([node("Relu", ["x"], ["y"])], [], ["y"]), graph([node("Abs", ["x"], ["y"])], [], ["y"])
    nodes = [
        node("Relu", ["a"], ["late"]),
        node("Split", ["y"], ["a", "b"], axis=1),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    [split] = front_end.read(model(nodes, [X], ["late"], 13, [CONDITION]))
    assert split.report.ok


def test_functions_that_call_one_another_are_one_error():
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("d", 1)]
    functions = [
        helper.make_function("d", f"f{i}", ["x"], ["y"], [node(f"f{1 - i}", ["x"], ["y"], domain="d"), SPLIT], imports)
        for i in range(2)
    ]
    made = model([node("f0", ["x"], ["y"], domain="d")], [X], ["y"], 13, functions=functions, domains=["d"])
    made.graph.node.append(node("Split", ["x"], ["s", "t"], name="outside", axis=1))
    items = front_end.read_model(made).items
    assert [getattr(item, "diagnostic", None) and item.diagnostic.rule for item in items].count(
        "onnx/function-recursive"
    ) == 1
    with pytest.raises(InputError):
        front_end.legalize(made.SerializeToString(), onnxruntime="1.24.4")
