"""Cures that rules of graphs name, and what builds made of the graphs in which they were applied."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from dmlsplit.rules import graph as rules
from tests.graphs.spec import executions

APPLIED = {
    rules.FUSED_WRONGLY: (
        ": Split |",
        (": Slice x2 |", ": Split + Slice |", ": Slice + Split |", ": gate exposed as output |"),
    ),
    rules.MEMORY_OVERWRITTEN: (": nothing |", (": join also a graph output", ": other output first |")),
}
"""Of the rules whose cures were recorded: what is in the names of the graphs without a cure, and with one."""


@cache
def came_out(variant: str) -> Counter[str]:
    """How often the builds computed every output of such graphs right, and how often not.

    "error" is CreateOperator's, which was asked before.
    """
    found = [execution for execution in executions() if variant in execution.name]
    verdicts = [verdict for execution in found for verdict in execution.verdicts.values() if verdict != "error"]
    return Counter("right" if verdict == "right" or set(verdict) == {"right"} else "wrong" for verdict in verdicts)


@pytest.mark.parametrize(
    ("rule", "cured"),
    [pytest.param(rule, cured, id=f"{rule.id}{cured}") for rule, (_, names) in APPLIED.items() for cured in names],
)
def test_a_cured_graph_comes_out_right(rule, cured):
    without, _ = APPLIED[rule]
    assert came_out(without)["wrong"] > 0
    assert came_out(cured).keys() == {"right"}
