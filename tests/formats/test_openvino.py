"""IRs: what the reader makes of layers, shapes, types, constants and bodies."""

import sys
from pathlib import Path

import numpy as np
import pytest

import dmlsplit as dml
from tests.formats.ir import Graph, model

pytest.importorskip("defusedxml")

from dmlsplit.descriptors.dims import Interval
from dmlsplit.formats import openvino
from dmlsplit.system.errors import InputError
from tests.formats.split_nodes import splits

EXAMPLES = Path(__file__).parents[2] / "examples"


def read(graph, folder, version=11, **given):
    return openvino.read(graph.write(folder, version=version), **given)


def rules(node):
    return [diagnostic.rule for diagnostic in node.report.diagnostics]


@pytest.mark.parametrize(
    ("name", "op", "axis", "lengths"),
    [
        ("openvino_split", "Split", 1, (4, 4, 4)),
        ("openvino_variadic_split", "VariadicSplit", 0, (1, 2, 3)),
        ("openvino_variadic_split_rest", "VariadicSplit", 0, (4, 2)),
    ],
)
def test_the_documented_examples(name, op, axis, lengths):
    (node,) = openvino.read(EXAMPLES / f"{name}.xml")
    assert (node.name, node.op, node.version, node.axis, node.lengths) == ("split", op, 1, axis, lengths)
    assert node.input_shape == (6, 12, 10, 24)
    assert node.data_type == "f32"
    assert (node.input_name, node.output_names) == ("data", tuple(f"part{i}" for i in range(len(lengths))))
    assert [shape[axis] for shape in node.output_shapes] == list(lengths)
    assert node.report.diagnostics == ()
    assert (node.report.judged_by, node.report.operator) == (f"OpenVINO {op}-1", op)
    assert node.report.file == str(EXAMPLES / f"{name}.xml")
    d = node.descriptor()
    assert dml.validate(d).ok
    data = np.arange(6 * 12 * 10 * 24, dtype=np.float32).reshape(6, 12, 10, 24)
    parts = node.execute(data)
    assert [part.shape for part in parts] == list(node.output_shapes)
    assert np.array_equal(np.concatenate(parts, axis), data)


@pytest.mark.parametrize("version", [10, 11])
def test_versions_that_openvino_reads(version, tmp_path):
    assert len(read(model(), tmp_path, version)) == 1


@pytest.mark.parametrize(("version", "word"), [(7, "older"), (2, "older"), (12, "not a known"), (-1, "older")])
def test_other_versions_are_refused_with_the_reason(version, word, tmp_path):
    with pytest.raises(InputError, match=rf"IR version {version} is .*{word}.* 10 and 11") as caught:
        read(model(), tmp_path, version)
    assert caught.value.file.endswith("model.xml")
    assert caught.value.line == 2


@pytest.mark.parametrize("type", ["i4", "u4", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_axis_and_lengths_of_any_integer_type(type, tmp_path):
    negative = type.startswith("i")
    lengths = (3, -1, 1) if negative else (3, 2, 1)
    (node,) = read(model((4, 6), -1 if negative else 1, lengths, axis_type=type), tmp_path)
    assert node.report.ok
    assert (node.axis, node.lengths) == (1, (3, 2, 1))
    assert rules(node) == (["openvino/lengths-misread"] if type[1:] == "4" else [])


def test_numbers_are_exact(tmp_path):
    (node,) = read(model((4, 6), 0, (2**64 - 1, 4), axis_type="u64"), tmp_path)
    assert "18446744073709551619" in node.report.errors[0].message


ELEMENTS = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "boolean": "bool",
    "nf4": "nf4",
    **{f"i{bits}": f"int{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (1, 2, 3, 4, 6, 8, 16, 32, 64)},
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn",
    "string": "string",
}


@pytest.mark.parametrize("type", ELEMENTS)
def test_element_types(type, tmp_path):
    (node,) = read(model(type=type), tmp_path)
    assert node.data_type == type
    assert node.element.name == ELEMENTS[type]
    assert node.report.ok
    assert rules(node) == (["openvino/type-not-run"] if type in ("u1", "u3", "u6", "string") else [])


def test_types_of_ports_and_of_no_name(tmp_path):
    path = model().write(tmp_path)
    text = path.read_text("utf-8")
    path.write_text(text.replace('element_type="f32"', 'element_type="dynamic"'), "utf-8")
    (node,) = openvino.read(path)
    assert node.data_type is None
    path.write_text(text.replace('element_type="f32"', 'element_type="F128"'), "utf-8")
    (node,) = openvino.read(path)
    assert rules(node) == ["openvino/type-unknown"]
    assert "F128" in node.report.errors[0].message


def test_a_port_stands_in_for_a_parameter_without_shape(tmp_path):
    graph = Graph()
    x = graph.layer("Parameter", (), [((4, 6), "f16")], name="x")[0]
    graph.split(x, graph.const(0), 2, [(2, 6), (2, 6)], "f16")
    (node,) = read(graph, tmp_path)
    assert (node.input_shape, node.data_type, node.lengths) == ((4, 6), "f16", (2, 2))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((None, 6), (None, 6)),
        (((2, 10), 6), (Interval(2, 10), 6)),
        (((3, None), 6), (Interval(3, None), 6)),
        (((0, 7), 6), (Interval(0, 7), 6)),
        (((5, 5), 6), (5, 6)),
        (None, None),
    ],
)
def test_dynamic_shapes(shape, expected, tmp_path):
    (node,) = read(model(shape, 1, (1, -1)), tmp_path)
    assert node.report.ok
    assert node.input_shape == expected
    assert node.lengths == ((1, 5) if expected else (1, None))
    if expected != (5, 6):
        assert rules(node) == ["node/shape-unknown"]
        assert "'x'" in node.report.diagnostics[0].message
        (node,) = read(model(shape, 1, (1, -1)), tmp_path, shapes={"x": (5, 6)})
    assert node.input_shape == (5, 6)
    assert node.report.diagnostics == ()


