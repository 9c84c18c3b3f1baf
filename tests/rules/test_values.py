"""What each rule says of a bad example, as was recorded: the place, what was expected and what was there.

python -m tests.rules.test_values          writes the record again
"""

import json
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES, NodeRule, judge_node
from dmlsplit.rules.any_operator import AnyOperatorRule
from tests.rules.any_operators import FAULTY
from tests.rules.judging import JUDGING

RECORD = Path(__file__).parents[1] / "data" / "rules" / "values.json"
LIMITS = {
    *("tensor/data-type-not-supported", "tensor/dimension-count-out-of-range", "tensor/dimension-count-not-supported"),
    *("tensor/size-zero", "tensor/element-count-too-large", "tensor/output-span-wraps", "tensor/total-size-too-large"),
    *("tensor/alignment-below-16", "join/input-element-count-too-large"),
}
"""Rules by which a level or a build refuses what another takes."""
WITH_EXAMPLES = [rule for rule in RULES.values() if rule in JUDGING or isinstance(rule, NodeRule | AnyOperatorRule)]


def said(found, id=None):
    """Of each diagnostic: the rule, but for this one, and the values."""
    return [
        [*([] if d.rule == id else [d.rule]), d.path, str(d.severity), str(d.basis), d.expected, d.actual]
        for d in found
    ]


def of_example(rule):
    if isinstance(rule, NodeRule):
        return said(judge_node(rule.bad, "n"), rule.id)
    return said(dml.validate(rule.bad(), **rule.target_of_examples).diagnostics, rule.id)


def of_faulty(desc, target):
    return said(dml.validate(desc, **target).diagnostics)


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.id)
def test_what_a_rule_says_of_its_example(rule):
    recorded = json.loads(RECORD.read_text("utf-8"))
    assert of_example(rule) == recorded.get(rule.id), "python -m tests.rules.test_values writes the record"


@pytest.mark.parametrize("number", range(len(FAULTY)))
def test_what_is_said_of_any_operator(number):
    desc, target, *_ = FAULTY[number]
    assert of_faulty(desc, target) == json.loads(RECORD.read_text("utf-8"))["any operator"][number]


def test_limits_of_levels_and_builds_are_these():
    assert {rule.id for rule in JUDGING if rule.limit} == LIMITS


if __name__ == "__main__":
    rows = [f"{json.dumps(rule.id)}: {json.dumps(of_example(rule))}" for rule in WITH_EXAMPLES]
    faulty = ",\n".join(json.dumps(of_faulty(desc, target)) for desc, target, *_ in FAULTY)
    rows.append(f'"any operator": [\n{faulty}\n]')
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
