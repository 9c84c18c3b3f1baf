"""Valid ONNX models, and changes to their messages: fields, names, graphs, functions, references, external data."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import AttributeProto, TensorProto, helper

from tests.fuzz import wire
from tests.fuzz.onnx_rarities import RARITIES
from tests.fuzz.onnx_seeds import FUNCTIONS, OPERATORS, OPSET, SEEDS
from tests.fuzz.values import INTEGERS, LOCATIONS, is_repeated, long_name, strange_name
from tests.models import graph, node, with_reference

MAX_BYTES = 200_000
"""Of a model to which more is added."""


class Mutator:
    """Changes one model; all choices are `rng`'s."""

    def __init__(self, rng: random.Random, model: onnx.ModelProto) -> None:
        self.rng = rng
        self.model = model

    def mutate(self) -> None:
        """One change, or none where what was chosen cannot be changed so."""
        change = self.rng.choice(CHANGES)
        try:
            change(self)
        except (ValueError, TypeError, OverflowError, AttributeError, DecodeError, RecursionError):
            return  # protobuf refuses it, such as what is too deep, or there is no such thing

    # What there is to choose from

    def messages(self, kind: type | None = None) -> list[Message]:
        found = list(_walk(self.model))
        return [message for message in found if kind is None or isinstance(message, kind)]

    def pick(self, kind: type | None = None) -> Message:
        found = self.messages(kind)
        return self.rng.choice(found) if found else self.model

    def name(self) -> str:
        """A name of the model, mostly."""
        if self.rng.random() < 0.1:
            return self.rng.choice((strange_name, long_name))(self.rng)
        names = [name for message in self.messages() for name in _strings(message)]
        return self.rng.choice(names) if names else "x"

    def like(self, message: Message) -> Message:
        """A copy of any message of the same type."""
        same = [other for other in self.messages() if other.DESCRIPTOR is message.DESCRIPTOR]
        copy = type(message)()
        copy.CopyFrom(self.rng.choice(same))
        return copy

    def may_grow(self) -> bool:
        return self.model.ByteSize() < MAX_BYTES

    # Changes

    def set_field(self) -> None:
        message = self.pick()
        field = self.rng.choice(message.DESCRIPTOR.fields)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return
        new = self.value_of(field)
        current = getattr(message, field.name)
        if not is_repeated(field):
            setattr(message, field.name, new)
        elif len(current) and self.rng.random() < 0.6:
            current[self.rng.randrange(len(current))] = new
        else:
            current.append(new)

    def value_of(self, field: FieldDescriptor) -> object:
        """A value of a field that is no message."""
        rng = self.rng
        if field.type == FieldDescriptor.TYPE_STRING:
            return self.name()
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.randbytes(rng.choice((0, 1, 4, 8, 16, 40)))
        if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
            return rng.choice((0.0, -1.5, 1e38, float("nan"), float("inf")))
        if field.enum_type is not None:
            return rng.choice(field.enum_type.values).number
        return rng.choice(INTEGERS)

    def clear_field(self) -> None:
        message = self.pick()
        present = message.ListFields()
        if present:
            message.ClearField(self.rng.choice(present)[0].name)

    def replace_message(self) -> None:
        message = self.pick()
        if message is not self.model and self.may_grow():
            message.CopyFrom(self.like(message))

    def repeat(self) -> None:
        """Adds copies of what is there, or of the same type anywhere."""
        message, lists = self._lists()
        if not lists or not self.may_grow():
            return
        items = getattr(message, self.rng.choice(lists).name)
        for _ in range(self.rng.choice((1, 1, 1, 2, 20))):
            item = self.rng.choice(items)
            items.append(self.like(item) if isinstance(item, Message) else item)

    def delete(self) -> None:
        message, lists = self._lists()
        if lists:
            items = getattr(message, self.rng.choice(lists).name)
            del items[self.rng.randrange(len(items))]

    def shuffle(self) -> None:
        message, lists = self._lists()
        if lists:
            items = getattr(message, self.rng.choice(lists).name)
            copies = list(items)
            if isinstance(copies[0], Message):
                copies = [type(item).FromString(item.SerializeToString()) for item in copies]
            self.rng.shuffle(copies)
            del items[:]
            items.extend(copies)

    def _lists(self) -> tuple[Message, list[FieldDescriptor]]:
        message = self.pick()
        return message, [field for field, items in message.ListFields() if is_repeated(field) and len(items)]

    def rename(self) -> None:
        """Every mention of one name becomes another: cycles, duplicates, other types."""
        old, new = self.name(), self.name()
        for message in self.messages():
            for field, held in message.ListFields():
                if field.type != FieldDescriptor.TYPE_STRING:
                    continue
                if not is_repeated(field):
                    if held == old:
                        setattr(message, field.name, new)
                elif old in held:
                    held[:] = [new if item == old else item for item in held]

    def operator(self) -> None:
        self.pick(onnx.NodeProto).op_type = self.rng.choice(OPERATORS)

    def call(self) -> None:
        """A node, perhaps of a function, calls a function, perhaps the same."""
        called, node = self.pick(onnx.FunctionProto), self.pick(onnx.NodeProto)
        if isinstance(called, onnx.FunctionProto):
            node.op_type, node.domain = called.name, called.domain

    def refer(self) -> None:
        """An attribute becomes a reference to one of the function around it, perhaps to itself."""
        attribute = self.pick(onnx.AttributeProto)
        attribute.ref_attr_name = self.rng.choice((attribute.name, self.name()))
        if self.rng.random() < 0.8:
            for field in ("g", "graphs", "t", "i", "ints"):
                attribute.ClearField(field)

    def declare(self) -> None:
        """A function has one more attribute, or a default."""
        function = self.pick(onnx.FunctionProto)
        if isinstance(function, onnx.FunctionProto):
            if self.rng.random() < 0.5:
                function.attribute.append(self.name())
            else:
                added = function.attribute_proto.add()
                added.CopyFrom(self.pick(onnx.AttributeProto))

    def give_graph(self) -> None:
        """A node gets a graph, in which attributes may refer to those of the function around it."""
        node, found = self.pick(onnx.NodeProto), self.messages(onnx.GraphProto)
        if not isinstance(node, onnx.NodeProto) or not found or not self.may_grow():
            return
        copy = onnx.GraphProto()
        copy.CopyFrom(self.rng.choice(found))
        added = node.attribute.add(name=self.name(), type=AttributeProto.GRAPH)
        added.g.CopyFrom(copy)
        for inner in added.g.node[: self.rng.choice((0, 1, 2))]:
            inner.attribute.append(
                AttributeProto(name=self.name(), type=AttributeProto.GRAPH, ref_attr_name=self.name())
            )

    def wrap(self) -> None:
        """All nodes of a graph go into a branch inside it."""
        graph = self.pick(onnx.GraphProto)
        inside = onnx.GraphProto(name=graph.name)
        inside.node.extend(graph.node)
        inside.output.extend(graph.output)
        del graph.node[:]
        graph.node.add(op_type="If", output=[output.name for output in inside.output], input=["c"])
        for branch in ("then_branch", "else_branch"):
            graph.node[0].attribute.add(name=branch, type=AttributeProto.GRAPH).g.CopyFrom(inside)

    def outline(self) -> None:
        """The nodes of a graph become a function, which the graph calls."""
        graph = self.pick(onnx.GraphProto)
        function = self.model.functions.add(name=graph.name or "g", domain="f", opset_import=[OPSET, FUNCTIONS])
        function.input.extend([info.name for info in graph.input])
        function.output.extend([info.name for info in graph.output])
        function.node.extend(graph.node)
        call = onnx.NodeProto(op_type=function.name, domain="f", input=function.input, output=function.output)
        del graph.node[:]
        graph.node.append(call)
        self._import_functions()

    def _import_functions(self) -> None:
        if not any(imported.domain == "f" for imported in self.model.opset_import):
            self.model.opset_import.append(FUNCTIONS)

    def tower(self) -> None:
        """Functions that call one another, each several times, or with a graph in which the one it was given is several
        times: what is copied at each call may double."""
        rng = self.rng
        floors, times, copies = rng.choice((2, 5, 12, 25)), rng.choice((1, 1, 2, 3)), rng.choice((0, 1, 2, 3))
        long = rng.choice(("", "", long_name(rng)))
        for floor in range(floors):
            reference = with_reference(node("If", ["c"], ["o"]), "then_branch", "body", AttributeProto.GRAPH)
            given = graph([reference] * copies, [], ["o"])
            last = floor == floors - 1
            call = node("Split", ["x"], ["y", "z"], axis=0) if last else node(f"t{floor + 1}", ["x"], ["y"], domain="f")
            call.name = long
            if not last:
                call.attribute.append(helper.make_attribute("body", given))
            made = helper.make_function("f", f"t{floor}", ["x"], ["y"], [call] * times, [OPSET, FUNCTIONS], ["body"])
            self.model.functions.append(made)
        body = graph([node("Split", ["x"], ["o", "p"], num_outputs=2)], [], ["o"])
        self.model.graph.node.append(node("t0", ["x"], ["tower"], domain="f", body=body))
        self._import_functions()

    def outside(self) -> None:
        """A tensor's data is in a file."""
        tensor = self.pick(TensorProto)
        if not isinstance(tensor, TensorProto):
            return
        count = 1
        for size in tensor.dims:
            count *= size
        rng = self.rng
        length = rng.choice((8 * count, 8 * count, 4 * count, rng.choice(INTEGERS)))
        for field in ("raw_data", "int64_data", "int32_data", "external_data"):
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        entries = {
            "location": rng.choice(LOCATIONS),
            "offset": str(rng.choice((0, 0, 0, 8, rng.choice(INTEGERS)))),
            "length": str(length),
        }
        for key, text in entries.items():
            if rng.random() < 0.95:
                tensor.external_data.add(key=key, value=text)

    def resize(self) -> None:
        shape = self.pick(onnx.TensorShapeProto)
        if isinstance(shape, onnx.TensorShapeProto):
            dim = shape.dim.add() if not shape.dim or self.rng.random() < 0.2 else self.rng.choice(shape.dim)
            if self.rng.random() < 0.3:
                dim.dim_param = self.name()
            else:
                dim.dim_value = self.rng.choice(INTEGERS)

    def join_names(self) -> None:
        """A node writes what another one writes or reads: one name twice, or a cycle."""
        nodes = self.messages(onnx.NodeProto)
        if nodes:
            names = [name for node in nodes for name in (*node.output, *node.input)]
            written = [node for node in nodes if node.output]
            if names and written:
                node = self.rng.choice(written)
                node.output[self.rng.randrange(len(node.output))] = self.rng.choice(names)

    def feed_back(self) -> None:
        """A node reads what it writes, or what one behind it does."""
        graph = self.pick(onnx.GraphProto)
        if isinstance(graph, onnx.GraphProto) and graph.node:
            first = self.rng.randrange(len(graph.node))
            later = self.rng.choice(graph.node[first:])
            if graph.node[first].input and later.output:
                graph.node[first].input[0] = self.rng.choice(later.output)

    def strip(self) -> None:
        """Nodes without names, without outputs or without inputs, and graphs that give nothing."""
        message, what = self.pick(self.rng.choice((onnx.NodeProto, onnx.GraphProto))), self.rng.random()
        if isinstance(message, onnx.GraphProto) and what < 0.5:
            del message.output[:]
        elif isinstance(message, onnx.NodeProto):
            del (message.output if what < 0.5 else message.input)[:]
        else:
            for node in self.messages(onnx.NodeProto):
                node.ClearField("name")

    def train(self) -> None:
        """Training information, with weights of its own."""
        graph, tensor = self.pick(onnx.GraphProto), self.pick(TensorProto)
        if isinstance(graph, onnx.GraphProto) and self.may_grow():
            copy = onnx.GraphProto()
            copy.CopyFrom(graph)
            added = self.model.training_info.add()
            added.algorithm.CopyFrom(copy)
            if isinstance(tensor, TensorProto):
                added.initialization.initializer.add().CopyFrom(tensor)

    def make_sparse(self) -> None:
        """An initializer becomes a sparse one."""
        graph = self.pick(onnx.GraphProto)
        if isinstance(graph, onnx.GraphProto) and graph.initializer:
            tensor = graph.initializer[self.rng.randrange(len(graph.initializer))]
            added = graph.sparse_initializer.add(dims=tensor.dims)
            added.values.CopyFrom(tensor)
            added.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [1], [0]))

    def import_opset(self) -> None:
        self.rng.choice(self.model.opset_import or [onnx.OperatorSetIdProto()]).version = self.rng.choice(
            (1, 2, 7, 11, 13, 18, 21, self.rng.choice(INTEGERS))
        )


