"""From the path in a finding to the node of the model: findings are about a model whose functions are inlined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import onnx

from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx import loading
from dmlsplit.formats.onnx.functions import check_references, key_of
from dmlsplit.formats.onnx.fusion.findings import GraphFinding, findings
from dmlsplit.formats.onnx.mending.sites import Place
from dmlsplit.formats.onnx.protobuf import first_output, graphs_of
from dmlsplit.formats.onnx.runtime.inlining import inlined
from dmlsplit.formats.onnx.runtime.scopes import SessionModel
from dmlsplit.formats.onnx.scope import label_of
from dmlsplit.formats.onnx.tensors import ReadExternal, text
from dmlsplit.formats.sessions import Inputs
from dmlsplit.printable import printable
from dmlsplit.runtimes import Runtime, SessionOptions

Spot: TypeAlias = tuple[Place, int]
"""A node: its graph, and its index in that."""


def found_in(
    model: onnx.ModelProto, read_external: ReadExternal, runtime: Runtime, options: SessionOptions
) -> tuple[tuple[GraphFinding, ...], Mapping[str, list[Spot]]]:
    """The findings of a runtime about the graphs of a model, and the nodes of each path."""
    copy = loading.without_weights(model)
    check_references(copy)
    spots = list(_numbered(copy))
    budget = Budget(copy.ByteSize())
    whole, written = inlined(copy, budget)
    paths: dict[str, list[Spot]] = {}
    for path, node in _with_paths(whole.graph.node, ""):
        if text(node.doc_string).isdecimal():
            spot = spots[int(text(node.doc_string))]
            if spot not in paths.setdefault(path, []):
                paths[path].append(spot)
    session = SessionModel(whole, written, read_external, budget, Inputs(), False)
    return findings(session, runtime, options, complete=True), paths


def _numbered(model: onnx.ModelProto) -> Iterator[Spot]:
    """All nodes; the documentation of each becomes its number."""
    number = 0
    todo = [(Place(None), model.graph.node)]
    todo += [(Place(key_of(function, text(function.name))), function.node) for function in model.functions]
    while todo:
        place, nodes = todo.pop()
        for index, node in enumerate(nodes):
            node.doc_string = str(number)
            number += 1
            yield place, index
            for attribute in node.attribute:
                for k, graph in enumerate(graphs_of(attribute)):
                    steps = (*place.steps, (index, text(attribute.name), k))
                    todo.append((Place(place.key, steps), graph.node))


def _with_paths(nodes: Iterable[onnx.NodeProto], label: str) -> Iterator[tuple[str, onnx.NodeProto]]:
    for node in nodes:
        name = text(node.name) or first_output(node) or text(node.op_type)
        yield printable(f"{label}/{name}" if label else name), node
        for attribute in node.attribute:
            graphs = list(graphs_of(attribute))
            for number, graph in enumerate(graphs):
                inner = f"{text(node.name) or text(node.op_type)}.{text(attribute.name)}"
                yield from _with_paths(graph.node, label_of(label, inner + (f"[{number}]" if len(graphs) > 1 else "")))
