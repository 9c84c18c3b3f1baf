"""ONNX Runtime itself, asked about random models of all operators: every node runs where it is predicted to run."""

from __future__ import annotations

import pytest

from dmlsplit.library.sessions import Query
from dmlsplit.targets.runtime_versions import find_runtime
from tests.onnxruntime.conftest import COUNT, FRESH
from tests.onnxruntime.exported_models import exported_model
from tests.onnxruntime.quantized_models import quantized_model
from tests.onnxruntime.whole_models import Compared, compare, random_model

pytestmark = pytest.mark.onnxruntime

FIXED_SEED = 20261123
MODELS = COUNT // 4
MOST_UNKNOWN = 0.02
"""Of the nodes."""
MOST_WRONG, MOST_OTHER = 0.04, 0.08
"""Of the models: those with a node that is predicted elsewhere, and answers about the session and its capture. In 2,000
random models they are one in 500 and one in 100, so that a run of 50 exceeds either once in thousands of runs."""


def asking(runtime):
    """What `compare` asks."""
    return lambda model, config, directml: runtime.ask(
        Query(model.SerializeToString(), config=config, directml=directml)
    )


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_nodes_run_where_they_are_predicted_to_run(made, runtime, seed):
    version, found, ask = find_runtime(made.version), Compared(), asking(runtime)
    wrong = 0
    for index in range(MODELS):
        before = len(found.wrong)
        compare(random_model(seed, index, version), version, ask, found)
        wrong += len(found.wrong) > before
    assert wrong <= max(MOST_WRONG * found.models, 2), found.wrong
    assert found.nodes > MODELS
    assert len(found.unknown) <= MOST_UNKNOWN * found.nodes, found.unknown
    assert len(found.other) <= max(MOST_OTHER * found.models, 4), found.other
    assert len(found.copies) <= max(MOST_OTHER * found.copied, 4), found.copies


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_quantized_nodes_run_where_they_are_predicted_to_run(made, runtime, seed):
    """Of 1,050 models, nine differed."""
    version, found, ask = find_runtime(made.version), Compared(), asking(runtime)
    for index in range(MODELS):
        compare(quantized_model(seed, index, version.newest_opset), version, ask, found)
    wrong = [*found.wrong, *found.other, *found.copies]
    assert len(wrong) <= max(MOST_WRONG * found.models, 4), wrong
    assert len(found.unknown) <= max(MOST_OTHER * found.models, 4), found.unknown


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_nodes_of_exported_models_run_where_they_are_predicted_to_run(made, runtime, seed):
    """Of 2,000 models, none had a wrong node."""
    version, found, ask = find_runtime(made.version), Compared(), asking(runtime)
    for index in range(MODELS):
        compare(exported_model(seed, index, version), version, ask, found)
    wrong = [*found.wrong, *found.other, *found.copies]
    assert len(wrong) <= max(MOST_WRONG * found.models, 4), wrong
    assert len(found.unknown) <= max(MOST_UNKNOWN * found.models, 4), found.unknown
