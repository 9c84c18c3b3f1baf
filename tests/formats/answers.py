"""What ONNX Runtime is predicted to do with small models, in a few words."""

from __future__ import annotations

from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.models import OPSET, model, node, value

VERSION = "1.24.4"
X = value("x", [2, 6])
SPLIT = node("Split", ["x"], ["a", "b"], axis=1, name="S")


def session(nodes, inputs, outputs, initializers=(), opset=OPSET, functions=(), ir_version=8):
    """A model that imports the domains of its functions."""
    domains = dict.fromkeys(each.domain for each in functions)
    return model(nodes, inputs, outputs, opset, initializers, functions, domains, ir_version=ir_version)


def ask(*arguments, version=VERSION, given=None, **settings):
    return on_onnxruntime(session(*arguments, **settings), version, **(given or {}))


def outcome(found):
    return [(n.path, str(n.answer.outcome), n.answer.at, n.answer.compile and n.answer.compile.flags) for n in found]


def rules(found):
    return [[d.rule.removeprefix("onnxruntime/") for d in n.answer.diagnostics] for n in found]
