"""The fused graphs that CompileGraph refuses, according to dmlsplit.graphs."""

from __future__ import annotations

from typing import Final, NamedTuple

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.graphs.traits import GraphTraits
from dmlsplit.onnxruntime.fused import FusedGraph, Part
from dmlsplit.onnxruntime.graph_judging import GraphFault, compiles
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.printable import printable

_NEW_DEQUANTIZE: Final = 21
"""The first opset whose DequantizeLinear becomes DML_OPERATOR_DEQUANTIZE, not ELEMENT_WISE_DEQUANTIZE_LINEAR."""


class Refusal(NamedTuple):
    """The reason why CompileGraph refuses a part; `certain` is False if it only may."""

    why: str
    certain: bool


def refusal(part: Part, traits: GraphTraits | None, opset: int) -> Refusal | None:
    """Returns why CompileGraph of a DirectML release with these traits refuses, or may refuse, a part's graph; None if
    it accepts it, or if no variant of the graph is known. Traits are None for a release that was never recorded.
    `opset` is the model's."""
    found = [_dequantized_factor(variant) for variant in part.variants if opset >= _NEW_DEQUANTIZE]
    if any(found):
        path, what = next(filter(None, found))
        return Refusal(f"CompileGraph refuses a fused graph, at {printable(path, 60)}: {what}", certain=all(found))
    verdicts = [compiles(variant, traits) for variant in part.variants]
    faults = [verdict for verdict in verdicts if isinstance(verdict, GraphFault)]
    if len(verdicts) > len(faults) + verdicts.count(True) or 0 < len(faults) < len(verdicts):
        return Refusal("whether CompileGraph accepts its fused graph is not known", certain=False)
    if not faults:
        return None
    node = part.variants[0].paths[faults[0].node or 0]
    refuses = "crashes the process for" if faults[0].fault.kind is FaultKind.PRODUCT_CRASHES else "refuses"
    return Refusal(f"CompileGraph {refuses} a fused graph, at {printable(node, 60)} ({faults[0].rule})", certain=True)


def _dequantized_factor(graph: FusedGraph) -> tuple[str, str] | None:
    """Returns the path of the first product whose second input is computed by a DequantizeLinear of the graph and that
    is a FusedMatMul, or broadcasts that input along the batch, and what is wrong there; None if there is none. Observed
    on DirectML 1.15.2 and 1.15.4."""
    for edge in graph.desc.intermediate_edges:
        number = edge.to_node_index
        if graph.ops[edge.from_node_index] != "DequantizeLinear" or edge.to_node_input_index != 1:
            continue
        product = graph.desc.nodes[number]
        if graph.ops[number] == "FusedMatMul":
            return graph.paths[number], "it is a FusedMatMul by a matrix of a DequantizeLinear"
        if graph.ops[number] == "MatMul" and isinstance(product, AnyOperatorDesc):
            first, second = [tensor.sizes or () if tensor is not None else () for tensor in product.inputs[:2]]
            if any(own > 1 == other for own, other in zip(first[:-2], second[:-2], strict=False)):
                return graph.paths[number], "it multiplies by the same matrix of a DequantizeLinear more than once"
    return None
