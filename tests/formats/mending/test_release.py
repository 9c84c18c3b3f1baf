"""What a judged model needed is freed when it is not asked again, without a search of all memory."""

import gc

import pytest

from dmlsplit.checking.files import judge_file
from dmlsplit.checking.question import Question
from dmlsplit.formats.onnx import tensors
from dmlsplit.graphs import program
from dmlsplit.mending.judged import JudgedModel
from dmlsplit.models import graph
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.targets.target import find_target
from tests.formats.onnx_families import FAMILIES

TARGET = find_target(onnxruntime="1.24.4")
LARGE = (SessionGraph, graph.Node, graph.Value, program.Node, program.Tensor)


def objects():
    return sum(isinstance(each, LARGE) for each in gc.get_objects())


@pytest.fixture
def made():
    """How many more graphs, nodes and tensors there are than before; unused ones are not looked for."""
    gc.collect()
    before = objects()
    gc.disable()
    yield lambda: objects() - before
    gc.enable()


@pytest.mark.parametrize("family", ["gates", "gates that come out wrong", "twins", "splits in a row"])
def test_sessions_of_a_judged_model(family, made):
    judged = JudgedModel.of(FAMILIES[family](3), TARGET, tensors.no_external_data)
    assert judged.views
    assert all(finding.diagnostic for finding in judged.findings)
    assert made() > 0
    judged.release()
    assert made() == 0


def test_sessions_of_a_file(made, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(FAMILIES["splits in a row"](3).SerializeToString())
    results = list(judge_file(str(path), Question((TARGET,))))
    assert len(results) > 3
    assert made() == 0
