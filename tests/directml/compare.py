"""Compares the library's verdict with dmlsplit's prediction of that release.

python -m tests.directml.compare --count 100000: every build, the same fresh seed for all of them.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import dmlsplit as dml
from dmlsplit import OperatorDesc, Report
from dmlsplit.formats.json import dumps
from dmlsplit.library.catalogue import LINUX, WINDOWS, Build, directml_builds
from dmlsplit.library.errors import BuildError, HarnessError, Unavailable
from dmlsplit.library.fetching import add
from dmlsplit.library.process import Answer, Library, opened
from tests.directml.generator import descriptor
from tests.directml.shrink import shrink

CHUNK = 5000
SHOWN = 3
"""Disagreements of a build that are shrunk and printed."""


@dataclass(frozen=True)
class Disagreement:
    """A descriptor of which library and prediction say different things."""

    release: str
    desc: OperatorDesc
    answer: Answer
    report: Report
    origin: str = ""

    def __str__(self) -> str:
        rules = ", ".join(dict.fromkeys(d.rule for d in self.report.diagnostics)) or "none"
        lines = [
            f"{self.release} answers {_name(self.answer)}, the prediction is {_name(self.report.hresult)}",
            f"  rules that the report names: {rules}",
            f"  {dumps(self.desc)}",
        ]
        return "\n".join(lines + ([f"  from {self.origin}"] if self.origin else []))


def _name(answer: Answer) -> str:
    return "a crash" if answer is None else f"0x{answer:08X}"


@dataclass
class Tally:
    """What came of a number of descriptors."""

    answers: Counter[Answer] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    seconds_asking: float = 0

    def add(self, other: Tally) -> None:
        self.answers.update(other.answers)
        self.disagreements += other.disagreements
        self.seconds_asking += other.seconds_asking


def compare(library: Library, release: str, descs: Sequence[OperatorDesc], origin: str = "{}") -> Tally:
    """Asks both. `origin` names the descriptors, with a place for their number."""
    tally = Tally()
    start = time.perf_counter()
    answers = library.judge(descs)
    tally.seconds_asking = time.perf_counter() - start
    for i, (desc, answer) in enumerate(zip(descs, answers, strict=True)):
        tally.answers[answer] += 1
        report = dml.validate(desc, directml=release)
        if report.hresult != answer:
            tally.disagreements.append(Disagreement(release, desc, answer, report, origin.format(i)))
    return tally


def shrunk(library: Library, found: Disagreement) -> Disagreement:
    """The smallest disagreement of the same kind: the same answer, the same prediction."""

    def same(descs: Sequence[OperatorDesc]) -> list[bool]:
        return [
            answer == found.answer and dml.validate(desc, directml=found.release).hresult == found.report.hresult
            for desc, answer in zip(descs, library.judge(descs), strict=True)
        ]

    desc = shrink(found.desc, same)
    return Disagreement(
        found.release, desc, found.answer, dml.validate(desc, directml=found.release), f"{found.origin}, shrunk"
    )


def representatives(disagreements: Iterable[Disagreement], most: int) -> list[Disagreement]:
    """Of each kind one, the shortest: kinds differ in operator, answer, prediction or rules."""
    kinds: dict[object, Disagreement] = {}
    for found in sorted(disagreements, key=lambda d: len(dumps(d.desc))):
        rules = frozenset(d.rule for d in found.report.errors)
        kinds.setdefault((type(found.desc), found.answer, found.report.hresult, rules), found)
    return list(kinds.values())[:most]


def fetched(made: Build, options: Mapping[str, int] | None = None) -> Library:
    """A build that answers, fetched where it is not here yet."""
    add(made)
    return opened(made, options)


def _chunk(job: tuple[Build, int, int, int]) -> tuple[str, Tally]:
    made, seed, start, count = job
    descs = [descriptor(seed, index) for index in range(start, start + count)]
    with fetched(made) as library:
        tally = compare(library, made.name, descs)
    for i, found in enumerate(tally.disagreements):
        index = start + int(found.origin)
        tally.disagreements[i] = Disagreement(
            found.release, found.desc, found.answer, found.report, f"seed {seed}, descriptor {index}"
        )
    return made.name, tally


def selected(names: str) -> list[Build]:
    """The builds of a list of names; "all", or those of a platform. ValueError for an unknown one."""
    every = directml_builds()
    known = {made.name: [made] for made in every}
    known |= {target.name: [made for made in every if made.platform is target] for target in (LINUX, WINDOWS)}
    known["all"] = list(every)
    for name in names.split(","):
        if name not in known:
            raise ValueError(f"unknown build {name!r}; known: {', '.join(known)}")
    return [made for name in names.split(",") for made in known[name]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.directml.compare", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="descriptors for each build")
    parser.add_argument("--builds", default="all", help="names, separated by commas; linux, windows, all")
    parser.add_argument("--seed", type=int, default=None, help="a fresh one if left out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    try:
        builds = selected(options.builds)
        for made in builds:
            fetched(made).close()
    except (ValueError, Unavailable, BuildError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"seed {seed}, {options.count:,} descriptors for each of {len(builds)} builds", flush=True)
    start = time.perf_counter()
    jobs = [
        (made, seed, first, min(CHUNK, options.count - first))
        for made in builds
        for first in range(0, options.count, CHUNK)
    ]
    tallies = {made.name: Tally() for made in builds}
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, tally in pool.map(_chunk, jobs):
            tallies[name].add(tally)
    for made in builds:
        _print(made, tallies[made.name], options.count)
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if any(tally.disagreements for tally in tallies.values()) else 0


def _print(made: Build, tally: Tally, count: int) -> None:
    accepted, crashed = tally.answers[0], tally.answers[None]
    rate = count / tally.seconds_asking if tally.seconds_asking else 0
    print(
        f"{made.name}: {sum(tally.answers.values()):,} descriptors, {accepted:,} accepted, {crashed:,} crashes, "
        f"{len(tally.disagreements):,} disagreements; the library answered {rate:,.0f} a second"
    )
    chosen = representatives(tally.disagreements, SHOWN)
    if chosen:
        with fetched(made) as library:
            for found in chosen:
                print(shrunk(library, found))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        sys.exit(2)
