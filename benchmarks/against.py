"""Judges kernels: this checkout (B) against a commit (A), or another machine's profile (B) against this machine's (A).

    python benchmarks/against.py HEAD~5
    python benchmarks/against.py 2fd7724 --cases 'h*,join-*' --isa avx2 --rounds 7
    python benchmarks/against.py --profile intel-early

Both are built and installed, each in a folder of its own. In every round three new processes, A, A again and B, take
turns of a millisecond or one call on one core, each with buffers of its own. B/A is the median over the rounds; what A
takes against A again is noise. A case is slower or faster where B/A is beyond its noise and no round but the outermost
says otherwise. Exit status 1 where a case is slower or its result wrong.

With a profile and no commit, both are this checkout. A profile chooses between plain stores, stores of lines that are
claimed (prefetchw), and stores past the caches, which fetch lines or pages. Each costs a contiguous copy of the same
bytes something, more here or less: that factor, and no other, is what a profile may cost a case. So each side's time
counts as a multiple of the time of its own copy under its own profile.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from suite.builds import ISA_LEVELS, NotBuilt, installed, tree_of, tree_of_checkout
from suite.cases import CASES, Case
from suite.comparison import Judgement, Turns, Verdict, divided, judge
from suite.lockstep import AGAIN, SIDES, A, B, Job, Lockstep, NotMeasured, Refused, Setting, of_copy
from suite.timing import CLOCKS

MOST_BYTES: Final = 140_000_000
"""Larger cases are left out: three processes hold their buffers at once."""
TITLES: Final = ("case", "bytes", "kernel", "A, of a copy", "B, of a copy", "B/A", "rounds", "A/A", "")


def positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="against.py", description="This checkout against a commit, or a profile against this machine's."
    )
    parser.add_argument("commit", nargs="?", help="A; without it, this checkout under this machine's profile")
    parser.add_argument("--rounds", type=at_least_one, default=5, help="each with new processes (default 5)")
    parser.add_argument("--seconds", type=positive, default=0.3, help="for one case in one round (default 0.3)")
    parser.add_argument("--cases", default="*", help="names or wildcards, separated by commas: c1,d*,join-*")
    parser.add_argument("--isa", choices=ISA_LEVELS, help="both as on a CPU with this instruction set and no wider one")
    parser.add_argument("--profile", help="both under this profile: a name of suite/profiles.py, or a file of JSON")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="cpu", help="cpu (default): without the time in which others had the core"
    )
    parser.add_argument("--builds", type=Path, metavar="FOLDER", help="keep builds there, and use those that are there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round's ratios")
    return parser


def profile_named(name: str) -> dict[str, Any]:
    """The fields of a profile of suite/profiles.py, or of a file that has them as a JSON object."""
    from suite.profiles import PROFILES  # needs dmlsplit, which a comparison of commits does not

    if name in PROFILES:
        return PROFILES[name]._asdict()
    known = next(iter(PROFILES.values()))._asdict()
    try:
        found = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"--profile {name}: {error.strerror}; names are {', '.join(PROFILES)}") from error
    except ValueError as error:
        raise Refused(f"--profile {name}: no JSON: {error}") from error
    if not isinstance(found, dict) or not found.keys() <= known.keys():
        raise Refused(f"--profile {name}: an object of {', '.join(known)} is expected")
    wrong = [key for key, value in found.items() if type(value) is not type(known[key])]
    if wrong:
        raise Refused(f"--profile {name}: {', '.join(wrong)}: a value of the wrong type")
    return found


def chosen_cases(patterns: str) -> tuple[list[Case], list[Case]]:
    """What is measured, and what is too large."""
    named = [case for case in CASES if any(fnmatch.fnmatchcase(case.name, p) for p in patterns.split(","))]
    return [case for case in named if case.bytes <= MOST_BYTES], [case for case in named if case.bytes > MOST_BYTES]


def settings_of(options: argparse.Namespace, builds: Path) -> dict[str, Setting]:
    """What A, A again and B are. Raises NotBuilt and Refused."""
    profile = None if options.profile is None else profile_named(options.profile)
    checkout = tree_of_checkout()
    tree, a_profile = (checkout, None) if options.commit is None else (tree_of(options.commit), profile)
    a = Setting("A", installed(tree, builds), options.isa, a_profile)
    return {A: a, AGAIN: a, B: Setting("B", installed(checkout, builds), options.isa, profile)}


def turns_of(times: dict[Job, list[float]]) -> Turns:
    """The sides' times, as multiples of their own copies' where each has one."""
    if (B, "copy") not in times:
        return Turns(*(times[side, "case"] for side in SIDES))
    return Turns(*(divided(times[side, "case"], times[side, "copy"]) for side in SIDES))


class Results:
    """What all rounds found, by case."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.kernels: dict[str, dict[str, str]] = {}
        self.rounds: dict[str, list[Turns]] = {}
        self.copies: dict[str, list[tuple[float, float]]] = {}
        self.left_out: dict[str, str] = {}

    def measure(self, lockstep: Lockstep, seconds: float) -> None:
        """One round of all cases."""
        for case in self.cases:
            if case.name in self.left_out:
                continue
            try:
                kernels, times = lockstep.kernels_and_times(case, seconds, case.name not in self.rounds)
            except NotMeasured as reason:
                self.left_out[case.name] = str(reason)
                continue
            self.kernels[case.name] = kernels
            self.rounds.setdefault(case.name, []).append(turns_of(times))
            self.copies.setdefault(case.name, []).append((of_copy(times, A), of_copy(times, B)))

    def judgements(self) -> dict[str, Judgement]:
        return {name: judge(rounds) for name, rounds in self.rounds.items() if name not in self.left_out}

    @property
    def wrong(self) -> bool:
        return any(reason.endswith("WRONG") for reason in self.left_out.values())

    def row(self, case: Case, judgement: Judgement) -> str:
        kernels = dict.fromkeys((self.kernels[case.name][A], self.kernels[case.name][B]))
        a, b = (statistics.median(each) for each in zip(*self.copies[case.name], strict=True))
        spread = f"{judgement.low:.2f} to {judgement.high:.2f}"
        cells = (case.name, f"{case.bytes:,}", ", then ".join(kernels), f"{a:.2f}", f"{b:.2f}")
        cells += (f"{judgement.ratio:.2f}", spread, f"{judgement.noise:.2f}", judgement.verdict)
        return f"| {' | '.join(cells)} |"

    def as_json(self) -> dict[str, Any]:
        return {
            name: {
                "kernels": self.kernels[name],
                "of a copy": self.copies[name],
                "rounds": [turns.ratios() for turns in rounds],
            }
            for name, rounds in self.rounds.items()
        }


