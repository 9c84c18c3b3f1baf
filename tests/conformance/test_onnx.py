"""Every row of the corpus that is an ONNX model: verdict, lengths, shapes and values."""

import pytest

from dmlsplit.formats import onnx as front_end
from tests.conformance.built import build
from tests.conformance.corpus import EXCEPTIONS, expected_arrays, input_array, is_static, params, rows

CASES = [row for row in rows("cases", flavour="onnx", kind=("forward", "shape")) if row["expect"]["ok"] is not None]
OBSERVED = [row for row in rows("observed", flavour="onnx") if (row.get("spec") or {}).get("ok") is not None]
PEERS = {"ref": "reference evaluator", "ort": "ONNX Runtime", "ov": "OpenVINO"}


def only_node(row):
    model, values = build(row)
    [node] = front_end.read(model, values=values)
    return node


@pytest.mark.parametrize("row", params(CASES))
def test_case(row):
    expect = row["expect"]
    node = only_node(row)
    if row["id"] in EXCEPTIONS:
        assert node.report.ok is EXCEPTIONS[row["id"]]["ok"] is not expect["ok"]
        return
    assert node.report.ok is expect["ok"], node.report
    if not expect["ok"]:
        return
    if "lengths" in expect:
        assert list(node.lengths) == expect["lengths"]
    if "shapes" in expect and is_static(row["shape"]):
        assert [list(shape) for shape in node.output_shapes] == expect["shapes"]
    array, values = input_array(row), expected_arrays(row)
    if values is not None:
        outputs = node.execute(array)
        assert [o.dtype for o in outputs] == [array.dtype] * len(values)
        for output, value in zip(outputs, values, strict=True):
            assert output.shape == value.shape
            assert output.tolist() == value.tolist()


@pytest.mark.parametrize("row", params(OBSERVED))
def test_observed(row):
    spec, node = row["spec"], only_node(row)
    if row["id"] in EXCEPTIONS:
        assert node.report.ok is EXCEPTIONS[row["id"]]["ok"] is not spec["ok"]
        return
    assert node.report.ok is spec["ok"], node.report
    if spec["ok"] and "lengths" in spec:
        assert list(node.lengths) == spec["lengths"]
    said = " ".join(diagnostic.message for diagnostic in node.report.diagnostics)
    for peer, name in PEERS.items():
        seen = row["observed"].get(peer, {}).get("ok", spec["ok"])
        assert seen == spec["ok"] or name in said, f"{peer} differs, of which nothing is said"
