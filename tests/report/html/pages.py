"""Pages for the tests: operators of every kind in two files, and thousands of them."""

from __future__ import annotations

import random
from dataclasses import replace

import dmlsplit as dml
from dmlsplit.checking.results import Judged, NotJudged, NotRead
from dmlsplit.descriptors.location import Location
from dmlsplit.report import html
from dmlsplit.rules import RULES

HOSTILE = "</script><script>document.title='owned'</script>\x00\x1b[31m\u202e<img src=x onerror=alert(1)>\ud800"
FLOAT = dml.TensorDataType.FLOAT32


def split(sizes, axis, lengths, data_type=FLOAT, **members):
    return dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes, **members), axis, lengths)


GOOD = split((1, 1, 6, 2), 2, (2, 1, 3))
SUM = split((1, 1, 6, 2), 2, (2, 1))
INT64 = split((1, 4, 8, 8), 1, (1, 3), dml.TensorDataType.INT64)
RANK = split((4, 6, 10), 1, (2, 4))


def judged(desc, name=None, *, file="models/a.json", index=0, level="4_1"):
    report = replace(dml.validate(desc, feature_level=level), file=file, index=index)
    return Judged(report, name, (index + 1, 1), descriptor=desc)


def malformed(file, index):
    diagnostic = RULES["input/malformed"].diagnostic(Location(), f"not JSON: {HOSTILE}", line=9, column=2)
    return NotRead(dml.Report((diagnostic,), "feature level 4_1", None, None, file, index), None, (9, 2))


def small():
    """What every kind of verdict and outcome is in; two of the operators are equal."""
    named = [("cut", GOOD), ("sum", SUM), ("wide", INT64), ("rank 3", RANK), (HOSTILE, GOOD)]
    named += [("join", dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(FLOAT, (2, 6)), 1, (2, 4)))]
    named += [("item 10", split((3, 12), 1, (4, 8))), ("item 9", split((3, 13), 1, (4, 9)))]
    items = [judged(desc, name, index=i) for i, (name, desc) in enumerate(named)]
    other = RULES["input/operator-not-judged"].diagnostic(Location(), "DML_OPERATOR_GEMM is not judged")
    second = "models/<b>b</b>\u202e.jsonl"
    items.append(judged(GOOD, file=second))
    items.append(malformed(second, 1))
    items.append(NotJudged(dml.Report((other,), "feature level 4_1", None, None, second, 2), None, (3, 1)))
    return items


def twice():
    """Three operators, each judged by two feature levels."""
    for i, desc in enumerate([GOOD, SUM, split((1, 4, 8, 8), 1, (1, 3))]):
        yield from (judged(desc, f"item {9 + i}", index=i, level=level) for level in ("4_1", "1_0"))


def many(count, distinct=None):
    """Operators of which as many are `distinct` (all of them, by default), and a tenth faulty."""
    for i in range(count):
        rng = random.Random(i % (distinct or count))
        sizes = [rng.randint(1, 64) for _ in range(rng.randint(1, 6))]
        axis = rng.randrange(len(sizes))
        sizes[axis] = rng.randint(4, 300)
        first = rng.randint(1, sizes[axis] - 1)
        lengths = [first, sizes[axis] - first + (rng.random() < 0.1)]
        data_type = rng.choice([FLOAT, dml.TensorDataType.FLOAT16, dml.TensorDataType.INT64, dml.TensorDataType.UINT8])
        yield judged(split(sizes, axis, lengths, data_type), f"/layers.{i}/Split", file="many.jsonl", index=i)


def page(items, judges=1):
    return "".join(html.chunks(items, judges))
