"""Every rule: a descriptor that triggers it and nothing else, and its legal twin across the boundary.

The table is written independently of the examples that the registry itself carries; the two are held to the same test.
Plan: each row is (judge, faulty, legal), the judge a feature level or keywords of validate; a rule with several
boundaries has several rows.
"""

from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES
from tests.rules.judging import JUDGING, ids

T = dml.TensorDataType


def buf(sizes=(2, 3, 4, 5), data_type=T.FLOAT16, **members):
    return dml.BufferTensorDesc(data_type, sizes, **members)


def cut(x=None, axis=1, lengths=(1, 2), make=dml.SplitOperatorDesc):
    return make.from_lengths(x or buf(), axis, lengths)


def glue(x=None, axis=1, lengths=(1, 2)):
    return cut(x, axis, lengths, dml.JoinOperatorDesc)


def out(axis=0, sizes=(4, 6), data_type=T.UINT8, **members):
    """A copy into one output with the given members."""
    return dml.SplitOperatorDesc(buf(sizes, data_type), [buf(sizes, data_type, **members)], axis)


def part(d, index, tensor):
    name = "output_tensors" if isinstance(d, dml.SplitOperatorDesc) else "input_tensors"
    parts = list(getattr(d, name))
    parts[index] = tensor
    return replace(d, **{name: parts})


def whole(tensor):
    """The split of buf() with another input."""
    return dml.SplitOperatorDesc(tensor, cut().output_tensors, 1)


def totals(sizes, data_type, faulty, legal, strides=None):
    """Two splits of one input on its first axis longer than 1 that differ in the input's total (or strides, too)."""
    axis = next(i for i, size in enumerate(sizes) if size > 1)
    lengths = (1, sizes[axis] - 1)
    layouts = strides if strides and isinstance(strides[0], tuple) else (strides, strides)
    inputs = [
        buf(sizes, data_type, total_tensor_size_in_bytes=total, strides=layout)
        for total, layout in zip((faulty, legal), layouts, strict=True)
    ]
    return [cut(x, axis, lengths) for x in inputs]


