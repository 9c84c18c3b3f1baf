"""Graphs: what CompileGraph returns, how many dispatches it makes and what each binds, as the model of memory says."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit import find_release
from dmlsplit.graphs import EXAMPLES
from dmlsplit.library.asking import graph_steps
from dmlsplit.rules.graph import GRAPH_RULES
from tests.directml.compare_graphs import compare, is_observed, representatives, shrunk, traits
from tests.directml.conftest import COUNT, FRESH
from tests.directml.graphs import compiled, modelled, random_graph
from tests.graphs.structure import ACCEPTED, REFUSED

pytestmark = pytest.mark.directml

FIXED_SEED = 20241121
MOST_UNKNOWN = 0.015
"""Of random graphs."""
MOST_NODES = 10


@pytest.fixture
def observed(made):
    """The build, where it was observed compiling graphs."""
    if not is_observed(made):
        pytest.skip("graph compilation was not observed with this build")
    return made


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH])
def test_random_graphs(observed, library, seed, compared):
    descs = [random_graph(seed, index, most_nodes=MOST_NODES) for index in range(COUNT)]
    tally = compare(library, observed, descs)
    compared(
        f"{observed.name}: {COUNT} graphs of seed {seed} (DMLSPLIT_DIRECTML_SEED={seed} repeats them): {tally.outcomes}"
    )
    for found in representatives(tally.disagreements, 1):
        text = f"{observed.name}: {len(tally.disagreements)} of {COUNT} graphs disagree\n"
        pytest.fail(text + str(shrunk(library, observed, found)), pytrace=False)
    assert tally.unknown <= MOST_UNKNOWN * COUNT


def test_structure(observed, library):
    cases = [case[1] for case in (*REFUSED.values(), *ACCEPTED.values()) if case[1].nodes and case[1].outputs]
    # Up to CompileGraph: what it accepts cannot always be bound.
    for desc, answer in zip(cases, library.sessions([graph_steps(desc)[:-3] for desc in cases]), strict=True):
        report = dml.validate(desc, directml=find_release(observed.name))
        if any(d.rule == "graph/unknown" for d in report.diagnostics):
            continue
        assert (None if answer is None else answer[-1]) == (None if report.hresult is None else f"{report.hresult:08X}")


@pytest.mark.parametrize("rule", [rule for rule in GRAPH_RULES.values() if rule.sound], ids=lambda rule: rule.id)
@pytest.mark.parametrize("cured", [False, True], ids=["example", "cured"])
def test_examples(observed, library, rule, cured):
    desc = EXAMPLES[rule.id](cured)
    (answer,) = compiled(library, [desc])
    said = modelled(desc, traits(observed))
    if answer.outcome != "skipped" and not said.outcome.startswith("unknown"):
        assert answer.agrees(said)
