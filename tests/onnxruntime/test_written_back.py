"""ONNX Runtime itself: what is written for a version is taken by it, and what was refused by it before was mended."""

from __future__ import annotations

import onnx
import pytest

from dmlsplit.formats import onnx as front_end
from dmlsplit.onnxruntime import Outcome
from dmlsplit.system.errors import NotLegalizedError
from tests.formats.mending import generator
from tests.formats.mending.wrong import WRONG
from tests.onnxruntime.compare import compare, observed, predicted
from tests.onnxruntime.conftest import COUNT, FRESH
from tests.onnxruntime.models import RunInput, Sample

pytestmark = pytest.mark.onnxruntime

FIXED_SEED = 0
MODELS = COUNT // 8
"""Fewer than elsewhere: each is judged, mended, judged again, and run twice."""


def sample(model, arrays):
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    inputs = [RunInput(name, types[name], array.shape) for name, array in arrays.items()]
    return Sample("written", model, inputs, [v.name for v in model.graph.output])


def has_lengths_of_device(asked, answers):
    """Whether a Concat that DirectML computes gives the lengths of a Split: they are zeros here."""
    joined = {node.path for node in answers if node.op == "Concat" and node.answer.outcome is Outcome.DML}
    return any(n.op_type == "Split" and not joined.isdisjoint(n.input[1:]) for n in asked.model.graph.node)


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_what_is_written_is_taken(made, runtime, seed, compared):
    changed = failed_before = refused = unknown = 0
    for index in range(MODELS):
        model, arrays = generator.model(seed + index)
        try:
            written = front_end.legalize(model, onnxruntime=made.version)
        except NotLegalizedError:
            refused += 1
            continue
        asked = sample(onnx.load_from_string(written.model), arrays)
        answers = predicted(asked, made.version)
        if any(node.answer.outcome is Outcome.UNKNOWN for node in answers) or has_lengths_of_device(asked, answers):
            unknown += 1  # nothing is promised of it
            continue
        record = runtime.ask(asked.query)
        found = observed(record)
        assert found.session, (seed + index, found.error)
        assert found.ran, (seed + index, found.error)
        assert compare(record, answers).disagreements == (), seed + index
        if written.changes:
            changed += 1
            before = observed(runtime.ask(sample(model, arrays).query))
            failed_before += not (before.session and before.ran)
    compared(
        f"onnxruntime {made.version}: {MODELS} models of seed {seed} written back, {changed} changed, of which "
        f"{failed_before} failed before; {refused} could not be mended, of {unknown} nothing is known"
    )
    assert failed_before or changed < 5


@pytest.mark.parametrize("wrong", [model for model, _ in WRONG.values()], ids=WRONG)
def test_wrong_graphs(made, runtime, wrong):
    written = front_end.legalize(wrong, onnxruntime=made.version)
    found = observed(runtime.ask(Sample("written", onnx.load_from_string(written.model)).query))
    assert found.session, found.error
