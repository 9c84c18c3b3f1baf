"""A fault among 50 to 500 nodes is found again: at most ten nodes, of its class, and a model that is valid."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest

import dmlsplit as dml
from dmlsplit.formats.sessions import Inputs
from dmlsplit.graphs.traits import FiveDimensions, traits_of
from dmlsplit.reducing.findings import Question, findings_of
from dmlsplit.rules import RULES
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.rules.onnxruntime import FAULTS as FAULTS_OF_NODES
from dmlsplit.targets.releases import releases
from dmlsplit.targets.runtime_versions import find_runtime, runtimes
from dmlsplit.targets.session_options import DEFAULTS
from tests.reducing.planted import ALL, FAULTS, LEAST, MOST, Fault, planted

MOST_NODES, MOST_SECONDS, MOST_CHECKS = 10, 60, 60
QUICK = (
    *("gate in a branch", "overwritten residual", "dead", "rank of a MatMul", "lengths", "lost constant"),
    *("twins", "a constant of 4 bytes", "an input without elements", "onnx/output-repeated", "onnx/opset-missing"),
)
NOT_COMPARED = ("graph/fused-wrongly", "graph/memory-overwritten", "graph/whole-for-part")
"""Classes of models that DirectML computes otherwise than ONNX says."""
SCOPES = ("graph", "model", "onnx", "onnxruntime", "placement")
OF_NO_MODEL = {
    "graph/five-dimensions",  # builds that no ONNX Runtime makes a device of whose answers are known
    *("onnxruntime/session-fails-elsewhere", "onnxruntime/context-unknown", "onnxruntime/sizes-unknown"),
    "onnxruntime/lengths-elsewhere",  # planted models are one file
    "model/session-fails",  # the class is session-fails
    "model/unregistered-domain",  # the operators are the application's, and what they do is not known
    *FAULTS_OF_NODES,  # the graph's own rules are found in their place
}
"""Rules of these scopes that are no class of what is wrong with a model in a session."""


def check(name: str, seed: int, least: int = LEAST, most: int = MOST) -> None:
    fault = ALL[name]
    model = planted(fault, seed, least, most)
    assert least - 10 <= len(model.graph.node) <= most + 20
    began = time.process_time()
    found = dml.onnx.reduce(model, fault.runtime, rule=fault.rule if fault.chosen else None, **fault.given)
    assert time.process_time() - began < MOST_SECONDS
    assert found.checks <= MOST_CHECKS
    assert (found.rule, found.nodes <= MOST_NODES) == (fault.rule, True)
    assert fault.rule in rules_of(found.model, fault)
    if is_valid(fault.model()):
        assert is_valid(found.model)
        assert found.explanation is not None
    for output, array in found.predicted.arrays.items():
        right = found.expected.arrays[output]
        if fault.rule in NOT_COMPARED:
            assert not np.allclose(array, right, atol=1e-3) or len(found.predicted.arrays) > 1


def rules_of(model: onnx.ModelProto, fault: Fault) -> set[str]:
    """The rules of the findings about a model of the inputs that a fault has."""
    inputs = Inputs(fault.given.get("run_shapes", {}))
    question = Question(fault.runtime, fault.given.get("options", DEFAULTS), inputs)
    return {each.rule for each in findings_of(model, question)}


def is_valid(model: onnx.ModelProto) -> bool:
    """True where onnx checks a model and finds nothing; operators that it does not know are not taken for checked."""
    if {each.domain for each in model.opset_import} != {""} and not model.functions:
        return False
    if any(each.version > onnx.defs.onnx_opset_version() for each in model.opset_import) or not model.opset_import:
        return False
    try:
        onnx.checker.check_model(model)
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_fault(name):
    check(name, 0, LEAST, 70)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FAULTS if name not in QUICK])
def test_faults_of_several_nodes(name):
    check(name, 1, LEAST, 150)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(("name", "seed"), [(name, 1 + i % 2) for i, name in enumerate(ALL)])
def test_a_fault_of_each_class(name, seed):
    check(name, seed)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", ALL)
def test_all_planted_faults_again(name):
    check(name, 3)


@pytest.mark.parametrize("name", ALL)
def test_the_faults_are_those_that_the_models_have_by_themselves(name):
    fault = ALL[name]
    assert fault.rule in rules_of(fault.model(), fault)


def test_each_class_is_planted():
    """All rules of a model in a session; those of graphs that only a descriptor can break are not among them."""
    classes = {rule.id for scope in SCOPES for rule in RULES.values_of(scope)}
    classes -= {rule.id for rule in GRAPH_RULES.values() if not rule.sound}
    missing = {rule for rule in classes if rule not in {fault.rule for fault in ALL.values()}}
    assert missing == OF_NO_MODEL, "a rule has a fault in planted.py, or stands in OF_NO_MODEL"


def test_no_session_has_a_build_that_splits_five_dimensions_wrong():
    """graph/five-dimensions is of builds whose level is below what ONNX Runtime asks for."""
    broken = [
        each for each in releases() if traits_of(each) and traits_of(each).five_dimensions is FiveDimensions.BROKEN
    ]
    assert broken
    asked = [each for each in runtimes() if each.observed]
    assert max(each.max_feature_level for each in broken) < min(each.needed_level for each in asked)


def test_a_chain_by_itself_has_no_fault():
    """What is found in a planted model comes of what is planted."""
    model = planted(ALL["gate"], 0, 100, 100)
    kept = [node for node in model.graph.node if node.op_type not in ("Split", "Sigmoid", "Mul")]
    assert len(kept) > 60
    found = findings_of(model, Question(find_runtime("1.16.3")))
    assert not [each for each in found if each.severity == "error"]
