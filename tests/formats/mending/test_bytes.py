"""What is not touched stays byte for byte."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.formats import onnx as front_end
from dmlsplit.mending import mended_model
from dmlsplit.mending.assembling import assembled
from dmlsplit.mending.fields import Span, fields, joined
from dmlsplit.mending.source import SourceModel, mapped, origin
from dmlsplit.system.errors import InputError, NotLegalizedError
from dmlsplit.targets.target import find_target
from tests.effort import calls
from tests.formats.mending.small import five_dimensions, with_branch, written
from tests.models import graph, model, node, value

UNKNOWN = b"\xc2\x3e\x05hello"
"""Field 1000, which no message of ONNX has."""


def test_a_model_with_nothing_to_mend_is_the_same():
    data = five_dimensions().SerializeToString() + UNKNOWN
    assert front_end.legalize(data, feature_level="3_0") == (data, ())


def test_unknown_fields_stay_everywhere():
    made = five_dimensions(node("Relu", ["a"], ["c"], name="kept"))
    parts = made.graph.SerializeToString() + UNKNOWN
    made.ClearField("graph")
    kept = node("Relu", ["a"], ["c"], name="kept").SerializeToString()
    parts = parts.replace(kept, kept)  # the node itself is as it was
    data = made.SerializeToString() + b"\x3a" + bytes([len(parts) & 127 | 128, len(parts) >> 7]) + parts + UNKNOWN
    result = written(data)
    assert result.count(UNKNOWN) == 2
    assert kept in result


def test_what_is_around_a_changed_node_stays():
    made = five_dimensions(node("Relu", ["a"], ["c"]), value_info=[value("a", [1, 2, 2, 2, 2])])
    made.graph.initializer.append(numpy_helper.from_array(np.arange(1000, dtype=np.float32), "unused"))
    helper.set_model_props(made, {"key": "value"})
    result = onnx.load_from_string(written(made.SerializeToString()))
    del made.graph.node[0]
    kept = [n for n in result.graph.node if n.op_type == "Relu"]
    del result.graph.node[:]
    result.graph.node.extend(kept)
    assert result == made


@pytest.mark.parametrize("target", [{"feature_level": "2_0"}, {"onnxruntime": "1.10.0"}], ids=["level", "opset"])
def test_nothing_but_nodes_and_versions_is_another(target):
    made = five_dimensions()
    made.MergeFrom(onnx.ModelProto(producer_name="p", domain="d", model_version=7, doc_string="s"))
    helper.set_model_props(made, {"key": "value"})
    made.graph.metadata_props.add(key="of", value="the graph")
    annotation = made.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    sparse = [numpy_helper.from_array(np.ones(2, np.float32), "sparse"), numpy_helper.from_array(np.array([0, 3]), "i")]
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(*sparse, [10]))
    weights = numpy_helper.from_array(np.ones(30000, np.float32), "k")
    first = graph([node("Constant", [], ["k"], value=weights)], [], (value("k", [30000]),))
    made.training_info.add().initialization.CopyFrom(first)
    data = made.SerializeToString() + UNKNOWN
    result = written(data, **target)
    assert result != data
    old, new = map(onnx.load_from_string, (data, result))
    for each in (old, new):
        each.graph.ClearField("node")
        each.ClearField("opset_import")
    assert old.SerializeToString(deterministic=True) == new.SerializeToString(deterministic=True)


def test_a_written_node_says_what_wrote_it():
    result = onnx.load_from_string(written(five_dimensions().SerializeToString()))
    assert [n.op_type for n in result.graph.node][-3:] == ["Split", "Reshape", "Reshape"]
    assert all("dmlsplit: merge-dimensions at split for feature level 2_0" in n.doc_string for n in result.graph.node)
    (split,) = [n for n in result.graph.node if n.op_type == "Split"]
    assert split.name == "split"
    assert split.doc_string.startswith("mine\n")


def test_graphs_in_nodes_are_changed_where_they_stand():
    made = with_branch()
    result = onnx.load_from_string(written(made.SerializeToString()))
    branches = {a.name: a.g for a in result.graph.node[1].attribute}
    old = {a.name: a.g for a in made.graph.node[1].attribute}
    assert branches["else_branch"] == old["else_branch"]
    assert branches["then_branch"].doc_string == "the inner graph"
    assert [n.op_type for n in branches["then_branch"].node if n.op_type in ("Reshape", "Split", "Relu")] == [
        *("Reshape", "Split", "Reshape", "Reshape", "Relu")
    ]
    assert result.graph.node[0] == made.graph.node[0]


def test_the_way_into_a_graph_is_measured_anew():
    """All lengths are right: every field of the result ends within its message."""
    result = written(with_branch().SerializeToString())
    list(fields(result, 0, len(result)))
    onnx.checker.check_model(onnx.load_from_string(result), full_check=True)


def test_nodes_know_where_they_stood():
    data = with_branch().SerializeToString()
    source = SourceModel(data)
    for made in source.model.graph.node:
        place = origin(made)
        assert place is not None
        assert onnx.GraphProto.FromString(data[place.start : place.end]).node[0].op_type == made.op_type
        assert source.original(made).op_type == made.op_type
    assert assembled(source, source.model) == [Span(0, len(data))]


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 2, 0], [2, 1, 0], [0, 2], [1], []])
def test_any_order_of_nodes_can_be_written(order):
    nodes = [node("Relu", ["x"], [f"y{i}"], name=str(i)) for i in range(3)]
    source = SourceModel(model(nodes, [value("x", [1])], ("y0",)).SerializeToString())
    changed = onnx.ModelProto()
    changed.CopyFrom(source.model)
    del changed.graph.node[:]
    changed.graph.node.extend(source.model.graph.node[i] for i in order)
    result = onnx.load_from_string(b"".join(map(source.bytes_of, assembled(source, changed))))
    assert [n.name for n in result.graph.node] == [str(i) for i in order]


def test_a_graph_in_two_pieces_is_refused():
    made = five_dimensions()
    data = made.SerializeToString()
    with pytest.raises(InputError, match="in 2 pieces"):
        front_end.legalize(data + onnx.ModelProto(graph=graph([], [])).SerializeToString(), feature_level="2_0")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], []),
        ([b"", Span(3, 3)], []),
        ([Span(0, 2), Span(2, 2), Span(2, 5)], [Span(0, 5)]),
        ([Span(0, 2), b"", Span(2, 5), b"a", b"", b"b"], [Span(0, 5), b"ab"]),
        ([b"a", Span(4, 4), b"b", Span(0, 2), Span(3, 5)], [b"ab", Span(0, 2), Span(3, 5)]),
    ],
)
def test_parts_are_joined(parts, expected):
    assert joined(parts) == expected


def test_new_parts_are_joined_once():
    """Appended one by one, these would be copied some hours long."""
    assert joined([b"x" * 100] * 10**6) == [b"x" * 10**8]


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_half_a_model_is_no_model(cut):
    with pytest.raises(InputError, match="is not an ONNX model"):
        front_end.legalize(five_dimensions().SerializeToString()[:-cut], feature_level="2_0")


def test_weights_are_not_read(tmp_path):
    """Not one byte of a large weight gets into the model that is worked with."""
    made = five_dimensions()
    made.graph.initializer.append(numpy_helper.from_array(np.ones(1 << 20, np.float32), "large"))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with mapped(tmp_path / "m.onnx") as data:
        source = SourceModel(data)
        (large,) = [t for t in source.model.graph.initializer if t.name == "large"]
        assert (large.dims, large.data_type) == ([1 << 20], TensorProto.FLOAT)
        assert source.model.ByteSize() < 1000


def file_of(path, made, size):
    """A file of that many bytes: a model with a weight that fills it, of which nothing is written."""
    weight = onnx.TensorProto(name="weight", data_type=TensorProto.UINT8, dims=[size]).SerializeToString()
    graph = made.graph.SerializeToString()
    rest = onnx.ModelProto()
    rest.CopyFrom(made)
    rest.ClearField("graph")
    head = rest.SerializeToString()
    keys = 3 * 6  # of the graph, the tensor and its data: a byte, and five of length
    data = size - len(head) - len(graph) - len(weight) - keys
    tensor = len(weight) + 6 + data
    with open(path, "wb") as stream:
        stream.write(head + _key(7, len(graph) + 6 + tensor) + graph + _key(5, tensor) + weight + _key(9, data))
        stream.truncate(size)


def _key(number, length):
    """A field's key with its length in five bytes, whatever it is."""
    return bytes([number << 3 | 2, *(length >> 7 * i & 127 | (128 if i < 4 else 0) for i in range(5))])


