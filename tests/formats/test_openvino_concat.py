"""OpenVINO's Concat-1: the specification's examples, faults, and generated ones against OpenVINO."""

import importlib.util
import random

import numpy as np
import pytest

pytest.importorskip("defusedxml")

import dmlsplit
from dmlsplit.formats import openvino
from tests.formats.ir import Graph
from tests.formats.openvino_peer import TYPES, ask
from tests.formats.split_nodes import joins, splits

with_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="OpenVINO is not installed: pip install openvino"
)
SPECIFIED = [(1, 8, 50, 50), (1, 16, 50, 50), (1, 32, 50, 50)]


def made(shapes, axis=1, types=None, output=None, fed=None):
    """A Concat of parameters x0, x1, ...; of `fed`, their indices, in its order, None for a port that nothing feeds."""
    graph = Graph()
    types = types or ["f32"] * len(shapes)
    xs = [graph.parameter(shape, type, name=f"x{i}") for i, (shape, type) in enumerate(zip(shapes, types, strict=True))]
    inputs = [None if i is None else xs[i] for i in (range(len(xs)) if fed is None else fed)]
    attributes = {} if axis is None else {"axis": axis}
    ports = output if isinstance(output, list) else [output or (None, (types or ["f32"])[0])]
    outputs = graph.layer("Concat", inputs, ports, name="c", **attributes)
    for port in outputs:
        graph.layer("Result", (port,), [])
    return graph


def read_one(folder, *arguments, given=None, **fields):
    (node,) = openvino.read(made(*arguments, **fields).write(folder), **(given or {}))
    return node


def rules(node):
    return [d.rule for d in node.report.diagnostics]


@pytest.mark.parametrize("axis", [1, -3])
def test_the_specifications_examples(tmp_path, axis):
    node = read_one(tmp_path, SPECIFIED, axis)
    assert (node.op, node.version, node.report.diagnostics) == ("Concat", 1, ())
    assert (node.axis, node.lengths, node.output_shape) == (1, (8, 16, 32), (1, 56, 50, 50))
    assert (node.input_shapes, node.input_names, node.output_name) == (tuple(SPECIFIED), ("x0", "x1", "x2"), "c")
    assert dmlsplit.validate(node.descriptor(), feature_level="1_0").ok
    arrays = [np.random.default_rng(i).random(shape).astype(np.float32) for i, shape in enumerate(SPECIFIED)]
    assert np.array_equal(node.execute(arrays), np.concatenate(arrays, 1))
    done = node.legalize("1_0")
    assert done.ok
    assert np.array_equal(done.execute(arrays), np.concatenate(arrays, 1))


@pytest.mark.parametrize(
    ("graph", "rule"),
    [
        (made([], fed=[]), "openvino/concat-inputs"),
        (made([(2, 3)], fed=[0, None]), "openvino/concat-inputs"),
        (made([(2, 3)], output=[(None, "f32")] * 2), "openvino/concat-output-count"),
        (made([(2, 3)], axis=None), "openvino/concat-axis-missing"),
        (made([(2, 3)], axis=2), "openvino/concat-axis-out-of-range"),
        (made([(2, 3)], axis=-3), "openvino/concat-axis-out-of-range"),
        (made([(2, 3), (2, 3)], types=["f32", "f16"]), "openvino/concat-types-differ"),
        (made([(2, 3), (2, 3, 1)]), "openvino/concat-rank-differs"),
        (made([(2, 3), (3, 3)]), "openvino/concat-shape-differs"),
        (made([((2, 3), 3), ((4, None), 3)]), "openvino/concat-shape-differs"),
        (made([(2, 3)], output=((2, 4), "f32")), "openvino/concat-output-shape"),
        (made([(2, 3)], output=((2, 3), "f16")), "openvino/concat-output-type"),
    ],
)
def test_faults(tmp_path, graph, rule):
    (node,) = openvino.read(graph.write(tmp_path))
    assert [d.rule for d in node.report.errors] == [rule]
    assert not node.legalize().ok
    assert all(d.line for d in node.report.errors)


@pytest.mark.parametrize(
    ("graph", "rule"),
    [
        (made([(2, 3)], types=["boolean"]), "openvino/concat-type-not-numeric"),
        (made([(2, 3)], types=["u1"]), "openvino/concat-type-not-run"),
    ],
)
def test_what_is_said_beside(tmp_path, graph, rule):
    (node,) = openvino.read(graph.write(tmp_path))
    assert node.report.ok
    assert rule in rules(node)


def test_an_axis_that_is_no_number_names_its_layer(tmp_path):
    with pytest.raises(dmlsplit.InputError, match=r"'c' .*axis is 'x', not an integer"):
        read_one(tmp_path, [(2, 3)], "x")


def test_what_the_model_leaves_open_is_given(tmp_path):
    shapes = [(None, (1, 3), 5), (4, (2, 5), 5)]
    node = read_one(tmp_path, shapes)
    assert node.output_shape == (4, "3..8", 5)
    assert set(rules(node)) == {"node/shape-unknown"}
    node = read_one(tmp_path, shapes, given={"shapes": {"x0": (4, 2, 5), "x1": (4, 3, 5)}})
    assert (node.report.diagnostics, node.output_shape) == ((), (4, 5, 5))


