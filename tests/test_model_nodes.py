"""The Split nodes of real models, with the shapes they ran with: as descriptors, at every level, bit for bit."""

import json
from pathlib import Path

import numpy as np
import pytest

import dmlsplit as dml

NODES = [json.loads(line) for line in (Path(__file__).parent / "data" / "model_nodes.jsonl").open(encoding="utf-8")]


def lowest_level(dtype, rank):
    """What the documented tables say, in short."""
    if dtype in ("int64", "uint64", "float64"):
        return "4_1"
    if rank != 4:
        return "3_0"
    return "2_1" if dtype in ("int8", "uint8") else "1_0"


@pytest.mark.parametrize("node", NODES, ids=lambda n: f"{Path(n['model']).stem}:{n['index']}")
def test_node(node):
    rng = np.random.default_rng(node["index"])
    shape, axis = tuple(node["run_shape"]), node["axis"]
    lengths = [s[axis] for s in node["run_out_shapes"]]
    bits = rng.integers(0, 256, (*shape, np.dtype(node["run_dtype"]).itemsize), np.uint8)
    array = bits.view(node["run_dtype"])[..., 0]
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc.from_array(array), axis, lengths)
    lowest = dml.FeatureLevel.parse(lowest_level(node["run_dtype"], len(shape)))
    assert dml.minimum_feature_level(d) == lowest
    for level in dml.FeatureLevel:
        assert dml.validate(d, feature_level=level).ok is (level >= lowest)
    outputs = dml.compile(d)(array)
    ends = np.cumsum(lengths)
    for output, end, length, out_shape in zip(outputs, ends, lengths, node["run_out_shapes"], strict=True):
        piece = array[(slice(None),) * (axis % len(shape)) + (slice(end - length, end),)]
        assert output.shape == tuple(out_shape)
        assert output.tobytes() == piece.tobytes()


def test_all_nodes_are_there():
    assert len(NODES) == 76
