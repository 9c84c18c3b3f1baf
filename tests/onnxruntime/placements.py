"""Where the nodes of a model in onnx's text form are placed, for tests."""

from __future__ import annotations

import onnx

from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.targets.runtime_versions import find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests import models


def placed(text, version="1.24.4", opset=17):
    model = models.text(text, opset, domains=["com.microsoft"])
    onnx.checker.check_model(model)
    return placed_model(model, version)


def placed_model(model, version="1.24.4"):
    return OnnxSessions(model, lambda *_: None).of(find_runtime(version), SessionOptions()).placement


def where(found):
    return {node.path: str(node.provider) for node in found.nodes.values()}


def reason(found, path):
    (node,) = [node for node in found.nodes.values() if node.path == path]
    return node.why


SHAPED = "s = Shape(a) z = ConstantOfShape(s)"


TAKES = "y = If(c) <then_branch = t () => (float[2,3] p) { %s }, else_branch = e () => (float[2,3] q) { %s }>"
