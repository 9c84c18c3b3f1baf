"""ONNX Runtime itself, asked about random models of all operators: every node runs where it is predicted to run."""

from __future__ import annotations

import pytest

from dmlsplit.library.sessions import Query
from dmlsplit.targets.runtime_versions import find_runtime
from tests.onnxruntime.conftest import COUNT, FRESH
from tests.onnxruntime.whole_models import Compared, compared, random_model

pytestmark = pytest.mark.onnxruntime

FIXED_SEED = 20261123
MODELS = COUNT // 4
MOST_UNKNOWN, MOST_FOLDED, MOST_OTHER = 0.05, 0.02, 0.05
"""Of the nodes, and of the models."""


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_nodes_run_where_they_are_predicted_to_run(made, runtime, seed):
    version, all_found = find_runtime(made.version), Compared()

    def ask(model, config):
        return runtime.ask(Query(model.SerializeToString(), config=config))

    for index in range(MODELS):
        found = compared(random_model(seed, index, version), version, ask)
        all_found.wrong += [f"{index}: {each}" for each in found.wrong]
        all_found.other += [f"{index}: {each}" for each in found.other]
        all_found.nodes += found.nodes
        all_found.unknown += found.unknown
        all_found.folded += found.folded
    assert all_found.wrong == []
    assert all_found.nodes > MODELS
    assert all_found.unknown <= MOST_UNKNOWN * all_found.nodes
    assert all_found.folded <= MOST_FOLDED * all_found.nodes
    assert len(all_found.other) <= max(MOST_OTHER * MODELS, 2), all_found.other
