"""Each pass by itself: small models in onnx's text form, and the nodes that the pass leaves of them."""

from __future__ import annotations

from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.models.graph import Graph
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.onnxruntime.passes.constant_folding import constant_nodes
from dmlsplit.targets.runtime_versions import NEWEST, find_runtime
from dmlsplit.targets.session_options import SessionOptions
from tests.models import text

NONE = SessionOptions(optimization=-1)


def graph_of(body: str, opset: int = 17, version: str = NEWEST.version) -> Graph:
    """The graph of a model, whose Constants are initializers, and which nothing else has changed."""
    sessions = OnnxSessions(loading.without_weights(text(body, opset)), no_external_data)
    graph = sessions.of(find_runtime(version), NONE, Inputs()).graphs[-1].graph
    constant_nodes(graph)
    return graph


def left(graph: Graph) -> list[str]:
    """Each node in a few words, in the order of the file."""
    return [
        f"{','.join(v.name for v in n.outputs)} = {n.op_type}({','.join(v.name for v in n.inputs)})"
        for n in graph.nodes
    ]


def after(change, body: str, opset: int = 17, version: str = NEWEST.version) -> list[str]:
    """The nodes that a pass leaves; all values know their producers and readers."""
    graph = graph_of(body, opset, version)
    change(graph)
    for node in graph.nodes:
        assert all(value.producer is node for value in node.outputs if value.name)
        assert all(node in value.readers for value in node.inputs if value.name)
    for value in graph.values.values():
        assert set(value.readers) <= set(graph.nodes)
        assert value.producer is None or value.producer in set(graph.nodes)
    return left(graph)
