"""Models whose graphs DirectML computes wrongly, or refuses, in ONNX Runtime 1.24.4: one of each fault."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.models import FLOAT, model, node, value

WEIGHTS = numpy_helper.from_array(np.random.default_rng(0).normal(size=(4, 8, 1, 1)).astype(np.float32), "w")


def made(nodes, inputs, outputs, initializers=()):
    found = model(
        nodes,
        [value(name, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs.items()],
        opset=17,
        initializers=initializers,
        ir_version=8,
    )
    onnx.checker.check_model(found, full_check=True)
    return found


def gate(batch=2):
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1, name="split"),
        node("Sigmoid", ["b"], ["s"]),
        node("Mul", ["a", "s"], ["y"], name="gate"),
    ]
    return made(nodes, {"x": [batch, 8, 4]}, {"y": [batch, 4, 4]})


def product():
    nodes = [
        node("Split", ["z"], ["y", "x"], axis=1, name="split"),
        node("Tanh", ["x"], ["t"]),
        node("Mul", ["y", "t"], ["p"]),
        node("Sigmoid", ["t"], ["s"]),
        node("Mul", ["p", "s"], ["r"], name="product"),
    ]
    return made(nodes, {"z": [2, 8, 4]}, {"r": [2, 4, 4]})


def overwritten(operator):
    nodes = [
        node("Tanh", ["x"], ["v"]),
        node("Concat", ["v", "y"], ["j"], axis=1, name="concat"),
        node(operator, ["j"], ["r"]),
        node("Conv", ["r", "w"], ["c"]),
        node("Add", ["v", "c"], ["z"]),
    ]
    return made(nodes, {"x": [1, 4, 4, 4], "y": [1, 4, 4, 4]}, {"z": [1, 4, 4, 4]}, [WEIGHTS])


def state():
    """The first input of the Concat is an output made by a node that an activation would be put into."""
    nodes = [
        node("Add", ["x", "y"], ["hn"]),
        node("Concat", ["hn", "x"], ["j"], axis=1, name="concat"),
        node("Relu", ["j"], ["r"]),
        node("Conv", ["r", "w"], ["output"]),
    ]
    shape = [1, 4, 4, 4]
    return made(nodes, {"x": shape, "y": shape}, {"output": shape, "hn": shape}, [WEIGHTS])


def refused(operator):
    nodes = [
        node("Sigmoid", ["x"], ["v"]),
        node("Split", ["v"], ["a", "b"], axis=1, name="split"),
        node(operator, ["a"], ["y"]),
    ]
    return made(nodes, {"x": [1, 8, 4, 4]}, {"y": [1, 4, 4, 4]})


def unwritten():
    nodes = [
        node("Add", ["x", "x"], ["v"]),
        node("Relu", ["v"], ["r"]),
        node("Concat", ["r", "x"], ["y"], axis=1, name="concat"),
    ]
    return made(nodes, {"x": [1, 8, 4, 4]}, {"y": [1, 16, 4, 4], "v": [1, 8, 4, 4]})


def dead():
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Split", ["x"], ["a", "b"], axis=1, name="split"),
        node("Concat", ["b", "a"], ["c"], axis=1),
    ]
    return made(nodes, {"x": [1, 8, 4, 4]}, {"y": [1, 8, 4, 4]})


def repeated(times=2):
    nodes = [node("Relu", ["x"], ["v"]), node("Concat", ["v"] * times, ["y"], axis=1, name="concat")]
    return made(nodes, {"x": [1, 4, 4, 4]}, {"y": [1, 4 * times, 4, 4]})


WRONG = {
    "gate": (gate(), "two-slices"),
    "product": (product(), "reshape-factor"),
    "overwritten": (overwritten("Relu"), "operator-first"),
    "overwritten, rounded by its place": (overwritten("Sigmoid"), "max-input"),
    "overwritten, with a state": (state(), "max-input"),
    "refused": (refused("Relu"), "operator-first"),
    "refused, rounded by its place": (refused("Tanh"), "gather"),
    "unwritten": (unwritten(), "max-between"),
    "dead": (dead(), "remove-dead"),
}
