"""The examples that a rule carries, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from dmlsplit.formats.json import dumps
from dmlsplit.rules import Rule
from dmlsplit.validation import find_judge


class Example(NamedTuple):
    """`name` is bad or good; `text` is a descriptor, which `dmlsplit check -` takes, or what is known of a node."""

    name: str
    judged_by: str
    text: str


def examples(rule: Rule) -> Iterator[Example]:
    """The two sides of the rule's boundary, where it has them."""
    for name, make, node in (("bad", rule.bad, rule.bad_node), ("good", rule.good, rule.good_node)):
        if make is not None:
            yield Example(name, find_judge(**rule.judge_of_examples).name, dumps(make()))
        elif node is not None:
            yield Example(name, node.specification, json.dumps(node.to_dict()))
