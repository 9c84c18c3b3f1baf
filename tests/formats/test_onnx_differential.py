"""Generated valid models, run by onnx's reference evaluator, ONNX Runtime, OpenVINO and us: the same bytes."""

import functools
import itertools
import random

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dmlsplit.formats import onnx as front_end
from tests.formats.onnx_peer import PEERS, ask, installed
from tests.models import model, node, value

MODELS = 120
TYPES = ("float32", "float16", "float64", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)))
NARROWED = ("float64", "int64", "uint64", "uint32")
"""OpenVINO's CPU plugin computes these in 32 bits; they hold small numbers here."""


def partition(rng, total):
    cuts = sorted(rng.randint(0, total) for _ in range(rng.randint(0, 4)))
    return [b - a for a, b in itertools.pairwise([0, *cuts, total])]


def made(rng):
    """A model that the operator's text allows, its input, and the lengths that it stands for."""
    rank = rng.randint(1, 6)
    shape, axis, opset = (
        [rng.randint(1, 4) for _ in range(rank)],
        rng.randrange(rank),
        rng.choice([2, 7, 11, 13, 18, 21]),
    )
    attributes, names, initializers = {"axis": axis - rank * rng.randint(0, opset >= 11)}, ["x"], []
    shape[axis] = rng.randint(1, 12)
    lengths = partition(rng, shape[axis])
    if rng.random() < 0.4:
        # Equal parts; from version 18 on the last may be smaller, but not empty, which runtimes refuse.
        chunk, count = rng.randint(1, 4), rng.randint(1, 5)
        shape[axis] = chunk * count - (rng.randint(0, chunk - 1) if opset >= 18 and count > 1 else 0)
        lengths = [chunk] * (count - 1) + [shape[axis] - chunk * (count - 1)]
        if count > 1 and -(-shape[axis] // count) != chunk:
            shape[axis], lengths = chunk * count, [chunk] * count
        attributes |= {"num_outputs": count} if opset >= 18 else {}
    elif opset < 13:
        attributes["split"] = lengths
    else:
        names.append("l")
        initializers = [numpy_helper.from_array(np.array(lengths, np.int64), "l")]
    dtype = np.dtype(rng.choice(TYPES))
    data = np.random.default_rng(rng.randrange(2**32)).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    array = data[..., 0].astype(dtype) if dtype.name in NARROWED else (data & 0x3F).view(dtype)[..., 0]
    outputs = [f"y{i}" for i in range(len(lengths))]
    declared = [rng.choice([size, size, f"n{i}", None]) for i, size in enumerate(shape)]
    if "num_outputs" in attributes and len(set(lengths)) > 1:
        # Else OpenVINO refuses it, or, in a process that has run other models, gives other shapes.
        attributes["axis"], declared = axis, shape
    data_type = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    infos = [value(name, None, data_type) for name in outputs]
    split = node("Split", names, outputs, name="s", **attributes)
    return model([split], [value("x", declared, data_type)], infos, opset, initializers, ir_version=8), array, lengths


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("models"), random.Random(6)
    found = []
    for number in range(MODELS):
        proto, array, lengths = made(rng)
        path = folder / f"{number}.onnx"
        onnx.save(proto, path)
        np.save(f"{path}.npy", array)
        found.append((path, array, lengths))
    return found


def ours(path, array):
    [split] = front_end.read(path, shapes={"x": array.shape})
    assert split.report.ok, split.report
    return split


def test_are_what_they_stand_for(models):
    for path, array, lengths in models:
        split = ours(path, array)
        assert split.lengths == tuple(lengths)
        # The same without the shape: the array tells it.
        [unknown] = front_end.read(path)
        for part, known in zip(unknown.execute(array), split.execute(array), strict=True):
            assert part.tobytes() == known.tobytes()


@pytest.mark.parametrize("peer", PEERS)
def test_others_make_the_same_bytes(models, peer):
    if not installed(peer):
        pytest.skip(f"{peer} is not installed: pip install {PEERS[peer]}")
    for (path, array, lengths), answer in zip(models, ask(peer, [path for path, _, _ in models]), strict=True):
        show = functools.partial(onnx.printer.to_text, onnx.load(path))
        if not answer["ok"] and peer == "openvino" and 0 in lengths:
            continue
        assert answer["ok"], (answer["error"], show())
        parts = ours(path, array).execute(array)
        assert answer["outputs"] == len(parts)
        for i, part in enumerate(parts):
            theirs = np.load(f"{path}.{peer}.{i}.npy")
            assert (part.dtype, part.shape) == (theirs.dtype, theirs.shape), show()
            assert part.tobytes() == theirs.tobytes(), show()


@pytest.mark.skipif(not installed("openvino"), reason="OpenVINO is not installed: pip install openvino")
@pytest.mark.parametrize("axis", [1, -1])
def test_an_uneven_part_on_a_negative_axis(axis, tmp_path):
    outputs = [value(name, None) for name in "abcd"]
    split = node("Split", ["x"], list("abcd"), axis=axis, num_outputs=4)
    onnx.save(model([split], [value("x", [3, 7])], outputs, ir_version=8), tmp_path / "m.onnx")
    np.save(tmp_path / "m.onnx.npy", np.zeros((3, 7), np.float32))
    [answer] = ask("openvino", [tmp_path / "m.onnx"])
    [split] = front_end.read(tmp_path / "m.onnx")
    assert split.report.ok
    assert split.lengths == (2, 2, 2, 1)
    warned = "node/runtime-differs" in {d.rule for d in split.report.diagnostics}
    assert (answer["ok"], warned) == ((True, False) if axis == 1 else (False, True))
