"""A MatMulInteger, the Cast of its result and the product with its scales are fused into one node. Source:
matmul_integer_to_float.cc of ONNX Runtime; observed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.onnxruntime.operator_traits import MATMUL_INTEGER_TO_FLOAT
from dmlsplit.onnxruntime.passes.patterns import are_on_dml, is_read_once, producer, reader

_MOST_BYTES: Final = 2**32 - 1
_LEAST_BIAS: Final = 2


class _Found(NamedTuple):
    """The nodes in front of a Mul that are fused with it."""

    product: Node
    cast: Node
    scale: Node


def matmul_integer_to_float(graph: Graph) -> None:
    """Fuses, in place, each MatMulInteger with the Cast behind it, the Mul behind the Cast, the Mul that computes the
    other factor of that Mul, and an Add of a constant vector."""
    for node in graph.nodes:
        found = _found(graph, node) if node in graph and node.op_type == "Mul" else None
        if found is None:
            continue
        add = _add(graph, node)
        last = node if add is None else add
        zero_points = [*found.product.inputs[2:4], Value(""), Value("")][:2]
        inputs = [*found.product.inputs[:2], *found.scale.inputs, *zero_points, *(add.inputs[1:] if add else ())]
        names, name = [value.name for value in inputs], found.product.proto.name
        made = helper.make_node(MATMUL_INTEGER_TO_FLOAT, names, [last.outputs[0].name], name, domain="com.microsoft")
        graph.fuse([*found, *dict.fromkeys((node, last))], MATMUL_INTEGER_TO_FLOAT, inputs, made)


def ended_by(graph: Graph) -> Iterator[Node]:
    """Yields the fused nodes that crash ONNX Runtime's process: a version that checks the size of the factors does not
    expect a factor of unknown rank."""
    if graph.facts.traits.leaves_large_products:
        made = [node for node in graph.nodes if node.op_type == MATMUL_INTEGER_TO_FLOAT]
        asked = [node for node in made if are_on_dml(graph, [node]) and _is_quantized(node)]
        yield from (node for node in asked if None in [graph.facts.shape(value.known) for value in node.inputs[:2]])


def _found(graph: Graph, mul: Node) -> _Found | None:
    cast, scale = producer(mul, "Cast"), producer(mul, "Mul")
    product = producer(cast, "MatMulInteger")
    if product is None or cast is None or scale is None or not all(map(is_read_once, (product, cast, scale))):
        return None
    on_dml = graph.facts.on_dml(mul.index)
    if on_dml is None or (not on_dml and graph.facts.data_type(mul.inputs[0].known) == "FLOAT16"):
        return None
    leaves = on_dml and graph.facts.traits.leaves_large_products
    if leaves and _is_quantized(product) and _is_large(graph, product, cast):
        return None
    return _Found(product, cast, scale)


def _is_quantized(product: Node) -> bool:
    return producer(product, "DynamicQuantizeLinear") is not None


def _is_large(graph: Graph, product: Node, cast: Node) -> bool:
    """True if the factors, each repeated along the leading dimensions that only the other has, take more than 4 GB in
    the type of the result. An unknown size counts as 0."""
    shapes = [graph.facts.shape(value.known) for value in product.inputs[:2]]
    a, b = ([size if isinstance(size, int) else 0 for size in shape or ()] for shape in shapes)
    more_of_a, more_of_b = a[: max(0, len(a) - len(b))], b[: max(0, len(b) - len(a))]
    elements = sum(math.prod(own + more) for own, more in ((a, more_of_b), (b, more_of_a)) if own)
    size = 2 if graph.facts.data_type(cast.outputs[0].name) == "FLOAT16" else 4
    return elements * size > _MOST_BYTES


def _add(graph: Graph, mul: Node) -> Node | None:
    """Returns the Add of a constant vector that is the only reader of a Mul; the vector is the Add's last input. None
    if there is no such Add."""
    add = reader(mul, "Add")
    if add is None or not graph.facts.is_constant(add.inputs[1].known):
        return None
    shape = graph.facts.shape(add.inputs[1].known)
    fits = shape and all(size == 1 for size in shape[:-1]) and isinstance(shape[-1], int) and shape[-1] >= _LEAST_BIAS
    return add if fits else None
