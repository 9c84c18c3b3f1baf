"""What levels and releases make of operators: what each would be told by itself."""

import random
from collections import Counter

import pytest

import dmlsplit as dml
from dmlsplit.checking.columns import LEVELS, RELEASES
from dmlsplit.checking.compatibility import _shared, compatibility
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.targets.target import Use
from dmlsplit.verdicts.validation import evaluate
from tests.oracle import operator, reason_to_leave_out, records


@pytest.mark.parametrize("asked", [LEVELS, RELEASES], ids=lambda asked: asked.key)
def test_reports_are_each_targets_own(asked):
    """Targets that judge alike share a report, but for their names and codes."""
    chosen = [r for r in random.Random(5).sample(records("random")[1:], 60) if not reason_to_leave_out(r)]
    for record in chosen:
        desc = operator(record["desc"])
        for answer in compatibility(desc, asked):
            assert answer.report == evaluate(desc, answer.column.target)


@pytest.mark.parametrize("asked", [LEVELS, RELEASES], ids=lambda asked: asked.key)
def test_a_rewriting_is_judged_once_for_targets_that_judge_alike(asked, monkeypatch):
    """One of many operators and tensors is what a page takes its time for."""
    judged = Counter()

    def counted(desc, target):
        judged[desc, str(_shared(OperatorType.SPLIT, target))] += 1
        return evaluate(desc, target)

    monkeypatch.setattr("dmlsplit.checking.compatibility.evaluate", counted)
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (2,) * 30 + (100,))
    found = compatibility(dml.SplitOperatorDesc.from_lengths(whole, 30, (1,) * 100), asked)
    monkeypatch.undo()
    assert set(judged.values()) == {1}
    made = {id(answer.legalization): answer for answer in found if answer.use is Use.REWRITTEN}
    assert len(made) < len(found) / 2
    for answer in found:
        if answer.use is Use.REWRITTEN:
            assert len(answer.legalization.operators) > 20
            assert all(evaluate(operator, answer.column.target).ok for operator in answer.legalization.operators)
