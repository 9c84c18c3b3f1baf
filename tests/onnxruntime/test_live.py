"""ONNX Runtime itself: what is predicted of a model is what the version does."""

from __future__ import annotations

import pytest

from tests.onnxruntime.compare import compare, predicted
from tests.onnxruntime.conftest import COUNT, FRESH
from tests.onnxruntime.generator import sample
from tests.onnxruntime.models import DEFAULT, described
from tests.onnxruntime.shrink import shrunk

pytestmark = pytest.mark.onnxruntime

FIXED_SEED = 20251120
NEWEST_OPSET = 21
"""Known to every version."""
MOST_UNKNOWN = 0.03 if COUNT >= 1000 else 0.1
"""Of the nodes: a prediction that is never made cannot be wrong. Of few models there may be more by chance."""

SPLIT = {"type": "FLOAT", "shape": [1, 2, 6, 4], "axis": 2, "lens": [2, 4], "n": 2, "how": "auto", "ctx": "alone"}


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_the_prediction_is_what_the_version_does(made, runtime, seed, compared):
    nodes = unknown = 0
    wrong = []
    for index in range(COUNT):
        asked = sample(seed, index, NEWEST_OPSET)
        verdict = compare(runtime.ask(asked.query), predicted(asked, made.version))
        nodes += verdict.nodes
        unknown += verdict.unknown
        if verdict.disagreements:
            wrong.append(asked)
    compared(
        f"onnxruntime {made.version}: {COUNT} models of seed {seed} (DMLSPLIT_ONNXRUNTIME_SEED={seed} repeats them), "
        f"{nodes} nodes, {unknown} unknown, {len(wrong)} disagreements"
    )
    if wrong:
        shown = [shrunk(runtime, made.version, asked) for asked in wrong[:3]]
        pytest.fail("\n\n".join([f"{len(wrong)} disagreements of {COUNT}", *shown]), pytrace=False)
    assert unknown <= MOST_UNKNOWN * nodes


def test_a_model_that_is_not_loaded(made, runtime):
    from dmlsplit.onnxruntime import find_runtime

    newest = find_runtime(made.version).newest_opset
    for opset, session in ((newest, True), (newest + 1, False)):
        asked = described("opset", {**SPLIT, "opset": opset})
        asked.model.ir_version = 8
        assert runtime.ask(asked.query)["session"] is session
        assert compare(runtime.ask(asked.query), predicted(asked, made.version)).disagreements == ()


def test_an_ir_version_that_is_not_loaded(made, runtime):
    from dmlsplit.onnxruntime import find_runtime

    newest = find_runtime(made.version).newest_ir_version
    for version, session in ((newest, True), (newest + 1, False)):
        asked = described("ir", {**SPLIT, "opset": 17})
        asked.model.ir_version = version
        assert runtime.ask(asked.query)["session"] is session
        assert compare(runtime.ask(asked.query), predicted(asked, made.version)).disagreements == ()


def test_a_wrong_prediction_is_found_and_shrunk(made, runtime):
    """What the comparison is for: the prediction for another version's loading is wrong here."""
    asked = described("between", {**SPLIT, "opset": 13, "ctx": "between"})
    nodes = predicted(described("other", {**SPLIT, "opset": 13, "axis": 3, "lens": [1, 3]}), DEFAULT)
    assert compare(runtime.ask(asked.query), nodes).disagreements
    assert "Split" in shrunk(runtime, made.version, asked, lambda candidate: "Split" in str(candidate.model))
