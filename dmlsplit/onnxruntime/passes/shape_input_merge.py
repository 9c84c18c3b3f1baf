"""Shapes of several tensors with the same sizes, static or symbolic, read the first of these tensors.

Source: shape_input_merge.cc of ONNX Runtime; observed only with 1.18.0. It runs before anything is folded, so sizes
that folding makes known are still unknown unless the file declares them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dmlsplit.descriptors.dims import Shape
from dmlsplit.models.graph import Graph, Value
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.passes.common_subexpression_elimination import UNMERGED
from dmlsplit.onnxruntime.passes.constant_folding import reading_copies, shape_of_input

_SIZED_BY_FIRST: Final = frozenset({"GRU", "LSTM", "RNN"})
"""Operators of which only the first input determines the sizes of outputs."""


def shape_input_merge(graph: Graph) -> None:
    """Makes each Shape node read the first tensor, in the order of the walk, that has the same sizes and is read by a
    Shape, in place. A branch that takes its If's place is processed separately."""
    _merge(graph, graph.facts.branches.chain)


def shapes_of_branches(graph: Graph) -> None:
    """Merges Shapes as `shape_input_merge` does, in place, in a graph in which branches have taken the places of their
    Ifs: those of branches and of the graph around them together. Other graphs are not changed."""
    if graph.facts.branches.of:
        _merge(graph, lambda name: ())


def _merge(graph: Graph, apart: Callable[[str], object]) -> None:
    """Makes each Shape node read the first tensor of the same sizes, in place; Shapes for whose names `apart` returns
    different keys are not merged. The copy of a DequantizeLinear that a Shape has read stays. Of other versions the
    graph stays as it is."""
    first: dict[tuple[object, Shape], Value] = {}
    late: set[Value] = set()
    declared = graph.facts.declared_shape
    copies = reading_copies(graph)
    for node in graph.walk():
        shaping = [node.inputs[i] for i in row_of(node.op_type).shaping if i < len(node.inputs)]
        sizing = node.inputs[:1] if node.op_type in _SIZED_BY_FIRST else node.inputs
        unsized = (value for value in sizing if value in late and not _is_known(declared(value.name)))
        if any(map(_is_computed, shaping)) or next(unsized, None) is not None:
            late.update(node.outputs)
        if node.op_type != "Shape" or not node.inputs:
            continue
        read = node.inputs[0]
        shape = declared(read.name) if read in late else shape_of_input(graph, node, copies)
        if shape is None or not _is_known(shape):
            continue
        key, is_copied = (apart(node.name), shape), read.producer is not None and read.producer.op_type == UNMERGED
        if key not in first:
            first[key] = read
        elif first[key] is not read or is_copied:
            graph.facts.has_equal_shapes = True
            if not graph.facts.merges_shapes:
                return
            read.has_spare |= is_copied
            first[key].is_shared = True
            graph.read(node, [first[key]])


def _is_known(shape: Shape | None) -> bool:
    return shape is not None and None not in shape


def _is_computed(value: Value) -> bool:
    return value.producer is not None and value.producer.op_type != "Constant"
