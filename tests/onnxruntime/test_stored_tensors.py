"""dmlsplit.onnxruntime.stored_tensors and sparse_constants. Each model was asked of 1.18.0, 1.22.0, 1.23.2, 1.24.4 and
1.30.0."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from dmlsplit.formats.onnx.loading import MAX_VALUE_BYTES
from dmlsplit.onnxruntime import session
from tests import models
from tests.models import BOOL, FLOAT, FLOAT16, INT64, array, graph, ints, node, value

EIGHT = 8
model = partial(models.model, ir_version=8)
STRING = TensorProto.STRING


def tensor(count, raw=None, kind=FLOAT, **fields):
    """The constant w of `count` elements, with these data."""
    made = TensorProto(name="w", data_type=kind, dims=[count] if isinstance(count, int) else count)
    if raw is not None:
        made.raw_data = bytes(raw)
    for name, values in fields.items():
        getattr(made, name).extend(values)
    return made


def in_file(count=(2, 3), **entries):
    made = tensor(count)
    made.data_location = TensorProto.EXTERNAL
    for key, entry in entries.items():
        made.external_data.add(key=key, value=str(entry))
    return made


def concat(constant, more=()):
    """Concat is on DirectML, in a fused graph."""
    kind, count = constant.data_type, constant.dims[0]
    joined = node("Concat", ["x", "w"], ["a"], axis=0, name="c")
    return model([joined], [value("x", [3], kind)], [value("a", [3 + count], kind)], 17, [constant, *more])


def created(made, version="1.24.4"):
    return session(made.SerializeToString(), version).created


def message(made, version="1.24.4"):
    failure = session(made.SerializeToString(), version).failure
    return failure and failure.message


@pytest.mark.parametrize(
    ("constant", "fits"),
    [
        (tensor(EIGHT, 32), True),
        (tensor(EIGHT, 28), False),
        (tensor(EIGHT, 36), False),
        (tensor(EIGHT, float_data=[1] * 8), True),
        (tensor(EIGHT, float_data=[1] * 7), False),
        (tensor(EIGHT, int32_data=[1] * 8), False),
        (tensor(EIGHT), False),
        (tensor(EIGHT, 0, float_data=[1] * 8), False),
        (tensor(EIGHT, 32, int32_data=[1] * 3), True),
        (tensor(EIGHT, int32_data=[1] * 8, kind=FLOAT16), True),
        (tensor(EIGHT, int32_data=[1] * 7, kind=FLOAT16), False),
        (tensor(EIGHT, 56, INT64), False),
        (tensor(0), True),
        (tensor(0, 0), True),
        (tensor(0, 4), False),
        (tensor(2, string_data=[b"a", b"b"], kind=STRING), True),
        (tensor(2, string_data=[b"a"], kind=STRING), False),
        (tensor(2, 2, string_data=[b"a", b"b"], kind=STRING), False),
    ],
    ids=lambda given: str(given).replace("\n", " ") if isinstance(given, TensorProto) else str(given),
)
def test_a_constant_has_the_elements_of_its_dimensions(constant, fits):
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        assert created(concat(constant), version) is fits


def test_the_failure_names_the_constant():
    assert message(concat(tensor(EIGHT, 28))) == "w has data that do not fit its type FLOAT and dimensions [8]"


def test_of_larger_constants_directml_copies_what_there_is():
    """Up to 1.22.0; newer versions check 128 bytes and more. Whether less is read is not known here."""
    for version, at_31, at_32 in (("1.22.0", None, None), ("1.23.2", None, False), ("1.30.0", None, False)):
        assert created(concat(tensor(31, 120)), version) is at_31
        assert created(concat(tensor(32, 124)), version) is at_32
        assert created(concat(tensor(32, 128)), version) is True


def test_the_cpu_reads_every_element():
    made = model([node("Det", ["w"], ["a"])], [], [value("a", [2])], 17, [tensor([2, 8, 8], 508)])
    assert created(made, "1.18.0") is False
    made = model([node("Acosh", ["w"], ["a"])], [], [value("a", [31])], 17, [tensor(31, 120)])
    assert created(made, "1.18.0") is False


def test_data_that_are_dropped_because_they_are_large_are_counted_first():
    count = MAX_VALUE_BYTES
    assert created(concat(tensor(count, 4 * count))) is True
    assert created(concat(tensor(count, 4 * count - 4))) is False
    assert created(concat(tensor(count, 4 * count - 4)), "1.22.0") is None


def test_what_nothing_reads_is_not_checked():
    unread = tensor(EIGHT, 28)
    unread.name = "u"
    assert created(concat(tensor(EIGHT, 32), [unread])) is True
    made = concat(tensor(EIGHT, 32), [unread])
    made.graph.output.append(value("u", [EIGHT]))
    assert created(made) is False


def test_of_two_constants_with_one_name_the_last_counts():
    right, wrong = tensor(EIGHT, 32), tensor(EIGHT, 28)
    assert created(concat(right, [wrong])) is False
    assert created(concat(wrong, [right])) is True


def test_a_constant_node_and_one_in_a_function():
    nodes = [node("Constant", [], ["w"], value=tensor(EIGHT, 28)), node("Concat", ["x", "w"], ["a"], axis=0)]
    inputs, outputs = [value("x", [3])], [value("a", [11])]
    assert created(model(nodes, inputs, outputs, 17)) is False
    function = onnx.helper.make_function("d", "f", ["x"], ["a"], nodes, [onnx.helper.make_opsetid("", 17)])
    call = node("f", ["x"], ["a"], domain="d")
    assert created(model([call], inputs, outputs, 17, functions=[function], domains=["d"])) is False


def branches(constant, condition=None):
    """An If whose then_branch reads the constant."""
    count = constant.dims[0]
    outputs = [value("o", [3 + count])]
    reads = graph([node("Concat", ["x", "w"], ["o"], axis=0)], [], outputs, [constant])
    other = graph([node("Concat", ["x", "v"], ["o"], axis=0)], [], outputs, {"v": np.zeros(count, np.float32)})
    chosen = [] if condition is None else [array("c", condition)]
    inputs = [value("x", [3]), *([] if chosen else [value("c", [], BOOL)])]
    made = node("If", ["c"], ["a"], then_branch=reads, else_branch=other)
    return model([made], inputs, [value("a", [3 + count])], 17, chosen)


def test_constants_of_branches():
    for condition in (None, True):
        assert created(branches(tensor(3, 8), condition)) is None
        assert created(branches(tensor(100, 396), condition)) is False
        assert created(branches(tensor(100, 396), condition), "1.22.0") is None
    assert created(branches(tensor(3, 8), False)) is True


@pytest.mark.parametrize("kind", [TensorProto.UNDEFINED, 99])
def test_every_constant_has_a_type(kind):
    unread = tensor(EIGHT, 28, kind)
    unread.name = "u"
    for version in ("1.18.0", "1.30.0"):
        found = session(concat(tensor(EIGHT, 32), [unread]).SerializeToString(), version)
        assert found.created is False
        assert found.failure.message == "the constant u has no element type: the model is not loaded"


FILES = {
    "right": ({"location": "w.bin"}, True),
    "in a folder": ({"location": "sub/../w.bin"}, True),
    "checksum": ({"location": "w.bin", "checksum": "ab"}, True),
    "prepacked": ({"location": "w.bin", "prepacked_0": "key|0|4|"}, True),
    "no length": ({"location": "w.bin", "length": 0}, True),
    "missing": ({"location": "none.bin"}, False),
    "short": ({"location": "short.bin"}, False),
    "other length": ({"location": "w.bin", "length": 20}, False),
    "longer": ({"location": "w.bin", "length": 28}, False),
    "beyond the end": ({"location": "w.bin", "offset": 12}, False),
    "negative offset": ({"location": "w.bin", "offset": -4}, False),
    "offset in words": ({"location": "w.bin", "offset": "one"}, False),
    "empty offset": ({"location": "w.bin", "offset": ""}, False),
    "length in words": ({"location": "w.bin", "length": "24b"}, False),
    "other key": ({"location": "w.bin", "size": 24}, False),
    "empty location": ({"location": ""}, False),
    "no location": ({"offset": 0}, False),
}


@pytest.mark.parametrize(("entries", "right"), FILES.values(), ids=FILES)
def test_data_in_a_file(tmp_path, entries, right):
    (tmp_path / "w.bin").write_bytes(bytes(32))
    (tmp_path / "sub").mkdir()
    (tmp_path / "short.bin").write_bytes(bytes(20))
    made = model([node("Add", ["x", "w"], ["a"])], [value("x", [2, 3])], [value("a", [2, 3])], 17, [in_file(**entries)])
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    for version in ("1.18.0", "1.24.4", "1.30.0"):
        found = session(path, version)
        assert found.created is right
        assert right or found.failure.message.startswith("w has ")


def test_a_file_outside_the_folder_of_the_model(tmp_path):
    (tmp_path / "out.bin").write_bytes(bytes(24))
    (tmp_path / "m").mkdir()
    for location in ("../out.bin", "m/../../out.bin", "C:/out.bin"):
        entries = {"location": location}
        made = model([node("Add", ["x", "w"], ["a"])], [value("x", [2, 3])], ["a"], 17, [in_file(**entries)])
        path = tmp_path / "m" / "m.onnx"
        path.write_bytes(made.SerializeToString())
        assert session(path, "1.23.2").created is True
        assert session(path, "1.24.4").created is False


def test_files_of_a_model_in_memory_are_not_looked_for():
    made = model([node("Add", ["x", "w"], ["a"])], [value("x", [2, 3])], ["a"], 17, [in_file(location="none.bin")])
    assert created(made) is True


def test_files_that_nothing_reads_are_not_looked_for(tmp_path):
    unread = in_file(location="none.bin")
    path = tmp_path / "m.onnx"
    made = model([node("Relu", ["x"], ["a"])], [value("x", [2, 3])], ["a"], 17, [unread])
    path.write_bytes(made.SerializeToString())
    assert session(path, "1.24.4").created is True


def filled(value_of, constant=True):
    nodes = [node("ConstantOfShape", ["s"], ["k"], value=value_of, name="f"), node("Add", ["x", "k"], ["a"])]
    given, sizes = ([ints("s", 2, 3)], []) if constant else ([], [value("s", [2], INT64)])
    return model(nodes, [value("x", [2, 3]), *sizes], ["a"], 17, given)


def test_the_value_of_a_folded_constantofshape_is_one_element():
    for one in (tensor(1, 4), tensor(1, float_data=[1])):
        assert created(filled(one)) is True
    for other in (tensor(1, 3), tensor(2, 8), tensor(0, 0), tensor(1, float_data=[1, 2])):
        assert message(filled(other)) == "f is folded, and its value is not one element"
        assert created(filled(other, constant=False)) is True


@pytest.mark.parametrize("constant", [True, False])
def test_the_data_of_an_attribute_are_in_one_field(constant):
    for count, stored in ((0, tensor(1)), (2, tensor(1, 4, float_data=[1]))):
        expected = f"ConstantOfShape f has an attribute value with data in {count} fields, not in one"
        assert message(filled(stored, constant)) == f"{expected}; the model is not loaded"


def sparse(values, indices, dims=(2, 3), in_node=False):
    made = onnx.SparseTensorProto(dims=dims)
    made.values.CopyFrom(array("w", np.array(values, np.float32)))
    if indices is not None:
        made.indices.CopyFrom(array("i", np.array(indices, np.int64)))
    nodes = [node("Add", ["x", "w"], ["a"])]
    if in_node:
        attribute = onnx.AttributeProto(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR, sparse_tensor=made)
        constant = node("Constant", [], ["w"])
        constant.attribute.append(attribute)
        nodes = [constant, *nodes]
    found = model(nodes, [value("x", [2, 3])], [value("a", [2, 3])], 17)
    if not in_node:
        found.graph.sparse_initializer.append(made)
    return found


@pytest.mark.parametrize("in_node", [False, True])
@pytest.mark.parametrize(
    ("values", "indices", "older", "newer"),
    [
        ([1, 2], [0, 4], True, True),
        ([1, 2], [[0, 0], [1, 1]], True, True),
        ([1, 2], [4, 0], True, True),
        ([1, 2], [4, 4], True, True),
        ([], [], True, True),
        ([1, 2], [0, 6], True, False),
        ([1, 2], [[0, 0], [2, 1]], True, False),
        ([1, 2], [[0, 0], [0, 4]], True, False),
        ([1, 2], [[0, 0], [1, -1]], True, False),
        ([1, 2], [0, 1, 2], True, False),
        ([[1, 2]], [0, 4], True, False),
        (1, [0], True, False),
        ([1, 2], [-1, 4], False, False),
        ([1, 2], [[0, 0, 0], [1, 1, 1]], False, False),
        ([1, 2], [[0], [1]], False, False),
        ([1, 2], [[[0, 0], [1, 1]]], False, False),
        ([1], 0, False, False),
        ([1, 2], [0], False, False),
        ([1, 2], [[0, 0], [1, 1], [1, 2]], False, False),
        ([1, 2], None, False, False),
    ],
    ids=str,
)
def test_the_indices_of_a_sparse_constant(values, indices, older, newer, in_node):
    made = sparse(values, indices, in_node=in_node)
    assert created(made, "1.18.0") is older
    assert created(made, "1.23.2") is older
    assert created(made, "1.24.4") is newer
    assert created(made, "1.30.0") is newer
    if not newer:
        assert message(made).endswith(": the model is not loaded")


def test_sparse_constants_that_nothing_reads_are_checked():
    made = sparse([1, 2], [-1, 4])
    made.graph.sparse_initializer[0].values.name = "u"
    made.graph.initializer.append(array("w", np.zeros((2, 3), np.float32)))
    assert message(made) == "the sparse constant u has the index -1: the model is not loaded"


def test_the_data_of_sparse_constants():
    made = sparse([1, 2, 3], [0, 1])
    made.graph.sparse_initializer[0].indices.dims[:] = [3]
    assert created(made, "1.18.0") is False
    made = sparse([1, 2], [0, 1, 4])
    made.graph.sparse_initializer[0].values.dims[:] = [3]
    assert created(made, "1.18.0") is True
    assert created(made, "1.24.4") is False
    assert created(sparse([1], [0], (-2, 3)), "1.18.0") is False


def four_bits(count, *, is_raw, read="x"):
    """A DequantizeLinear of elements of 4 bits; `read` is its constant, the elements or their zero point."""
    made = TensorProto(name=read, data_type=TensorProto.INT4, dims=[count])
    if is_raw:
        made.raw_data = bytes((count + 1) // 2)
    else:
        made.int32_data.extend([0] * ((count + 1) // 2))
    scale = [] if read == "x" else [count]
    inputs = [value("x", [2, count], TensorProto.INT4), value("s", scale), value("z", scale, TensorProto.INT4)]
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["y"], name="d")]
    given = [each for each in inputs if each.name != read]
    return models.model(nodes, given, [value("y", None)], 21, [made], ir_version=10)


@pytest.mark.parametrize("read", ["x", "z"])
@pytest.mark.parametrize(
    ("version", "count", "kept"),
    [("1.19.2", 6, True), ("1.20.1", 6, False), ("1.24.4", 6, False), ("1.20.1", 256, False), ("1.24.4", 256, True)],
)
def test_constants_of_4_bits_are_raw_data(read, version, count, kept):
    """Others are unpacked only where constants of 128 bytes are as they are loaded, or by the CPU."""
    assert created(four_bits(count, is_raw=True, read=read), version) is True
    assert created(four_bits(count, is_raw=False, read=read), version) is kept
    why = f"{read}, which d reads on DirectML, is a constant of 4-bit elements outside of raw_data"
    assert message(four_bits(count, is_raw=False, read=read), version) == (None if kept else why)


@pytest.mark.parametrize(
    ("location", "files", "found"),
    [
        ("W.BIN", ["w.bin"], True),
        ("w.bin. ", ["W.bin"], True),
        ("sub/../w.bin", ["W.bin"], True),
        ("Sub/w.bin", ["sub/W.bin"], True),
        ("Sub\\w.bin", ["sub/W.bin"], True),
        ("\u00c9.bin", ["\u00e9.bin"], True),
        ("v.bin", ["w.bin"], False),
        ("sub\\v.bin", ["sub/w.bin"], False),
    ],
)
def test_windows_finds_files_by_names_in_other_letters(tmp_path, location, files, found):
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(bytes(24))
    path = tmp_path / "model.onnx"
    path.write_bytes(concat(in_file([6], location=location)).SerializeToString())
    for version in ("1.20.1", "1.24.4"):
        assert session(path, version).created is found


def with_two_ifs(fault, length):
    """Two Ifs whose names differ in the middle; a constant in a branch of one of them lacks data."""

    def branch(number, lacks):
        made = tensor(2, bytes(4 if lacks else 8))
        add = node("Add", ["x", "w"], [f"o{number}"])
        return graph([add], [], [value(f"o{number}", [2])], [made])

    nodes = [
        node(
            "If",
            ["c"],
            [f"y{i}"],
            name=f"{'p' * length}{i}{'q' * length}",
            then_branch=branch(i, i == fault),
            else_branch=branch(i + 2, False),
        )
        for i in range(2)
    ]
    return model(nodes, [value("c", [], BOOL), value("x", [2])], [value("y0", [2]), value("y1", [2])], opset=17)


@pytest.mark.parametrize("length", [3, 700])
@pytest.mark.parametrize("fault", [0, 1])
def test_the_constants_of_graphs_with_long_names_are_told_apart(length, fault):
    found = session(with_two_ifs(fault, length), "1.24.4")
    assert found.created is None
    assert found.failure.message.startswith("w ")


def test_the_work_for_constants_without_their_data_is_linear(monkeypatch):
    def asked(count):
        nodes = [node("Add", ["x" if i == 0 else f"v{i - 1}", f"w{i}"], [f"v{i}"]) for i in range(count)]
        tensors = [TensorProto(name=f"w{i}", data_type=FLOAT, dims=[16], raw_data=bytes(4)) for i in range(count)]
        made = model(nodes, [value("x", [16])], [value(f"v{count - 1}", [16])], initializers=tensors)
        calls = []
        profile = sys.getprofile()
        sys.setprofile(lambda frame, event, _: calls.append(1) if event == "call" else None)
        try:
            session(made, "1.24.4")
        finally:
            sys.setprofile(profile)
        return len(calls)

    asked(10)
    assert asked(400) < 2.5 * asked(200)
