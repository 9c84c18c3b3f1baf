"""One Split or VariadicSplit of an IR: its facts, its verdict, and its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.descriptors.dims import Shape, compatible, is_static, merged, shape_text
from dmlsplit.descriptors.location import Location, Step
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.openvino.constants import Value, Weights, resolve
from dmlsplit.formats.openvino.graph import Graph, Layer, PortId
from dmlsplit.formats.openvino.tensors import GivenShapes, Names, Output, PortTensor
from dmlsplit.formats.openvino.types import element_type, type_name
from dmlsplit.rules import RULES, judge_node
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.rules.openvino import INPUTS, INTEGER_TYPES, OpenVinoSplit
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record

F = TypeVar("F", bound=NodeFacts)


@record
class JudgedLayer(Generic[F]):
    """A layer to judge, in its graph."""

    graph: Graph
    layer: Layer
    facts: F

    def _report(self, op: str, unknown: Iterable[tuple[PortTensor, tuple[Step, ...]]]) -> Report:
        """Returns the layer's report by OpenVINO's rules for operator `op`, with a diagnostic for each input in
        `unknown` whose shape is not fully known. `unknown` pairs an input with its location."""
        path = path_of(self.graph, self.layer)
        shapes = [_shape_unknown(tensor, place, path) for tensor, place in unknown if not is_static(tensor.shape)]
        found = (*judge_node(self.facts, path), *shapes)
        return Report(found, self.facts.specification, None, op).located(lambda _: self.layer.place)

    def _declared(self, shape: Shape | None, declared: Shape | None) -> Shape | None:
        """Returns the computed shape `shape` with unknown sizes replaced by those of `declared`, the shape that the
        port declares; `shape` unchanged if the two contradict, None if both are None (unknown)."""
        return merged(shape, declared) if compatible(shape, declared) else shape


@record
class Split(JudgedLayer[OpenVinoSplit]):
    data: PortTensor

    @classmethod
    def of(cls, graph: Graph, layer: Layer, op: str, tensors: Mapping[PortId, PortTensor], weights: Weights) -> Split:
        """Returns the Split of a layer, with the facts of its inputs from `tensors`, which must hold all its
        producers, and constants from `weights`. Raises InputError for a malformed attribute or constant."""
        ports = dict(zip(INPUTS[op], layer.inputs, strict=False))
        sources = {name: graph.sources.get((layer.id, port.id)) for name, port in ports.items()}
        fed = {name: source for name, source in sources.items() if source is not None}
        data = tensors[fed["data"]] if "data" in fed else PortTensor(None, None)
        port_shape = ports["data"].shape if "data" in ports else None
        agreeing = compatible(data.shape, port_shape)
        if agreeing:
            data = data._replace(shape=merged(data.shape, port_shape))
        axis, lengths = [_value(graph, fed.get(name), tensors, weights) for name in ("axis", "split_lengths")]
        axis_numbers, split_lengths = _integers(axis), _integers(lengths)
        facts = OpenVinoSplit(
            op,
            len(layer.outputs),
            data_shape=data.shape,
            data_type=data.type,
            axis=axis_numbers[0] if axis_numbers is not None and len(axis_numbers) == 1 else None,
            axis_type=axis.type,
            axis_shape=axis.shape,
            axis_unknown=axis.unknown,
            num_splits=layer.integer("num_splits") if op == "Split" and "num_splits" in layer.data else None,
            split_lengths=split_lengths,
            split_lengths_type=lengths.type,
            split_lengths_shape=lengths.shape,
            split_lengths_unknown=lengths.unknown,
            missing_inputs=tuple([name for name in INPUTS[op] if name not in fed]),
            extra_inputs=max(len(layer.inputs) - len(INPUTS[op]), 0),
            port_shape=None if agreeing else port_shape,
            declared_shapes=tuple([port.shape for port in layer.outputs]),
            declared_types=tuple([type_name(port.precision) for port in layer.outputs]),
        )
        return cls(graph, layer, facts, data)

    def node(self, names: Names) -> SplitNode:
        """Returns the node with its report. Raises InputError if the model's tensor names exceed their limit."""
        facts, layer = self.facts, self.layer
        return SplitNode(
            name=layer.name,
            op=facts.op,
            version=1,
            input_shape=facts.data_shape,
            data_type=facts.data_type,
            axis=facts.axis if facts.axis_index is None else facts.axis_index,
            lengths=self._lengths(),
            output_shapes=self._output_shapes(),
            report=self._report(facts.op, [] if "data" in facts.missing_inputs else [(self.data, ("data",))]),
            element=element_type(facts.data_type),
            graph=self.graph.name,
            input_name=names.of(self.data.output),
            output_names=tuple([names.of(Output(self.graph, layer, port)) for port in layer.outputs]),
            facts=facts,
        )

    def put_out(self, given: GivenShapes) -> dict[PortId, PortTensor]:
        """Maps each output port to the facts for its readers: the type, and the shape with the caller's sizes filled
        in. Raises InputError if these contradict the model."""
        tensors = {}
        for port, computed in zip(self.layer.outputs, self._output_shapes(), strict=True):
            output = Output(self.graph, self.layer, port)
            shape = given.fill(output, computed)
            origin = output if is_static(self.facts.data_shape) else self.data.origin
            tensors[(self.layer.id, port.id)] = PortTensor(shape, self.facts.data_type, output, origin)
        return tensors

    def _output_shapes(self) -> tuple[Shape | None, ...]:
        return tuple(map(self._declared, self.facts.output_shapes, self.facts.declared_shapes))

    def _lengths(self) -> Shape:
        axis, shapes = self.facts.axis_index, self._output_shapes()
        if axis is None:
            return self.facts.lengths
        return tuple([None if shape is None else shape[axis] for shape in shapes])


def _shape_unknown(tensor: PortTensor, place: tuple[Step, ...], path: str) -> Diagnostic:
    """Returns the diagnostic for an input of unknown shape of the layer at `path`, with a hint that names the tensor
    whose shape the caller can give."""
    shape = shape_text(tensor.shape)
    origin = "" if tensor.origin is None else printable(tensor.origin.name, 60)
    hint = f"to pass it, give the shape of '{origin}' with --shape"
    here = Location(place, path)
    return RULES["node/shape-unknown"].diagnostic(here, f"has the shape {shape}; {hint}", expected=hint, actual=shape)


def path_of(graph: Graph, layer: Layer) -> str:
    """Returns the name of a layer in diagnostics, printable: the body's path if it is in one, then its own name or its
    type and id."""
    name = layer.name or f"{layer.type}_{layer.id}"
    return printable(f"{graph.name}/{name}" if graph.name else name)


def _value(graph: Graph, source: PortId | None, tensors: Mapping[PortId, PortTensor], weights: Weights) -> Value:
    """Returns the value of an input that output `source` feeds; type and shape are filled in from `tensors` even if
    the value is unknown. All members are None if `source` is None."""
    if source is None:
        return Value(None, None, None)
    value = resolve(graph, source, weights, lambda id: tensors[id].shape)
    tensor = tensors[source]
    return value._replace(
        type=tensor.type if value.type is None else value.type,
        shape=tensor.shape if value.shape is None else value.shape,
    )


def _integers(value: Value) -> tuple[int, ...] | None:
    """Returns the elements of an integer tensor in order; None if the value is unknown or not an integer. The rank is
    not checked here."""
    if value.numbers is None or value.type not in INTEGER_TYPES:
        return None
    return tuple(map(int, value.numbers))
