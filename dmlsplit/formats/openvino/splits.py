"""One Split or VariadicSplit of an IR: its facts, its verdict, and its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

F = TypeVar("F", bound=NodeFacts)


@dataclass(frozen=True, slots=True)
class JudgedLayer(Generic[F]):
    """A layer to judge, in its graph."""

    graph: Graph
    layer: Layer
    facts: F

    def _report(self, op: str, unknown: Iterable[tuple[PortTensor, tuple[Step, ...]]]) -> Report:
        """The layer's report; `unknown`: the inputs whose shapes may be unknown, with their locations."""
        path = path_of(self.graph, self.layer)
        shapes = [_shape_unknown(tensor, place, path) for tensor, place in unknown if not is_static(tensor.shape)]
        found = (*judge_node(self.facts, path), *shapes)
        return Report(found, self.facts.specification, None, op).located(lambda _: self.layer.place)

    def _declared(self, shape: Shape | None, declared: Shape | None) -> Shape | None:
        """The specification's shape; its open sizes are filled in from the port's declaration."""
        return merged(shape, declared) if compatible(shape, declared) else shape


@dataclass(frozen=True, slots=True)
class Split(JudgedLayer[OpenVinoSplit]):
    data: PortTensor

    @classmethod
    def of(cls, graph: Graph, layer: Layer, op: str, tensors: Mapping[PortId, PortTensor], weights: Weights) -> Split:
        """Makes the split of a layer, once all its producers are known. Raises InputError."""
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
        """The judged node; InputError where it has too many long names."""
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
        """The outputs as their readers see them."""
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
    """The diagnostic for an input of unknown shape of the layer at `path`, with a hint how to give the shape."""
    shape = shape_text(tensor.shape)
    origin = "" if tensor.origin is None else printable(tensor.origin.name, 60)
    hint = f"--shape gives that of '{origin}', on which it depends"
    here = Location(place, path)
    return RULES["node/shape-unknown"].diagnostic(here, f"has the shape {shape}; {hint}", expected=hint, actual=shape)


def path_of(graph: Graph, layer: Layer) -> str:
    """The name of a layer in the paths of diagnostics."""
    name = layer.name or f"{layer.type}_{layer.id}"
    return printable(f"{graph.name}/{name}" if graph.name else name)


def _value(graph: Graph, source: PortId | None, tensors: Mapping[PortId, PortTensor], weights: Weights) -> Value:
    """An input's value; its type and shape also where the value is unknown."""
    if source is None:
        return Value(None, None, None)
    value = resolve(graph, source, weights, lambda id: tensors[id].shape)
    tensor = tensors[source]
    return value._replace(
        type=tensor.type if value.type is None else value.type,
        shape=tensor.shape if value.shape is None else value.shape,
    )


def _integers(value: Value) -> tuple[int, ...] | None:
    """The numbers of an integer tensor, None for any other; a rank above 1 is reported elsewhere, whatever it holds."""
    if value.numbers is None or value.type not in INTEGER_TYPES:
        return None
    return tuple(map(int, value.numbers))
