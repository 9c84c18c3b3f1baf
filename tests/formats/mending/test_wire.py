"""Fields that a parser passes over, wherever they stand: groups, and known fields of another wire type."""

from __future__ import annotations

import random

import onnx
import pytest

from dmlsplit.mending.assembling import assembled
from dmlsplit.mending.fields import LENGTH_DELIMITED, encoded, fields, size_of
from dmlsplit.mending.source import SourceModel, origin
from dmlsplit.system.errors import InputError
from tests.formats.mending.small import five_dimensions, with_branch, written

GRAPH, NODE, ATTRIBUTE, ATTRIBUTE_GRAPH = 7, 1, 5, 6


def key(number, kind):
    return encoded(number << 3 | kind)


def group(number, content=b""):
    return key(number, 3) + content + key(number, 4)


def of_kind(message, kind, content):
    """The fields of a message that are messages or text, with a wire type that is not theirs."""
    return b"".join(key(f.number, kind) + content for f in message.fields if f.type in (f.TYPE_MESSAGE, f.TYPE_STRING))


FOREIGN = {
    "an unknown group": group(1000, b"\x08\x01"),
    "groups in one another": group(1000, group(1, group(1000)) + key(1, 2) + b"\x02\x33\x34"),
    "a known number as a group": group(GRAPH) + group(NODE, b"\x08\x01") + group(ATTRIBUTE),
    "numbers": lambda message: of_kind(message, 0, b"\x07"),
    "8 bytes": lambda message: of_kind(message, 1, b"12345678"),
    "4 bytes": lambda message: of_kind(message, 5, b"1234"),
    "a key of five bytes": b"\xba\xbe\x80\x80\x00\x05hello",
    "a length of five bytes": key(1000, 2) + b"\x85\x80\x80\x80\x00hello",
}


def everywhere(data, foreign, message=onnx.ModelProto.DESCRIPTOR):
    """The message with foreign fields in front of each of its fields and at its end; so are the messages in it."""
    added = foreign(message) if callable(foreign) else foreign
    found = []
    known = {field.number: field.message_type for field in message.fields if field.message_type is not None}
    for field in fields(data, 0, len(data)):
        inside = data[field.content : field.end]
        whole = data[field.start : field.end]
        if field.number in known and field.kind == LENGTH_DELIMITED:
            inside = everywhere(inside, foreign, known[field.number])
            whole = key(field.number, 2) + encoded(len(inside)) + inside
        found += [added, whole]
    return b"".join([*found, added])


@pytest.mark.parametrize("made", [five_dimensions, with_branch])
@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_a_model_is_mended_as_without_them(made, foreign):
    plain = made().SerializeToString()
    data = everywhere(plain, foreign)
    without = onnx.ModelProto.FromString(data)
    without.DiscardUnknownFields()
    assert without == made()
    changed = onnx.ModelProto.FromString(written(data))
    changed.DiscardUnknownFields()
    assert changed == onnx.ModelProto.FromString(written(plain))
    assert len(written(data)) > len(written(plain)) + (len(data) - len(plain)) // 2


def test_versions_are_changed_where_they_are_numbers():
    foreign = key(1, 5) + b"1234" + key(1, 1) + b"12345678" + key(8, 0) + b"\x01"
    data = foreign + five_dimensions().SerializeToString() + foreign
    source = SourceModel(data)
    model = onnx.ModelProto()
    model.CopyFrom(source.model)
    model.ir_version = 9
    model.opset_import[0].version = 16
    parts = b"".join(source.bytes_of(part) for part in assembled(source, model))
    again = onnx.ModelProto.FromString(parts)
    assert (again.ir_version, again.opset_import[0].version) == (9, 16)
    assert parts.startswith(foreign)
    assert parts.endswith(foreign)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (key(9, 3), "has no end"),
        (key(9, 3) + key(8, 4), "ends a group other than"),
        (key(9, 3) + key(8, 3) + key(9, 4), "ends a group other than"),
        (key(9, 4), "has not begun"),
        (key(9, 6), "does not begin a field"),
        (key(9, 2) + b"\x05abc", "ends after its message"),
        (b"\x80" * 11, "has no end"),
    ],
)
def test_what_is_no_message(data, reason):
    with pytest.raises(InputError, match=reason):
        list(fields(data, 0, len(data)))


def test_groups_in_one_another_take_no_stack():
    many = 100_000
    (found,) = fields(key(9, 3) * many + key(9, 4) * many, 0, 2 * many)
    assert (found.start, found.end) == (0, 2 * many)


@pytest.mark.parametrize("seed", range(60))
def test_what_protobuf_reads_is_walked_alike(seed):
    """Bytes are changed at random: where protobuf still reads a model, its nodes are found where they stand, and a
    change of one leaves all other bytes as they were."""
    rng = random.Random(seed)
    data = bytearray(everywhere(with_branch().SerializeToString(), rng.choice(list(FOREIGN.values()))))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    try:
        source = SourceModel(bytes(data))
    except InputError:
        return
    assert list(assembled(source, source.model)) == [(0, len(data))]
    for node in source.model.graph.node:
        assert source.original(node).SerializeToString() == _without_place(source, node)
    if not source.model.graph.node:
        return
    place = rng.randrange(len(source.model.graph.node))
    changed = onnx.ModelProto()
    changed.CopyFrom(source.model)
    span = origin(changed.graph.node[place])
    changed.graph.node[place].doc_string = ""
    parts = assembled(source, changed)
    whole = b"".join(source.bytes_of(part) for part in parts)
    assert len(whole) == size_of(parts)
    assert onnx.ModelProto.FromString(whole).graph.node[:place] == onnx.ModelProto.FromString(data).graph.node[:place]
    assert whole.endswith(bytes(data[_end_of_graph(data, span) :]))


def _without_place(source, node):
    place = origin(node)
    (field,) = fields(source.data, place.start, place.end)
    return onnx.NodeProto.FromString(source.data[field.content : field.end]).SerializeToString()


def _end_of_graph(data, span):
    return next(field.end for field in fields(bytes(data), 0, len(data)) if field.start < span.start < field.end)
