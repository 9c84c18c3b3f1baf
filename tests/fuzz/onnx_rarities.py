"""Changes that give a model what few models have: any field of the schema, deep types and graphs, hidden names,
functions in place of operators, opsets imported twice, tensors whose parts contradict one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto, helper

from dmlsplit.onnxruntime.operators import operators
from tests.fuzz.values import INTEGERS, LOCATIONS, NUMBERS, is_repeated, long_name

if TYPE_CHECKING:
    from tests.fuzz.onnx_mutations import Mutator

DOMAINS: Final = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "f", "own")
ENTRIES: Final = ("location", "offset", "length", "checksum", "basepath", "", "Location", "offset")
VERSIONS: Final = (*range(-1, 15), 2**31, 2**63 - 1)
DEPTHS: Final = (1, 2, 5, 20, 45, 50, 60, 120)
"""Of types and graphs; protobuf reads 100 messages in one another, and two or three make a level."""
MOST_LEVELS: Final = 3
"""Of messages in a message that is made of nothing."""


def fill(mutator: Mutator) -> None:
    """A message gets another one in any of its fields, made of nothing: annotations, metadata, devices, types."""
    message = mutator.pick()
    fields = [field for field in message.DESCRIPTOR.fields if field.message_type is not None]
    if fields and mutator.may_grow():
        _fill(mutator, _added(message, mutator.rng.choice(fields)), MOST_LEVELS)


def _fill(mutator: Mutator, message: Message, levels: int) -> None:
    """Gives a message some of its fields."""
    for field in message.DESCRIPTOR.fields:
        if mutator.rng.random() < 0.5:
            continue
        if field.message_type is not None:
            if levels:
                _fill(mutator, _added(message, field), levels - 1)
            continue
        try:
            if is_repeated(field):
                getattr(message, field.name).append(mutator.value_of(field))
            else:
                setattr(message, field.name, mutator.value_of(field))
        except (ValueError, TypeError):  # a number that the field has no room for
            continue


def _added(message: Message, field: FieldDescriptor) -> Message:
    """The message that one of its fields holds, a new one where it is a list."""
    held = getattr(message, field.name)
    made: Message = held.add() if is_repeated(field) else held
    made.SetInParent()
    return made


def mistype(mutator: Mutator) -> None:
    """An attribute says that it is of another type, has two values, or has one name with another one."""
    attribute = mutator.pick(AttributeProto)
    if not isinstance(attribute, AttributeProto):
        return
    what = mutator.rng.random()
    if what < 0.4:
        attribute.type = mutator.rng.choice(AttributeProto.AttributeType.values())
    elif what < 0.7:
        other = mutator.like(attribute)
        other.name = attribute.name
        attribute.MergeFrom(other)
    else:
        node = mutator.pick(onnx.NodeProto)
        if isinstance(node, onnx.NodeProto):
            copy = AttributeProto()
            copy.CopyFrom(attribute)  # of a node that may be inside the attribute
            node.attribute.append(copy)


def operate(mutator: Mutator) -> None:
    """A node of any operator that ONNX Runtime has been asked about."""
    node = mutator.pick(onnx.NodeProto)
    if isinstance(node, onnx.NodeProto):
        domain, _, name = mutator.rng.choice(sorted(operators())).rpartition(".")
        node.op_type, node.domain = name, domain


def shadow(mutator: Mutator) -> None:
    """A function has the name of an operator, or of another function with another overload."""
    rng = mutator.rng
    nodes = [node for node in mutator.messages(onnx.NodeProto) if isinstance(node, onnx.NodeProto)]
    if not nodes:
        return
    node = rng.choice(nodes)
    domain, overload = rng.choice(DOMAINS), rng.choice(("", "", "one", mutator.name()))
    inner = helper.make_node(rng.choice((node.op_type, "Relu")), list(node.input), list(node.output))
    imports = [helper.make_opsetid(each, rng.choice((1, 17))) for each in {"", domain}]
    made = helper.make_function(domain, node.op_type, list(node.input), list(node.output), [inner], imports)
    made.overload = overload
    mutator.model.functions.append(made)
    if rng.random() < 0.7:
        node.domain, node.overload = domain, rng.choice((overload, overload, "two"))
    if rng.random() < 0.7:
        mutator.model.opset_import.append(helper.make_opsetid(domain, 1))


def import_again(mutator: Mutator) -> None:
    """A domain is imported twice, under its other name, or not at all; versions of the IR that there are not."""
    rng, model = mutator.rng, mutator.model
    owner = rng.choice((model, model, *model.functions))
    what = rng.random()
    if what < 0.2:
        del owner.opset_import[:]
    elif what < 0.7:
        version = rng.choice((1, 7, 13, 18, 21, 23, 26, rng.choice(INTEGERS)))
        owner.opset_import.insert(rng.randint(0, len(owner.opset_import)), onnx.OperatorSetIdProto(version=version))
        rng.choice(owner.opset_import).domain = rng.choice(DOMAINS)
    else:
        model.ir_version = rng.choice(VERSIONS)


def hide(mutator: Mutator) -> None:
    """A graph inside a node gives, takes or keeps a name of a graph around it, or reads one of a graph inside."""
    rng = mutator.rng
    graphs = [graph for graph in mutator.messages(onnx.GraphProto) if isinstance(graph, onnx.GraphProto)]
    names = [name for graph in graphs for name in _names(graph)]
    graph = rng.choice(graphs or [onnx.GraphProto()])
    held = rng.choice((graph.input, graph.output, graph.initializer, graph.value_info, graph.node))
    if not names or not len(held):
        return
    item, name = rng.choice(held), rng.choice(names)
    if not isinstance(item, onnx.NodeProto):
        item.name = name
    elif len(ends := rng.choice((item.input, item.output))):
        ends[rng.randrange(len(ends))] = name


def _names(graph: onnx.GraphProto) -> list[str]:
    given = [name for node in graph.node for name in node.output]
    return [*given, *(each.name for each in (*graph.input, *graph.initializer, *graph.output))]


def deepen(mutator: Mutator) -> None:
    """A type, or a graph, is within so many others."""
    rng = mutator.rng
    depth = rng.choice(DEPTHS)
    if rng.random() < 0.6:
        info = mutator.pick(onnx.ValueInfoProto)
        if isinstance(info, onnx.ValueInfoProto):
            for _ in range(depth):
                within = onnx.TypeProto()
                held = rng.choice((within.sequence_type, within.optional_type))
                held.elem_type.CopyFrom(info.type)
                info.type.CopyFrom(within)
        return
    graph = mutator.pick(onnx.GraphProto)
    while isinstance(graph, onnx.GraphProto) and depth and mutator.may_grow():
        inside = onnx.GraphProto()
        inside.CopyFrom(graph)
        del graph.node[:]
        made = graph.node.add(op_type="If", input=["c"], output=[each.name for each in inside.output])
        made.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.CopyFrom(inside)
        depth -= 1


def declare_type(mutator: Mutator) -> None:
    """A value is a sequence, an optional, a map, a sparse tensor or a tensor of another type; or is declared twice."""
    rng, info = mutator.rng, mutator.pick(onnx.ValueInfoProto)
    if not isinstance(info, onnx.ValueInfoProto):
        return
    held = onnx.TypeProto()
    held.CopyFrom(info.type)
    kind = rng.choice(("tensor", "sequence", "optional", "map", "sparse", "again"))
    if kind == "sequence":
        info.type.sequence_type.elem_type.CopyFrom(held)
    elif kind == "optional":
        info.type.optional_type.elem_type.CopyFrom(held)
    elif kind == "map":
        info.type.map_type.key_type = rng.choice(TensorProto.DataType.values())
        info.type.map_type.value_type.CopyFrom(held)
    elif kind == "sparse":
        info.type.sparse_tensor_type.elem_type = rng.choice(TensorProto.DataType.values())
    elif kind == "tensor":
        info.type.tensor_type.elem_type = rng.choice((*TensorProto.DataType.values(), 99, -1))
    else:
        graph = mutator.pick(onnx.GraphProto)
        if isinstance(graph, onnx.GraphProto):
            again = rng.choice((graph.input, graph.output, graph.value_info)).add()
            again.CopyFrom(info)
            again.type.tensor_type.elem_type = rng.choice(TensorProto.DataType.values())


def contradict(mutator: Mutator) -> None:
    """A tensor's dimensions, type and data do not go together; or it is text."""
    rng, tensor = mutator.rng, mutator.pick(TensorProto)
    if not isinstance(tensor, TensorProto):
        return
    what = rng.choice(("dims", "type", "data", "both", "segment", "text"))
    if what == "dims":
        sizes = (-1, 0, 1, 2, 3, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))
        tensor.dims[:] = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 2, 3, 9, 100)))]
    elif what == "type":
        tensor.data_type = rng.choice((*TensorProto.DataType.values(), 99, -1, 2**31 - 1))
    elif what == "data":
        tensor.raw_data = rng.randbytes(rng.choice((0, 1, 7, 8, 9, 16, 1000)))
    elif what == "both":
        tensor.int64_data.extend([1, 2])
        tensor.float_data.extend([1.0])
        tensor.data_location = rng.choice((TensorProto.DEFAULT, TensorProto.EXTERNAL))
    elif what == "segment":
        tensor.segment.begin, tensor.segment.end = rng.choice((0, 5, -1)), rng.choice((0, 2, 2**62))
    else:
        tensor.data_type = TensorProto.STRING
        tensor.string_data.append(rng.choice((b"", b"a", b"\xff\xfe", b"\0", long_name(rng).encode())))


def misplace(mutator: Mutator) -> None:
    """What is said of data in another file is said twice, by other keys, or by numbers that are none."""
    rng, tensor = mutator.rng, mutator.pick(TensorProto)
    if isinstance(tensor, TensorProto):
        tensor.data_location = TensorProto.EXTERNAL
        for _ in range(rng.choice((1, 1, 2, 30))):
            key = rng.choice(ENTRIES)
            text = rng.choice(LOCATIONS) if key == "location" else rng.choice((*NUMBERS, str(rng.choice(INTEGERS))))
            tensor.external_data.insert(
                rng.randint(0, len(tensor.external_data)), onnx.StringStringEntryProto(key=key, value=text)
            )


RARITIES: Final[tuple[Callable[[Mutator], None], ...]] = (
    *(fill,) * 3,
    mistype,
    *(operate,) * 2,
    shadow,
    import_again,
    hide,
    deepen,
    declare_type,
    contradict,
    misplace,
)
