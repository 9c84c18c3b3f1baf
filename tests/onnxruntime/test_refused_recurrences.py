"""dmlsplit.onnxruntime.refused_recurrences. Each model was asked of 1.20.1 and 1.24.4; activations of all versions."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from tests import models
from tests.onnxruntime.placements import placed_model

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
ACTIVATIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
INPUTS = ("x", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def network(operator, given=None, opset=17, **attributes):
    """A network of 3 steps, 2 batches, 4 values and a hidden size of 5, but for the shapes that are given."""
    rows = GATES[operator] * 5
    shapes = {"x": (3, 2, 4), "W": (1, rows, 4), "R": (1, rows, 5), **(given or {})}
    read = [name if name in shapes else "" for name in INPUTS]
    while not read[-1]:
        read.pop()
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32 if name == "sequence_lens" else TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    node = helper.make_node(operator, read, ["y"], name="n", **{"hidden_size": 5, **attributes})
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return models.model([node], inputs, [output], opset, ir_version=8)


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize(
    ("given", "created"),
    [
        (lambda rows: {}, True),
        (lambda rows: {"W": (1, rows, 3)}, False),
        (lambda rows: {"W": (1, rows + 1, 4)}, False),
        (lambda rows: {"W": (2, rows, 4)}, False),
        (lambda rows: {"W": (rows, 4)}, False),
        (lambda rows: {"W": (1, 1, rows, 4)}, True),
        (lambda rows: {"R": (1, rows, 4)}, False),
        (lambda rows: {"R": (1, rows - 1, 5)}, False),
        (lambda rows: {"R": (2, rows, 5)}, False),
        (lambda rows: {"R": (rows, 5)}, True),
        (lambda rows: {"B": (1, 2 * rows)}, True),
        (lambda rows: {"B": (2 * rows,)}, True),
        (lambda rows: {"B": (1, 2 * rows - 1)}, False),
        (lambda rows: {"B": (2, 2 * rows)}, False),
        (lambda rows: {"B": (1, rows)}, False),
        (lambda rows: {"B": (1, 1, 1, 1, 2 * rows)}, False),
        (lambda rows: {"sequence_lens": (2,)}, True),
        (lambda rows: {"sequence_lens": (3,)}, False),
        (lambda rows: {"sequence_lens": (2, 1)}, False),
        (lambda rows: {"initial_h": (1, 2, 5)}, True),
        (lambda rows: {"initial_h": (2, 5)}, True),
        (lambda rows: {"initial_h": (1, 2, 4)}, False),
        (lambda rows: {"initial_h": (1, 3, 5)}, False),
        (lambda rows: {"initial_h": (2, 2, 5)}, False),
        (lambda rows: {"x": ("S", 2, 4), "W": (1, rows, 3)}, True),
    ],
)
def test_the_shapes_of_the_weights(operator, given, created):
    made = network(operator, given(5 * GATES[operator]))
    assert [placed_model(made, version).created for version in ("1.20.1", "1.24.4")] == [created] * 2


@pytest.mark.parametrize(
    ("given", "created"),
    [
        ({"initial_c": (1, 2, 5)}, True),
        ({"initial_c": (1, 2, 4)}, False),
        ({"P": (1, 15)}, True),
        ({"P": (15,)}, True),
        ({"P": (1, 14)}, False),
    ],
)
def test_the_shapes_that_only_an_lstm_reads(given, created):
    assert placed_model(network("LSTM", given)).created is created


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
def test_the_directions_of_the_weights(operator):
    rows = 5 * GATES[operator]
    both = {"W": (2, rows, 4), "R": (2, rows, 5)}
    for given, direction, created in (
        (both, "bidirectional", True),
        (both, "forward", False),
        ({}, "bidirectional", False),
    ):
        assert placed_model(network(operator, given, direction=direction)).created is created
    one = {**both, "B": (1, 2 * rows)}
    assert placed_model(network(operator, one, direction="bidirectional")).created is False


def test_the_hidden_size():
    for size, shapes, created in (
        (0, {}, True),  # the result has no elements
        (4, {}, False),
        (-1, {}, False),
        (1, {"W": (1, 4, 4), "R": (1, 4, 1)}, True),
    ):
        assert placed_model(network("LSTM", shapes, hidden_size=size)).created is created
    for shapes, created in (({}, False), ({"W": (1, 4, 4), "R": (1, 4, 1)}, True)):
        made = network("LSTM", shapes)
        del made.graph.node[0].attribute[:]
        assert placed_model(made).created is created


@pytest.mark.parametrize(("size", "created"), [(1, True), (2, False)])
def test_declared_sizes_of_the_output(size, created):
    """Inference finds none without a hidden_size, which the kernel takes for 1."""
    made = network("LSTM", {"W": (1, 4, 4), "R": (1, 4, 1)})
    del made.graph.node[0].attribute[:]
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 1, 2, size)))
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        assert placed_model(made, version).created is created


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
def test_the_number_of_activations(operator):
    count = ACTIVATIONS[operator]
    for number, created in ((count - 1, count == 1), (count, True), (count + 1, True)):
        made = network(operator, activations=["Sigmoid"] * number) if number else network(operator)
        assert placed_model(made).created is created
    rows = 5 * GATES[operator]
    both = {"W": (2, rows, 4), "R": (2, rows, 5)}
    made = network(operator, both, direction="bidirectional", activations=["Sigmoid"] * count)
    assert placed_model(made).created is False


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        *((name, True, True) for name in ("Softsign", "ScaledTanh", "ThresholdedRelu", "LeakyRelu", "Elu", "Softplus")),
        *((name, False, True) for name in ("tanh", "TANH", "hardsigmoid", "leakyrelu")),
        *((name, False, False) for name in ("Affine", "Relu6", "")),
    ],
)
def test_the_names_of_activations(name, older, newer):
    made = network("RNN", activations=[name])
    versions = ("1.18.0", "1.19.2", "1.20.1", "1.22.0", "1.23.2", "1.24.4", "1.30.0")
    assert [placed_model(made, version).created for version in versions] == [older] * 3 + [newer] * 4


@pytest.mark.parametrize("operator", ["GRU", "LSTM", "RNN"])
def test_the_batch_first_is_the_cpu_s(operator):
    """Its kernel is created with the session, whatever sizes are open."""
    for sizes in ((3, 2, 4), ("S", "B", 4)):
        found = placed_model(network(operator, {"x": sizes}, layout=1))
        assert found.failure.message == "the CPU's kernel for n cannot be created: its layout is 1, not 0"
    assert placed_model(network(operator, {"x": ("S", "B", 4)}, layout=0)).created is True


def test_the_failure_names_the_input():
    failure = placed_model(network("GRU", {"B": (2, "N")})).failure
    assert failure is None
    failure = placed_model(network("GRU", {"B": (2, 30)})).failure
    assert failure.message == "DirectML's kernel for n cannot be created: its input B is [2, 30], not [1, 30]"
