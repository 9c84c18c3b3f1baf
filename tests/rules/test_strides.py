"""Rules of strides: how many there are, and whether an output's lead two elements to one place.

Plan: the number one too few and one too many; of outputs the cheap tests that DirectML makes (a stride of 0, equal
strides, too short a span), each at its boundary and with dimensions of 1, which do not count everywhere; then what
these let pass: true overlap, which is ours to find, and a search that has to give up.
"""

import dmlsplit as dml
from dmlsplit.rules import strides
from tests.rules.judging import UINT_MAX, T, buf, case, check, copied, cut, each, glue, rules_in, with_part

LONGER = {"total_tensor_size_in_bytes": 240}


def joined(sizes, strides):
    """A join of one input into an output of these strides, whose total says 4 bytes."""
    far = buf(sizes, T.UINT8, strides=strides, total_tensor_size_in_bytes=4)
    return dml.JoinOperatorDesc([buf(sizes, T.UINT8)], far, 0)


def packed(sizes):
    return dml.JoinOperatorDesc([buf(sizes, T.UINT8)], buf(sizes, T.UINT8), 0)


SIX = (8, 7, 8, 10, 10, 12)

CASES = {
    "tensor/strides-too-few": {
        "one": case(cut(buf(strides=(60, 20, 5), **LONGER)), cut(buf(strides=(60, 20, 5, 1)))),
    },
    "tensor/strides-too-many": {
        "one": case(cut(buf(strides=(60, 20, 5, 1, 1), **LONGER)), cut(buf(strides=(60, 20, 5, 1)))),
    },
    "tensor/output-stride-zero": {
        "of a size of 4": case(copied(strides=(0, 1)), copied(strides=(6, 1))),
        "beside one of a size of 1": case(copied((1, 6), strides=(0, 0)), copied((1, 6), strides=(0, 1))),
        "of a join, not of its inputs": case(
            glue(buf(strides=(60, 20, 0, 1))), with_part(glue(), 0, buf((2, 1, 4, 5), strides=(20, 20, 0, 1)))
        ),
    },
    "tensor/output-strides-equal": {
        "of two dimensions": case(copied(strides=(9, 9)), copied(strides=(9, 1))),
        "around a size of 1": case(copied((4, 1, 6), strides=(9, 3, 9)), copied((4, 1, 6), strides=(9, 9, 1))),
        "of a join": case(glue(buf(strides=(60, 20, 20, 1))), glue(buf(strides=(60, 20, 5, 1)))),
    },
    "tensor/output-span-too-small": {
        "23 places for 24 elements, rows": case(copied(strides=(5, 1)), copied(strides=(6, 1))),
        "22 places for 24 elements, crossed": case(copied(strides=(2, 3)), copied(strides=(1, 4))),
    },
    "tensor/output-span-wraps": {
        "32 bits of bytes": case(joined((2, 2), (UINT_MAX, 1)), packed((2, 2)), directml="1.8.0"),
        "64 bits of places, 32 of totals": case(joined((2, 2), (UINT_MAX, 1)), packed((2, 2)), directml="1.12.0"),
        "2^32 places exactly": case(joined((4, 1), (0x55555555, 0)), packed((4, 1)), directml="1.8.0"),
    },
    "tensor/output-elements-overlap": {
        "(0, 3) and (2, 0), on 16 places for 16": case(copied((4, 4), strides=(3, 2)), copied((4, 3), strides=(3, 2))),
        "below sizes of 1": case(
            copied((1, 1, 4, 3), strides=(1, 1, 2, 3)), copied((1, 1, 3, 2), strides=(1, 1, 2, 3))
        ),
    },
    "tensor/output-overlap-undecided": {
        "six dimensions, not nested": case(
            copied(SIX, strides=(71189247, 86866478, 130923340, 126580591, 107794138, 14629924)),
            copied(SIX, strides=(67200, 9600, 1200, 120, 12, 1)),
        ),
    },
}


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(strides)
