"""Where operators of ai.onnx.ml run: on the CPU, by their version there. Observed with 1.18.0, 1.20.1, 1.24.4 and
1.30.0."""

from __future__ import annotations

import pytest

from tests.models import text
from tests.onnxruntime.placements import placed_model

SCALER = "ai.onnx.ml.Scaler<offset = [0.0], scale = [1.0]>"
REGRESSOR = "ai.onnx.ml.LinearRegressor<coefficients = [1.0, 1.0, 1.0], intercepts = [0.0]>"
TREE = """nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0],
    nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2], target_ids = [0, 0],
    target_weights = [1.0, 2.0], n_targets = 1"""
LEAVES = """n_targets = 1, tree_roots = [0], nodes_featureids = [0], nodes_truenodeids = [0], nodes_trueleafs = [1],
    nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 0], nodes_splits = float[1] {0},
    nodes_modes = uint8[1] {0}, leaf_weights = float[2] {0, 1}"""


def placed(body, learning, version="1.24.4"):
    """What is predicted of nodes that read x, FLOAT [2,3]."""
    model = text(f"(float[2,3] x) => (float[?,?] y) {{ {body} }}", domains=["ai.onnx.ml"])
    model.opset_import[-1].version = learning
    return placed_model(model, version)


@pytest.mark.parametrize(
    ("body", "learning", "expected"),
    [
        (f"a = Relu(x) b = {SCALER}(a) c = {REGRESSOR}(b) y = Neg(c)", 1, ["DML", "CPU", "CPU", "DML"]),
        (f"y = ai.onnx.ml.TreeEnsembleRegressor<{TREE}>(x)", 3, ["CPU"]),
        ("y = ai.onnx.ml.LabelEncoder<keys_floats = [0.0], values_floats = [1.0]>(x)", 2, ["CPU"]),
        ("a = Cast<to = 11>(x) b = ai.onnx.ml.Normalizer(a) y = Sigmoid(b)", 1, ["DML", "CPU", "DML"]),
    ],
)
def test_they_run_on_the_cpu(body, learning, expected):
    found = placed(body, learning)
    assert found.created
    assert [str(node) for node in found.nodes.values()] == expected


def test_types_without_a_kernel_fail_the_session():
    found = placed("a = Cast<to = 7>(x) b = ai.onnx.ml.Binarizer(a) y = Cast<to = 1>(b)", 1)
    assert (found.created, found.failure.node) == (False, "b")


@pytest.mark.parametrize(("version", "created"), [("1.20.1", False), ("1.24.4", True)])
def test_an_operator_that_old_versions_do_not_have(version, created):
    assert placed(f"y = ai.onnx.ml.TreeEnsemble<{LEAVES}>(x)", 5, version).created is created


def test_a_removed_operator_is_not_known():
    """All versions refuse the model."""
    assert placed(f"y = ai.onnx.ml.TreeEnsembleRegressor<{TREE}>(x)", 5).created is None
