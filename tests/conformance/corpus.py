"""What other people's tests, documents and running programs say of Split; tests/data/conformance/."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[1] / "data" / "conformance"
EXCEPTIONS = json.loads((DATA / "exceptions.json").read_text("utf-8"))
"""Rows that are not followed, by id: the reason, and what is expected in their place."""


def rows(name, **fields):
    """The rows of cases.jsonl or observed.jsonl whose fields have these values (or one of a tuple of them)."""
    wanted = {k: v if isinstance(v, tuple) else (v,) for k, v in fields.items()}
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return [row for row in found if all(row.get(k) in v for k, v in wanted.items())]


def params(found):
    return [pytest.param(row, id=row["id"]) for row in found]


def is_static(shape):
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def dtype_of(name):
    if name in ("string", "str"):
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(
            getattr(ml_dtypes, {"float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}.get(name, name))
        )


def input_array(case):
    """The data of a case; None where it states none."""
    if case.get("data") is None or not is_static(case["shape"]):
        return None
    data, count = case["data"], int(np.prod(case["shape"]))
    if isinstance(data, dict):
        data = [data.get("start", 0) + i * data.get("step", 1) for i in range(count)]
    return np.array(data, dtype_of(case["dtype"])).reshape(case["shape"])


def expected_arrays(case):
    """The outputs that a case states; None where it states no values."""
    expect = case["expect"]
    if not expect.get("ok") or "values" not in expect:
        return None
    dtype = dtype_of(case["dtype"])
    return [np.array(v, dtype).reshape(s) for v, s in zip(expect["values"], expect["shapes"], strict=True)]
