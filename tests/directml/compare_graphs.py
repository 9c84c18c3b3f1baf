"""Compares what the library compiles graphs to with what the model of memory says.

python -m tests.directml.compare_graphs --builds linux --count 20000: the same fresh seed for all builds.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from dmlsplit import find_release
from dmlsplit.formats.graph_json import dumps
from dmlsplit.graphs import GraphDesc
from dmlsplit.graphs.traits import GraphTraits, traits_of
from dmlsplit.library.catalogue import Build
from dmlsplit.library.errors import BuildError, HarnessError, Unavailable
from dmlsplit.library.process import Library
from tests.directml.compare import fetched, selected
from tests.directml.graphs import Compiled, compiled, modelled, random_graph
from tests.directml.shrink_graphs import shrink

CHUNK = 1000
MOST_NODES = 10
SHOWN = 3
"""Disagreements of a build that are shrunk and printed."""
NOT_CREATED = "not created"
"""CreateOperator refuses a node: that is tested elsewhere."""


@dataclass(frozen=True)
class Disagreement:
    """A graph that the library compiles to something else than the model says."""

    desc: GraphDesc
    answer: Compiled
    said: Compiled

    def __str__(self) -> str:
        lines = []
        for name, each in (("library", self.answer), ("model", self.said)):
            lines += [f"{name}: {each.outcome}", *(f"  {views}" for views in each.dispatches)]
        return "\n".join([*lines, dumps(self.desc)])


@dataclass
class Tally:
    """What came of a number of graphs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Of the model: HRESULTs, "refused", "crash", "unknown: " and why; or NOT_CREATED."""
    disagreements: list[Disagreement] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.outcomes.update(other.outcomes)
        self.disagreements += other.disagreements

    @property
    def unknown(self) -> int:
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("unknown"))

    @property
    def created(self) -> int:
        return self.outcomes.total() - self.outcomes[NOT_CREATED]


def is_observed(made: Build) -> bool:
    """Whether the build was observed compiling graphs."""
    release = find_release(made.name)
    return traits_of(release) is not None and release.compiling_observed


def traits(made: Build) -> GraphTraits:
    found = traits_of(find_release(made.name))
    assert found is not None
    return found


def compare(library: Library, made: Build, descs: Sequence[GraphDesc]) -> Tally:
    """Asks both."""
    tally = Tally()
    of_build = traits(made)
    for desc, answer in zip(descs, compiled(library, descs), strict=True):
        if answer.outcome == "skipped":
            tally.outcomes[NOT_CREATED] += 1
            continue
        said = modelled(desc, of_build)
        tally.outcomes[said.outcome] += 1
        if not said.outcome.startswith("unknown") and not answer.agrees(said):
            tally.disagreements.append(Disagreement(desc, answer, said))
    return tally


def shrunk(library: Library, made: Build, found: Disagreement) -> Disagreement:
    """The smallest graph about which they disagree."""

    def disagree(descs: Sequence[GraphDesc]) -> list[bool]:
        wrong = {id(each.desc) for each in compare(library, made, descs).disagreements}
        return [id(desc) in wrong for desc in descs]

    return compare(library, made, [shrink(found.desc, disagree)]).disagreements[0]


def representatives(found: Iterable[Disagreement], most: int) -> list[Disagreement]:
    """The smallest: few nodes are easiest to shrink further, and to read."""
    return sorted(found, key=lambda each: len(each.desc.nodes))[:most]


def _chunk(job: tuple[Build, int, int, int]) -> tuple[str, Tally]:
    made, seed, start, count = job
    descs = [random_graph(seed, index, most_nodes=MOST_NODES) for index in range(start, start + count)]
    with fetched(made) as library:
        return made.name, compare(library, made, descs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.directml.compare_graphs", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--count", type=int, default=2_000, help="graphs for each build")
    parser.add_argument("--builds", default="all", help="names, separated by commas; linux, windows, all")
    parser.add_argument("--seed", type=int, default=None, help="a fresh one if left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    try:
        builds = [made for made in selected(options.builds) if is_observed(made)]
        for made in builds:
            fetched(made).close()
    except (ValueError, Unavailable, BuildError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"seed {seed}, {options.count:,} graphs for each of {len(builds)} builds", flush=True)
    start = time.perf_counter()
    tallies = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for made in builds:
            jobs = [(made, seed, first, min(CHUNK, options.count - first)) for first in range(0, options.count, CHUNK)]
            tally = Tally()
            for _, found in pool.map(_chunk, jobs):
                tally.add(found)
            tallies.append(tally)
            _print(made, tally)
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if any(tally.disagreements for tally in tallies) else 0


def _print(made: Build, tally: Tally) -> None:
    share = tally.unknown / tally.created if tally.created else 0
    print(
        f"{made.name}: {tally.outcomes.total():,} graphs, {tally.created:,} created, "
        f"{len(tally.disagreements):,} disagreements, {tally.unknown:,} unknown ({share:.2%})",
        flush=True,
    )
    for outcome, count in tally.outcomes.most_common():
        print(f"  {count:,} {outcome}", flush=True)
    chosen = representatives(tally.disagreements, SHOWN)
    if chosen:
        with fetched(made) as library:
            for found in chosen:
                print(shrunk(library, made, found), flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        sys.exit(2)
