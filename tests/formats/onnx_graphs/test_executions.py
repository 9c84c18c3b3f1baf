"""Models that ONNX Runtime executed with DirectML: what is said of each is what came of it."""

from __future__ import annotations

from collections import Counter

import pytest

from dmlsplit.graphs.descriptors import node_type
from tests.formats.onnx_graphs.recorded import (
    executions,
    free_dimensions,
    lines,
    model_of,
    name_of,
    parts_of,
    said,
    session_model,
)

MOST_UNKNOWN = 0.03
"""Of the executions."""
RECORDED = 2151

NUMBERS = {
    "SPLIT": 62,
    "JOIN": 63,
    "SIGMOID": 47,
    "TANH": 51,
    "RELU": 44,
    "LEAKY_RELU": 39,
    "CLIP1": 153,
    "NEGATE": 156,
    "ABS": 2,
    "IDENTITY": 1,
    "SLICE1": 111,
    "MAX": 21,
    "MULTIPLY": 24,
    "ADD": 4,
    "ADD1": 89,
    "EXP": 11,
    "RECIP": 27,
    "DIV": 10,
    "CONVOLUTION": 53,
    "BATCH_NORMALIZATION": 72,
    "GEMM": 54,
    "GATHER": 67,
    "PADDING1": 155,
    "REDUCE": 55,
}


@pytest.fixture(
    scope="module", params=[5, pytest.param(1, marks=pytest.mark.slow)], ids=["every fifth", "all"], name="step"
)
def _step(request):
    return request.param


@pytest.fixture(scope="module")
def answers(step):
    """(line, execution, verdict, operators of each graph)."""
    found = []
    for line in list(lines())[::step]:
        model = session_model(model_of(line), free_dimensions(line))
        known = {}
        for execution in executions(line):
            key = execution.onnxruntime, execution.level, execution.fused
            if key not in known:
                known[key] = parts_of(model, execution.runtime, execution.options)
            parts = known[key]
            operators = [[node_type(node) for node in graph.desc.nodes] for part in parts for graph in part.fused]
            found.append((line, execution, said(parts, execution.runtime, execution.options), operators))
    return found


def test_every_execution_is_there(answers, step):
    assert len(answers) == RECORDED if step == 1 else len(answers) > RECORDED / step / 2


def test_every_execution_came_out_as_is_said(answers):
    wrong = [
        f"{name_of(line)}, {execution[:4]}: said {verdict}, was {execution.verdict}"
        for line, execution, verdict, _ in answers
        if verdict not in (execution.verdict, "unknown")
    ]
    assert not wrong


def test_few_are_unknown(answers):
    outcomes = Counter(verdict for _, _, verdict, _ in answers)
    print(f"{len(answers)} executions: {outcomes}")
    assert outcomes["unknown"] <= MOST_UNKNOWN * len(answers)


def test_the_models_are_those_that_were_executed(answers):
    """DirectML is given the same operators. Constants are nodes there, and here inputs."""
    other = set()
    for line, execution, _, operators in answers:
        if execution.operators is None or line["class"] == "H" or not execution.fused:
            continue
        recorded = [[NUMBERS.get(op, op) for op in graph if op != "CONSTANT"] for graph in execution.operators]
        if sorted(map(sorted, filter(None, recorded))) != sorted(map(sorted, operators)):
            other.add(line["model"])
    assert not other
