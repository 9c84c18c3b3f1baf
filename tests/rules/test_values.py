"""What each rule says of its own bad example, as was recorded: the place, what was expected and what was there.

python -m tests.rules.test_values          writes the record anew
"""

import json
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES, NodeRule, judge_node
from dmlsplit.rules.any_operator import AnyOperatorRule
from tests.rules.judging import JUDGING

RECORD = Path(__file__).parents[1] / "data" / "rules" / "values.json"
LIMITS = {
    *("tensor/data-type-not-supported", "tensor/dimension-count-out-of-range", "tensor/dimension-count-not-supported"),
    *("tensor/size-zero", "tensor/element-count-too-large", "tensor/output-span-wraps", "tensor/total-size-too-large"),
    *("tensor/alignment-below-16", "join/input-element-count-too-large"),
}
"""Rules by which a level or a build refuses what another takes."""
WITH_EXAMPLES = [rule for rule in RULES.values() if rule in JUDGING or isinstance(rule, NodeRule | AnyOperatorRule)]


def said(rule):
    """Of each diagnostic: the rule where it is another one, and the values."""
    if isinstance(rule, NodeRule):
        found = judge_node(rule.bad, "n")
    else:
        found = dml.validate(rule.bad(), **rule.target_of_examples).diagnostics
    return [
        [*([d.rule] if d.rule != rule.id else []), d.path, str(d.severity), str(d.basis), d.expected, d.actual]
        for d in found
    ]


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.id)
def test_what_a_rule_says_of_its_example(rule):
    assert said(rule) == json.loads(RECORD.read_text("utf-8"))[rule.id]


def test_limits_of_levels_and_builds_are_these():
    assert {rule.id for rule in JUDGING if rule.limit} == LIMITS


if __name__ == "__main__":
    rows = [f"{json.dumps(rule.id)}: {json.dumps(said(rule))}" for rule in WITH_EXAMPLES]
    RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
