"""Rules of Split and Join: the array of tensors and its count, the axis, and what the tensors have in common.

Plan: what both operators have is one table, run for each of them; then what only a Join has. Every member that has to
agree is varied in the first and in the last of the parts; counts and lengths on both sides of what is right.
"""

from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.rules import operator
from tests.rules.judging import (
    UINT_MAX,
    T,
    buf,
    case,
    check,
    cut,
    each,
    glue,
    ids,
    rules_in,
    with_count,
    with_part,
    with_whole,
)

SCOPES = {"split": cut, "join": glue}
NAMES = {"split": ("output", "outputs"), "join": ("input", "inputs")}


def without_parts(make, parts, count=None):
    """An operator whose array of parts is another, or a null pointer."""
    if make is cut:
        return dml.SplitOperatorDesc(buf(), parts, 1, output_count=count)
    return dml.JoinOperatorDesc(parts, buf(), 1, input_count=count)


def shared(scope):
    """The cases of the rules that both operators have."""
    make, (part, parts) = SCOPES[scope], NAMES[scope]
    legal = make()
    cube = make(buf((3, 3, 3, 3)), lengths=(3,))
    return {
        f"{scope}/{part}-count-zero": {
            "an empty array": case(without_parts(make, []), make(lengths=(3,))),
            "a null pointer": case(without_parts(make, None, 0), make(lengths=(3,))),
        },
        f"{scope}/{parts}-null": {
            "count 1": case(without_parts(make, None, 1), make(lengths=(3,))),
            "count 2": case(without_parts(make, None, 2), legal),
        },
        f"{scope}/{part}-count-exceeds-array": {
            "by one": case(with_count(legal, 3), with_count(legal, 2)),
            "the largest": case(with_count(legal, UINT_MAX), with_count(legal, 2)),
        },
        f"{scope}/{parts}-beyond-count": {
            "one": case(with_count(make(lengths=(1, 2, 7)), 2), with_count(legal, 2)),
        },
        f"{scope}/axis-out-of-range": {
            "one past the last": case(replace(cube, axis=4), replace(cube, axis=3)),
            "within 8 dimensions": case(replace(legal, axis=7), legal),
            "-1 as a UINT": case(replace(legal, axis=UINT_MAX), legal),
        },
        f"{scope}/data-type-mismatch": {
            "first, of the same size": case(with_part(legal, 0, buf((2, 1, 4, 5), T.UINT16)), legal),
            "last, of another size": case(with_part(legal, 1, buf((2, 2, 4, 5), T.FLOAT32)), legal),
        },
        f"{scope}/dimension-count-mismatch": {
            "first, one more": case(with_part(legal, 0, buf((2, 1, 4, 5, 1))), legal),
            "last, one less": case(with_part(legal, 1, buf((2, 2, 4))), legal),
        },
        f"{scope}/size-mismatch": {
            "first, before the axis": case(with_part(legal, 0, buf((1, 1, 4, 5))), legal),
            "last, behind the axis": case(with_part(legal, 1, buf((2, 2, 4, 6))), legal),
        },
        f"{scope}/axis-sizes-sum": {
            "one less": case(make(lengths=(1, 1)), make(lengths=(1, 2))),
            "one more": case(make(lengths=(2, 2)), make(lengths=(2, 1))),
        },
    }


CASES = {
    **shared("split"),
    **shared("join"),
    "join/input-element-count-too-large": {
        "2^31 and one less": case(
            glue(buf((2**31, 1), T.UINT8), 0, (2**31,)), glue(buf((2**31 - 1, 1), T.UINT8), 0, (2**31 - 1,))
        ),
        "of one input, not of the output": case(
            glue(buf((2, 2**30), T.INT8), 0, (2,)), glue(buf((2, 2**30), T.INT8), 0, (1, 1))
        ),
    },
    "join/dimension-count-differs": {
        "5 in builds of 2_1": case(
            glue(buf((1, 2, 3, 4, 5)), 2), glue(), directml="tensorflow-directml-1.15.3.dev200619"
        ),
        "2 in builds of 4_0": case(glue(buf((3, 5)), 0), glue(buf((1, 1, 1, 3, 5)), 3), directml="1.5.1"),
    },
}
CASES["split/axis-sizes-sum"]["a sum that is right modulo 2^32"] = case(
    cut(buf((2,), T.UINT8), 0, (2**31 + 1, 2**31 + 1)), cut(buf((2,), T.UINT8), 0, (1, 1))
)


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(operator)


@pytest.mark.parametrize("level", ["2_1", "3_1", "4_0"])
def test_a_join_that_page_and_builds_judge_differently_gets_a_note_by_level(level):
    """By level the page decides, and a note says what builds of that level do."""
    d = glue(buf((1, 2, 3, 4, 5)), 2) if level == "2_1" else glue(buf((2, 3, 4)))
    report = dml.validate(d, feature_level=level)
    assert ids(report) == {"tensor/dimension-count-not-supported", "join/dimension-count-differs"}
    assert not report.ok
    assert {f.severity for f in report.diagnostics if f.rule.startswith("join/")} == {dml.Severity.NOTE}
    assert dml.validate(glue(), feature_level=level).diagnostics == ()


def test_no_axis_is_in_the_range_of_no_dimensions():
    scalar = with_whole(cut(), buf(()))
    assert ids(dml.validate(scalar)) == {"tensor/dimension-count-out-of-range", "split/axis-out-of-range"}