def test_given_shapes_go_through_layers_that_keep_them_and_no_further(tmp_path):
    def build():
        graph = Graph()
        x = graph.parameter((None, 6))
        relu = graph.layer("ReLU", (x,), [((None, 6), "f32")])[0]
        half = graph.layer("Convert", (relu,), [((None, 6), "f16")], destination_type="f16")[0]
        a, b = graph.layer("Split", (half, graph.const(1)), [(None, "f16")] * 2, num_splits=2, name="first")
        graph.split(b, graph.const(0), 2, [None, None], "f16", name="second")
        mixed = graph.layer("MatMul", (a, a), [((None, 6), "f16")], name="mixed")[0]
        graph.split(mixed, graph.const(0), 2, [None, None], "f16", name="third")
        return graph

    first, second, third = read(build(), tmp_path, shapes={"x": (4, 6)})
    assert (first.input_shape, first.lengths, first.data_type) == ((4, 6), (3, 3), "f16")
    assert (second.input_shape, second.lengths) == ((4, 3), (2, 2))
    assert third.input_shape == (None, 6)
    assert "'mixed'" in third.report.diagnostics[0].message
    *_, third = read(build(), tmp_path, shapes={"x": (4, 6), "mixed": (8, 6)})
    assert third.lengths == (4, 4)
    first, second, _ = read(build(), tmp_path)
    assert "'x'" in second.report.diagnostics[0].message


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (5, 6)}, r"the given shape is \[5, 6\], but the model has \[4, 6\]"),
        ({"x": (4, 6, 1)}, "the given shape is"),
        ({"y": (4, 6)}, "no tensor 'y'; the inputs are x"),
        ({"x": (-1, 6)}, "-1 is not a size"),
        ({"x": ("a", 6)}, "not a size"),
        ({"x": (4.0, 6)}, "not a size"),
        ({"x": (1,) * 65}, "the limit is 64"),
    ],
)
def test_shapes_that_cannot_be(shapes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(model((4, 6)), tmp_path, shapes=shapes)


def test_an_ir_has_no_named_dimensions(tmp_path):
    with pytest.raises(InputError, match="no symbolic dimension 'batch'"):
        read(model(), tmp_path, dims={"batch": 1})


def test_constants_behind_other_layers(tmp_path):
    graph = Graph()
    x = graph.parameter((4, 6))
    one = graph.const([1], "i32")
    scalar = graph.layer("Squeeze", (one, graph.const([0])), [((), "i32")])[0]
    axis = graph.layer("Convert", (scalar,), [((), "i64")], destination_type="i64")[0]
    floats = graph.const([2.0, 4.0], "f32", shape=(1, 2))
    flat = graph.layer("Reshape", (floats, graph.const([-1])), [((2,), "f32")], special_zero="false")[0]
    lengths = graph.layer("Convert", (flat,), [((2,), "i64")], destination_type="i64")[0]
    graph.split(x, axis, lengths, [(4, 2), (4, 4)])
    (node,) = read(graph, tmp_path)
    assert node.report.diagnostics == ()
    assert (node.axis, node.lengths) == (1, (2, 4))


@pytest.mark.parametrize("output_type", [None, "i32"])
def test_lengths_from_a_known_shape(output_type, tmp_path):
    graph = Graph()
    x, y = graph.parameter((6,)), graph.parameter((2, 4), name="y")
    data = {} if output_type is None else {"output_type": output_type}
    lengths = graph.layer("ShapeOf", (y,), [((2,), output_type or "i64")], version="opset3", **data)[0]
    graph.split(x, graph.const(0, output_type or "i64"), lengths, [None, None])
    (node,) = read(graph, tmp_path)
    assert node.report.diagnostics == ()
    assert node.lengths == (2, 4)


def test_values_that_are_not_known_are_reported(tmp_path):
    graph = Graph()
    x = graph.parameter((6,))
    axis = graph.layer("Add", (graph.const(0), graph.const(0)), [((), "i64")], name="sum")[0]
    graph.split(x, axis, graph.parameter((2,), "i64", "fed"), [(2,), (4,)])
    (node,) = read(graph, tmp_path)
    assert node.report.ok
    assert rules(node) == ["openvino/axis-unknown", "openvino/lengths-unknown"]
    assert "'sum' (Add)" in node.report.diagnostics[0].message
    assert "'fed' (Parameter)" in node.report.diagnostics[1].message
    assert node.axis is None
    # the ports say what the constants do not
    assert node.output_shapes == ((2,), (4,))


@pytest.mark.parametrize(
    ("layer", "data"),
    [("Convert", {"destination_type": "i8"}), ("Convert", {"destination_type": "boolean"}), ("Convert", {})],
)
def test_conversions_that_lose_a_value(layer, data, tmp_path):
    graph = Graph()
    x = graph.parameter((6,))
    axis = graph.layer(layer, (graph.const(300),), [((), "i8")], **data)[0]
    graph.split(x, axis, 2, [None, None])
    (node,) = read(graph, tmp_path)
    assert "openvino/axis-unknown" in rules(node) or "openvino/axis-type" in rules(node)
    assert node.axis is None


def test_operations_are_named_without_regard_to_case_and_judged_in_any_opset(tmp_path):
    graph = Graph()
    x, axis = graph.parameter((6,)), graph.const(0)
    graph.layer("SPLIT", (x, axis), [(None, "f32")] * 2, "opset8", "a", num_splits=2)
    graph.layer("split", (x, axis), [(None, "f32")] * 3, "opset1", "b", num_splits=3)
    graph.layer("Split", (x, axis), [(None, "f32")] * 3, "extension", "c", num_splits=3)
    found = openvino.read_model(graph.write(tmp_path))
    assert [(node.name, node.op, node.lengths) for node in splits(found)] == [
        ("a", "Split", (3, 3)),
        ("b", "Split", (2, 2, 2)),
    ]
    assert [item.op for item in found.items if item not in found.judged] == ["extension.Split"]
    (other,) = [item for item in found.items if item not in splits(found)]
    assert other.diagnostic.rule == "input/operator-not-judged"


def test_a_model_without_splits(tmp_path):
    graph = Graph()
    graph.parameter((6,))
    path = graph.write(tmp_path)
    path.with_suffix(".bin").unlink()
    assert openvino.read(path) == []


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([(3,), (3,)], []),
        ([None, (3,)], []),
        ([(3,)], ["openvino/output-count", "node/runtime-differs"]),
        ([(3,), (3,), (3,)], ["openvino/output-count"]),
        ([(3,), (4,)], ["openvino/output-shape", "node/runtime-differs"]),
        ([(3,), (3, 1)], ["openvino/output-shape", "node/runtime-differs"]),
    ],
)
def test_ports_are_held_against_what_is_computed(outputs, found, tmp_path):
    (node,) = read(model(outputs=outputs), tmp_path)
    assert rules(node) == found


