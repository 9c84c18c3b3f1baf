"""Two faults in one node: both are reported, but where one makes the other's rule unfit to look, as was recorded.

python -m tests.rules.test_pairs          writes the record again
"""

import itertools
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dmlsplit.rules import node_rules
from tests.rules.judging import NODES_JUDGING, node_ids

RECORD = Path(__file__).parents[1] / "data" / "rules" / "pairs.json"
FRAMEWORKS = {made.__name__: made for made in {type(rule.bad): None for rule in NODES_JUDGING}}


def changes(rule):
    """What makes a rule's bad example of its good one."""
    names = [field.name for field in fields(rule.bad)]
    return {name: getattr(rule.bad, name) for name in names if getattr(rule.bad, name) != getattr(rule.good, name)}


def reported(framework):
    """What is reported of each two faults that can be in one node, where it is other than these two: by the first
    fault and the second, in the names that rules have within their framework."""
    found = {}
    for one, other in itertools.permutations(node_rules(framework), 2):
        both = changes(other)
        if both and not both.keys() & changes(one).keys():
            said = node_ids(replace(one.bad, **both))
            if said != {one.id, other.id}:
                found.setdefault(slug(one.id), {})[slug(other.id)] = " ".join(sorted(map(slug, said)))
    return found


def slug(id):
    return id.partition("/")[2]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_two_faults_of_one_node(name):
    recorded = json.loads(RECORD.read_text("utf-8"))[name]
    assert reported(FRAMEWORKS[name]) == recorded, "python -m tests.rules.test_pairs writes the record"


if __name__ == "__main__":
    record = {name: reported(framework) for name, framework in FRAMEWORKS.items()}
    RECORD.write_text(json.dumps(record, indent=0) + "\n", "utf-8")
