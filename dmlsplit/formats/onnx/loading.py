"""From a file to a model without its weights: what judging Split nodes takes, small enough to be handed around."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from dmlsplit.errors import InputError
from dmlsplit.formats.files import AllowedFolders, note_reference
from dmlsplit.formats.limits import Limit, LimitError
from dmlsplit.formats.onnx.tensors import ReadExternal, check_rank, external_reader, no_external_data, text
from dmlsplit.formats.onnx.wire import check_messages
from dmlsplit.formats.streams import read_at_most

MAX_FILE_BYTES: Final = Limit.ONNX_FILE.most
"""protobuf reads no message of 2 GiB; the weights of larger models are external data, which is not read here."""
MAX_VALUE_BYTES: Final = Limit.ONNX_VALUE.most
MAX_NAME: Final = Limit.ONNX_NAME.most
_UNUSED: Final = ("doc_string", "metadata_props", "quantization_annotation")
"""A tensor above this has no bearing on shapes or lengths; its data is left out."""


def of_source(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, allow_paths: Iterable[str | os.PathLike[str]]
) -> tuple[onnx.ModelProto, ReadExternal]:
    """The model of a file, of its bytes or as it is, and how its external data is read: that of a file only, from its
    folder and `allow_paths`. InputError for what is no model; OSError."""
    if isinstance(source, onnx.ModelProto):
        return source, no_external_data
    if isinstance(source, bytes):
        return parse(source), no_external_data
    folder = os.path.dirname(os.path.abspath(source))
    return load(source), external_reader(AllowedFolders(folder, allow_paths))


def load(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """The model of a file, without external data, which is noted as being there. InputError for what is no model;
    OSError."""
    with open(path, "rb") as stream:
        status = os.fstat(stream.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size > MAX_FILE_BYTES:
            message = f"{status.st_size} bytes are more than a protobuf message holds; save it with external data"
            raise InputError(message)
        data = read_at_most(stream, MAX_FILE_BYTES)
    if data is None:
        raise InputError(f"it is longer than {MAX_FILE_BYTES} bytes")
    model = parse(data)
    if b"location" in data:
        note_external_data(model, path)
    return model


def parse(data: bytes) -> onnx.ModelProto:
    """The model of serialized bytes. InputError for what is none, or has too many parts."""
    check_messages(data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise InputError(f"it is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise InputError("it is not an ONNX model: there is no graph")
    return model


_WITH_TENSORS: Final = {
    "GraphProto",
    "FunctionProto",
    "TrainingInfoProto",
    "NodeProto",
    "AttributeProto",
    "SparseTensorProto",
    "TensorProto",
}


def note_external_data(model: onnx.ModelProto, path: str | os.PathLike[str]) -> None:
    """Notes the external data of the model in a file, which no output is to replace."""
    folder = os.path.dirname(os.path.abspath(path))
    for location in external_locations(model):
        note_reference(os.path.join(folder, location), os.fspath(path))


def external_locations(model: onnx.ModelProto) -> list[str]:
    """The files that hold external data of any tensor, as the model names them, each once."""
    return list(dict.fromkeys(filter(None, _locations(model))))


def _locations(message: Message) -> Iterator[str]:
    if isinstance(message, onnx.TensorProto):
        yield from (text(entry.value) for entry in message.external_data if entry.key == "location")
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None and descriptor.message_type.name in _WITH_TENSORS:
            for inside in [value] if isinstance(value, Message) else value:
                yield from _locations(inside)


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large tensors have type and dimensions only, without documentation.

    LimitError for names and ranks beyond all measure.
    """
    copy = onnx.ModelProto()
    _copy_except(model, copy, ("graph", "functions", "training_info", "metadata_props", "doc_string"))
    for function in model.functions:
        added = copy.functions.add()
        _copy_except(function, added, ("node",))
        _copy_nodes(function.node, added.node)
    _copy_graph(model.graph, copy.graph)
    _check_names(copy)
    return copy


