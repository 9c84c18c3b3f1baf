"""Splits and joins of dmlsplit against memcpy and against other libraries, all in one process.

    python benchmarks/run.py --quick
    python benchmarks/run.py --processes 5 --json out.json --markdown out.md --plot out.png

The result of every contestant is checked against numpy's slices before anything is timed; then all take turns, and the
medians are compared. Exit status 1 if a result of dmlsplit is wrong; times are never judged by it. README.md beside
this file explains the method.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from suite import machine, report
from suite.cases import CASES, NOT_QUICK, QUICK_BYTES, Case
from suite.contest import Prepare
from suite.measure import OURS, Row, measure, ours_with
from suite.ours import ISA_LEVELS, Ours, fresh
from suite.peers import PEERS
from suite.profiles import PROFILES
from suite.references import FLOOR, references, then_read
from suite.timing import CLOCKS

from dmlsplit.native import core

MARKS = ("<!-- results -->", "<!-- /results -->")
QUICK_SECONDS = 0.25
FULL_SECONDS = 3.0
"""For one case, shared by all contestants."""


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Splits and joins against memcpy and other libraries.")
    parser.add_argument("--quick", action="store_true", help="cases up to 64 MB, fewer turns; under two minutes")
    parser.add_argument("--cases", default="*", help="names or wildcards, separated by commas: c1,d*,join-*")
    parser.add_argument(
        "--peers", help=f"of {', '.join(PEERS)}; 'none' for the references alone; default: what is installed"
    )
    parser.add_argument("--threads", type=int, default=1, help="of dmlsplit xN, copy xN and all peers (default 1)")
    parser.add_argument("--kernel", help="force one of dmlsplit's kernels; it may refuse a case")
    parser.add_argument("--isa", choices=ISA_LEVELS, help="the first kernel of the table up to this instruction set")
    parser.add_argument("--profile", choices=PROFILES, help="plan as on another machine (suite/profiles.py)")
    parser.add_argument("--read", action="store_true", help="copies and dmlsplit once more, each output read after it")
    parser.add_argument("--seconds", type=float, help=f"for one case, about (default {FULL_SECONDS:g})")
    parser.add_argument(
        "--processes", type=int, default=1, help="runs all this often and takes the median of the ratios"
    )
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: for a busy machine; of several threads the sum"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="needs matplotlib")
    return parser


def chosen_cases(patterns: str, quick: bool) -> list[Case]:
    found = [case for case in CASES if any(fnmatch.fnmatchcase(case.name, p) for p in patterns.split(","))]
    return [c for c in found if c.bytes <= QUICK_BYTES and c.name not in NOT_QUICK] if quick else found


def contestants(peers: str | None, threads: int, ours: Ours, read: bool) -> dict[str, Prepare]:
    """References, dmlsplit, and the peers that can be imported; numpy, whose time is a reference too, always."""
    wanted = list(PEERS) if peers is None else ["numpy", *(name.strip() for name in peers.split(",") if name != "none")]
    unknown = set(wanted) - set(PEERS)
    if unknown:
        raise SystemExit(f"unknown peers: {', '.join(sorted(unknown))}; known: {', '.join(PEERS)}")
    table = references(threads) | {OURS: lambda _: ours.bound(1), ours_with(threads): ours.bound}
    table |= {f"{OURS} fresh": fresh} | {name: PEERS[name] for name in wanted}
    if read:
        copies = {name: load for name, load in references(1).items() if name in FLOOR} | {OURS: table[OURS]}
        table |= {f"{name}, read": _reading(load, name in FLOOR) for name, load in copies.items()}
    made = {}
    for name, load in table.items():
        try:
            made[name] = load(threads)
        except ImportError as error:
            print(f"without {name}: {error}", file=sys.stderr)
    return made


def _reading(load: Callable[[int], Prepare], is_reference: bool) -> Callable[[int], Prepare]:
    return lambda threads: then_read(load(threads), is_reference)


def measured(options: argparse.Namespace, ours: Ours) -> list[Row]:
    taking_part = contestants(options.peers, options.threads, ours, options.read)
    seconds = options.seconds or (QUICK_SECONDS if options.quick else FULL_SECONDS)
    rows = []
    for case in chosen_cases(options.cases, options.quick):
        row = measure(case, taking_part, ours, options.threads, seconds, options.clock)
        rows.append(row)
        shown = [f"{name} {r['ratio']:.2f}" for name, r in row["results"].items() if "ratio" in r and name != "memcpy"]
        print(f"{case.name:9} {row['kernel'] or 'refused':22} {', '.join(shown)}", file=sys.stderr, flush=True)
    return rows


def measured_in_processes(options: argparse.Namespace) -> list[Row]:
    """Every process measures all cases; its other arguments are those of this one."""
    runs = []
    names = ("cases", "peers", "threads", "clock", "kernel", "isa", "seconds", "profile")
    given = {f"--{name}": getattr(options, name) for name in names}
    own = [sys.executable, __file__] + ["--quick"] * options.quick + ["--read"] * options.read
    own += [str(word) for name, value in given.items() if value is not None for word in (name, value)]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.processes):
            print(f"process {i + 1} of {options.processes}", file=sys.stderr)
            path = Path(folder, f"{i}.json")
            done = subprocess.run([*own, "--json", str(path)], stdout=subprocess.DEVNULL)
            if not path.exists():
                raise SystemExit(f"process {i + 1} ended with status {done.returncode}")
            runs.append(json.loads(path.read_text(encoding="utf-8"))["cases"])
    return report.merge(runs)


def markdown(rows: list[Row], about: dict[str, Any], options: argparse.Namespace, widest_isa: str) -> str:
    forced = f", kernel {options.kernel}" if options.kernel else f", up to {options.isa}" if options.isa else ""
    forced += f", profile {options.profile}" if options.profile else ""
    threads = "one thread" if options.threads == 1 else f"peers and x{options.threads} on {options.threads} threads"
    lines = [
        f"Multiples of memcpy's time for the same bytes; {options.clock} clock, {threads}{forced}; "
        f"median of {options.processes} process{'es' * (options.processes > 1)}.",
        "",
        *machine.in_words(about),
        "",
        *(line + "\n" for line in report.summary(rows, widest_isa)),
        *report.class_table(rows, widest_isa),
        "",
        *report.case_table(rows, widest_isa),
        "",
        "Empty cells:",
        "",
        *report.skipped(rows),
    ]
    return "\n".join(lines) + "\n"


def write_markdown(path: Path, text: str) -> None:
    """A new file, or, where the file has the two marks (README.md has), what stands between them."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = old.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    whole = f"{before}{begin}\n\n{text}\n{end}{after}" if begin and end else text
    path.write_text(whole, encoding="utf-8")


def main() -> int:
    options = arguments().parse_args()
    np.seterr(all="ignore")
    about = machine.describe()
    if options.kernel is not None and options.kernel not in (kernel.name for kernel in core.kernels()):
        raise SystemExit(f"no kernel {options.kernel}; there are {', '.join(k.name for k in core.kernels())}")
    if options.profile is not None:
        core.set_profile(PROFILES[options.profile])
    ours = Ours(options.kernel, options.isa)
    rows = measured(options, ours) if options.processes == 1 else measured_in_processes(options)
    if not rows:
        raise SystemExit("no case of that name")
    if options.json:
        chosen = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
        data = {"schema": 1, "machine": about, "options": chosen, "cases": rows}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = markdown(rows, about, options, ours.widest_isa)
    if options.markdown:
        write_markdown(options.markdown, text)
    print(text)
    if options.plot:
        report.plot(rows, options.plot, f"{about['cpu']}, dmlsplit {about['dmlsplit']}")
    return any("wrong" in row["results"][name] for row in rows for name in row["results"] if name.startswith(OURS))


if __name__ == "__main__":
    sys.exit(main())
