"""The verdict for all sizes that a node leaves open: it holds where, and only where, that of the closed node does."""

import random
from collections import Counter

import pytest

pytest.importorskip("onnx")

from dmlsplit.checking import judge_entry
from dmlsplit.formats.models import entries_of
from dmlsplit.formats.nodes import ModelNodes
from dmlsplit.open_sizes import answer_by
from dmlsplit.releases import releases
from dmlsplit.target import find_target
from dmlsplit.uses import Use
from tests.open_nodes import assignment, node_of, open_facts

LEVELS = ("1_0", "2_0", "2_1", "3_0", "4_0", "5_0", "6_4")
TARGETS = [find_target(feature_level=level) for level in LEVELS] + [find_target(directml=r.name) for r in releases()]


def use_of(node, target):
    """What `check` says of a node."""
    (entry,) = entries_of("n", ModelNodes((node,)))
    return judge_entry(entry, target).node.use


def test_the_answer_is_that_of_the_closed_node(request):
    """2,000 nodes, of 100 assignments each, with --hypothesis-profile=thorough."""
    thorough = request.config.getoption("hypothesis_profile", default=None) == "thorough"
    seen = Counter()
    for seed in range(2000 if thorough else 60):
        rng = random.Random(seed)
        facts = open_facts(rng)
        node, target = node_of(facts), rng.choice(TARGETS)
        answer = answer_by(node, target)
        if answer is None:
            continue
        for _ in range(100):
            values = assignment(rng, facts)
            said = answer.use(values)
            seen[said] += 1
            if said is not Use.UNKNOWN:
                closed = use_of(node_of(facts.closed(values)), target)
                assert said is closed, (seed, target.name, facts, values, str(answer))
    assert all(seen[use] for use in (Use.AS_IT_IS, Use.REWRITTEN, Use.NOT_ASKED, Use.UNKNOWN)), seen