def _check_names(model: onnx.ModelProto) -> None:
    """Checks names and ranks, and puts backslash escapes for what is no UTF-8: protobuf reads such strings, as bytes,
    but takes them nowhere."""
    todo: list[Message] = [model]
    while todo:
        message = todo.pop()
        if isinstance(message, onnx.TensorShapeProto):
            check_rank(len(message.dim))
        elif isinstance(message, onnx.TensorProto):
            check_rank(len(message.dims))
        for descriptor, value in message.ListFields():
            if descriptor.name in _UNUSED:
                message.ClearField(descriptor.name)
            elif isinstance(value, Message):
                todo.append(value)
            elif descriptor.type == FieldDescriptor.TYPE_MESSAGE:
                todo += value
            elif descriptor.type == FieldDescriptor.TYPE_STRING:
                _check_strings(message, descriptor.name, value)


def _check_strings(message: Message, field: str, value: Any) -> None:
    """The same for one field of a message: a string, or a list of them."""
    is_one = isinstance(value, (str, bytes))
    names = [value] if is_one else value
    if any(len(name) > MAX_NAME for name in names):
        raise LimitError(Limit.ONNX_NAME, MAX_NAME)
    if not any(isinstance(name, bytes) for name in names):
        return
    if is_one:
        setattr(message, field, text(value))
    else:
        value[:] = [text(name) for name in value]


def _copy_except(message: Message, copy: Message, skipped: Container[str]) -> None:
    """Copies the fields of a message but for some."""
    for descriptor, value in message.ListFields():
        name = descriptor.name
        if name in skipped:
            continue
        if isinstance(value, Message):
            getattr(copy, name).CopyFrom(value)
        elif isinstance(value, (str, bytes)):
            setattr(copy, name, text(value) if descriptor.type == FieldDescriptor.TYPE_STRING else value)
        elif isinstance(value, (int, float)):
            setattr(copy, name, value)
        else:
            is_text = descriptor.type == FieldDescriptor.TYPE_STRING
            getattr(copy, name).extend(map(text, value) if is_text else value)


def _copy_graph(graph: onnx.GraphProto, copy: onnx.GraphProto) -> None:
    _copy_except(graph, copy, ("initializer", "sparse_initializer", "node"))
    for tensor in graph.initializer:
        _copy_tensor(tensor, copy.initializer.add())
    for sparse in graph.sparse_initializer:
        added = copy.sparse_initializer.add()
        added.dims.extend(sparse.dims)
        _copy_tensor(sparse.values, added.values)
        _copy_tensor(sparse.indices, added.indices)
    _copy_nodes(graph.node, copy.node)


def _copy_nodes(nodes: Iterable[onnx.NodeProto], copies: Any) -> None:
    for node in nodes:
        if all(attribute.ByteSize() <= MAX_VALUE_BYTES for attribute in node.attribute):
            copies.add().CopyFrom(node)
            continue
        copy = copies.add()
        _copy_except(node, copy, ("attribute",))
        for attribute in node.attribute:
            _copy_attribute(attribute, copy.attribute.add())


def _copy_attribute(attribute: onnx.AttributeProto, copy: onnx.AttributeProto) -> None:
    if attribute.ByteSize() <= MAX_VALUE_BYTES:
        copy.CopyFrom(attribute)
        return
    copy.name, copy.type = text(attribute.name), attribute.type
    if attribute.HasField("t"):
        _copy_tensor(attribute.t, copy.t)
    if attribute.HasField("g"):
        _copy_graph(attribute.g, copy.g)
    for graph in attribute.graphs:
        _copy_graph(graph, copy.graphs.add())


def _copy_tensor(tensor: onnx.TensorProto, copy: onnx.TensorProto) -> None:
    if tensor.ByteSize() <= MAX_VALUE_BYTES:
        copy.CopyFrom(tensor)
        return
    copy.name, copy.data_type = text(tensor.name), tensor.data_type
    copy.dims.extend(tensor.dims)
    copy.data_location = onnx.TensorProto.EXTERNAL
