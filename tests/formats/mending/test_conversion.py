"""Older opsets in functions and in graphs of nodes: what onnx's converter makes of each, and what stays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import dmlsplit as dml
from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError, NotLegalizedError
from tests import models
from tests.models import graph, ints, model, node, value, with_reference

X = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
LARGE = numpy_helper.from_array(np.random.default_rng(3).normal(size=(4, 20000)).astype(np.float32), "w")
TAIL = [
    node("Split", ["t"], ["a", "b"], axis=1, num_outputs=2),
    node("Concat", ["b", "a"], ["y"], axis=1),
]


def converted(made, **arrays):
    """What ONNX Runtime 1.10, which loads opset 15, is given; it computes the same of `arrays`, if there are any."""
    onnx.checker.check_model(made, full_check=True)
    written = front_end.legalize(made, onnxruntime="1.10.0")
    assert "convert-opset" in {name for change in written.changes for name in change.names}
    assert front_end.legalize(written.model, onnxruntime="1.10.0") == (written.model, ())
    result = onnx.load_from_string(written.model)
    onnx.checker.check_model(result, full_check=True)
    assert {entry.version for entry in result.opset_import if not entry.domain} == {15}
    if arrays:
        one, two = (ReferenceEvaluator(each).run(None, arrays) for each in (made, result))
        assert [array.tobytes() for array in one] == [array.tobytes() for array in two]
    return result


def calling(*body, opset=18, **attributes):
    imports = [helper.make_opsetid("", opset)]
    function = helper.make_function("own", "F", ["x"], ["t"], body, imports, attributes=list(attributes))
    call = node("F", ["x"], ["t"], domain="own", **attributes)
    fields = {"functions": [function], "domains": ["own"], "ir_version": 8}
    return model([call, *TAIL], [value("x", [2, 4])], [value("y", [None, None])], opset=opset, **fields)


@pytest.mark.parametrize(
    "axes",
    [
        node("Constant", [], ["axes"], value_ints=[1]),
        node("Constant", [], ["axes"], value=numpy_helper.from_array(np.array([1]), "axes")),
    ],
    ids=["numbers", "tensor"],
)
def test_functions(axes):
    made = calling(axes, node("ReduceMean", ["x", "axes"], ["m"]), node("Add", ["x", "m"], ["t"]))
    (function,) = converted(made, x=X).functions
    (mean,) = [n for n in function.node if n.op_type == "ReduceMean"]
    assert list(mean.input) == ["x"]
    assert {a.name: list(a.ints) for a in mean.attribute}["axes"] == [1]


def test_a_node_with_attributes_of_its_function_is_left_alone():
    made = calling(
        with_reference(node("Elu", ["x"], ["e"]), "alpha", "k", onnx.AttributeProto.FLOAT),
        node("ReduceMean", ["e"], ["m"]),
        node("Add", ["e", "m"], ["t"]),
        k=0.5,
    )
    (function,) = converted(made).functions  # onnx's evaluator does not run it
    assert function.node[0] == made.functions[0].node[0]


def test_a_node_with_attributes_of_its_function_is_not_converted():
    made = calling(with_reference(node("ReduceMean", ["x"], ["t"]), "keepdims", "k"), k=1)
    with pytest.raises(NotLegalizedError, match="attributes of a function"):
        front_end.legalize(made, onnxruntime="1.10.0")


def test_several_nodes_are_written_before_the_converter_is_asked():
    """Each of these has the same documentation then."""
    body = [
        node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2),
        node("Split", ["q"], ["r", "s"], axis=-2, num_outputs=2),
        node("Concat", ["s", "r"], ["u"], axis=-2),
        node("Concat", ["u", "p"], ["v"], axis=1),
        node("Relu", ["v"], ["t"]),
    ]
    made = calling(*body, opset=21)
    made.ir_version = 10
    assert [n.op_type for n in converted(made, x=X).functions[0].node if n.op_type != "Constant"] == [
        *("Split", "Split", "Concat", "Concat", "Relu")
    ]


def test_no_operator_of_a_function_changed():
    made = calling(node("HardSwish", ["x"], ["t"]), opset=21)
    made.ir_version = 10
    assert converted(made, x=X).functions[0].node == made.functions[0].node


def branches(opset=18):
    one = [
        node("Constant", [], ["w"], value=LARGE),
        node("MatMul", ["x", "w"], ["product"]),
        node("ReduceMean", ["product", "axes"], ["m"], name="mean"),
        node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2),
        node("Concat", ["q", "p", "m"], ["r"], axis=1),
    ]
    two = [node("ReduceMean", ["x", "own"], ["m"]), node("Concat", ["x", "m"], ["s"], axis=1)]
    branch = node(
        "If",
        ["c"],
        ["y"],
        name="if",
        then_branch=graph(one, [], (value("r", [2, 5]),)),
        else_branch=graph(two, [], (value("s", [2, 5]),), [ints("own", 1)]),
    )
    branch.metadata_props.add(key="k", value="v")
    inputs = [value("x", [2, 4]), value("c", [], TensorProto.BOOL)]
    fields = {"initializers": [ints("axes", 1)], "ir_version": 8 if opset < 19 else 10}
    return model([branch], inputs, [value("y", [2, 5])], opset=opset, **fields)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("choice", [True, False])
def test_graphs_in_nodes(opset, choice):
    """The axes are a constant of the graph around; the weights are not in what the converter is given."""
    made = branches(opset)
    (branch,) = converted(made, x=X, c=np.array(choice)).graph.node
    assert (branch.name, branch.doc_string, len(branch.metadata_props)) == ("if", "", 1)
    inner = next(a.g for a in branch.attribute if a.name == "then_branch")
    assert inner.node[0] == next(a.g for a in made.graph.node[0].attribute if a.name == "then_branch").node[0]
    assert [n.name for n in inner.node if n.op_type == "ReduceMean"] == ["mean"]


def test_what_the_converter_knows_no_way_for_is_refused():
    pads = ints("pads", 0, 0, 0, 1)
    nodes = [node("Pad", ["x", "pads"], ["t"]), *TAIL]
    made = model(nodes, [value("x", [2, 3])], [value("y", [2, 4])], opset=18, initializers=[pads], ir_version=8)
    with pytest.raises(NotLegalizedError, match=r"opset 18 is newer than 15.*Pad"):
        front_end.legalize(made, onnxruntime="1.10.0")


@pytest.mark.parametrize(("operator", "opset", "target"), [("Identity", 18, "1.10.0"), ("GlobalMaxPool", 22, "1.18.0")])
def test_operators_that_the_converter_has_no_adapter_for(operator, opset, target):
    nodes = [node(operator, ["x"], ["v"]), node("ReduceMean", ["x", "axes"], ["m"]), node("Add", ["v", "m"], ["y"])]
    made = model(
        nodes,
        [value("x", [1, 2, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        opset=opset,
        initializers=[ints("axes", 2, 3)],
        ir_version=8,
    )
    made.graph.node.append(node("Concat", ["y", "y"], ["z"], axis=1))
    onnx.checker.check_model(made, full_check=True)
    result = onnx.load_from_string(front_end.legalize(made, onnxruntime=target).model)
    onnx.checker.check_model(result, full_check=True)
    assert result.opset_import[0].version < opset
    assert made.graph.node[0] in result.graph.node


def test_copies_of_a_constant_for_the_graphs_that_read_it_are_counted(monkeypatch):
    """The converter gets each graph by itself, with the small constants around it. Large ones are not copied: there are
    60 MB of these."""

    def of(count, size):
        constant = helper.make_tensor("k", TensorProto.UINT8, [size], bytes(size), raw=True)

        def branch(name):
            return graph([node("Cast", ["k"], [name], to=TensorProto.FLOAT)], [], [value(name, [size])])

        ifs = [
            node("If", ["c"], [f"y{i}"], then_branch=branch(f"t{i}"), else_branch=branch(f"e{i}")) for i in range(count)
        ]
        inputs = [value("x", [2, 4]), value("c", [], TensorProto.BOOL)]
        split = node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2)
        pool = node("Cast", ["x"], ["t"], to=TensorProto.FLOAT16)
        return model([split, pool, *ifs], inputs, [value("a", [2, 2])], opset=19, initializers=[constant])

    assert front_end.legalize(of(30, 1_000_000), onnxruntime="1.10.0").changes
    monkeypatch.setattr(Limit.ONNX_COPIED, "most", 20_000)
    monkeypatch.setattr(Limit.ONNX_COPIED, "a_byte", 0)
    assert front_end.legalize(of(2, 4000), onnxruntime="1.10.0").changes
    with pytest.raises(InputError, match=r"beyond the limit ONNX_COPIED: "):
        front_end.legalize(of(30, 4000), onnxruntime="1.10.0")


FUNCTION = '<domain: "own", opset_import: ["" : {}]> F (x) => (y) {{ y = {} }}'


@pytest.mark.parametrize("body", ["y = own.F(x)", "y = Relu(x)"], ids=["called", "not called"])
def test_a_function_with_a_newer_opset_than_the_model(body):
    """ONNX Runtime loads no function that imports a newer opset than it supports, called or not."""
    text = f"(float[2,4] x) => (float[2,4] y) {{ {body} }}"

    def at(opset):
        return models.text(text, opset=18, functions=FUNCTION.format(opset, "Tanh(x)"))

    assert dml.onnxruntime.session(at(25), "1.24.4").created is True
    found = dml.onnxruntime.session(at(26), "1.24.4")
    assert (found.created, found.failure) == (False, ("", "the function F has opset 26, but 1.24.4 supports up to 25"))
    written = front_end.legalize(at(26), onnxruntime="1.24.4")
    assert [(each.path, each.before, each.after) for each in written.changes] == [("F", ("opset 26",), ("opset 18",))]
    result = onnx.load_from_string(written.model)
    assert dml.onnxruntime.session(result, "1.24.4").created is True
    assert [result.opset_import[0].version, result.functions[0].opset_import[0].version] == [18, 18]


def test_a_function_with_a_newer_opset_in_which_a_node_has_another_meaning():
    made = models.text(
        "(float[2,4] x) => (float[2,4] y) { y = own.F(x) }",
        opset=18,
        functions=FUNCTION.format(20, "Gelu(x)"),
    )
    with pytest.raises(NotLegalizedError, match=r"the function F has opset 20, newer than 19, .*Gelu"):
        front_end.legalize(made, onnxruntime="1.15.1")