def test_a_split_before_and_after(tmp_path):
    """What a Concat puts out is what the next layer takes, in one file."""
    graph = Graph()
    x = graph.parameter((2, 6))
    first, second = graph.split(x, graph.const(1), 2, [None, None], name="before")
    (whole,) = graph.layer("Concat", (second, first, second), [(None, "f32")], name="c", axis=1)
    graph.split(whole, graph.const(1), graph.const([4, -1]), [None, None], name="after")
    before, concat, after = openvino.read(graph.write(tmp_path))
    assert (before.op, concat.op, after.op) == ("Split", "Concat", "VariadicSplit")
    assert (concat.lengths, after.lengths) == ((3, 3, 3), (4, 5))
    found = openvino.read_model(graph.write(tmp_path))
    assert [node.name for node in splits(found)] == ["before", "after"]
    assert [node.name for node in joins(found)] == ["c"]


def elements(rng, type, shape):
    """Values that OpenVINO's CPU plugin keeps, as raw integers: it computes 64-bit types in 32 bits."""
    numbers = np.array([rng.randrange(1 if type == "boolean" else 32) for _ in range(int(np.prod(shape)))])
    if type == "f64":
        return numbers.astype(np.float64).view(np.uint64).reshape(shape)
    width = {"boolean": 1, "bf16": 2}.get(type) or int(type[1:]) // 8
    return numbers.astype(f"u{width}").reshape(shape)


@with_openvino
def test_generated_ones_are_what_openvino_makes_of_them(tmp_path):
    rng = random.Random(30)
    requests, wanted = [], []
    for number in range(60):
        rank, type = rng.randint(1, 5), rng.choice(TYPES)
        axis = rng.randrange(rank)
        off = [rng.randint(1, 4) for _ in range(rank)]
        shapes = [(*off[:axis], rng.randint(1, 4), *off[axis + 1 :]) for _ in range(rng.randint(1, 4))]
        arrays = [elements(rng, type, shape) for shape in shapes]
        declared = [tuple(rng.choice([size, size, None, (1, 64)]) for size in shape) for shape in shapes]
        given = axis - rank if rng.random() < 0.3 else axis
        path = made(declared, given, [type] * len(shapes), (None, type)).write(tmp_path, f"m{number}")
        files = []
        for i, array in enumerate(arrays):
            files.append(str(tmp_path / f"{number}.{i}.npy"))
            np.save(files[-1], array)
        requests.append({"path": str(path), "inputs": files, "type": type})
        wanted.append((path, arrays, shapes, axis))
    for (path, arrays, shapes, axis), request, answer in zip(wanted, requests, ask(requests, tmp_path), strict=True):
        assert answer["ok"], answer
        (node,) = openvino.read(path)
        assert node.report.ok, node.report
        assert [f"[{','.join('?' if dim is None else str(dim) for dim in node.output_shape)}]"] == answer["shapes"]
        (node,) = openvino.read(path, shapes={f"x{i}": shape for i, shape in enumerate(shapes)})
        assert node.report.ok
        held = node.element.dtype()
        whole = node.execute([array.view(held) for array in arrays])
        theirs = np.load(f"{request['inputs'][0]}.0.npy")
        assert whole.tobytes() == theirs.tobytes() == np.concatenate(arrays, axis).tobytes()
        done = node.legalize("2_0")
        if done.ok:
            assert done.execute([array.view(held) for array in arrays]).tobytes() == whole.tobytes()


@with_openvino
def test_any_ones_are_judged_as_openvino_judges_them(tmp_path):
    rng = random.Random(31)
    paths = []
    for number in range(200):
        rank = rng.randint(0, 3)
        off = [rng.choice([0, 1, 2, 3, None, (2, 6), (4, None)]) for _ in range(rank)]
        shapes = []
        for _ in range(rng.randint(1, 3)):
            shape = [size if rng.random() < 0.8 else rng.choice([1, 2, None, (0, 3)]) for size in off]
            shapes.append(None if rng.random() < 0.05 else (*shape, 1) if rng.random() < 0.05 else tuple(shape))
        types = [rng.choice(["f32", "f32", "f32", "f16"]) if rng.random() < 0.1 else "f32" for _ in shapes]
        paths.append(made(shapes, rng.randint(-rank - 1, rank), types).write(tmp_path, f"m{number}"))
    verdicts = set()
    for path, answer in zip(paths, ask([{"path": str(path)} for path in paths], tmp_path), strict=True):
        (node,) = openvino.read(path)
        assert node.report.ok is bool(answer["ok"]), (path.read_text("utf-8"), answer, str(node.report))
        verdicts.add(node.report.ok)
        if node.report.ok:
            shape = node.output_shape
            text = "[...]" if shape is None else f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"
            assert [text] == answer["shapes"], path.read_text("utf-8")
    assert verdicts == {True, False}
