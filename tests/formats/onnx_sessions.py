"""Small models for ONNX Runtime, and its answers in a few words."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.onnxruntime.prediction import on_onnxruntime

VERSION = "1.24.4"
FLOAT = TensorProto.FLOAT
node = helper.make_node


def tensor(name, shape, element_type=FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir_version=8, functions=()):
    values = [onnx.ValueInfoProto(name=name) if isinstance(name, str) else name for name in outputs]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(initializers).items()]
    graph = helper.make_graph(nodes, "g", inputs, values, initializer=constants)
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in dict.fromkeys(each.domain for each in functions)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=functions)


def ask(*arguments, version=VERSION, given=None, **settings):
    return on_onnxruntime(model(*arguments, **settings), version, **(given or {}))


def outcome(found):
    return [(n.path, str(n.answer.outcome), n.answer.at, n.answer.compile and n.answer.compile.flags) for n in found]


def rules(found):
    return [[d.rule.removeprefix("onnxruntime/") for d in n.answer.diagnostics] for n in found]


X = tensor("x", [2, 6])
SPLIT = node("Split", ["x"], ["a", "b"], axis=1, name="S")


def in_words(words, opset=17, functions=""):
    heading = f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]>'
    return onnx.parser.parse_model(f"{heading} {words} {functions}")
