"""Published models that ONNX Runtime executed with DirectML 1.15.4: all came out right, and nothing is found."""

from __future__ import annotations

import json

import onnx
import pytest

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.onnxruntime import SessionOptions, find_runtime
from dmlsplit.onnxruntime.findings import findings
from tests.formats.onnx_graphs.recorded import DATA, parts_of, said, session_model
from tests.packaged import MODELS, model_of

PUBLISHED = json.loads(DATA.with_name("published.json").read_text("utf-8"))["models"]
EXECUTIONS = [
    pytest.param(row, fixed, fused, id=f"{row['file'].rpartition('/')[2]}, {how}")
    for row in PUBLISHED
    for how, fixed, fused in (("as is", False, True), ("no fusion", False, False), ("fixed sizes", True, True))
    if not fixed or "fixed" in row
]


def with_sizes(model: onnx.ModelProto, sizes: dict[str, list[int]]) -> onnx.ModelProto:
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes.get(value.name, ()), strict=False):
            dim.dim_value = size
    return model


@pytest.mark.parametrize(("row", "fixed", "fused"), EXECUTIONS)
def test_a_published_model_is_right(row, fixed, fused, pytestconfig, tmp_path_factory):
    packaged = next(packaged for packaged in MODELS if packaged["package"] == row["package"])
    path = model_of({**packaged, "file": row["file"]}, pytestconfig, tmp_path_factory)
    model = session_model(with_sizes(onnx.load(path), row["fixed"] if fixed else {}))
    runtime, options = find_runtime("1.24.4"), SessionOptions(graph_fusion=fused)
    assert said(parts_of(model, runtime, options), runtime, options) == "right"
    assert [f for f in findings(model, runtime, options) if f.diagnostic.severity is not Severity.NOTE] == []
