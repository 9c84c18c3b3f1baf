"""Generated models, judged by OpenVINO and by us: the same verdict, the same shapes, the same bytes."""

import importlib.util
import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from dmlsplit.formats import openvino
from dmlsplit.formats.nodes import SplitNode
from tests.formats.ir import Graph
from tests.formats.openvino_peer import TYPES, ask

pytest.importorskip("defusedxml")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="OpenVINO is not installed: pip install openvino"
)

EXAMPLES = Path(__file__).parents[2] / "examples"
INDEX = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint64": "u64"}


def shapes_text(node):
    return [
        "[...]" if shape is None else f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"
        for shape in (node.output_shapes if isinstance(node, SplitNode) else [node.output_shape])
    ]


def partition(rng, total):
    cuts = sorted(rng.randint(0, total) for _ in range(rng.randint(0, 4)))
    return [b - a for a, b in itertools.pairwise([0, *cuts, total])]


def elements(rng, type, shape):
    """Values that OpenVINO's CPU plugin keeps, as raw integers: it computes 64-bit types in 32 bits."""
    numbers = np.array([rng.randrange(128) for _ in range(int(np.prod(shape)))])
    if type in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
        data = numbers.astype({"i": "int", "u": "uint"}[type[0]] + type[1:])
    elif type == "boolean":
        data = (numbers % 2).astype(np.uint8)
    elif type == "f64":
        data = (numbers / 8).astype(np.float64)
    else:
        # any bits but those of infinities and NaNs
        data = np.frombuffer(rng.randbytes(len(numbers) * (4 if type == "f32" else 2)), np.uint8) & 0x3F
    return data.view(f"u{data.nbytes // len(numbers)}").reshape(shape)


def valid(rng, number, folder):
    """A request for a model that the specification allows, its input, and whether all its sizes are known."""
    rank = rng.randint(1, 6)
    shape = [rng.randint(1, 4) for _ in range(rank)]
    axis = rng.randrange(rank)
    parts = rng.choice([2, 3, 5])
    shape[axis] = rng.randint(1, 3) * parts
    index = rng.choice(list(INDEX))
    if rng.random() < 0.6:
        parts = partition(rng, shape[axis])
        if index.startswith("i") and rng.random() < 0.5:
            parts[rng.randrange(len(parts))] = -1
    type = rng.choice(TYPES)
    data = elements(rng, type, shape)
    np.save(folder / f"{number}.npy", data)
    declared = list(shape)
    for i in range(rank):
        if rng.random() < 0.15:
            declared[i] = rng.choice([None, [1, 64]])
    signed = index.startswith("i") and rng.random() < 0.3
    request = {
        "path": str(folder / f"{number}.xml"),
        "input": str(folder / f"{number}.npy"),
        "shape": declared,
        "type": type,
        "index": index,
        "axis": axis - rank if signed else axis,
        "parts": parts,
    }
    return request, data, shape


def test_valid_models(tmp_path):
    rng = random.Random(20)
    made = [valid(rng, i, tmp_path) for i in range(150)]
    answers = ask([request for request, _, _ in made], tmp_path)
    for (request, data, shape), answer in zip(made, answers, strict=True):
        assert answer["ok"], (request, answer)
        (node,) = openvino.read(request["path"])
        assert node.report.ok, (request, node.report)
        assert shapes_text(node) == answer["shapes"], request
        (node,) = openvino.read(request["path"], shapes={"x": shape})
        assert node.report.diagnostics == (), (request, node.report)
        held = node.element.dtype()
        parts = node.execute(data.view(held))
        assert len(parts) == answer["parts"]
        for i, part in enumerate(parts):
            theirs = np.load(f"{request['input']}.{i}.npy")
            assert part.shape == theirs.shape
            assert part.tobytes() == theirs.tobytes(), request


def any_model(rng):
    """A model that may be wrong in its axis, its parts or its types."""
    rank = rng.randint(1, 4)
    shape = [rng.randint(0, 7) for _ in range(rank)]
    for i in range(rank):
        if rng.random() < 0.1:
            shape[i] = rng.choice([None, (2, 6), (0, 3), (4, None)])
    index = rng.choice(["i8", "i32", "i64"])
    graph = Graph()
    x = graph.parameter(shape)
    axis = graph.const(rng.randint(-rank - 1, rank), index, rng.choice([(), (), (), (1,), (1, 1)]))
    if rng.random() < 0.5:
        parts = rng.randint(0, 5)
        count = max(parts, 1)
    else:
        lengths = [rng.choice([-2, -1, -1, 0, 1, 1, 2, 3, 4]) for _ in range(rng.randint(1, 4))]
        parts, count = graph.const(lengths, index), len(lengths)
    # OpenVINO looks at layers only that a Result depends on.
    for output in graph.split(x, axis, parts, [None] * count):
        graph.layer("Result", (output,), [])
    return graph


# What we find wrong by the specification, and OpenVINO does not look at.
ACCEPTED = {"openvino/rest-negative", "openvino/lengths-sum", "openvino/not-divisible"}


def test_any_models(tmp_path):
    rng = random.Random(21)
    paths = [any_model(rng).write(tmp_path, f"m{i}") for i in range(400)]
    answers = ask([{"path": str(path)} for path in paths], tmp_path)
    verdicts = set()
    for path, answer in zip(paths, answers, strict=True):
        (node,) = openvino.read(path)
        rules = {diagnostic.rule for diagnostic in node.report.errors}
        if rules and rules <= ACCEPTED and answer["ok"]:
            assert "node/runtime-differs" in {diagnostic.rule for diagnostic in node.report.diagnostics}
            verdicts.add("differs")
            continue
        assert node.report.ok is bool(answer["ok"]), (path.read_text("utf-8"), answer, str(node.report))
        verdicts.add(node.report.ok)
        if node.report.ok:
            assert shapes_text(node) == answer["shapes"], (path.read_text("utf-8"), answer)
    assert verdicts >= {True, False}


def test_documented_examples(tmp_path):
    for path in sorted(EXAMPLES.glob("openvino_*.xml")):
        (answer,) = ask([{"path": str(path)}], tmp_path)
        (node,) = openvino.read(path)
        assert shapes_text(node) == answer["shapes"]
