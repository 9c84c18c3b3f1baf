"""Limits on reading files stand in one table, and nowhere else."""

import re
from pathlib import Path

import pytest

import dmlsplit
from dmlsplit.formats.limits import Budget, Limit, LimitError

PACKAGE = Path(dmlsplit.__file__).parent
READERS = [PACKAGE / name for name in ("formats", "models", "onnxruntime", "mending")]
NO_LIMITS_OF_READING = {
    "MAX_SIZE",  # of DirectML's UINTs, and of OpenVINO's int64
    "MAX_DIMENSIONS",  # of what is written
    "MAX_RANK",  # of ONNX Runtime's DirectML kernels
}


def test_modules_take_their_limits_from_the_table():
    numbers = re.compile(r"^_?(MAX_\w+|TIMEOUT)\b.*= *[0-9]", re.MULTILINE)
    found = {
        name for folder in READERS for path in folder.rglob("*.py") for name in numbers.findall(path.read_text("utf-8"))
    }
    assert found == NO_LIMITS_OF_READING


def test_each_says_what_it_bounds():
    assert all(limit.most > 0 and limit.unit and limit.bounds and limit.a_byte >= 0 for limit in Limit)


def test_some_grow_with_the_file():
    assert Limit.ONNX_COPIED.of(1000) == Limit.ONNX_COPIED.most + 16_000
    assert Limit.ONNX_NAME.of(1000) == Limit.ONNX_NAME.most


def test_a_budget_is_spent_once():
    budget = Budget(0)
    budget.spend(Limit.ONNX_FOLDING, 60)
    budget.spend(Limit.ONNX_FOLDING, 4)
    budget.spend(Limit.IR_CHAIN, 64)
    with pytest.raises(LimitError, match="beyond the limit ONNX_FOLDING: 64 nodes for "):
        budget.spend(Limit.ONNX_FOLDING)
