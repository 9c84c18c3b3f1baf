"""Any Split or Concat for any target: what is written is taken, and what is refused is refused for a reason."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, defs, helper

import dmlsplit as dml
from dmlsplit.formats import onnx as front_end
from dmlsplit.onnxruntime import Outcome, runtimes
from dmlsplit.system.errors import NotLegalizedError
from tests.models import BOOL, ints, model, node, value

OPSETS = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22)
IR_VERSION = {1: 3, 2: 3, 4: 3, 5: 3, 6: 3, 7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 15: 8, 17: 8, 18: 8, 19: 9}
NEWER_IR_VERSION = 10
NAMES = frozenset(TensorProto.DataType.keys())
FIRST_WRAPPED = 7
"""The first opset of models with branches and functions here."""
TARGETS = (
    *({"feature_level": level.name.removeprefix("FL_")} for level in dml.FeatureLevel),
    *({"directml": release.name} for release in dml.releases()),
    *({"onnxruntime": runtime.version} for runtime in runtimes()),
)


def types_of(op, opset):
    """The element types that an operator has in an opset."""
    (constraint,) = [c for c in defs.get_schema(op, opset, "").type_constraints if c.type_param_str == "T"]
    names = [name.removeprefix("tensor(").removesuffix(")").upper() for name in constraint.allowed_type_strs]
    return sorted(name for name in names if name in NAMES)


@st.composite
def models(draw):
    """A model with one node, in the graph, in a branch or in a function that is called twice."""
    op, opset = draw(st.sampled_from(("Split", "Concat"))), draw(st.sampled_from(OPSETS))
    data_type = TensorProto.DataType.Value(draw(st.sampled_from(types_of(op, opset))))
    sizes = st.one_of(st.integers(1, 4), st.integers(0, 4), st.sampled_from(("N", "M")))
    shape = draw(st.lists(sizes, min_size=1, max_size=9))
    axis = draw(st.integers(0, len(shape) - 1))
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    parts = [[*shape[:axis], length, *shape[axis + 1 :]] for length in lengths]
    whole = [*shape[:axis], sum(lengths), *shape[axis + 1 :]]
    if op == "Concat":
        tensors = {f"x{i}": part for i, part in enumerate(parts)}
        made, numbers, outputs = [node("Concat", list(tensors), ["y"], axis=axis, name="node")], [], ["y"]
    else:
        tensors = {"x": whole}
        names = [f"y{i}" for i in range(len(parts))]
        omitted = draw(st.sets(st.sampled_from(names), max_size=len(names) - 1)) if opset >= FIRST_WRAPPED else ()
        outputs = [name for name in names if name not in omitted]
        names = ["" if name in omitted else name for name in names]
        made, numbers = draw(splits(opset, names, axis, lengths))
    inputs = [value(name, shape, data_type) for name, shape in tensors.items()]
    wrapped = draw(st.sampled_from(("no", "branch", "function"))) if opset >= FIRST_WRAPPED else "no"
    imports, functions = [helper.make_opsetid("", opset)], []
    results = [helper.make_tensor_value_info(name, data_type, [None] * len(shape)) for name in outputs]
    if wrapped == "branch":
        branches = [helper.make_graph(made, name, [], results) for name in ("one", "other")]
        made = [helper.make_node("If", ["c"], outputs, then_branch=branches[0], else_branch=branches[1], name="if")]
        inputs.append(value("c", [], BOOL))
    elif wrapped == "function":
        known = [*tensors, *(tensor.name for tensor in numbers)]
        functions = [helper.make_function("own", "F", known, outputs, made, imports[:1])]
        again = [f"{name}_again" for name in outputs]
        made = [node("F", known, names, domain="own", name=names[0]) for names in (outputs, again)]
        results += [helper.make_tensor_value_info(name, data_type, [None] * len(shape)) for name in again]
    version = IR_VERSION.get(opset, NEWER_IR_VERSION)
    if version < 4:  # before, initializers are inputs, too
        inputs += [value(tensor.name, list(tensor.dims), TensorProto.INT64) for tensor in numbers]
    version = max(version, 8) if functions else version
    return model(made, inputs, results, opset, numbers, functions, ["own"] * bool(functions), ir_version=version)


@st.composite
def splits(draw, opset, names, axis, lengths):
    """The nodes of a Split, and its initializers."""
    equal, chunk = len(set(lengths)) == 1, -(-sum(lengths) // len(lengths))
    chunked = lengths == [min(chunk, max(sum(lengths) - chunk * i, 0)) for i in range(len(lengths))]
    if draw(st.booleans()) and (equal if opset < 18 else chunked):
        fields = {"num_outputs": len(lengths)} if opset >= 18 else {}
        return [node("Split", ["x"], names, axis=axis, name="node", **fields)], []
    if opset < 13:
        return [node("Split", ["x"], names, axis=axis, split=lengths, name="node")], []
    split = node("Split", ["x", "l"], names, axis=axis, name="node")
    if draw(st.booleans()):
        return [split], [ints("l", *lengths)]
    return [node("Constant", [], ["l"], value=ints("l", *lengths)), split], []


def check_property(folder, made, target):
    try:
        onnx.checker.check_model(made, full_check=True)
    except Exception:
        assume(False)
    data = made.SerializeToString()

    def reports(model):
        path = folder / "model.onnx"
        path.write_bytes(model)
        return list(dml.check_files([path], **target))

    try:
        written = front_end.legalize(data, **target)
    except NotLegalizedError:
        if "onnxruntime" in target:
            assert not all(each.ok and each.answer.outcome is not Outcome.UNKNOWN for each in reports(data))
        return
    assert all(each.ok for each in reports(written.model))
    assert front_end.legalize(written.model, **target) == (written.model, ())
    if written.changes:
        onnx.checker.check_model(onnx.load_from_string(written.model), full_check=True)
    else:
        assert written.model == data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("targets")


@given(models(), st.sampled_from(TARGETS))
@settings(max_examples=15)
def test_what_is_written_is_taken(folder, made, target):
    check_property(folder, made, target)


@pytest.mark.slow
@given(models(), st.sampled_from(TARGETS))
@settings(max_examples=60)
def test_more_that_is_written_is_taken(folder, made, target):
    check_property(folder, made, target)


@pytest.mark.slow
@pytest.mark.thorough
@given(models(), st.sampled_from(TARGETS))
@settings(max_examples=600)
def test_much_that_is_written_is_taken(folder, made, target):
    check_property(folder, made, target)
