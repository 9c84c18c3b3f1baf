"""The nodes that normalize the rows of a tensor are fused into one LayerNormalization.

Source: layer_norm_fusion.cc of ONNX Runtime: d = x - ReduceMean(x), d / Sqrt(ReduceMean(d ^ 2) + epsilon) * scale +
bias. From opset 17 and version 1.20.1 on, it runs before nodes are placed. As in the source, the exponent and the
position of the mean among the Sub's inputs are not checked. Casts in front of x, behind d and behind the quotient are
removed; from opset 17 on, session creation fails if x then is of another type than the scale.
"""

from __future__ import annotations

from typing import Final

from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute
from dmlsplit.onnxruntime.passes.patterns import (
    are_of,
    are_placed_together,
    is_read_once,
    is_shared,
    other,
    producer,
    reader,
)

_TYPES: Final = frozenset({"FLOAT", "FLOAT16", "DOUBLE"})
_EPSILON: Final = 1e-5
"""The epsilon if the second input of the Add is not a constant, or if it is FLOAT16 and the version is at most
1.24.4."""
_NEW_AXES: Final = 18
"""The first version of ReduceMean whose axes are an input."""
_OF_ONE_TYPE: Final = 17
"""From this opset on, all inputs of a LayerNormalization are of one type."""


def layer_norm_fusion(graph: Graph) -> None:
    """Fuses, in place, nodes into LayerNormalizations before nodes are placed, if the version does so."""
    if graph.facts.makes_layer_norms:
        _fuse_all(graph, placed=False)


def later_layer_norm_fusion(graph: Graph) -> None:
    """Fuses, in place, nodes on one provider into LayerNormalizations, if the version does so only after nodes are
    placed."""
    if not graph.facts.makes_layer_norms:
        _fuse_all(graph, placed=True)


def _fuse_all(graph: Graph, *, placed: bool) -> None:
    for node in graph.nodes:
        nodes = _normalization(graph, node) if node.op_type == "ReduceMean" and node in graph else None
        if nodes is None or (placed and not are_placed_together(graph, nodes)):
            continue
        if not is_shared(node.inputs[0], (each for each in nodes if node.inputs[0] in each.inputs), placed=placed):
            continue
        parameters = [_vector(graph, each) for each in nodes[-2:]]
        if None in parameters or not _is_over_rows(graph, nodes):
            continue
        scale, bias = (value for value in parameters if value is not None)
        if graph.facts.shape(scale.known) != graph.facts.shape(bias.known) or scale.producer in nodes:
            continue
        source, add = node.inputs[0], next(each for each in nodes if each.op_type == "Add")
        cast = source.producer
        if cast is not None and _is_only_normalized(graph, cast, nodes, placed=placed):
            source, nodes = cast.inputs[0], [cast, *nodes]
        inputs, names = [source, scale, bias], [source.name, scale.name, bias.name]
        made = helper.make_node(
            "LayerNormalization", names, list(nodes[-1].proto.output), axis=-1, epsilon=_epsilon(graph, add)
        )
        graph.fuse(nodes, "LayerNormalization", inputs, made)
        if why := _why_unfit(graph, source, scale):
            graph.failing[nodes[-1]] = why


def _why_unfit(graph: Graph, source: Value, scale: Value) -> str:
    """Returns why session creation fails with a LayerNormalization: its input is of another type than its scale, or of
    one that is not normalized; "" if it does not."""
    read, other_type = (graph.facts.data_type(value.known_type) for value in (source, scale))
    fits = read in _TYPES and (read == other_type or graph.facts.opset < _OF_ONE_TYPE)
    return "" if fits else f"becomes a LayerNormalization of {read} with a scale of {other_type}"


def _is_only_normalized(graph: Graph, cast: Node, nodes: list[Node], *, placed: bool) -> bool:
    """True for a Cast that only a normalization reads, and that the version removes with it."""
    if (
        cast.op_type != "Cast"
        or not graph.facts.normalizes_casts
        or (placed and not are_placed_together(graph, [cast]))
    ):
        return False
    return is_read_once(cast, 1 + sum(each.op_type == "Sub" for each in nodes))


