"""ONNX Runtime itself, asked about random models of all operators: every node runs where it is predicted to run."""

from __future__ import annotations

import pytest

from dmlsplit.library.sessions import Query
from dmlsplit.targets.runtime_versions import find_runtime
from tests.onnxruntime.conftest import COUNT, FRESH
from tests.onnxruntime.whole_models import Compared, compare, random_model

pytestmark = pytest.mark.onnxruntime

FIXED_SEED = 20261123
MODELS = COUNT // 4
MOST_UNKNOWN, MOST_OTHER = 0.02, 0.01
"""Of the nodes, and of the models."""


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_nodes_run_where_they_are_predicted_to_run(made, runtime, seed):
    version, found = find_runtime(made.version), Compared()

    def ask(model, config, directml):
        return runtime.ask(Query(model.SerializeToString(), config=config, directml=directml))

    for index in range(MODELS):
        compare(random_model(seed, index, version), version, ask, found)
    assert found.wrong == []
    assert found.nodes > MODELS
    assert len(found.unknown) <= MOST_UNKNOWN * found.nodes, found.unknown
    assert len(found.other) <= max(MOST_OTHER * found.models, 1), found.other
