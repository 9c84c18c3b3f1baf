"""Graphs: what CompileGraph returns, how many dispatches it makes and what each binds, as the model of memory says."""

from __future__ import annotations

from collections import Counter

import pytest

from dmlsplit import find_release, graphs
from dmlsplit.graphs.releases import traits_of
from tests.directml.conftest import COUNT, FRESH_SEED
from tests.directml.graphs import compiled, modelled, random_graph, smaller
from tests.graphs.test_structure import ACCEPTED, REFUSED

pytestmark = pytest.mark.directml

FIXED_SEED = 20241121
MOST_UNKNOWN = 0.1
"""Of random graphs, which have more of what the model does not speak of than models have."""
MOST_NODES = 10


@pytest.fixture
def release(made):
    """The build, where it was observed compiling graphs."""
    found = find_release(made.name)
    if traits_of(found) is None or not found.compiling_observed:
        pytest.skip("this build was not observed compiling graphs")
    return found


@pytest.mark.parametrize("seed", [FIXED_SEED, pytest.param(FRESH_SEED, id="fresh")])
def test_random_graphs(release, library, seed, compared):
    descs = [random_graph(seed, index, most_nodes=MOST_NODES) for index in range(COUNT)]
    traits = traits_of(release)
    asked = compiled(library, descs)
    outcomes: Counter[str] = Counter()
    wrong = []
    for desc, answer in zip(descs, asked, strict=True):
        if answer.outcome == "skipped":  # CreateOperator refused a node: that is tested elsewhere
            outcomes["not created"] += 1
            continue
        said = modelled(desc, traits)
        outcomes[said.outcome] += 1
        if not said.outcome.startswith("unknown") and not answer.agrees(said):
            wrong.append((desc, answer, said))
    compared(f"{release.name}: {COUNT} graphs of seed {seed} (DMLSPLIT_DIRECTML_SEED={seed} repeats them): {outcomes}")
    if wrong:
        desc, answer, said = min(wrong, key=lambda found: smaller(found[0]))
        lines = [f"{release.name}: {len(wrong)} of {COUNT} graphs disagree; library, then model:"]
        for each in (answer, said):
            lines += [each.outcome, *(f"  {views}" for views in each.dispatches)]
        pytest.fail("\n".join([*lines, graphs.dumps(desc)]), pytrace=False)
    unknown = sum(count for outcome, count in outcomes.items() if outcome.startswith("unknown"))
    assert unknown <= MOST_UNKNOWN * COUNT


def test_structure(release, library):
    cases = [case[1] for case in (*REFUSED.values(), *ACCEPTED.values()) if case[1].nodes and case[1].outputs]
    for desc, answer in zip(cases, library.sessions([only_compiled(desc) for desc in cases]), strict=True):
        report = graphs.validate(desc, directml=release)
        if any(d.rule == "graph/unknown" for d in report.diagnostics):
            continue
        assert (None if answer is None else answer[-1]) == (None if report.hresult is None else f"{report.hresult:08X}")


def only_compiled(desc: graphs.GraphDesc) -> list[str]:
    """Up to CompileGraph: what it accepts cannot always be bound."""
    from tests.directml.graphs import steps

    return steps(desc)[:-2]


@pytest.mark.parametrize(
    "rule", [rule for rule in graphs.GRAPH_RULES.values() if rule.example], ids=lambda rule: rule.id
)
@pytest.mark.parametrize("cured", [False, True], ids=["example", "cured"])
def test_examples(release, library, rule, cured):
    desc = rule.example(cured)
    (answer,) = compiled(library, [desc])
    said = modelled(desc, traits_of(release))
    if answer.outcome != "skipped" and not said.outcome.startswith("unknown"):
        assert answer.agrees(said)