def wide(data_type, size, stride, total):
    """Two splits of a long input: one whose stride makes its implied size huge, and one that is dense."""
    lengths = (size // 2, size - size // 2)
    far = buf((size, 1), data_type, strides=(stride, 0), total_tensor_size_in_bytes=total)
    return cut(far, 0, lengths), cut(buf((size, 1), data_type, strides=(1, 0)), 0, lengths)


def spans(sizes, strides):
    """Two joins of one input: into an output of these strides, and into a packed one."""
    join = dml.JoinOperatorDesc
    far = buf(sizes, T.UINT8, strides=strides, total_tensor_size_in_bytes=4)
    return join([buf(sizes, T.UINT8)], far, 0), join([buf(sizes, T.UINT8)], buf(sizes, T.UINT8), 0)


def aligned(data_type, alignment):
    return cut(buf(data_type=data_type, guaranteed_base_offset_alignment=alignment))


CUBE = cut(buf((3, 3, 3, 3)), lengths=(3,))
BIG = 2**32 - 1
NEWEST = {"directml": "1.15.4"}
LEVEL_2_1 = {"directml": "tensorflow-directml-1.15.3.dev200619"}
CASES = {
    "split/crash": [
        (NEWEST, whole(None), cut()),
        (NEWEST, whole(dml.TensorDesc(1, None)), cut()),
        (LEVEL_2_1, dml.SplitOperatorDesc(buf(), None, 1, output_count=2), cut()),
        (LEVEL_2_1, part(cut(), 1, dml.TensorDesc(1, None)), cut()),
        (LEVEL_2_1, part(cut(), 1, buf(None, dimension_count=4)), cut()),
        (LEVEL_2_1, whole(buf(None, dimension_count=4)), cut()),
    ],
    "join/crash": [
        (NEWEST, replace(glue(), output_tensor=None), glue()),
        (NEWEST, part(glue(), 0, dml.TensorDesc(1, None)), glue()),
        (NEWEST, part(glue(), 0, buf(None, dimension_count=4)), glue()),
        (NEWEST, replace(glue(), output_tensor=dml.TensorDesc(1, buf(None, dimension_count=4))), glue()),
        (NEWEST, dml.JoinOperatorDesc(None, buf(), 1, input_count=2), glue()),
    ],
    "join/dimension-count-differs": [
        (LEVEL_2_1, glue(buf((1, 2, 3, 4, 5)), 2), glue()),
        ({"directml": "1.5.1"}, glue(buf((3, 5)), 0), glue(buf((1, 1, 1, 3, 5)), 3)),
    ],
    "tensor/implied-size-wraps": [
        # 2 * 2^30 + 1 FLOAT32: 2^33 + 4 bytes, of which 32 bits see 4
        ({"directml": "1.8.0"}, *totals((3, 1), T.FLOAT32, 4, 2**33 + 4, strides=(2**30, 0))),
        # the last index 2^32 wraps to 0
        ({"directml": "1.12.0"}, *totals((3, 1), T.UINT8, 4, 2**32 - 4, strides=((2**31, 0), (2**31 - 3, 0)))),
        # 2^61 + 1 elements of 8 bytes: 8 bytes in 64 bits
        ({"directml": "1.13.1"}, *wide(T.UINT64, 2**31 + 1, 2**30, 8)),
        # 2^58 + 1 elements of 64 bits: 8 bytes in 64 bits of bits
        ({"directml": "1.15.4"}, *wide(T.UINT64, 2**29 + 1, 2**29, 8)),
    ],
    "tensor/output-span-wraps": [
        ({"directml": "1.8.0"}, *spans((2, 2), (BIG, 1))),
        ({"directml": "1.12.0"}, *spans((2, 2), (BIG, 1))),
        # exactly 2^32 places: only the oldest arithmetic sees none
        ({"directml": "1.8.0"}, *spans((4, 1), (0x55555555, 0))),
    ],
    "tensor/total-size-beyond-documentation": [
        ({"directml": "1.13.1"}, *totals((2, 3, 4, 5), T.FLOAT16, 2 * BIG + 1, 2 * BIG)),
        ({"directml": "1.5.1"}, *totals((3, 3), T.FLOAT32, 4 * BIG + 3, 4 * BIG)),
    ],
    "tensor/null": [
        (None, whole(None), cut()),
        (None, part(cut(), 1, None), cut()),
        (None, replace(glue(), output_tensor=None), glue()),
        (None, part(glue(), 0, None), glue()),
    ],
    "tensor/type-not-buffer": [
        (None, whole(dml.TensorDesc(0, buf())), whole(dml.TensorDesc(1, buf()))),
        (None, part(cut(), 0, dml.TensorDesc(2, buf((2, 1, 4, 5)))), cut()),
        (None, part(glue(), 0, dml.TensorDesc(BIG, buf((2, 1, 4, 5)))), glue()),
    ],
    "tensor/desc-null": [
        (None, whole(dml.TensorDesc(1, None)), cut()),
        (None, part(cut(), 1, dml.TensorDesc(1, None)), cut()),
    ],
    "tensor/data-type-unknown": [
        (None, cut(buf(data_type=0, total_tensor_size_in_bytes=240)), cut(buf(data_type=1))),
        (None, cut(buf(data_type=14, total_tensor_size_in_bytes=240)), cut(buf(data_type=11))),
        (None, glue(buf(data_type=BIG, total_tensor_size_in_bytes=240)), glue()),
    ],
    "tensor/data-type-not-supported": [
        ("1_0", cut(buf(data_type=T.UINT8)), cut(buf(data_type=T.UINT16))),
        ("2_0", glue(buf(data_type=T.INT8)), glue(buf(data_type=T.INT16))),
        ("4_0", cut(buf(data_type=T.FLOAT64)), cut(buf(data_type=T.FLOAT32))),
        ("4_0", glue(buf((2, 3, 4, 6), data_type=T.UINT64)), glue(buf((2, 3, 4, 6), data_type=T.UINT32))),
        ("6_4", cut(buf(data_type=T.UINT4)), cut(buf(data_type=T.UINT8))),
    ],
    "tensor/flags-unknown": [
        (None, cut(buf(flags=2)), cut(buf(flags=1))),
        (None, cut(buf(flags=3)), cut(buf(flags=0))),
        (None, part(cut(), 0, buf((2, 1, 4, 5), flags=0x80000000)), cut()),
    ],
    "tensor/output-owned-by-dml": [
        (None, part(cut(), 0, buf((2, 1, 4, 5), flags=1)), cut(buf(flags=1))),
        (None, glue(buf(flags=1)), part(glue(), 0, buf((2, 1, 4, 5), flags=1))),
    ],
    "tensor/dimension-count-out-of-range": [
        (None, cut(buf((1,) * 8 + (3,)), -1), cut(buf((1,) * 7 + (3,)), -1)),
        (None, part(cut(), 0, buf(dimension_count=0)), cut()),
        (None, cut(buf(dimension_count=BIG)), cut(buf(dimension_count=4))),
    ],
    "tensor/dimension-count-not-supported": [
        ("2_1", cut(buf((2, 3, 4)), 1), cut(buf((1, 2, 3, 4)), 2)),
        ("2_1", cut(buf((1, 2, 3, 4, 1)), 2), cut(buf((1, 2, 3, 4)), 2)),
        ("2_1", glue(buf((2, 3, 4)), 1), glue(buf((1, 2, 3, 4)), 2)),
        ("3_0", glue(buf((1, 1, 2, 3, 4, 1)), 3), glue(buf((1, 2, 3, 4, 1)), 2)),
    ],
    "tensor/sizes-null": [
        (None, whole(buf(None, dimension_count=4, total_tensor_size_in_bytes=240)), cut()),
        (None, part(cut(), 0, buf(None, dimension_count=4)), cut()),
    ],
    "tensor/sizes-too-few": [
        (None, whole(buf((2, 3, 4), dimension_count=4)), whole(buf((2, 3, 4, 5), dimension_count=4))),
    ],
    "tensor/sizes-too-many": [
        (None, whole(buf((2, 3, 4, 5, 6), dimension_count=4)), whole(buf((2, 3, 4, 5), dimension_count=4))),
    ],
    "tensor/size-zero": [
        (None, cut(lengths=(0, 3)), cut(lengths=(3,))),
        (None, cut(buf((0, 3, 4, 5))), cut(buf((1, 3, 4, 5)))),
        (None, glue(buf((2, 3, 0, 5), total_tensor_size_in_bytes=4)), glue()),
    ],
    "tensor/element-count-too-large": [
        (
            None,
            dml.SplitOperatorDesc(
                buf((2**16, 2**16), strides=(0, 0)), [buf((2**16, 2**15)), buf((2**16, 2**15))], 1
            ),
            dml.SplitOperatorDesc(
                buf((2**16 - 1, 2**16 + 1), strides=(0, 0)), [buf((2**16 - 1, 2**15)), buf((2**16 - 1, 2**15 + 1))], 1
            ),
        ),
    ],
    "tensor/strides-too-few": [
        (None, cut(buf(strides=(60, 20, 5), total_tensor_size_in_bytes=240)), cut(buf(strides=(60, 20, 5, 1)))),
    ],
    "tensor/strides-too-many": [
        (None, cut(buf(strides=(60, 20, 5, 1, 1), total_tensor_size_in_bytes=240)), cut(buf(strides=(60, 20, 5, 1)))),
    ],
    "tensor/output-stride-zero": [
        (None, out(strides=(0, 1)), out(strides=(6, 1))),
        (None, out(sizes=(1, 6), strides=(0, 0)), out(sizes=(1, 6), strides=(0, 1))),
        (None, glue(buf(strides=(60, 20, 0, 1))), part(glue(), 0, buf((2, 1, 4, 5), strides=(20, 20, 0, 1)))),
    ],
    "tensor/output-strides-equal": [
        (None, out(strides=(9, 9)), out(strides=(9, 1))),
        (None, out(sizes=(4, 1, 6), strides=(9, 3, 9)), out(sizes=(4, 1, 6), strides=(9, 9, 1))),
        (None, glue(buf(strides=(60, 20, 20, 1))), glue(buf(strides=(60, 20, 5, 1)))),
    ],
    "tensor/output-span-too-small": [
        (None, out(strides=(5, 1)), out(strides=(6, 1))),
        # 24 elements, 1 + 5 * 3 + 3 * 2 = 22 places
        (None, out(strides=(2, 3)), out(strides=(1, 4))),
    ],
    "tensor/output-elements-overlap": [
        # 16 elements on 16 places: the pigeonhole test passes, (0, 3) and (2, 0) coincide
        (None, out(sizes=(4, 4), strides=(3, 2)), out(sizes=(4, 3), strides=(3, 2))),
        (None, out(sizes=(1, 1, 4, 3), strides=(1, 1, 2, 3)), out(sizes=(1, 1, 3, 2), strides=(1, 1, 2, 3))),
    ],
    "tensor/output-overlap-undecided": [
        (
            None,
            out(
                sizes=(8, 7, 8, 10, 10, 12),
                strides=(71189247, 86866478, 130923340, 126580591, 107794138, 14629924),
            ),
            out(sizes=(8, 7, 8, 10, 10, 12), strides=(67200, 9600, 1200, 120, 12, 1)),
        ),
    ],
    "tensor/implied-size-too-large": [
        (
            None,
            # 1 + (2^30 - 1) * 2^31 + 2^31 * ... elements of 8 bytes: more than 2^64 bytes
            cut(buf((2**31, 1), T.UINT64, strides=(2**32 - 1, 0)), 0, (2**30, 2**30)),
            cut(buf((2**31, 1), T.UINT64, strides=(1, 0)), 0, (2**30, 2**30)),
        ),
    ],
    "tensor/total-size-too-small": [
        (None, *totals((1, 1, 3, 3), T.FLOAT16, 19, 20)),
        (None, *totals((3, 3), T.UINT8, 11, 12)),
        (None, *totals((2, 3, 4, 5), T.FLOAT16, 243, 244, strides=(61, 20, 5, 1))),
        (None, *totals((2, 3, 4, 5), T.FLOAT16, 0, 241)),
        (None, *totals((3, 2**30), T.UINT64, 4 * (2**32 - 1), 8 * 3 * 2**30)),
        # The implied size is exact: in 32 bits it would be 16.
        (None, *totals((3, 2), T.UINT64, 16, 2**32 + 16, strides=(2**28, 1))),
    ],
    "tensor/total-size-too-large": [
        (None, *totals((2, 3, 4, 5), T.FLOAT16, 2 * BIG + 1, 2 * BIG)),
        (None, *totals((3, 3), T.UINT8, BIG + 1, BIG)),
        (None, *totals((3, 3), T.INT64, 2**64 - 1, 8 * BIG)),
        (None, glue(buf(total_tensor_size_in_bytes=2**64 - 1)), glue()),
    ],
    "tensor/alignment-not-power-of-two": [
        (None, cut(buf(guaranteed_base_offset_alignment=24)), cut(buf(guaranteed_base_offset_alignment=32))),
        (None, cut(buf(guaranteed_base_offset_alignment=BIG)), cut(buf(guaranteed_base_offset_alignment=2**31))),
    ],
    "tensor/alignment-below-element-size": [
        (None, cut(buf(guaranteed_base_offset_alignment=1)), cut(buf(guaranteed_base_offset_alignment=0))),
        (None, aligned(T.INT64, 4), aligned(T.INT64, 16)),
    ],
    "tensor/alignment-below-16": [
        (None, cut(buf(guaranteed_base_offset_alignment=2)), cut(buf(guaranteed_base_offset_alignment=16))),
        (None, aligned(T.INT64, 8), aligned(T.INT64, 0)),
    ],
    "split/output-count-zero": [
        (None, dml.SplitOperatorDesc(buf(), [], 1), cut(lengths=(3,))),
        (None, dml.SplitOperatorDesc(buf(), None, 1, output_count=0), cut(lengths=(3,))),
    ],
    "split/outputs-null": [(None, dml.SplitOperatorDesc(buf(), None, 1, output_count=2), cut())],
    "split/output-count-exceeds-array": [
        (None, replace(cut(), output_count=3), replace(cut(), output_count=2)),
        (None, replace(cut(), output_count=BIG), cut()),
    ],
    "split/outputs-beyond-count": [
        (None, replace(cut(lengths=(1, 2, 7)), output_count=2), cut()),
    ],
    "split/axis-out-of-range": [
        (None, replace(CUBE, axis=4), replace(CUBE, axis=3)),
        (None, replace(cut(lengths=(3,)), axis=BIG), cut(lengths=(3,))),
        (None, replace(cut(), axis=8), cut()),
    ],
    "split/data-type-mismatch": [
        (None, part(cut(), 0, buf((2, 1, 4, 5), T.UINT16)), cut()),
        (None, part(cut(), 1, buf((2, 2, 4, 5), T.FLOAT32)), cut()),
    ],
    "split/dimension-count-mismatch": [
        (None, part(cut(), 0, buf((1, 2, 1, 4, 5))), cut()),
        (None, part(cut(), 1, buf((2, 4, 5))), cut()),
    ],
    "split/size-mismatch": [
        (None, part(cut(), 0, buf((1, 1, 4, 5))), cut()),
        (None, part(cut(), 1, buf((2, 2, 4, 6))), cut()),
    ],
    "split/axis-sizes-sum": [
        (None, cut(lengths=(1, 1)), cut(lengths=(1, 2))),
        (None, cut(lengths=(2, 2)), cut(lengths=(2, 1))),
        (None, cut(buf((2,), T.UINT8), 0, (2**31 + 1, 2**31 + 1)), cut(buf((2,), T.UINT8), 0, (1, 1))),
    ],
    "join/input-count-zero": [(None, dml.JoinOperatorDesc([], buf(), 1), glue(lengths=(3,)))],
    "join/inputs-null": [(None, dml.JoinOperatorDesc(None, buf(), 1, input_count=1), glue(lengths=(3,)))],
    "join/input-count-exceeds-array": [(None, replace(glue(), input_count=3), glue())],
    "join/inputs-beyond-count": [(None, replace(glue(lengths=(1, 2, 3)), input_count=2), glue())],
    "join/input-element-count-too-large": [
        (None, glue(buf((2**31, 1), T.UINT8), 0, (2**31,)), glue(buf((2**31 - 1, 1), T.UINT8), 0, (2**31 - 1,))),
        (None, glue(buf((2, 2**30), T.INT8), 0, (2,)), glue(buf((2, 2**30), T.INT8), 0, (1, 1))),
    ],
    "join/axis-out-of-range": [(None, replace(glue(), axis=4), glue())],
    "join/data-type-mismatch": [(None, part(glue(), 0, buf((2, 1, 4, 5), T.UINT16)), glue())],
    "join/dimension-count-mismatch": [(None, part(glue(), 0, buf((2, 1, 4, 5, 1))), glue())],
    "join/size-mismatch": [(None, part(glue(), 0, buf((2, 1, 1, 5))), glue())],
    "join/axis-sizes-sum": [(None, glue(lengths=(1, 1)), glue(lengths=(1, 2)))],
}  # fmt: skip
ROWS = [(rule, *row) for rule, rows in CASES.items() for row in rows]


def test_every_rule_of_descriptors_has_a_row():
    assert set(CASES) == {rule.id for rule in JUDGING}


@pytest.mark.parametrize(("rule", "level", "faulty", "legal"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule_fires_alone_and_its_twin_is_legal(rule, level, faulty, legal):
    judge = level if isinstance(level, dict) else {"feature_level": level or "6_4"}
    report = dml.validate(faulty, **judge)
    assert ids(report) == {rule}
    assert report.ok is (RULES[rule].severity is not dml.Severity.ERROR)
    refused = not report.ok and RULES[rule].basis is not dml.Basis.OURS
    if rule.endswith("/crash"):
        assert report.hresult is None
    else:
        assert report.hresult == (dml.HResult.E_INVALIDARG if refused else dml.HResult.S_OK)
    twin = dml.validate(legal, **judge)
    assert twin.ok
    assert not twin.diagnostics
    assert twin.hresult == dml.HResult.S_OK


@pytest.mark.parametrize("level", ["2_1", "3_1", "4_0"])
def test_a_join_that_page_and_builds_judge_differently_gets_a_note_by_level(level):
    """By level the page decides, and a note says what builds of that level do."""
    d = glue(buf((1, 2, 3, 4, 5)), 2) if level == "2_1" else glue(buf((2, 3, 4)))
    report = dml.validate(d, feature_level=level)
    assert ids(report) == {"tensor/dimension-count-not-supported", "join/dimension-count-differs"}
    assert not report.ok
    assert {f.severity for f in report.diagnostics if f.rule.startswith("join/")} == {dml.Severity.NOTE}
    assert dml.validate(glue(), feature_level=level).diagnostics == ()