def _epsilon(graph: Graph, add: Node) -> float:
    """Returns the second input of an Add if it is a constant of a type that the version reads, else the default
    epsilon."""
    name = add.inputs[1].name
    elements, data_type = graph.facts.elements(name), graph.facts.data_type(name)
    is_read = data_type == "FLOAT" or (data_type == "FLOAT16" and graph.facts.traits.reads_half_epsilons)
    return float(elements.reshape(-1)[0]) if elements is not None and is_read else _EPSILON


def _normalization(graph: Graph, mean: Node) -> list[Node] | None:
    """Returns the nodes of the normalization that a ReduceMean begins, in order, with its Mul and Add last; None if
    there is no such normalization."""
    value = mean.outputs[0]
    subs = sorted(value.readers, key=lambda node: node.number)
    if not subs or len(subs) > 2 or not is_read_once(mean, len(subs)):
        return None
    if any(each.op_type != "Sub" or other(each, value) is not mean.inputs[0] for each in subs):
        return None
    cast = reader(subs[0], "Cast") if len(subs) == 1 else None
    if cast is not None and not is_read_once(cast, 2):
        return None
    if not is_read_once(subs[0], 2 if len(subs) == 1 and cast is None else 1):
        return None
    starts = [cast] if cast is not None else subs
    div = next((found for start in starts for found in start.readers if found.op_type == "Div"), None)
    sqrt = producer(div, "Sqrt")
    add = None if sqrt is None else sqrt.inputs[0].producer
    second = producer(add, "ReduceMean")
    power = None if second is None else second.inputs[0].producer
    inner = [each for each in (div, sqrt, add, second, power) if each is not None and is_read_once(each)]
    if [each.op_type for each in inner] != ["Div", "Sqrt", "Add", "ReduceMean", "Pow"]:
        return None
    div, sqrt, add, second, power = inner
    between = producer(power, "Cast")
    if between is None and producer(power, "Sub") not in subs:
        return None
    if between is not None and between is not cast and not is_read_once(between):
        return None
    before = reader(div, "Cast")
    mul = reader(before or div, "Mul")
    last = None if mul is None else reader(mul, "Add")
    casts = [each for each in dict.fromkeys((cast, between, before)) if each is not None]
    if mul is None or last is None or (casts and not graph.facts.normalizes_casts):
        return None
    found = [mean, *subs, power, second, add, sqrt, div, mul, last]
    measured = [each for each in found if each.op_type != "ReduceMean"]
    if not are_of(graph, measured, _TYPES) or graph.facts.data_type(mean.inputs[0].known) not in _TYPES:
        return None
    return [mean, *subs, *casts, power, second, add, sqrt, div, mul, last]


def _vector(graph: Graph, node: Node) -> Value | None:
    """Returns the last input of a node that has one dimension; None if there is none."""
    shapes = [(value, graph.facts.shape(value.known)) for value in node.inputs]
    return next((value for value, shape in reversed(shapes) if shape is not None and len(shape) == 1), None)


def _is_over_rows(graph: Graph, nodes: list[Node]) -> bool:
    """True if both means are over the last axis only."""
    means = [node for node in nodes if node.op_type == "ReduceMean"]
    rank = len(graph.facts.shape(means[0].inputs[0].known) or ())
    return all(_axes(graph, node) in ([-1], [rank - 1] if rank > 1 else [-1]) for node in means)


def _axes(graph: Graph, node: Node) -> list[int]:
    """Returns the axes of a ReduceMean; [] if they are omitted or not constant."""
    if graph.facts.opset < _NEW_AXES:
        given = attribute(node, "axes")
        return [] if given is None else list(given.ints)
    elements = graph.facts.elements(node.inputs[1].name) if len(node.inputs) > 1 else None
    return [] if elements is None else [int(each) for each in elements.reshape(-1)]
