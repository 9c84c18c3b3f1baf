"""Rules of a tensor by itself: pointers, data type, flags, and sizes.

Plan, for each rule: the smallest fault, at every place where a descriptor has a tensor, if places differ; the level
where the boundary lies, if levels differ; the largest value that the member's C type holds, if any value is a fault.
"""

import pytest

import dmlsplit as dml
from dmlsplit.rules import tensor
from tests.rules.judging import UINT_MAX, T, buf, case, check, copied, cut, each, glue, rules_in, with_part, with_whole

TOTAL = {"total_tensor_size_in_bytes": 240}
"""Given, where the sizes or the type do not say it."""


def of_type(data_type, make=cut):
    return make(buf((2, 3, 4, 6), data_type))


def of_rank(*sizes, make=cut):
    """Cut, or joined, along the dimension of 3."""
    return make(buf(sizes), sizes.index(3))


def without_sizes(make, count=4):
    return with_whole(make(), buf(None, dimension_count=count, **TOTAL))


CASES = {
    "tensor/null": {
        "a split's input": case(with_whole(cut(), None), cut()),
        "a split's output": case(with_part(cut(), 1, None), cut()),
        "a join's output": case(with_whole(glue(), None), glue()),
        "a join's input": case(with_part(glue(), 0, None), glue()),
    },
    "tensor/type-not-buffer": {
        "INVALID": case(with_whole(cut(), dml.TensorDesc(0, buf())), with_whole(cut(), dml.TensorDesc(1, buf()))),
        "one above BUFFER": case(with_part(cut(), 0, dml.TensorDesc(2, buf((2, 1, 4, 5)))), cut()),
        "the largest": case(with_part(glue(), 0, dml.TensorDesc(UINT_MAX, buf((2, 1, 4, 5)))), glue()),
    },
    "tensor/desc-null": {
        "input": case(with_whole(cut(), dml.TensorDesc(1, None)), cut()),
        "output": case(with_part(cut(), 1, dml.TensorDesc(1, None)), cut()),
    },
    "tensor/data-type-unknown": {
        "one below the first": case(cut(buf(data_type=0, **TOTAL)), cut(buf(data_type=1))),
        "one above the last": case(cut(buf(data_type=14, **TOTAL)), of_type(11)),
        "the largest": case(glue(buf(data_type=UINT_MAX, **TOTAL)), glue()),
    },
    "tensor/data-type-not-supported": {
        "8 bits before 2_1, split": case(of_type(T.UINT8), of_type(T.UINT16), feature_level="1_0"),
        "8 bits before 2_1, join": case(of_type(T.INT8, glue), of_type(T.INT16, glue), feature_level="2_0"),
        "64 bits before 4_1, split": case(of_type(T.FLOAT64), of_type(T.FLOAT32), feature_level="4_0"),
        "64 bits before 4_1, join": case(of_type(T.UINT64, glue), of_type(T.UINT32, glue), feature_level="4_0"),
        "4 bits at any": case(of_type(T.UINT4), of_type(T.UINT8)),
    },
    "tensor/flags-unknown": {
        "the lowest unknown bit": case(cut(buf(flags=2)), cut(buf(flags=1))),
        "beside a known one": case(cut(buf(flags=3)), cut(buf(flags=1))),
        "the highest bit": case(with_part(cut(), 0, buf((2, 1, 4, 5), flags=0x80000000)), cut()),
    },
    "tensor/output-owned-by-dml": {
        "split": case(with_part(cut(), 0, buf((2, 1, 4, 5), flags=1)), cut(buf(flags=1))),
        "join": case(glue(buf(flags=1)), with_part(glue(), 0, buf((2, 1, 4, 5), flags=1))),
    },
    "tensor/dimension-count-out-of-range": {
        "0": case(with_part(cut(), 0, buf(dimension_count=0)), cut(buf((3,)), 0)),
        "9": case(of_rank(*(1,) * 8, 3), of_rank(*(1,) * 7, 3)),
        "the largest": case(cut(buf(dimension_count=UINT_MAX)), cut(buf(dimension_count=4))),
    },
    "tensor/dimension-count-not-supported": {
        "3 before 3_0": case(of_rank(2, 3, 4), of_rank(1, 2, 3, 4), feature_level="2_1"),
        "5 before 3_0": case(of_rank(1, 2, 3, 4, 1), of_rank(1, 2, 3, 4), feature_level="2_1"),
        "3 of a join before 3_0": case(
            of_rank(2, 3, 4, make=glue), of_rank(1, 2, 3, 4, make=glue), feature_level="2_1"
        ),
        "6 of a join before 4_1": case(
            of_rank(1, 1, 2, 3, 4, 1, make=glue), of_rank(1, 2, 3, 4, 1, make=glue), feature_level="3_0"
        ),
    },
    "tensor/sizes-null": {
        "input": case(without_sizes(cut), cut()),
        "output": case(with_part(cut(), 0, buf(None, dimension_count=4)), cut()),
    },
    "tensor/sizes-too-few": {
        "one": case(with_whole(cut(), buf((2, 3, 4), dimension_count=4)), with_whole(cut(), buf(dimension_count=4))),
    },
    "tensor/sizes-too-many": {
        "one": case(
            with_whole(cut(), buf((2, 3, 4, 5, 6), dimension_count=4)), with_whole(cut(), buf(dimension_count=4))
        ),
    },
    "tensor/size-zero": {
        "of a part, along the axis": case(cut(lengths=(0, 3)), cut(lengths=(1, 2))),
        "of all, before the axis": case(cut(buf((0, 3, 4, 5))), cut(buf((1, 3, 4, 5)))),
        "of all, behind the axis": case(glue(buf((2, 3, 0, 5), total_tensor_size_in_bytes=4)), glue(buf((2, 3, 1, 5)))),
    },
    "tensor/element-count-too-large": {
        "2^32 and one less": case(
            dml.SplitOperatorDesc(buf((2**16, 2**16), strides=(0, 0)), [buf((2**16, 2**15)), buf((2**16, 2**15))], 1),
            dml.SplitOperatorDesc(
                buf((2**16 - 1, 2**16 + 1), strides=(0, 0)), [buf((2**16 - 1, 2**15)), buf((2**16 - 1, 2**15 + 1))], 1
            ),
        ),
    },
}


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(tensor)


@pytest.mark.parametrize("count", range(1, 9))
def test_every_documented_number_of_dimensions(count):
    assert dml.validate(copied((1,) * (count - 1) + (3,))).ok


def test_the_layout_of_a_tensor_without_elements_is_not_judged():
    """Its last element would be the one before its first."""
    empty = buf((2, 0), T.UINT8, strides=(1000, 1), total_tensor_size_in_bytes=4)
    report = dml.validate(dml.SplitOperatorDesc(empty, [empty], 0))
    assert [(d.rule, d.path) for d in report.diagnostics] == [
        ("tensor/size-zero", f"{tensor}.Sizes[1]") for tensor in ("InputTensor", "OutputTensors[0]")
    ]
