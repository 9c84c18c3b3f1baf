"""A scalar factor of a MatMul's input or result becomes an attribute of a FusedMatMul. Source: matmul_scale_fusion.cc
of ONNX Runtime; observed."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import onnx
from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.operator_traits import FUSED_MATMUL
from dmlsplit.onnxruntime.passes.patterns import other


class Product(NamedTuple):
    """The attributes of a FusedMatMul."""

    alpha: float = 1.0
    trans_a: int = 0
    trans_b: int = 0
    trans_batch_a: int = 0
    trans_batch_b: int = 0

    def node(self, of: Node) -> onnx.NodeProto:
        """Returns the NodeProto of a FusedMatMul of com.microsoft with these attributes that replaces node `of`."""
        inputs, outputs = ([value.name for value in values] for values in (of.inputs, of.outputs))
        made = helper.make_node(FUSED_MATMUL, inputs, outputs, of.proto.name, domain="com.microsoft")
        made.attribute.extend(map(helper.make_attribute, _ATTRIBUTES, self))
        return made


_ATTRIBUTES: Final = ("alpha", "transA", "transB", "transBatchA", "transBatchB")


def product_of(node: Node) -> Product:
    """Returns the attributes of a FusedMatMul; for a MatMul, the defaults."""
    if node.op_type != FUSED_MATMUL:
        return Product()
    found = [attribute(node, name) for name in _ATTRIBUTES]
    first = found[0]
    return Product(1.0 if first is None else first.f, *(0 if each is None else int(each.i) for each in found[1:]))


def matmul_scale_fusion(graph: Graph) -> None:
    """Fuses, in place and repeatedly, the Muls and Divs by one constant number with the MatMul that reads them, or
    whose only reader they are. A Mul or Div in front of a MatMul stays if it has other readers."""
    products = [node for node in graph.nodes if node.op_type in ("MatMul", FUSED_MATMUL) and len(node.inputs) == 2]
    if not graph.facts.fuses_doubles:
        products = [node for node in products if graph.facts.data_type(node.inputs[0].known_type) != "DOUBLE"]
    while products:
        products = [node for node in products if _takes_factors(graph, node)]


def _takes_factors(graph: Graph, node: Node) -> bool:
    """Fuses, in place, the Muls and Divs around a MatMul with it; returns True if there were any."""
    sources = {value: _scaled_input(graph, value) for value in node.inputs}
    factors = [each[1] for value in node.inputs if (each := sources[value]) is not None]
    after = node.only_reader
    behind = None if after is None else _scaled(graph, after)
    before = product_of(node)
    if after is not None and behind is not None and behind[0] is node.outputs[0]:
        graph.join(node, after)
        factors.append(behind[1])
    if not factors:
        return False
    scales = [value.producer for value, source in sources.items() if source is not None]
    inputs = [value if (each := sources[value]) is None else each[0] for value in node.inputs]
    with np.errstate(all="ignore"):
        alpha = np.prod([np.float32(before.alpha), *factors], dtype=np.float32)
    graph.fuse([node], FUSED_MATMUL, inputs, before._replace(alpha=float(alpha)).node(node))
    for scale in scales:
        if scale is not None and not scale.is_used:
            graph.remove(scale)
            node.absorbed = (scale.index, *node.absorbed)
    return True


def _scaled(graph: Graph, node: Node | None) -> tuple[Value, np.float32] | None:
    """Returns the tensor that a Mul or Div multiplies or divides by one constant number, and the equivalent factor;
    None for any other node, or if `node` is None."""
    if node is None or node.op_type not in ("Mul", "Div") or len(node.inputs) != 2:
        return None
    for factor in node.inputs if node.op_type == "Mul" else node.inputs[1:]:
        elements, scaled = graph.facts.elements(factor.name), other(node, factor)
        if elements is not None and elements.size == 1 and elements.dtype.kind == "f":
            if graph.facts.checks_factors and elements.ndim > len(graph.facts.shape(scaled.known) or ()):
                continue
            found = np.float32(elements.item())
            with np.errstate(all="ignore"):  # the file may contain a division by 0
                return scaled, found if node.op_type == "Mul" else np.float32(1) / found
    return None


def _scaled_input(graph: Graph, value: Value) -> tuple[Value, np.float32] | None:
    """Returns what `_scaled` does for the node that computes an input of a MatMul, if the tensor that it scales is
    known to have dimensions."""
    found = _scaled(graph, value.producer)
    return found if found is not None and graph.facts.shape(found[0].known) else None
