"""The models that packages ship: every descriptor of a Split or Concat is the one that ONNX Runtime submits."""

from __future__ import annotations

import pytest

from dmlsplit.library.fetching import add
from dmlsplit.library.sessions import OnnxRuntime
from dmlsplit.onnxruntime import Outcome
from tests.onnxruntime.compare import disagreements, observed, predicted
from tests.onnxruntime.models import DEFAULT
from tests.onnxruntime.published import DEVICE, recorded, sample_of, written
from tests.packaged import MODELS, model_of


@pytest.fixture(params=MODELS, ids=lambda model: model["package"])
def packaged(request, pytestconfig, tmp_path_factory):
    """The name of a package, and its model with a first Run."""
    package = request.param["package"]
    return package, sample_of(package, model_of(request.param, pytestconfig, tmp_path_factory))


@pytest.mark.slow
def test_every_descriptor_is_the_one_that_was_submitted(packaged):
    package, sample = packaged
    found, nodes = recorded()[package], predicted(sample, DEFAULT)
    submitted = {entry.operator for entry in found.submitted}
    operators = {operator for node in nodes for operator in node.answer.operators}
    assert submitted
    assert found.ran
    assert operators == submitted
    assert Outcome.UNKNOWN not in {node.answer.outcome for node in nodes}
    assert list(disagreements(found, nodes)) == []


@pytest.mark.slow
@pytest.mark.onnxruntime
def test_the_record_is_what_the_version_does(packaged, made, runtime):
    package, sample = packaged
    if made.version != DEFAULT:
        pytest.skip(f"{DEFAULT} was recorded")
    with OnnxRuntime(add(made), DEVICE) as with_sizes:
        assert written(observed(with_sizes.ask(sample.query))) == written(recorded()[package])
