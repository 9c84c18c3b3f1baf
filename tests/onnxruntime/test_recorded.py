"""All recorded answers of ONNX Runtime: the prediction is the answer."""

from __future__ import annotations

from collections import Counter

import pytest

from dmlsplit.onnxruntime import Outcome
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.onnxruntime.compare import disagreements
from tests.onnxruntime.recorded import lines, observed, options_of, sample_of

PUBLISHED = "real"
"""The set of lines about published models, which are not here."""
NO_JUDGED_NODE = ("split-to-sequence", "gathers-", "slices-")
OTHER_DIRECTML = "DirectML.dll of"
"""Lines about a DirectML beside ONNX Runtime that it does not ship, where neighbours fail."""


def predicted(line, sample, version):
    run = sample.run or ()
    return on_onnxruntime(
        sample.model,
        version,
        run_shapes={entry.name: entry.shape for entry in run},
        run_values={entry.name: entry.values for entry in run if entry.values is not None},
        free_dimensions=sample.free_dimensions,
        options=options_of(line),
    )


ALL = {"hand-made": {"agreed": 2524, "not built": 31}, "random": {"agreed": 5700}}


@pytest.mark.parametrize(
    ("kind", "step"),
    [("hand-made", 4), *(pytest.param(every, 1, marks=pytest.mark.slow) for every in ALL)],
)
def test_recorded_answers(kind, step):
    counted = Counter()
    for line in [line for line in lines() if line["set"].startswith("random") is (kind == "random")][::step]:
        sample = sample_of(line)
        if sample is None or OTHER_DIRECTML in line.get("env", ""):
            counted["not built"] += 1
            assert line["set"] == PUBLISHED or line["name"].startswith(NO_JUDGED_NODE) or "env" in line, line["name"]
            continue
        for version in line["ort"]:
            nodes = predicted(line, sample, version)
            assert nodes, line["name"]
            waits = {"run"} if "ran" not in line else set()
            unknown = any(n.answer.outcome is Outcome.UNKNOWN and n.answer.at not in waits for n in nodes)
            assert not unknown, (line["name"], [node.answer for node in nodes])
            found = list(disagreements(observed(line), nodes))
            assert found == [], (line["name"], version, line["model"], found)
            counted["agreed"] += 1
    if step == 1:
        assert counted == ALL[kind]
    assert counted["agreed"] > 0.8 * ALL[kind]["agreed"] // step