@pytest.mark.parametrize(
    ("size", "reason"),
    [((1 << 31) - 100, "it would have"), ((1 << 31) + 100, "more than a protobuf message can have")],
    ids=["grows", "is"],
)
def test_a_file_beyond_what_protobuf_holds_is_refused(tmp_path, size, reason):
    file_of(tmp_path / "m.onnx", five_dimensions(), size)
    with pytest.raises((NotLegalizedError, InputError), match=reason):
        front_end.legalize(tmp_path / "m.onnx", feature_level="2_0")


def test_a_file_of_two_gigabytes_is_mended(tmp_path):
    file_of(tmp_path / "m.onnx", five_dimensions(), (1 << 31) - 10000)
    with mended_model(tmp_path / "m.onnx", find_target(feature_level="2_0")) as found:
        assert len(found.changes) == 1
        assert 0 < found.size - ((1 << 31) - 10000) < 2000


def test_external_data_may_be_of_any_size(tmp_path):
    """The lengths of the Split lie behind three gigabytes."""
    made = five_dimensions()
    (lengths,) = made.graph.initializer
    values = numpy_helper.to_array(lengths).tobytes()
    lengths.ClearField("int64_data")
    lengths.ClearField("raw_data")
    lengths.data_location = TensorProto.EXTERNAL
    for key, given in (("location", "w.bin"), ("offset", str(3 << 30)), ("length", "16")):
        lengths.external_data.add(key=key, value=given)
    with open(tmp_path / "w.bin", "wb") as stream:
        stream.seek(3 << 30)
        stream.write(values)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    result = onnx.load_from_string(front_end.legalize(tmp_path / "m.onnx", feature_level="2_0").model)
    assert "Reshape" in [n.op_type for n in result.graph.node]
    assert list(result.graph.initializer) == list(made.graph.initializer)


def test_work_is_linear_in_the_nodes():
    def work(count):
        nodes = [node("Split", [f"x{i}", "l"], [f"x{i + 1}", f"y{i}"], axis=1, name=f"s{i}") for i in range(count)]
        shape = [1, 4 * 2**count, 1, 1, 1]
        made = []
        for i, one in enumerate(nodes):
            del one.input[1:]
            made.append(one)
            shape[1] = 4 << (count - i)
        data = model(made, [value("x0", [1, 4 << 20, 1, 1, 1])], ("y0",), opset=13, ir_version=8).SerializeToString()
        return calls(lambda: front_end.legalize(data, feature_level="2_0"))

    work(2)
    one, two = work(8), work(16)
    assert two < 2.6 * one
