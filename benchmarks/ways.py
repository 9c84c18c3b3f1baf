"""Is the C library as fast by every way of building it that the documentation shows?

    python benchmarks/ways.py
    python benchmarks/ways.py --seconds 3 --cases 'bytes*'

The ways: installed by CMake and found by pkg-config; FetchContent in a project that names no build type; README's line
of cc. Each builds ways.c. Their processes take turns of a millisecond or one call on one core, in a new order every
round, under CPUID's profile; the installed library takes part twice, which says what is noise. A case is slower where
more than a tenth and its noise are lost. Exit status 1 then.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAM: Final = ROOT / "benchmarks" / "ways.c"
INSTALLED: Final = "installed"
AGAIN: Final = "installed again"
TURN: Final = 1_000_000
"""Nanoseconds."""
FEWEST: Final = 15
"""Turns of each, also where they take longer."""
LOST: Final = 1.1
FETCH: Final = """
cmake_minimum_required(VERSION 3.21)
project(ways C)
include(FetchContent)
FetchContent_Declare(dmlsplit SOURCE_DIR "{root}")
FetchContent_MakeAvailable(dmlsplit)
add_executable(ways "{program}")
target_link_libraries(ways PRIVATE dmlsplit::dmlsplit)
"""


class Case(NamedTuple):
    """A split, or a join."""

    sizes: tuple[int, ...]
    axis: int
    element: int
    lengths: tuple[int, ...]
    join: bool = False


CASES: Final = {
    "3 channels of bytes": Case((1_000_000, 3), 1, 1, (1, 1, 1)),
    "3 channels of bytes, join": Case((1_000_000, 3), 1, 1, (1, 1, 1), join=True),
    "4 channels of floats": Case((100_000, 4), 1, 4, (1, 1, 1, 1)),
    "columns of floats": Case((512, 1024), 1, 4, (1,) * 1024),
    "columns of bytes, join": Case((512, 1024), 1, 1, (1,) * 1024, join=True),
    "small rows": Case((10_000, 9), 1, 4, (2, 3, 4)),
    "rows of lines": Case((4096, 256), 1, 4, (64, 192)),
    "halves past the caches": Case((64, 2, 256 * 1024), 1, 4, (1, 1)),
    "halves past the caches, join": Case((64, 2, 256 * 1024), 1, 4, (1, 1), join=True),
    "one small split": Case((3, 16), 0, 4, (1, 1, 1)),
}


def built(folder: Path, compiler: str) -> dict[str, Path]:
    """The program of each way."""

    def run(*command: object, **more: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "CFLAGS"} | more
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=ROOT, env=environment)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    with_compiler = f"-DCMAKE_C_COMPILER={compiler}"
    run("cmake", "-S", ROOT, "-B", folder / "library", with_compiler)
    run("cmake", "--build", folder / "library", "--parallel")
    run("cmake", "--install", folder / "library", "--prefix", folder / "there")
    (described,) = (folder / "there").rglob("dmlsplit.pc")
    words = run("pkg-config", "--cflags", "--libs", "dmlsplit", PKG_CONFIG_PATH=str(described.parent)).split()
    path = [f"-Wl,-rpath,{word[2:]}" for word in words if word.startswith("-L")]
    run(compiler, PROGRAM, *words, *path, "-o", folder / "installed")

    (folder / "project").mkdir()
    (folder / "project" / "CMakeLists.txt").write_text(FETCH.format(root=ROOT, program=PROGRAM))
    run("cmake", "-S", folder / "project", "-B", folder / "fetched", with_compiler)
    run("cmake", "--build", folder / "fetched", "--parallel")

    (line,) = [line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if line.startswith("cc ")]
    line = line.replace("examples/c/split.c", "$PROGRAM").removesuffix("split").replace("cc ", '"$CC" ', 1)
    run("sh", "-c", f'{line} "$OUT"', CC=compiler, PROGRAM=str(PROGRAM), OUT=str(folder / "line"))
    return {
        INSTALLED: folder / "installed",
        "FetchContent": folder / "fetched" / "ways",
        "README's line": folder / "line",
    }


class Side:
    """A process, until the end of the context."""

    def __init__(self, program: Path) -> None:
        environment = os.environ | {"DMLSPLIT_MEASURE": "0"}
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, *numbers: int) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(*numbers, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


def times(programs: dict[str, Path], case: Case, seconds: float) -> dict[str, list[float]]:
    """Nanoseconds a call, for each turn of each way."""
    found: dict[str, list[float]] = {name: [] for name in programs}
    with ExitStack() as stack:
        sides = {name: stack.enter_context(Side(program)) for name, program in programs.items()}
        numbers = (len(case.sizes), *case.sizes, case.axis, case.element, int(case.join))
        plans = {side.ask(*numbers, len(case.lengths), *case.lengths) for side in sides.values()}
        if len(plans) != 1 or not all(plans):
            raise SystemExit(f"the plans differ: {sorted(plans)}")
        names, end = list(sides), time.monotonic() + seconds
        while time.monotonic() < end or len(found[INSTALLED]) < FEWEST:
            random.shuffle(names)
            for name in names:
                found[name].append(float(sides[name].ask(0, TURN)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case (default 1)")
    parser.add_argument("--cases", default="*", help="names or wildcards, separated by commas")
    parser.add_argument("--compiler", default="cc")
    options = parser.parse_args()
    for tool in ("cmake", "pkg-config", options.compiler):
        if shutil.which(tool) is None:
            parser.error(f"there is no {tool} on the path")
    chosen = [name for name in CASES if any(fnmatch.fnmatch(name, each) for each in options.cases.split(","))]
    if not chosen:
        parser.error(f"no case is called {options.cases}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    slower = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = built(Path(folder), options.compiler)
        programs[AGAIN] = programs[INSTALLED]
        print(f"| case | installed, us | {' | '.join(name for name in programs if name != INSTALLED)} | |")
        print(f"| --- | {'---: | ' * len(programs)}--- |")
        for name in chosen:
            found = times(programs, CASES[name], options.seconds)
            medians = {way: statistics.median(turns) for way, turns in found.items()}
            ratios = {way: median / medians[INSTALLED] for way, median in medians.items() if way != INSTALLED}
            noise = max(ratios[AGAIN], 1 / ratios[AGAIN])
            lost = [way for way, ratio in ratios.items() if way != AGAIN and ratio > LOST * noise]
            slower += len(lost)
            shown = " | ".join(f"{ratio:.3f}" for ratio in ratios.values())
            print(f"| {name} | {medians[INSTALLED] / 1000:.3f} | {shown} | {'slower' if lost else ''} |", flush=True)
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
