"""One Concat of an IR: its facts, its verdict, and its output."""

from __future__ import annotations

from collections.abc import Mapping

from dmlsplit.descriptors.dims import compatible, is_static, merged
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.openvino.graph import Graph, Layer, PortId
from dmlsplit.formats.openvino.splits import JudgedLayer
from dmlsplit.formats.openvino.tensors import GivenShapes, Names, Output, PortTensor
from dmlsplit.formats.openvino.types import element_type, type_name
from dmlsplit.rules.openvino import OpenVinoConcat
from dmlsplit.system.records import record


@record
class Concat(JudgedLayer[OpenVinoConcat]):
    inputs: tuple[PortTensor, ...]

    @classmethod
    def of(cls, graph: Graph, layer: Layer, tensors: Mapping[PortId, PortTensor]) -> Concat:
        """Returns the Concat of a layer, with the facts of its inputs from `tensors`, which must hold all its
        producers. Raises InputError for a malformed attribute."""
        sources = [graph.sources.get((layer.id, port.id)) for port in layer.inputs]
        inputs, differing = [], []
        for i, (port, source) in enumerate(zip(layer.inputs, sources, strict=True)):
            tensor = PortTensor(None, None) if source is None else tensors[source]
            if compatible(tensor.shape, port.shape):
                tensor = tensor._replace(shape=merged(tensor.shape, port.shape))
            elif port.shape is not None:
                differing.append((i, port.shape))
            inputs.append(tensor)
        types = tuple([tensor.type for tensor in inputs])
        declared = layer.outputs[0] if layer.outputs else None
        facts = OpenVinoConcat(
            tuple([tensor.shape for tensor in inputs]),
            types if any(types) else (),
            layer.integer("axis") if "axis" in layer.data else None,
            tuple([i for i, source in enumerate(sources) if source is None]),
            len(layer.outputs),
            tuple(differing),
            None if declared is None else declared.shape,
            None if declared is None else type_name(declared.precision),
        )
        return cls(graph, layer, facts, tuple(inputs))

    def node(self, names: Names) -> JoinNode:
        """Returns the node with its report. Raises InputError if the model's tensor names exceed their limit."""
        facts, layer = self.facts, self.layer
        unknown = [(tensor, ("inputs", i)) for i, tensor in enumerate(self.inputs) if i not in facts.missing]
        return JoinNode(
            name=layer.name,
            op="Concat",
            version=1,
            input_shapes=facts.shapes,
            data_type=facts.data_type,
            axis=facts.axis if facts.axis_index is None else facts.axis_index,
            lengths=facts.lengths,
            output_shape=self._declared(facts.output_shape, facts.declared_shape),
            report=self._report("Concat", unknown),
            element=element_type(facts.data_type),
            graph=self.graph.name,
            input_names=tuple([names.of(tensor.output) for tensor in self.inputs]),
            output_name=names.of(Output(self.graph, layer, layer.outputs[0])) if layer.outputs else "",
            facts=facts,
        )

    def put_out(self, given: GivenShapes) -> dict[PortId, PortTensor]:
        """Maps each output port to the facts for its readers: the type, and the shape with the caller's sizes filled
        in. Raises InputError if these contradict the model."""
        open_ = next((tensor.origin for tensor in self.inputs if not is_static(tensor.shape)), None)
        tensors = {}
        for port in self.layer.outputs:
            output = Output(self.graph, self.layer, port)
            shape = given.fill(output, self._declared(self.facts.output_shape, self.facts.declared_shape))
            tensors[(self.layer.id, port.id)] = PortTensor(shape, self.facts.data_type, output, open_ or output)
        return tensors