CHANGES = (
    *(Mutator.set_field,) * 4,
    *(Mutator.repeat,) * 2,
    *(Mutator.outside,) * 2,
    *(Mutator.refer,) * 2,
    *(Mutator.call,) * 2,
    Mutator.clear_field,
    Mutator.replace_message,
    Mutator.delete,
    Mutator.shuffle,
    Mutator.rename,
    Mutator.operator,
    Mutator.declare,
    Mutator.give_graph,
    Mutator.wrap,
    Mutator.outline,
    Mutator.tower,
    Mutator.resize,
    Mutator.import_opset,
    *(Mutator.join_names,) * 2,
    Mutator.feed_back,
    Mutator.strip,
    Mutator.train,
    Mutator.make_sparse,
    *RARITIES,
)


def write(rng: random.Random, folder: Path) -> Path:
    """A changed model in a folder."""
    made = rng.choice(SEEDS)()
    mutator = Mutator(rng, made)
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 8, 20))):
        mutator.mutate()
    data = bytearray(made.SerializeToString(deterministic=True))
    if rng.random() < 0.25:
        with contextlib.suppress(RecursionError):
            data = bytearray(wire.changed(bytes(data), made.DESCRIPTOR, rng))
    if data and rng.random() < 0.05:  # what protobuf itself would not write, such as lengths that are wrong
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    path = folder / "model.onnx"
    path.write_bytes(data)
    return path


def _walk(message: Message) -> Iterator[Message]:
    left = [message]
    while left:
        message = left.pop()
        yield message
        for field, held in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                left += held if is_repeated(field) else (held,)


def _strings(message: Message) -> Iterator[str]:
    for field, held in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from held if is_repeated(field) else (held,)