def test_both_ends_of_an_edge(tmp_path):
    path = EXAMPLES / "openvino_split.xml"
    text = path.read_text("utf-8")
    copy = tmp_path / "m.xml"
    copy.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    copy.write_text(text.replace('shape="6,12,10,24"', 'shape="6,15,10,24"'), "utf-8")
    (node,) = openvino.read(copy)
    assert node.input_shape == (6, 15, 10, 24)
    assert "openvino/port-shape-differs" in rules(node)
    assert "openvino/output-shape" in rules(node)
    copy.write_text(text.replace('<port id="2" precision="FP32"', '<port id="2" precision="FP16"'), "utf-8")
    assert rules(openvino.read(copy)[0])[0] == "openvino/output-type"


def test_inputs_that_nothing_feeds(tmp_path):
    graph = Graph()
    graph.layer("VariadicSplit", (graph.parameter((6,)), None, graph.const([6])), [(None, "f32")], name="s")
    (node,) = read(graph, tmp_path)
    assert rules(node) == ["openvino/inputs"]
    assert node.report.errors[0].path == "s.axis"
    graph = Graph()
    x, axis = graph.parameter((6,)), graph.const(0)
    graph.layer("Split", (x, axis, axis), [(None, "f32")], name="s", num_splits=1)
    (node,) = read(graph, tmp_path)
    assert rules(node) == ["openvino/inputs"]


