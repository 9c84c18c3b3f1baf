"""Writes an ONNX model that DirectML 1.13.1 to 1.15.4 compute incorrectly: python examples/make_glu.py glu.onnx

A gated linear unit: the channels are split into two halves, and one half is multiplied by the sigmoid of the other.
Needs onnx: pip install 'dmlsplit[onnx]'.
"""

import sys

import onnx
from onnx import TensorProto, helper


def model() -> onnx.ModelProto:
    graph = helper.make_graph(
        [
            helper.make_node("Split", ["x"], ["value", "gate"], "split", axis=1),
            helper.make_node("Sigmoid", ["gate"], ["open"], "sigmoid"),
            helper.make_node("Mul", ["value", "open"], ["y"], "glu"),
        ],
        "glu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="dmlsplit example")
    made.ir_version = 8
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    onnx.save(model(), sys.argv[1])
