"""Real models, from packages that ship one: every Split found, with the shapes it ran with, executed bit for bit."""

import json

import numpy as np
import pytest

from dmlsplit.descriptors.dims import agrees
from dmlsplit.formats import onnx as front_end
from tests.conformance.corpus import DATA, is_static
from tests.formats.split_nodes import joins, splits
from tests.packaged import MODELS, model_of

NODES = [json.loads(line) for line in (DATA.parent / "model_nodes.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(params=MODELS, ids=lambda model: model["package"])
def packaged(request, pytestconfig, tmp_path_factory):
    """A row of models.json and the path of its model."""
    return request.param, model_of(request.param, pytestconfig, tmp_path_factory)


def test_every_split_is_as_it_ran(packaged):
    row, path = packaged
    model = front_end.read_model(path, shapes=row["shapes"])
    assert all(join.report.ok for join in joins(model))
    found = splits(model)
    assert len(found) == row["splits"]
    assert all(split.report.ok for split in found)
    assert sum(not is_static(split.input_shape) for split in found) == row["open"]
    if row["nodes"] is None:
        return
    expected = [n for n in NODES if n["model"].startswith("models/onnx/") and n["model"].endswith(f"--{row['nodes']}")]
    assert [split.name for split in found] == [node["name"] for node in expected]
    rng = np.random.default_rng(0)
    for split, node in zip(found, expected, strict=True):
        shape, dtype = tuple(node["run_shape"]), np.dtype(node["run_dtype"])
        outputs = [tuple(output) for output in node["run_out_shapes"]]
        assert split.axis == node["axis"] % len(shape)
        assert split.lengths == tuple(output[split.axis] for output in outputs)
        assert agrees(shape, split.input_shape)
        assert all(map(agrees, outputs, split.output_shapes))
        array = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
        pieces = np.split(array, np.cumsum(split.lengths)[:-1], split.axis)
        for output, piece, expected_shape in zip(split.execute(array), pieces, outputs, strict=True):
            assert output.shape == expected_shape
            assert output.tobytes() == piece.tobytes()
