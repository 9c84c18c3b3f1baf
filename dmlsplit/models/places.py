"""The places of a model's nodes: their graphs, and their indices there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import onnx

from dmlsplit.formats.onnx.protobuf import graphs_of, text
from dmlsplit.models.functions import Key, key_of
from dmlsplit.models.scope import Step
from dmlsplit.system.records import record


@record
class Place:
    """A graph of a model: that of function `key`, or of the model if `key` is None, or the graph inside its nodes to
    which `steps` lead."""

    key: Key | None
    steps: tuple[Step, ...] = ()


Spot: TypeAlias = tuple[Place, int]
"""A node: its graph, and its index there."""


def numbered(model: onnx.ModelProto) -> Iterator[tuple[Spot, onnx.NodeProto]]:
    """Yields every node of the model with its place, and writes the node's number in this order into its doc_string, in
    place."""
    number = 0
    todo = [(Place(None), model.graph.node)]
    todo += [(Place(key_of(function, text(function.name))), function.node) for function in model.functions]
    while todo:
        place, nodes = todo.pop()
        for index, node in enumerate(nodes):
            node.doc_string = str(number)
            number += 1
            yield (place, index), node
            for attribute in node.attribute[:]:
                for k, graph in enumerate(graphs_of(attribute)) if attribute.HasField("g") or attribute.graphs else ():
                    steps = (*place.steps, (index, text(attribute.name), k))
                    todo.append((Place(place.key, steps), graph.node))
