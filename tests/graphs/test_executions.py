"""Graphs that builds executed: what the model says of each output, and what came out."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from dmlsplit.graphs.descriptors import node_type
from dmlsplit.graphs.execution import Execution
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import JOIN, RELU, SIGMOID, SPLIT
from dmlsplit.graphs.program import Crash, Refused, Unmodelled
from dmlsplit.graphs.traits import TRAITS, GraphTraits, that_decide
from tests.graphs.spec import executions, graph

MOST_UNKNOWN = 0.02
"""Of the executions of each build."""
BUILDS_RECORDED = 22


def predicted(desc, traits: GraphTraits) -> str | list[str]:
    """In the words of the recording, and "unknown"."""
    try:
        faults = Execution(compile_graph(desc, traits)).faults
    except Refused:
        return "refused"
    except Crash:
        return "crash"
    except Unmodelled:
        return "unknown"
    return ["right" if fault is None else "wrong" for fault in faults]


def agrees(said: str | list[str], recorded: str | list[str]) -> bool:
    if recorded == "right":
        return isinstance(said, list) and "wrong" not in said
    if recorded == "wrong":  # it was not recorded which of the outputs
        return isinstance(said, list) and "wrong" in said
    return said == recorded


@pytest.fixture(
    scope="module",
    params=[4, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough])],
    ids=["every fourth", "all"],
    name="step",
)
def _step(request):
    return request.param


@pytest.fixture(scope="module")
def answers(step):
    """(build, name of the graph, recorded, predicted); what CreateOperator refuses is not CompileGraph's."""
    found = []
    for execution in list(executions())[::step]:
        desc = graph(execution.spec)
        known: dict[GraphTraits, str | list[str]] = {}
        for build, recorded in execution.verdicts.items():
            traits = TRAITS[build.directml]
            if traits not in known:
                known[traits] = predicted(desc, traits)
            if recorded != "error":
                found.append((build, execution.name, recorded, known[traits]))
    return found


def test_every_build_is_there(answers, step):
    counts = Counter(build for build, *_ in answers)
    assert len(counts) == BUILDS_RECORDED
    assert min(counts.values()) > 700 // step


def test_what_is_said_is_what_came_out(answers):
    wrong = [answer for answer in answers if answer[3] != "unknown" and not agrees(answer[3], answer[2])]
    assert wrong == []


def test_little_is_unknown(answers):
    counts, unknown = Counter(answer[0] for answer in answers), Counter(a[0] for a in answers if a[3] == "unknown")
    assert [build for build in counts if unknown[build] > MOST_UNKNOWN * counts[build]] == []


def test_every_class_of_verdict_is_said(answers):
    said = defaultdict(set)
    for build, _, _, verdict in answers:
        said[build].update([verdict] if isinstance(verdict, str) else verdict)
    assert all({"right", "wrong", "refused"} <= words for words in said.values())


def test_what_other_operators_show_of_a_build_does_not_matter(step):
    compared = 0
    for execution in list(executions())[::step]:
        desc = graph(execution.spec)
        types = frozenset(map(node_type, desc.nodes))
        for traits in dict.fromkeys(TRAITS.values()):
            deciding = that_decide(traits, types)
            if deciding != traits:
                compared += 1
                assert predicted(desc, deciding) == predicted(desc, traits), execution.name
    assert compared > 200 // step


@pytest.mark.parametrize(
    ("operators", "alike"), [({RELU, JOIN}, True), ({RELU, JOIN, SPLIT}, False), ({SIGMOID, JOIN}, False)]
)
def test_builds_that_differ_only_in_other_operators_are_alike(operators, alike):
    older, newer = (that_decide(TRAITS[build], frozenset(operators)) for build in ("1.14.1", "1.15.4"))
    assert (older == newer) is alike
