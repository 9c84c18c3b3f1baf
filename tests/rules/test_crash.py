"""What ends the process of a release, before it has looked at anything else.

Plan: each null pointer that a build follows, by the newest build and, where the oldest follows more, by that one.
"""

import dmlsplit as dml
from dmlsplit.rules import crash
from tests.rules.judging import buf, case, check, cut, each, glue, rules_in, with_part, with_whole

NEWEST = {"directml": "1.15.4"}
OLDEST = {"directml": "tensorflow-directml-1.15.3.dev200619"}
NO_DESC = dml.TensorDesc(1, None)
NO_SIZES = buf(None, dimension_count=4)

CASES = {
    "split/crash": {
        "no input": case(with_whole(cut(), None), cut(), **NEWEST),
        "no description of the input": case(with_whole(cut(), NO_DESC), cut(), **NEWEST),
        "no outputs": case(dml.SplitOperatorDesc(buf(), None, 1, output_count=2), cut(), **OLDEST),
        "no description of an output": case(with_part(cut(), 1, NO_DESC), cut(), **OLDEST),
        "no sizes of an output": case(with_part(cut(), 1, NO_SIZES), cut(), **OLDEST),
        "no sizes of the input": case(with_whole(cut(), NO_SIZES), cut(), **OLDEST),
    },
    "join/crash": {
        "no output": case(with_whole(glue(), None), glue(), **NEWEST),
        "no inputs": case(dml.JoinOperatorDesc(None, buf(), 1, input_count=2), glue(), **NEWEST),
        "no description of an input": case(with_part(glue(), 0, NO_DESC), glue(), **NEWEST),
        "no sizes of an input": case(with_part(glue(), 0, NO_SIZES), glue(), **NEWEST),
        "no sizes of the output": case(with_whole(glue(), NO_SIZES), glue(), **NEWEST),
    },
}


@each(CASES)
def test_a_fault_is_found_alone_and_its_twin_is_legal(rule, case):
    check(rule, case)


def test_every_rule_of_the_module_has_cases():
    assert set(CASES) == rules_in(crash)
