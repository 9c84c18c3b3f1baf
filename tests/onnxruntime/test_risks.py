"""Outputs that a release may compute wrong since a normalization is on the way to a later one."""

from __future__ import annotations

import random
import sys

import pytest

from dmlsplit.onnxruntime import risks
from dmlsplit.onnxruntime.fused import FusedGraph
from dmlsplit.onnxruntime.risks import may_lose_branch
from tests.effort import calls
from tests.graphs.structure import ADD, T8, desc

NORM, OTHER = "InstanceNormalization", "Add"


def graph(ops, wires, ends):
    """A graph of these operators; `wires` are pairs of a producer and a reader, `ends` the nodes of its outputs."""
    given = [(0, node, 0) for node in range(len(ops)) if all(reader != node for _, reader in wires)]
    edges = [(before, 0, reader, number) for number, (before, reader) in enumerate(wires)]
    made = desc([ADD] * len(ops), given, [(end, 0, i) for i, end in enumerate(ends)], edges, results=[T8] * len(ends))
    none = ((),) * len(ops)
    return FusedGraph("", made, (), none, tuple(ops), (), (), none, none, frozenset())


def needed(end, wires):
    found, todo = {end}, [end]
    while todo:
        at = todo.pop()
        before = {producer for producer, reader in wires if reader == at} - found
        found |= before
        todo += before
    return found


def loses(ops, wires, ends):
    """The rule, word for word: all pairs of outputs, and all normalizations."""
    of = [needed(end, wires) for end in ends]
    return any(
        norm not in of[earlier] and (needed(norm, wires) - {norm}) & of[earlier]
        for later in range(len(ends))
        for norm in of[later]
        if ops[norm] == NORM
        for earlier in range(later)
    )


@pytest.mark.parametrize("most", [0, 1, 4096])
def test_random_graphs_by_the_words_of_the_rule(most, monkeypatch):
    """Of graphs with more normalizations to follow it is said that they may lose a branch."""
    monkeypatch.setattr(risks, "_MOST_NORMALIZATIONS", most)
    draw = random.Random(7)
    found = []
    for _ in range(300):
        count = draw.randint(1, 8)
        ops = [draw.choice((NORM, OTHER)) for _ in range(count)]
        wires = sorted(
            {(draw.randrange(reader), reader) for reader in range(1, count) for _ in range(draw.randint(0, 2))}
        )
        ends = [draw.randrange(count) for _ in range(draw.randint(1, 5))]
        answer = may_lose_branch(graph(ops, wires, ends))
        expected = loses(ops, wires, ends)
        assert answer or not expected, (ops, wires, ends)
        assert answer == expected or ops.count(NORM) > most, (ops, wires, ends)
        found.append(answer)
    assert 50 < sum(found) < 250


def many(count):
    """A tensor, and behind it a normalization for each output, the first one alike."""
    ops = [OTHER, NORM, *(OTHER,) * count]
    return graph(ops, [(0, 1), *((1, 2 + i) for i in range(count))], [2 + i for i in range(count)])


def test_the_work_is_linear_in_outputs_and_nodes():
    assert not may_lose_branch(many(200))
    work = [calls(lambda graph=graph: may_lose_branch(graph)) for graph in map(many, (200, 400))]
    assert work[1] <= 2.1 * work[0]


def test_thousands_of_outputs_take_as_many_lines_each_as_a_few():
    few, thousands = (lines(lambda graph=graph: may_lose_branch(graph)) for graph in map(many, (1024, 8 * 1024)))
    assert thousands <= 8.1 * few


def lines(work):
    """How many lines of the module are executed."""
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event == "line"
        return counted

    sys.settrace(lambda frame, event, argument: counted if frame.f_code.co_filename == risks.__file__ else None)
    try:
        work()
    finally:
        sys.settrace(None)
    return count