def summary(judgements: dict[str, Judgement], rounds: list[list[Turns]]) -> list[str]:
    """The geometric means of B/A and of A/A, and the cases that are slower and faster, the farthest first."""
    ratios = [judgement.ratio for judgement in judgements.values()]
    same = [statistics.median(turns.ratios()[1] for turns in case) for case in rounds]
    lines = [
        f"{len(ratios)} cases, geometric mean of B/A {statistics.geometric_mean(ratios):.3f}, "
        f"of A/A {statistics.geometric_mean(same):.3f}"
    ]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        found = [(judgement.ratio, name) for name, judgement in judgements.items() if judgement.verdict is verdict]
        named = (f"{name} {ratio:.2f}" for ratio, name in sorted(found, reverse=verdict is Verdict.SLOWER))
        lines.append(f"{len(found)} {verdict} beyond noise: {', '.join(named) or 'none'}")
    return lines


def compare(options: argparse.Namespace, builds: Path) -> int:
    cases, too_large = chosen_cases(options.cases)
    if not cases:
        raise Refused(f"--cases {options.cases}: no case of at most {MOST_BYTES:,} bytes")
    settings = settings_of(options, builds)
    own_copies = options.commit is None
    results = Results(cases)
    with suppress(KeyboardInterrupt):  # what was measured until then is judged
        for i in range(options.rounds):
            with Lockstep(settings, own_copies, options.clock, i) as lockstep:
                if i == 0:
                    for name in (A, B):
                        print(f"{settings[name].name}: {json.dumps(lockstep.sides[name].about)}")
                    print("on any core" if lockstep.cpu is None else f"on core {lockstep.cpu}", flush=True)
                results.measure(lockstep, options.seconds)
            print(f"round {i + 1} of {options.rounds}", file=sys.stderr, flush=True)
    judgements = results.judgements()
    print(f"\n| {' | '.join(TITLES)} |\n|{' --- |' * len(TITLES)}")
    for case in cases:
        if case.name in judgements:
            print(results.row(case, judgements[case.name]))
    for case in too_large:
        print(f"\n{case.name}: left out, {case.bytes:,} bytes")
    for name, reason in results.left_out.items():
        print(f"\n{name}: left out, {reason}")
    if judgements:
        print("", *summary(judgements, [results.rounds[name] for name in judgements]), sep="\n")
    if options.json:
        options.json.write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")
    return int(results.wrong or any(each.verdict is Verdict.SLOWER for each in judgements.values()))


def main(words: list[str] | None = None) -> int:
    parser = arguments()
    options = parser.parse_args(words)
    if options.commit is None and options.profile is None:
        parser.error("a commit or --profile is required")
    try:
        if options.builds is not None:
            options.builds.mkdir(parents=True, exist_ok=True)
            return compare(options, options.builds.resolve())
        with tempfile.TemporaryDirectory() as folder:
            return compare(options, Path(folder))
    except (NotBuilt, Refused, OSError) as error:
        print(f"against.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
