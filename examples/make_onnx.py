"""Writes a small ONNX model with Split nodes, for experiments: python examples/make_onnx.py model.onnx

Needs onnx: pip install 'dmlsplit[onnx]'. A batch of 8 tokens of 96 features is projected to one tensor, which is split
into query, key and value (96 each). Query and key are then split into two halves for a rotation.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = 96


def model() -> onnx.ModelProto:
    weights = np.zeros((FEATURES, 3 * FEATURES), np.float32)
    halves = np.array([FEATURES // 2, FEATURES // 2], np.int64)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["tokens", "weights"], ["qkv"], "project"),
            helper.make_node("Split", ["qkv"], ["query", "key", "value"], "split_qkv", axis=-1, num_outputs=3),
            helper.make_node("Split", ["query", "halves"], ["query_a", "query_b"], "split_query", axis=2),
            helper.make_node("Split", ["key", "halves"], ["key_a", "key_b"], "split_key", axis=2),
        ],
        "attention",
        [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", 8, FEATURES])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 8, size])
            for name, size in (("query_a", 48), ("query_b", 48), ("key_a", 48), ("key_b", 48), ("value", FEATURES))
        ],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(halves, "halves")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="dmlsplit example")
    made.ir_version = 9
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    onnx.save(model(), sys.argv[1])
