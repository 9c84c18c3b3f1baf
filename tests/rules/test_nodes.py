"""Every rule of a framework's node: facts that trigger it and nothing else, and their legal twin."""

import json

import pytest

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.rules import judge_node
from tests.rules.judging import NODES_JUDGING as JUDGING
from tests.rules.judging import node_ids


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.id)
def test_the_registrys_own_examples(rule):
    assert node_ids(rule.bad) == {rule.id}
    assert not node_ids(rule.good)


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.id)
def test_diagnostics_name_the_place_and_both_sides(rule):
    for diagnostic in judge_node(rule.bad, "n"):
        assert diagnostic.path == "n" or diagnostic.path.startswith("n.")
        if diagnostic.rule == "node/runtime-differs":
            continue
        assert diagnostic.severity is rule.severity
        assert diagnostic.reference == str(rule.sources[0])
        if rule.severity is Severity.ERROR:
            assert diagnostic.expected is not None


@pytest.mark.parametrize("rule", JUDGING, ids=lambda rule: rule.id)
def test_facts_are_json(rule):
    for node in (rule.bad, rule.good):
        assert json.loads(json.dumps(node.to_dict()))
