"""Rules may run in any order that the table allows: `needs` and `spoils` say all that binds one to another."""

import random
from contextlib import suppress
from dataclasses import fields, replace
from itertools import chain

import pytest

import dmlsplit as dml
from dmlsplit.rules import OPERATOR_RULES, RULES, TENSOR_RULES, NodeRule, OperatorRule, node_rules
from dmlsplit.verdicts import validation
from tests.oracle import operator, records

TARGETS = ({"feature_level": "6_4"}, {"feature_level": "2_1"}, {"directml": "1.8.0"}, {"directml": "1.15.4"})


def needs(rule):
    more = rule.needs_of_whole | rule.needs_of_parts if isinstance(rule, OperatorRule) else frozenset()
    return rule.needs | more


def bound(first, second):
    """Whether two rules have to stay in their order."""
    return bool(first.spoils & needs(second) or needs(first) & second.spoils)


def shuffled(rules, rng):
    left, order = list(rules), []
    while left:
        free = [rule for i, rule in enumerate(left) if not any(bound(earlier, rule) for earlier in left[:i])]
        order.append(rng.choice(free))
        left.remove(order[-1])
    return tuple(order)


def recorded(name, count, rng):
    """Some of the descriptors that the real library was asked about; of those that have a form here."""
    found = []
    for record in rng.sample(records(name)[1:], count):
        with suppress(dml.DescriptorError, KeyError):
            found.append(operator(record["desc"]))
    assert len(found) > count // 2
    return found


def reports(descriptors):
    return [dml.validate(desc, **target).to_dict() for desc in descriptors for target in TARGETS]


def clear():
    validation._tensor_checks.cache_clear()
    validation._operator_checks.cache_clear()


@pytest.mark.parametrize("seed", range(3))
def test_reports_do_not_depend_on_the_order_of_checks(monkeypatch, seed):
    rng = random.Random(seed)
    descriptors = recorded("random", 250, rng) + recorded("boundary", 100, rng)
    expected = reports(descriptors)
    tensor_rules = shuffled(TENSOR_RULES, rng)
    operator_rules = {kind: shuffled(rules, rng) for kind, rules in OPERATOR_RULES.items()}
    assert tensor_rules != TENSOR_RULES
    try:
        clear()
        monkeypatch.setattr(validation, "TENSOR_RULES", tensor_rules)
        monkeypatch.setattr(validation, "OPERATOR_RULES", operator_rules)
        found = reports(descriptors)
    finally:
        monkeypatch.undo()
        clear()
    for before, after in zip(expected, found, strict=True):
        for report in (before, after):
            # Within one member the order of the rules is that of the diagnostics.
            report["diagnostics"].sort(key=lambda d: (d["path"], d["rule"]))
    assert found == expected
    fired = {d["rule"] for d in chain.from_iterable(report["diagnostics"] for report in expected)}
    assert len(fired) > 20


def with_fault(facts, rule):
    """The same node with the members that make the rule's bad example bad."""
    values = {f.name: getattr(rule.bad, f.name) for f in fields(rule.bad)}
    return replace(facts, **{name: value for name, value in values.items() if value != getattr(rule.good, name)})


@pytest.mark.parametrize("kind", dict.fromkeys(type(rule.bad) for rule in RULES.values() if isinstance(rule, NodeRule)))
def test_nodes_of_three_faults_are_judged_alike_in_any_order(kind):
    rules = node_rules(kind)
    rng = random.Random(0)
    fired = set()
    for _ in range(20):
        order = shuffled(rules, rng)
        for _ in range(50):
            first, second, third = rng.choices(rules, k=3)
            facts = with_fault(with_fault(first.bad, second), third)
            expected = sorted(map(str, facts.judge(rules, "n")))
            assert sorted(map(str, facts.judge(order, "n"))) == expected
            fired.add(len(expected))
    assert max(fired) > 2, "several faults are found at once"
