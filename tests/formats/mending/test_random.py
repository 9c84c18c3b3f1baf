"""Random models, written back for random targets: what is promised of every one of them."""

from __future__ import annotations

import random

import onnx
import pytest

from dmlsplit.formats import onnx as front_end
from dmlsplit.system.errors import NotLegalizedError
from dmlsplit.targets.target import find_target
from tests.formats.mending import generator, peers

TARGETS = (
    *({"feature_level": level} for level in ("1_0", "2_0", "2_1", "3_0", "4_1", "6_4")),
    *({"directml": release} for release in ("1.8.0", "1.12.0", "1.13.1", "1.15.4")),
    *({"onnxruntime": version} for version in ("1.18.0", "1.24.4", "1.30.0")),
)
PEERS = (peers.Peer("onnxruntime"), peers.Peer("openvino"))
REFERENCE = peers.Peer("onnx")
MOST_NOT_LOADED = 0.01
"""By OpenVINO, of all: it compiles neither some Splits behind casts of booleans nor some empty constants."""
COUNT = 25
SOME = 60
MANY = 2000


@pytest.fixture(autouse=True)
def _ended():
    yield
    for peer in (*PEERS, REFERENCE):
        peer.close()


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (0, COUNT),
        pytest.param(COUNT, SOME, marks=pytest.mark.slow),
        pytest.param(COUNT + SOME, MANY - COUNT - SOME, marks=[pytest.mark.slow, pytest.mark.thorough]),
    ],
    ids=["few", "some", "many"],
)
def test_what_is_written_is_what_was_promised(first, count):
    changed = refused = 0
    not_loaded = []
    for seed in range(first, first + count):
        given = random.Random(seed).choice(TARGETS)
        model, arrays = generator.model(seed)
        onnx.checker.check_model(model, full_check=True)
        data = model.SerializeToString()
        try:
            written = front_end.legalize(data, **given)
        except NotLegalizedError:
            refused += 1
            continue
        changed += bool(written.changes)
        _check(seed, data, written, arrays, given, not_loaded)
    assert changed > count / 5
    assert refused < count / 5
    assert len(not_loaded) <= 1 + MOST_NOT_LOADED * count, not_loaded


def _check(seed, data, written, arrays, given, not_loaded):
    where = f"seed {seed}, {given}"
    if not written.changes:
        assert written.model == data, where
        return
    onnx.checker.check_model(onnx.load_from_string(written.model), full_check=True)
    assert front_end.legalize(written.model, **given) == (written.model, ()), where
    target = find_target(**given)
    for node in front_end.read(written.model):
        assert node.report.ok, where
        if target.runtime is not None:
            answer = node.on_onnxruntime(target.runtime)
            assert answer.outcome not in ("session-fails", "run-fails"), (where, answer.diagnostics)
    for peer in PEERS:
        if not peer.installed:
            continue
        # ONNX Runtime's CPU computes FLOAT16 in FLOAT, and rounds it or not by what kernels there are around.
        asked = REFERENCE if peer.name == "onnxruntime" and _has_float16(data) else peer
        before, after = asked(data, arrays), asked(written.model, arrays)
        if before is None:
            continue
        if after is None and peer.name == "openvino":
            not_loaded.append(where)
            continue
        assert after is not None, (where, asked.name)
        assert peers.same(before, after), (where, asked.name)


def _has_float16(data):
    types = [value.type.tensor_type.elem_type for value in onnx.load_from_string(data).graph.input]
    return onnx.TensorProto.FLOAT16 in types
