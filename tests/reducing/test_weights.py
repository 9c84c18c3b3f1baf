"""Weights of reduced models: of seeds, of the original, inside the model and in files beside it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from dmlsplit.reducing.references import References
from dmlsplit.reducing.weights import FURTHEST, Seed, drawn_in_pieces, filled, opened, seeds_for, tensors_of
from dmlsplit.system.errors import InputError
from tests.models import array, model, node, value

LARGE = np.arange(600_000, dtype=np.float32).reshape(600, 1000)  # of more than the megabyte that is kept in memory
SMALL = np.arange(200, dtype=np.float32)


def made(*extra):
    return model(
        [
            node("MatMul", ["x", "w"], ["a"]),
            node("Constant", [], ["k"], value=array("k", LARGE[:300])),
            *extra,
        ],
        [value("x", (2, 600))],
        [value("a", (2, 1000)), value("k", (300, 1000))],
        initializers={"w": LARGE, "s": SMALL, "i": np.arange(3)},
    )


def numbers(found):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors_of(found)}


@pytest.fixture(params=["bytes", "file", "external"])
def source(request, tmp_path):
    if request.param == "bytes":
        return made().SerializeToString()
    external = {"save_as_external_data": True, "location": "w.bin"} if request.param == "external" else {}
    onnx.save(made(), tmp_path / "m.onnx", **external)
    return tmp_path / "m.onnx"


def test_the_originals_weights_are_not_in_memory_and_come_back(source, tmp_path):
    with opened(source, ()) as original:
        assert original.model.ByteSize() < 5000
        found = numbers(filled(original.model, original, {}))
        assert (found["w"] == LARGE).all()
        assert (found["k"] == LARGE[:300]).all()
        assert (found["i"] == np.arange(3)).all()


def test_numbers_of_a_seed_are_as_they_are_recorded(source):
    with opened(source, ()) as original:
        seeds = seeds_for(original.model, 7)
        found = filled(original.model, original, seeds)
    tensors = list(tensors_of(found))
    assert {tensors[number].name for number in seeds} == {"w", "s", "k"}
    for number, (seed, low, high, skip) in seeds.items():
        said = numpy_helper.to_array(tensors[number])
        drawn = np.random.default_rng(seed).uniform(low, high, skip + said.size)[skip:]
        assert (said == drawn.astype(np.float32).reshape(said.shape)).all()


@pytest.mark.parametrize("random", [True, False])
def test_a_model_that_refers_to_files_has_the_same_numbers(source, tmp_path, random):
    folder = tmp_path / "beside"
    folder.mkdir()
    with opened(source, ()) as original:
        seeds = seeds_for(original.model, 7) if random else {}
        wanted = filled(original.model, original, seeds)
        references = References(str(folder), original)
        for _ in range(2):
            found = references.with_weights(original.model, seeds)
            (folder / "m.onnx").write_bytes(found.SerializeToString())
            assert (folder / "m.onnx").stat().st_size < (2 << 20)  # the Constant is in it
            read = onnx.load(folder / "m.onnx")
            assert {n: a.tobytes() for n, a in numbers(read).items()} == {
                n: a.tobytes() for n, a in numbers(wanted).items()
            }
    assert len(list(folder.glob("*.bin"))) == 1


def test_the_numbers_of_a_short_tensor_are_the_first_of_a_long_one():
    seed = Seed(3, -0.5, 0.5, 0)
    long = np.concatenate(list(drawn_in_pieces(seed, (1 << 20) + 10, TensorProto.FLOAT)))
    (short,) = drawn_in_pieces(seed, FURTHEST, TensorProto.FLOAT)
    assert (long[:FURTHEST] == short).all()
    assert (long == np.random.default_rng(3).uniform(-0.5, 0.5, len(long)).astype(np.float32)).all()


def test_a_variance_is_not_negative():
    names = [f"p{i}" for i in range(4)]
    batch = model(
        [node("BatchNormalization", ["x", *names], ["a"])],
        [value("x", (1, 100, 2))],
        initializers={name: np.ones(100, np.float32) for name in names},
    )
    with opened(batch, ()) as original:
        found = numbers(filled(original.model, original, seeds_for(original.model, 0)))
    assert [bool((found[name] > 0).all()) for name in names] == [False, False, False, True]


def test_what_cannot_be_written_is_an_error(tmp_path):
    huge = made()
    huge.graph.initializer.append(TensorProto(name="h", data_type=1, dims=[1 << 40]))
    huge.graph.initializer[-1].data_location = TensorProto.EXTERNAL
    with opened(huge, ()) as original, pytest.raises(InputError):
        filled(original.model, original, seeds_for(original.model, 0))
    onnx.save(made(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin")
    (tmp_path / "w.bin").unlink()
    with opened(tmp_path / "m.onnx", ()) as original, pytest.raises(InputError, match=r"w\.bin"):
        filled(original.model, original, {})
