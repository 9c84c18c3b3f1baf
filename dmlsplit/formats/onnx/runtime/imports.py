"""Domains of nodes that are not imported, which ONNX Runtime needs for functions: it loads no model without them.

Source: function_utils.cc and graph.cc of ONNX Runtime; observed with all versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from dmlsplit.formats.onnx.functions import Key, key_of
from dmlsplit.formats.onnx.protobuf import all_nodes
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.printable import printable
from dmlsplit.runtimes.neighbours import DOMAINS


def not_imported(model: onnx.ModelProto) -> Iterator[str]:
    """The domains that functions, called or not, and the model's calls of functions lack, each as a reason.

    A function imports its nodes' domains by the same spelling: "ai.onnx" and "" are two. The model imports those of the
    functions that are called in the end, unless ONNX Runtime has the domain by itself.
    """
    for function in model.functions:
        lacking = {node.domain for node in all_nodes(function.node)} - _imports(function.opset_import)
        yield from (_reason(f"the function {printable(function.name, 60)}", domain) for domain in sorted(lacking))
    lacking = {domain for domain, _, _ in _called(model)} - _imports(model.opset_import) - DOMAINS
    yield from (_reason("the model", domain) for domain in sorted(lacking))


def _imports(entries: Iterable[onnx.OperatorSetIdProto]) -> set[str]:
    return {entry.domain for entry in entries}


def _reason(where: str, domain: str) -> str:
    return f"{where} does not import the domain '{printable(domain, 60)}', which it needs: the model is not loaded"


def _called(model: onnx.ModelProto) -> set[Key]:
    """The functions that the model's graph calls, or that are called by these."""
    bodies = {key_of(function, function.name): function.node for function in model.functions}

    def calls(nodes: Iterable[onnx.NodeProto]) -> set[Key]:
        return {key_of(node, node.op_type) for node in all_nodes(nodes)} & bodies.keys()

    return set(depth_first(calls(model.graph.node), lambda key: calls(bodies[key])))
