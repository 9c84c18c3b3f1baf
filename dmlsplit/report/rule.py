"""The examples of a rule, as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import NamedTuple

from dmlsplit.formats import any_operator_json
from dmlsplit.formats.json import dumps
from dmlsplit.rules import DescriptorRule, NodeRule, Rule
from dmlsplit.rules.any_operator import AnyOperatorRule
from dmlsplit.rules.graph import GraphRule
from dmlsplit.rules.whole_model import ModelRule
from dmlsplit.targets.target import find_target


class Example(NamedTuple):
    """`name` is bad or good; `text` is a descriptor as `dmlsplit check -` reads it, the facts about a node, or a model
    in onnx's text form."""

    name: str
    judged_by: str
    text: str


def examples(rule: Rule) -> Iterator[Example]:
    """Yields the bad and the good example of a rule; none for a rule without examples."""
    if isinstance(rule, DescriptorRule):
        for name, make in (("bad", rule.bad), ("good", rule.good)):
            yield Example(name, find_target(**rule.target_of_examples).name, dumps(make()))
    elif isinstance(rule, AnyOperatorRule):
        for name, made in (("bad", rule.bad), ("good", rule.good)):
            yield Example(name, find_target(**rule.target_of_examples).name, any_operator_json.dumps(made()))
    elif isinstance(rule, NodeRule):
        for name, node in (("bad", rule.bad), ("good", rule.good)):
            yield Example(name, node.specification, json.dumps(node.to_dict()))
    elif isinstance(rule, ModelRule):
        for name, model in (("bad", rule.bad), ("good", rule.good)):
            yield Example(name, f"onnxruntime {rule.examples_for}", json.dumps(asdict(model)))
    elif isinstance(rule, GraphRule):
        # importing it is slow, and few rules are about graphs
        from dmlsplit.formats.graph_json import dumps as dumps_graph
        from dmlsplit.graphs import EXAMPLES

        for name, cured in (("bad", False), ("good", True)) if rule.id in EXAMPLES else ():
            yield Example(name, find_target(directml=rule.examples_for).name, dumps_graph(EXAMPLES[rule.id](cured)))
