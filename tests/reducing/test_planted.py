"""A fault among 50 to 500 nodes is found again: at most ten nodes, of its class, and a model that is valid."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest

import dmlsplit as dml
from dmlsplit.reducing.findings import Question, findings_of
from dmlsplit.targets.runtime_versions import find_runtime
from tests.reducing.planted import FAULTS, LEAST, MOST, planted

MOST_NODES, MOST_SECONDS, MOST_CHECKS = 10, 60, 60
QUICK = ("gate in a branch", "overwritten residual", "dead", "rank of a MatMul", "lengths", "lost constant")
FORTY = [*((name, 1) for name in FAULTS), *((name, 2) for name in FAULTS)][:40]
INVALID = ("onnx/", "session-fails")
"""Classes of models that onnx itself may refuse."""


def check(name: str, seed: int, least: int = LEAST, most: int = MOST) -> None:
    fault = FAULTS[name]
    model = planted(fault, seed, least, most)
    assert least - 10 <= len(model.graph.node) <= most + 20
    began = time.process_time()
    found = dml.onnx.reduce(model, fault.version)
    assert time.process_time() - began < MOST_SECONDS
    assert found.checks <= MOST_CHECKS
    assert (found.rule, found.nodes <= MOST_NODES) == (fault.rule, True)
    again = findings_of(found.model, Question(find_runtime(fault.version)))
    assert fault.rule in {each.rule for each in again}
    if not fault.rule.startswith(INVALID):
        onnx.checker.check_model(found.model, full_check=True)
        assert not found.expected.why
    for output, array in found.predicted.arrays.items():
        right = found.expected.arrays[output]
        if fault.rule in ("graph/fused-wrongly", "graph/memory-overwritten", "graph/whole-for-part"):
            assert not np.allclose(array, right, atol=1e-3) or len(found.predicted.arrays) > 1
    assert found.explanation is not None


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault(name):
    check(name, 0, LEAST, 100)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), FORTY)
def test_forty_planted_faults(name, seed):
    check(name, seed)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", FAULTS)
def test_all_planted_faults_again(name):
    check(name, 3)


def test_the_faults_are_those_that_the_models_have_by_themselves():
    for fault in FAULTS.values():
        found = findings_of(fault.model(), Question(find_runtime(fault.version)))
        assert fault.rule in {each.rule for each in found}, fault.body


def test_a_chain_by_itself_has_no_fault():
    """What is found in a planted model comes of what is planted."""
    model = planted(FAULTS["gate"], 0, 100, 100)
    kept = [node for node in model.graph.node if node.op_type not in ("Split", "Sigmoid", "Mul")]
    assert len(kept) > 60
    found = findings_of(model, Question(find_runtime("1.16.3")))
    assert not [each for each in found if each.severity == "error"]
