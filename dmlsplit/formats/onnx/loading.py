"""Loads a model without its weights: everything that judging Split nodes needs, but small enough to pass around."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from dmlsplit.formats.arguments import check_source
from dmlsplit.formats.files import AllowedFolders, note_references
from dmlsplit.formats.limits import Limit, LimitError
from dmlsplit.formats.onnx.cycles import check_cycles
from dmlsplit.formats.onnx.protobuf import refill, text
from dmlsplit.formats.onnx.tensors import (
    ReadExternal,
    check_rank,
    external_reader,
    holds_its_elements,
    no_external_data,
)
from dmlsplit.formats.onnx.wire import check_messages
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import open_input, read_at_most

MAX_FILE_BYTES: Final = Limit.ONNX_FILE.most
"""protobuf cannot read a message of 2 GiB; the weights of larger models are external data, which is not read here."""
MAX_VALUE_BYTES: Final = Limit.ONNX_VALUE.most
"""A tensor larger than this has no effect on shapes or lengths; its data is dropped."""
MAX_GRAPHS: Final = Limit.ONNX_GRAPHS.most
MAX_NAME: Final = Limit.ONNX_NAME.most
_UNUSED: Final = ("doc_string", "metadata_props", "quantization_annotation", "training_info")
_OF_NODE: Final = tuple([field.name for field in onnx.NodeProto.DESCRIPTOR.fields])
_CONTAINERS: Final = ("ModelProto", "GraphProto", "FunctionProto", "SparseTensorProto")
"""Messages that may be larger than protobuf can represent; nodes may be too."""
_KEPT: Final = {"TensorProto": ("name", "data_type", "dims"), "AttributeProto": ("name", "type", "t", "g", "graphs")}
"""The fields that are kept in messages above MAX_VALUE_BYTES; other messages keep all fields."""
_WITH_TENSORS: Final = frozenset(
    {
        *("GraphProto", "FunctionProto", "TrainingInfoProto"),
        *("NodeProto", "AttributeProto", "SparseTensorProto", "TensorProto"),
    }
)


def of_source(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, allow_paths: Iterable[str | os.PathLike[str]]
) -> tuple[onnx.ModelProto, ReadExternal]:
    """Returns a model (of a file, of serialized bytes, or the given ModelProto itself) and the function that reads its
    external data. Only a file can have such data, in its folder or in `allow_paths`; for other sources the function
    raises InputError.

    Raises InputError if the source is not a model, OSError if the file cannot be read.
    """
    check_source(source)
    if isinstance(source, onnx.ModelProto):
        return source, no_external_data
    if isinstance(source, bytes):
        return parse(source), no_external_data
    folder = os.path.dirname(os.path.abspath(source))
    return load(source), external_reader(AllowedFolders(folder, allow_paths))


def load(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Returns the model in a file without its external data; the files of that data are noted as inputs, which no
    output may replace. Raises InputError if the file is not a model or is too large, OSError if it cannot be read."""
    with open_input(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise InputError(
                f"{size} bytes are more than a protobuf message can have; save the model with external data"
            )
        data = read_at_most(stream, MAX_FILE_BYTES)
    if data is None:
        raise InputError(f"it is longer than {MAX_FILE_BYTES} bytes")
    model = parse(data)
    if b"location" in data:
        note_references(external_locations(model), path)
    return model


_LFS: Final = b"version https://git-lfs.github.com/spec/"
"""The first bytes of a pointer file. https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""


def parse(data: bytes) -> onnx.ModelProto:
    """Returns the model that `data` serializes. Raises InputError if it is not an ONNX model, or has too many
    messages."""
    if data.startswith(_LFS):
        raise InputError("it is a pointer of Git LFS in place of the model; git lfs pull fetches the model")
    check_messages(data)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise InputError(f"it is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise InputError("it is not an ONNX model: there is no graph")
    return model


def external_locations(model: onnx.ModelProto) -> list[str]:
    """Returns the distinct external data files of all tensors, as the model spells them, in order of appearance."""
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
    """Returns a copy of the model without documentation, in which large tensors have only type and dimensions: their
    data are external, in no file, or missing if they do not fit the dimensions.

    Raises LimitError if names, ranks or the number of graphs exceed their limits, InputError for nodes that depend on
    themselves.
    """
    copy = onnx.ModelProto()
    _copy(model, copy)
    _check_names(copy)
    check_cycles(copy)
    return copy


def _copy(message: Message, copy: Message) -> None:
    """Copies the fields of `message` that judging needs to the empty message `copy`; for a large tensor, all fields
    except the data."""
    kind = message.DESCRIPTOR.name
    sized = message.attribute if kind == "NodeProto" and message.ByteSize() > MAX_VALUE_BYTES else [message]
    if kind not in _CONTAINERS and all(each.ByteSize() <= MAX_VALUE_BYTES for each in sized):
        copy.CopyFrom(message)
        return
    for descriptor, value in message.ListFields():
        name = descriptor.name
        if name in _UNUSED or name not in _KEPT.get(kind, (name,)):
            continue
        if isinstance(value, Message):
            _copy(value, getattr(copy, name))
        elif descriptor.message_type is not None:
            copies = getattr(copy, name)
            if descriptor.message_type.name not in _CONTAINERS and _are_small(value):
                copies.extend(value)
                continue
            for inside in value:
                _copy(inside, copies.add())
        else:
            _put(copy, descriptor, value)
    if isinstance(copy, onnx.TensorProto) and (message.data_location == copy.EXTERNAL or holds_its_elements(message)):
        copy.data_location = onnx.TensorProto.EXTERNAL


def _are_small(messages: Sequence[Message]) -> bool:
    """True if none of the messages is above MAX_VALUE_BYTES, so that `_copy` would copy all their fields."""
    return all(size <= MAX_VALUE_BYTES for size in map(type(messages[0]).ByteSize, messages))


def _check_names(model: onnx.ModelProto) -> None:
    """Raises LimitError if names, ranks or the number of graphs exceed their limits. Changes `model` in place: strings
    of invalid UTF-8, which protobuf refuses in assignments, get backslash escapes, and unused fields are cleared."""
    todo: list[Message] = [model]
    kinds: dict[FieldDescriptor, _Kind] = {}
    graphs = -1  # excludes the model's own graph
    while todo:
        message = todo.pop()
        own = type(message)
        if own is onnx.NodeProto:
            message.ClearField("doc_string")
            if _is_usual(message):
                todo += message.attribute[:]
                continue
        if own is onnx.GraphProto:
            graphs += 1
            if graphs > MAX_GRAPHS:
                raise LimitError(Limit.ONNX_GRAPHS, MAX_GRAPHS)
        elif own is onnx.TensorShapeProto:
            check_rank(len(message.dim))
        elif own is onnx.TensorProto:
            check_rank(len(message.dims))
        for descriptor, value in message.ListFields():
            kind = kinds.get(descriptor)
            if kind is None:  # looked up once, because a model has many messages with few fields
                kind = kinds[descriptor] = _kind(descriptor)
            if kind is _Kind.UNUSED:
                message.ClearField(descriptor.name)
            elif kind is _Kind.MESSAGE:
                todo += (value,) if isinstance(value, Message) else value
            elif kind is _Kind.STRING:
                names = (value,) if isinstance(value, (str, bytes)) else value
                if max(map(len, names)) > MAX_NAME:
                    raise LimitError(Limit.ONNX_NAME, MAX_NAME)
                if bytes in map(type, names):
                    _put(message, descriptor, value)


_STRINGS_OF_NODE: Final = attrgetter(*[name for name in ("name", "op_type", "domain", "overload") if name in _OF_NODE])
_OTHERS_OF_NODE: Final = attrgetter(
    *[
        name
        for name in _OF_NODE
        if name not in ("input", "output", "attribute", "name", "op_type", "domain", "overload")
    ]
)


def _is_usual(node: onnx.NodeProto) -> bool:
    """True for most nodes: all names together are no longer than a name may be, none is invalid UTF-8, and the only
    fields that `_check_names` examines are names and attributes."""
    try:
        names = "".join((*node.input[:], *node.output[:], *_STRINGS_OF_NODE(node)))
    except TypeError:  # bytes
        return False
    return len(names) <= MAX_NAME and not any(_OTHERS_OF_NODE(node))


class _Kind(enum.Enum):
    """How `_check_names` treats a field."""

    UNUSED = enum.auto()
    MESSAGE = enum.auto()
    STRING = enum.auto()
    OTHER = enum.auto()


def _kind(field: FieldDescriptor) -> _Kind:
    if field.name in _UNUSED:
        return _Kind.UNUSED
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _Kind.MESSAGE
    return _Kind.STRING if field.type == FieldDescriptor.TYPE_STRING else _Kind.OTHER


def _put(message: Message, field: FieldDescriptor, value: Any) -> None:
    """Sets a scalar or repeated field of `message` to `value`; in strings, invalid UTF-8 is replaced by backslash
    escapes."""
    put: Callable[[Any], Any] = text if field.type == FieldDescriptor.TYPE_STRING else lambda each: each
    if isinstance(value, (str, bytes, int, float)):
        setattr(message, field.name, put(value))
    else:
        refill(getattr(message, field.name), map(put, value))
