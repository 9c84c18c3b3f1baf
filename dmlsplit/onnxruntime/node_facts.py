"""Collects the facts about a Split or Concat of a session's graph that a prediction needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import onnx

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.formats.onnx.tensors import element_type, type_name, value_of
from dmlsplit.models.functions import JUDGED
from dmlsplit.models.graph import Node, Value, attribute
from dmlsplit.onnxruntime.facts import LENGTHS_ARE_INPUT, SMALLEST_BUFFER, FirstRun, LengthsFrom, RuntimeFacts, Sizes
from dmlsplit.onnxruntime.optimization import judged_after, moved
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.errors import InputError
from dmlsplit.system.integers import signed

_TYPES: Final = {"Split": OperatorType.SPLIT, "Concat": OperatorType.JOIN}


def facts_in(graph: SessionGraph) -> Mapping[int, RuntimeFacts]:
    """Maps the index of each Split and Concat of a graph to its facts; nodes with too few known facts are left out."""

    def made() -> Mapping[int, RuntimeFacts]:
        equal: dict[RuntimeFacts, RuntimeFacts] = {}  # equal facts are one object: caches find them by identity
        known: dict[object, RuntimeFacts | None] = {}
        found = {}
        for node in graph.nodes:
            if node.op_type not in JUDGED:
                continue
            own = _own_of(graph, node)
            alike = graph.alike[node.index], own
            if alike not in known:
                facts = _facts_of(graph, node, own)
                known[alike] = None if facts is None else equal.setdefault(facts, facts)
            if (of_node := known[alike]) is not None:
                found[node.index] = of_node
        return found

    return graph.once("facts", made)


def facts_after(graph: SessionGraph) -> Mapping[int, RuntimeFacts]:
    """Returns `facts_in` as they are after all passes: where a Transpose was moved over a Split or Concat, its tensors
    have their dimensions in another order."""

    def made() -> Mapping[int, RuntimeFacts]:
        facts = facts_in(graph)
        found = {
            index: _rearranged(graph, node, facts[index])
            for index, node in judged_after(graph).items()
            if index in facts and node.proto is not graph.nodes[index].proto
        }
        return {**facts, **found} if found else facts

    return facts_in(graph) if moved(graph) is None else graph.once(("facts after", graph.fusions), made)


def _rearranged(graph: SessionGraph, node: Node, facts: RuntimeFacts) -> RuntimeFacts:
    """Returns the facts of a node over which Transposes were moved, given those of the node in the file."""
    read = _divided(node)
    names = [value.known for value in read]
    shapes, axis = tuple(map(graph.shape, names)), attribute(node, "axis")
    stored = [len(shape or ()) for name, shape in zip(names, shapes, strict=True) if graph.is_initializer(name)]
    return replace(
        facts,
        shapes=shapes,
        axis=facts.axis if axis is None else signed(axis.i),
        declared=(),
        owned=tuple([_is_owned(graph, name) for name in names]),
        stored_rank=max(stored, default=0),
    )


def _divided(node: Node) -> Sequence[Value]:
    """Returns the inputs of a node that are split or joined."""
    return node.inputs[:1] if node.op_type == "Split" else node.inputs


def _is_open(graph: SessionGraph, name: str) -> bool:
    """True if it is certain that only a run determines the sizes of a tensor."""
    return graph.is_open(name) and not graph.model.is_unfinished


class _Own(NamedTuple):
    """The facts of a Split or Concat that the other nodes of its graph determine."""

    declared: tuple[Shape | None, ...]
    folded: bool
    prefers_cpu: bool


def _own_of(graph: SessionGraph, node: Node) -> _Own:
    return _Own(
        tuple([_declared(graph, value) for value in node.outputs]),
        node.index in graph.graph.folded or graph.is_removed,
        graph.graph.kept(node).index in graph.preferring_cpu,
    )


def _facts_of(graph: SessionGraph, of: Node, own: _Own) -> RuntimeFacts | None:
    """Returns the facts of a Split or Concat; None if too few are known."""
    node, scope = of.proto, graph.scope
    names = node.input[:]
    read = names[:1] if node.op_type == "Split" else names
    data_type = next((kind for kind, _ in map(scope.type_of, read) if kind), None)
    if not scope.origin.opset or not read or not all(read) or data_type is None:
        return None
    attributes = {attribute.name: attribute for attribute in node.attribute[:]}
    shapes = tuple([graph.shape(name) for name in read])
    known = list(zip(read, shapes, strict=True))
    facts = RuntimeFacts(
        _TYPES[node.op_type],
        scope.origin.opset,
        data_type,
        shapes,
        signed(attributes["axis"].i) if "axis" in attributes else int(node.op_type == "Concat"),
        len(node.output),
        inputs=len(names),
        omitted=tuple([i for i, name in enumerate(node.output[:]) if not name]),
        declared=own.declared,
        owned=tuple([_is_owned(graph, name) for name in read]),
        stored_rank=max((len(shape or ()) for name, shape in known if graph.is_initializer(name)), default=0),
        folded=own.folded,
        ir_version=graph.model.ir_version,
        shapes_known=all(is_static(shape) or _is_open(graph, name) for name, shape in known),
        prefers_cpu=own.prefers_cpu,
        axis_given="axis" in attributes,
        both_given="num_outputs" in attributes and len(names) > 1 and names[1] != "",
    )
    return _with_lengths(facts, graph, names, attributes) if facts.is_split else facts


def _declared(graph: SessionGraph, value: Value) -> Shape | None:
    """Returns the declared shape of a tensor or, if an Identity behind it is removed, of that Identity's output; None
    if there is none."""
    if not value.name:
        return None
    shape = graph.scope.declared(value.name)[1]
    if shape is not None or graph.options.optimization < 1 or len(value.readers) != 1:
        return shape
    (reader,) = value.readers
    is_replaced = reader.op_type == "Identity" and reader.outputs[0].is_output
    return graph.scope.declared(reader.outputs[0].name)[1] if is_replaced else None


def _is_owned(graph: SessionGraph, name: str) -> bool:
    """True if an initializer is passed to DirectML with the fused graph."""
    if not graph.is_initializer(name):
        return False
    tensor = graph.initializers.get(name, graph.defaults.get(name))
    kind, shape = graph.data_type(name), graph.shape(name)
    if tensor is not None:
        kind, shape = type_name(tensor.data_type), tuple(tensor.dims)
    element = element_type(kind)
    return element is None or not is_static(shape) or math.prod(shape) * element.itemsize >= SMALLEST_BUFFER


def _with_lengths(
    facts: RuntimeFacts, graph: SessionGraph, names: Sequence[str], attributes: Mapping[str, onnx.AttributeProto]
) -> RuntimeFacts:
    if facts.opset < LENGTHS_ARE_INPUT:
        if "split" not in attributes:
            return facts
        return replace(facts, given=LengthsFrom.ATTRIBUTE, lengths=tuple(attributes["split"].ints))
    if len(names) < 2 or not names[1]:
        if facts.opset < 18 or "num_outputs" not in attributes:
            return facts
        return replace(facts, given=LengthsFrom.NUM_OUTPUTS, num_outputs=attributes["num_outputs"].i)
    name = names[1]
    if name in graph.defaults:
        try:
            values = value_of(graph.defaults[name], graph.scope.origin.read_external)
        except InputError:  # the tensor is malformed, or in a file that may not be read
            values = None
        lengths = None if values is None else tuple(values.ravel().tolist())
        return replace(facts, given=LengthsFrom.DEFAULT, lengths=lengths)
    if not graph.is_constant(name):
        return replace(facts, given=LengthsFrom.COMPUTED)
    lengths = graph.scope.integers(name)
    given = LengthsFrom.CONSTANT if graph.graph.is_given(name) else LengthsFrom.OUTER
    tensor = graph.initializers.get(name)
    return replace(
        facts,
        given=given,
        lengths=lengths,
        shapes_known=facts.shapes_known and lengths is not None,
        lengths_elsewhere=tensor is not None and bool(tensor.external_data),
    )


def first_run(graph: SessionGraph, index: int) -> FirstRun | None:
    """Returns the sizes of a node's tensors at the first Run; None if that is unknown."""
    scope, node = graph.run_scope, graph.nodes[index]
    if scope is None:
        return None
    names = node.proto.input[:]
    is_split = node.op_type == "Split"
    lengths = scope.integers(names[1]) if is_split and len(names) > 1 else None
    after = node if moved(graph) is None else judged_after(graph).get(index, node)
    is_changed = after.proto is not node.proto
    read = [value.known for value in _divided(after)] if is_changed else names[:1] if is_split else names
    return FirstRun(tuple([_sizes(graph.shape_at_run(name)) for name in read]), lengths)


def _sizes(shape: Shape | None) -> Sizes | None:
    return tuple([dim for dim in shape if isinstance(dim, int)]) if shape is not None and is_static(shape) else None
