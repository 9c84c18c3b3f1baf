"""Cuts nodes out of a model as a separate model: a tensor that one of them reads from another node becomes an input of
its known type, and a tensor that another node reads becomes an output."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.onnx.protobuf import all_nodes, domain_of, has_graphs, own_name, reads, refill, values_of
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.formats.sessions import Inputs
from dmlsplit.models import given
from dmlsplit.models.onnx_nodes import name_of
from dmlsplit.onnxruntime.scopes import Habits, SessionModel
from dmlsplit.reducing.findings import Question
from dmlsplit.reducing.known import declaration, is_typed, known_constant


class Cut:
    """A model without weights that nodes can be cut out of. Raises InputError if it contradicts the given facts."""

    def __init__(self, model: onnx.ModelProto, question: Question) -> None:
        habits = Habits(question.options.optimization >= 1, True, question.runtime.traits.uninferred)
        inputs, filled = question.inputs, model
        if inputs.free_dimensions:
            filled = onnx.ModelProto()
            filled.CopyFrom(model)
            given.fill_in(filled, {}, inputs.free_dimensions, False)
        known = SessionModel(filled, (), no_external_data, Budget(model.ByteSize()), inputs, False, habits)
        self.model = model
        self.scope, self._run = known.session, known.run
        graph = model.graph
        self.nodes = list(graph.node)
        self._reads = [list(dict.fromkeys(reads(node))) for node in self.nodes]
        self._producer = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self._inputs = {value.name: value for value in graph.input}
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self._declared = {value.name: value for value in values_of(graph)}
        self._outputs = {value.name: value for value in graph.output}
        self._readers: dict[str, list[int]] = {}
        for i, names in enumerate(self._reads):
            for name in names:
                self._readers.setdefault(name, []).append(i)
        self._constants: dict[str, onnx.TensorProto | None] = {}

    def path(self, index: int) -> str:
        """Returns the path of the node with this index, as findings name it."""
        return name_of(self.nodes[index], self.scope)

    def holding(self, path: str) -> int | None:
        """Returns the index of the node with this path, or of the node that contains it in a graph; None if there is
        none."""
        for i, node in enumerate(self.nodes):
            if self.path(i) == path or (has_graphs(node) and path.startswith(f"{own_name(node)}.")):
                return i
        return None

    def around(self, start: int) -> list[int]:
        """Returns the indices of all nodes, sorted by the number of edges from node `start`, the nearest first; nodes
        that are not connected with it come last."""
        found, todo = {start: None}, deque([start])
        while todo:
            node = todo.popleft()
            beside = [self._producer[name] for name in self._reads[node] if name in self._producer]
            for name in self.nodes[node].output:
                beside += self._readers.get(name, ())
            for other in beside:
                if other not in found:
                    found[other] = None
                    todo.append(other)
        return [*found, *(i for i in range(len(self.nodes)) if i not in found)]

    def run_shapes(self, model: onnx.ModelProto) -> Mapping[str, Shape]:
        """Maps the names of those inputs of `model`, a model that was cut out, that are computed tensors in the
        original to their shapes at the first Run; inputs whose shape does not follow from the given ones are left
        out."""
        if self._run is None:
            return {}
        shapes = {value.name: self._run.type_of(value.name)[1] for value in model.graph.input}
        return {name: shape for name, shape in shapes.items() if shape is not None and name not in self._inputs}

    def of_nodes(self, wanted: Iterable[int], *, shown: bool = False, guessed: bool = False) -> onnx.ModelProto | None:
        """Returns a model of the nodes with these indices, together with the producers of every input whose type is not
        known; None if it would have no output.

        `shown`: a tensor that nodes outside read is an output even if a node inside reads it. `guessed`: an input of
        unknown type becomes FLOAT, and its producer is not added.
        """
        kept = set(wanted) if guessed else self._closed(wanted)
        order = sorted(kept)
        made = self._empty()
        graph = made.graph
        names = dict.fromkeys(name for i in order for name in self._reads[i])
        computed = {name for i in order for name in self.nodes[i].output if name}
        outputs = [name for name in self._outputs if name in computed or (name in names and name in self._inputs)]
        for i in order:
            for name in self.nodes[i].output:
                readers = self._readers.get(name, ()) if name and name not in self._outputs else ()
                outside = [reader for reader in readers if reader not in kept]
                if outside and (shown or len(outside) == len(readers)):
                    outputs.append(name)
        outputs = [name for name in outputs if name in computed]
        if not outputs:
            return None
        for name in names:
            if name in computed:
                continue
            if name in self._initializers or name in self._sparse:
                self._put_initializer(graph, name)
            elif name in self._producer or name in self._inputs:
                constant = self._constant(name) if name in self._producer else None
                if constant is not None:
                    graph.initializer.append(constant)
                else:
                    graph.input.append(self._inputs[name] if name in self._inputs else self._given(name))
        inputs = [value.name for value in graph.input]
        place = {name: i for i, name in enumerate(self._inputs)}
        refill(graph.input, sorted(graph.input, key=lambda value: place.get(value.name, len(place))))
        graph.node.extend(self.nodes[i] for i in order)
        graph.output.extend(
            self._outputs[name] if name in self._outputs else declaration(self.scope, name) for name in outputs
        )
        said = {*outputs, *inputs}
        graph.value_info.extend(
            value for value in self.model.graph.value_info if value.name in computed and value.name not in said
        )
        keep_used_domains(made)
        return made

    def _closed(self, wanted: Iterable[int]) -> set[int]:
        """Returns the indices in `wanted`, completed repeatedly by the producers of every tensor of unknown type that
        one of the nodes reads."""
        kept: set[int] = set()
        todo = list(wanted)
        while todo:
            node = todo.pop()
            if node in kept:
                continue
            kept.add(node)
            for name in self._reads[node]:
                producer = self._producer.get(name)
                if producer is not None and producer not in kept and not is_typed(self.scope, name):
                    todo.append(producer)
        return kept

    def _empty(self) -> onnx.ModelProto:
        made = onnx.ModelProto()
        for field, value in self.model.ListFields():
            if field.name not in ("graph", "training_info"):
                if field.message_type is not None:
                    getattr(made, field.name).extend(value)
                else:
                    setattr(made, field.name, value)
        made.graph.name = self.model.graph.name or "g"
        return made

    def _put_initializer(self, graph: onnx.GraphProto, name: str) -> None:
        if name in self._initializers:
            graph.initializer.append(self._initializers[name])
        else:
            graph.sparse_initializer.append(self._sparse[name])
        if name in self._inputs:
            graph.input.append(self._inputs[name])

    def _given(self, name: str) -> onnx.ValueInfoProto:
        """Returns the declaration of a computed value that becomes an input: its type as far as it is known, else
        FLOAT."""
        if is_typed(self.scope, name):
            return declaration(self.scope, name)
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)

    def _constant(self, name: str) -> onnx.TensorProto | None:
        if name not in self._constants:
            self._constants[name] = known_constant(self.scope, name)
        return self._constants[name]


def keep_used_domains(model: onnx.ModelProto) -> None:
    """Removes, in place, the functions that no node calls, and the imports of domains without nodes."""
    called: set[tuple[str, str]] = set()
    todo: list[Sequence[onnx.NodeProto]] = [model.graph.node]
    bodies = {(function.domain, function.name): function for function in model.functions}
    domains = {""}
    while todo:
        for node in all_nodes(todo.pop()):
            domains.add(domain_of(node))
            key = (node.domain, node.op_type)
            if key in bodies and key not in called:
                called.add(key)
                todo.append(bodies[key].node)
    if len(called) < len(model.functions):
        refill(model.functions, [each for each in model.functions if (each.domain, each.name) in called])
    if any(domain_of(each) not in domains for each in model.opset_import):
        refill(model.opset_import, [each for each in model.opset_import if domain_of(each) in domains])


def constants_as_initializers(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Returns a copy of the model with initializers in place of the Constant nodes of the main graph that hold a
    tensor and compute no output of the model; None if there are none."""
    taken = {value.name for value in model.graph.output}
    found: dict[int, onnx.TensorProto] = {}
    for i, node in enumerate(model.graph.node):
        if node.op_type != "Constant" or domain_of(node) != "" or len(node.output) != 1 or node.output[0] in taken:
            continue
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.HasField("t"):
                tensor = onnx.TensorProto()
                tensor.CopyFrom(attribute.t)
                tensor.name = node.output[0]
                found[i] = tensor
    if not found:
        return None
    made = onnx.ModelProto()
    made.CopyFrom(model)
    refill(made.graph.node, [node for i, node in enumerate(model.graph.node) if i not in found])
    made.graph.initializer.extend(found.values())
    return made


def node_count(model: onnx.ModelProto) -> int:
    """Returns the number of nodes of a model, with those of graphs in nodes and of functions."""
    bodies: Iterator[Sequence[onnx.NodeProto]] = iter([model.graph.node, *(each.node for each in model.functions)])
    return sum(1 for body in bodies for _ in all_nodes(body))


def with_shapes(inputs: Inputs, shapes: Mapping[str, Shape]) -> Inputs:
    """Returns the facts with `shapes` of further inputs added."""
    return Inputs({**inputs.shapes, **shapes}, inputs.dims, inputs.values, inputs.free_dimensions) if shapes else inputs
