"""What levels and releases make of operators: what each would be told by itself."""

import random

import pytest

from dmlsplit.compatibility import LEVELS, RELEASES, compatibility
from dmlsplit.validation import evaluate
from tests.oracle import operator, reason_to_leave_out, records


@pytest.mark.parametrize("asked", [LEVELS, RELEASES], ids=lambda asked: asked.key)
def test_reports_are_each_targets_own(asked):
    """Targets that judge alike share a report, but for their names and codes."""
    chosen = [r for r in random.Random(5).sample(records("random")[1:], 60) if not reason_to_leave_out(r)]
    for record in chosen:
        desc = operator(record["desc"])
        for answer in compatibility(desc, asked):
            assert answer.report == evaluate(desc, answer.column.target)