def test_num_splits(tmp_path):
    graph = Graph()
    graph.layer("Split", (graph.parameter((6,)), graph.const(0)), [(None, "f32")], name="s")
    assert rules(read(graph, tmp_path)[0]) == ["openvino/num-splits-missing"]
    for text in ("two", "2.5", "", "0x2", "1" * 30):
        graph = Graph()
        graph.layer("Split", (graph.parameter((6,)), graph.const(0)), [(None, "f32")], name="s", num_splits=text)
        with pytest.raises(InputError, match=r"layer 2 's' \(Split\): num_splits is '.*', not an integer"):
            read(graph, tmp_path)
    (node,) = read(model(parts=-1, outputs=[None]), tmp_path)
    assert rules(node)[0] == "openvino/num-splits-below-one"


def test_names_are_shown_not_obeyed(tmp_path):
    graph = Graph()
    graph.split(graph.parameter((6,)), graph.const(0), 4, [None] * 4, name="a\x85\u202e[red]")
    (node,) = read(graph, tmp_path)
    assert node.name == "a\x85\u202e[red]"
    assert str(node.report).isprintable() or "\n" in str(node.report)
    assert "\x85" not in str(node.report)
    assert "\u202e" not in str(node.report)


def test_several_names_of_a_port(tmp_path):
    graph = Graph()
    graph.split(graph.parameter((None,)), graph.const(0), 2, [None, None])
    path = graph.write(tmp_path)
    text = path.read_text("utf-8").replace(
        '<port id="0" precision="FP32">', '<port id="0" precision="FP32" names="a\\,b,c">'
    )
    path.write_text(text, "utf-8")
    assert openvino.read(path)[0].input_name == "a,b"
    for name in ("a,b", "c", "x"):
        assert openvino.read(path, shapes={name: (6,)})[0].lengths == (3, 3)


def test_execution_judges_what_the_model_leaves_open(tmp_path):
    (node,) = read(model((None,), 0, (2, 2)), tmp_path)
    assert node.report.ok
    assert [part.tolist() for part in node.execute(np.arange(4, dtype=np.float32))] == [[0, 1], [2, 3]]
    with pytest.raises(InputError, match="add up to 4, but axis 0 of the data has size 6"):
        node.execute(np.arange(6, dtype=np.float32))
    (node,) = read(model(None, -1, 3), tmp_path)
    parts = node.execute(np.arange(12, dtype=np.float32).reshape(2, 6))
    assert [part.tolist() for part in parts] == [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]
    with pytest.raises(InputError, match="which is not divisible by num_splits, 3"):
        node.execute(np.zeros((2, 5), np.float32))
    with pytest.raises(InputError, match="scalar"):
        node.execute(np.zeros((), np.float32))


@pytest.mark.parametrize("level", ["1_0", "2_1", "6_4"])
def test_legalized_for_a_level(level):
    (node,) = openvino.read(EXAMPLES / "openvino_variadic_split_rest.xml")
    legal = node.legalize(level)
    assert legal.ok
    data = np.arange(6 * 12 * 10 * 24, dtype=np.float32).reshape(6, 12, 10, 24)
    parts = legal.execute(data)
    assert [part.tobytes() for part in parts] == [part.tobytes() for part in node.execute(data)]


def test_without_defusedxml(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "defusedxml.common", None)
    with pytest.raises(InputError, match=r"needs defusedxml: pip install 'dmlsplit\[openvino\]'"):
        read(model(), tmp_path)
