"""Reshapes and Expands whose shape does not fit their tensor.

Inference does not compare the numbers of elements of a Reshape. The session is not created if the Reshape is folded, or
if a node of its fused graph reads the result: DirectML's kernel copies as many elements as there are, so that
CompileGraph refuses the edge. Otherwise the Run fails, or reads beyond. Inference compares the sizes of an Expand once
its shape is folded. Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from dmlsplit.descriptors.dims import is_static
from dmlsplit.models.graph import Node
from dmlsplit.onnxruntime.creation import OPTIMIZING, Failure, Place
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.optimization import optimized
from dmlsplit.onnxruntime.session_graph import SessionGraph

_RESHAPE: Final = "Reshape"
_EXPAND: Final = "Expand"


def failures(graph: SessionGraph, places: Mapping[int, Place]) -> Iterator[Failure]:
    """Yields the failures of session creation that such nodes cause; `places` maps a node's index to its place."""
    operators = graph.operators_in_file
    if _EXPAND in operators:
        yield from _of_expands(graph)
    if _RESHAPE not in operators:
        return
    for index in sorted(graph.graph.folded):
        node = graph.nodes[index]
        if node.op_type == _RESHAPE and (why := _misfit(graph, *node.proto.input[:1], *node.proto.output[:1])):
            yield Failure(OPTIMIZING, f"{graph.path(index)} is folded, and {why}", node=graph.path(index))
    for node in optimized(graph).nodes:
        place = places[node.index] if node.op_type == _RESHAPE else None
        if place is None or place.fused is None or not _is_read_in(graph, node, place, places):
            continue
        if why := _misfit(graph, node.inputs[0].known, node.outputs[0].known):
            path = graph.path(node.index)
            yield Failure(place.compilation, f"CompileGraph refuses a fused graph, at {path}: {why}", node=path)


def _of_expands(graph: SessionGraph) -> Iterator[Failure]:
    for node in graph.nodes:
        if node.op_type != _EXPAND or len(node.inputs) < 2 or not graph.is_constant(node.inputs[1].name):
            continue
        before, wanted = graph.shape(node.inputs[0].name) or (), graph.scope.integers(node.inputs[1].name) or ()
        sizes = zip(reversed(before), reversed(wanted), strict=False)
        if any(isinstance(size, int) and size != other and 1 not in (size, other) for size, other in sizes):
            path, given = graph.path(node.index), list(wanted)
            yield Failure(OPTIMIZING, f"{path}: its shape {given} does not fit a tensor of {list(before)}", node=path)


def _misfit(graph: SessionGraph, tensor: str, result: str) -> str:
    """Returns how the numbers of elements before and after a Reshape differ; "" if they do not, or are not known."""
    before, after = graph.shape(tensor), graph.shape(result)
    if not is_static(before) or not is_static(after) or math.prod(before) == math.prod(after):
        return ""
    return f"its shape {list(after)} does not fit a tensor of {list(before)}"


def _is_read_in(graph: SessionGraph, node: Node, place: Place, places: Mapping[int, Place]) -> bool:
    """True if a node of the same fused graph reads the result of a Reshape on DirectML."""
    result = node.outputs[0]
    for reader in result.readers:
        if places[reader.index].fused == place.fused:
            on_cpu = row_of(reader.op_type).cpu_inputs
            if any(value is result and i not in on_cpu for i, value in enumerate(reader.inputs)):
                return True
    return False
