"""A LayerNormalization and the sum in front of it are fused into one node.

Source: skip_layer_norm_fusion.cc of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import SKIP_LAYER_NORMALIZATION
from dmlsplit.onnxruntime.passes.patterns import are_of, are_on_dml, is_read_once, shape_of

_TYPES: Final = frozenset({"FLOAT", "FLOAT16"})
_EPSILON: Final = 1e-5
"""The epsilon of a LayerNormalization without the attribute."""


def skip_layer_norm_fusion(graph: Graph) -> None:
    """Fuses, in place, each LayerNormalization on DirectML with the Add in front of it, which sums two tensors of three
    equal sizes and has no other reader, and with an Add of a constant vector that this Add reads."""
    for node in graph.nodes:
        add = node.inputs[0].producer if node.op_type == "LayerNormalization" else None
        if add is None or not _adds_tensors(graph, add) or not are_of(graph, [add, node], _TYPES):
            continue
        if not are_on_dml(graph, [add, node]):
            continue
        if graph.facts.traits.checks_scales and not _are_vectors(graph, node.inputs[1:]):
            continue
        summed, bias, before = add.inputs[:], Value(""), None
        for i, value in enumerate(add.inputs):
            before = value.producer
            if before is not None and _adds_vector(graph, before) and are_on_dml(graph, [before]):
                summed[i], bias = before.inputs
                break
        else:
            before = _sum_of_product(graph, summed)
            if before is not None:
                product, bias = _product_and_vector(graph, before)
                rest = next(value for value in summed if value.producer is not before)
                summed = [product, rest]
        beta = node.inputs[2:3] or [Value("")]
        inputs = [*summed, node.inputs[1], *beta, *([bias] if bias.name else [])]
        given = attribute(node, "epsilon")
        epsilon = _EPSILON if given is None else given.f
        made = helper.make_node(
            SKIP_LAYER_NORMALIZATION,
            [value.name for value in inputs],
            [value.name for value in node.outputs],
            domain="com.microsoft",
            epsilon=epsilon,
        )
        graph.fuse([*([] if before is None else [before]), add, node], SKIP_LAYER_NORMALIZATION, inputs, made)


def _sum_of_product(graph: Graph, summed: Sequence[Value]) -> Node | None:
    """Returns the Add of a MatMul's result, perhaps behind a Cast, and a constant vector that computes one of two
    tensors, if it is fused after the sum; None if there is none. Source: bias_skip_layer_norm_fusion.cc of ONNX
    Runtime, from 1.30 on."""
    for value in summed if graph.facts.traits.adds_vectors_later else ():
        add = value.producer
        if add is None or add.op_type != "Add" or not is_read_once(add) or not are_on_dml(graph, [add]):
            continue
        if _product_and_vector(graph, add):
            return add
    return None


def _product_and_vector(graph: Graph, add: Node) -> Sequence[Value]:
    """Returns the two inputs of such an Add, the vector last; () for any other Add."""
    for product, vector in (add.inputs, add.inputs[::-1]):
        made = product.producer
        if made is not None and made.op_type == "Cast":
            made = made.inputs[0].producer
        is_vector = graph.facts.is_constant(vector.name) and len(graph.facts.shape(vector.known) or ()) == 1
        if made is not None and made.op_type == "MatMul" and is_vector:
            return product, vector
    return ()


def _adds_tensors(graph: Graph, add: Node) -> bool:
    """True for an Add of two tensors of the same shape with three dimensions, whose result is read once."""
    if add.op_type != "Add" or not is_read_once(add):
        return False
    first, second = (shape_of(graph, value) for value in add.inputs)
    return first is not None and first == second and len(first) == 3 and None not in first


def _are_vectors(graph: Graph, values: Iterable[Value]) -> bool:
    return all(len(graph.facts.shape(value.known) or ()) == 1 for value in values)


def _adds_vector(graph: Graph, add: Node) -> bool:
    """True for an Add of a tensor with three dimensions and a constant vector, whose result is read once."""
    if add.op_type != "Add" or not is_read_once(add) or not are_of(graph, [add], _TYPES):
        return False
    if not graph.facts.is_constant(add.inputs[1].name):
        return False
    whole, vector = (shape_of(graph, value) for value in add.inputs)
    if whole is None or vector is None or (len(whole), len(vector)) != (3, 1):
        return False
    return isinstance(vector[0], int) and whole[2] == vector[0]
