"""Mutation testing of csrc/ and dmlsplit/rules/: does a test fail where the code is changed a little?

    python tests/mutation/run.py [--seed N] [--count N] [--only c3,p17] [--quick] [--journal FILE] [c] [python]

places.py lists where the code can be changed, and how, which_tests.py the tests that are asked. Of each language
--count (100) changes are chosen by the seed, an operator first, then a place. Each is made in a copy of the tree, and
tests run until one fails: C programs, the quick ones first, then those of the Python package; for rules the tests of
their scope, then the others. One process works at a time, after all others of the machine. Kernels that this CPU lacks
do not run, so few of their changes are caught: a CPU with AVX-512 VBMI has all. --only repeats some, by the numbers
that were printed.

A journal keeps each outcome: a run that was ended goes on from there, and asks again of survivors and of files that
were edited. --quick leaves out the tests that take long; a run without it, by the same journal, asks of the survivors.

Not counted, and replaced by others: what does not compile, or compiles to the same machine code, as code for other
machines does; what only tests compile; what only decides how fast a copy is; and what no test can tell from the
original (left_out.py lists both). Survivors are printed at the end. Exit status 1 where fewer than 95 of 100 are
caught.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import resource
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from left_out import explanation, is_for_tests, speed_alone  # noqa: E402 (beside this file, as all three)
from places import Mutation, c_mutations, python_mutations  # noqa: E402
from which_tests import C_TESTS, LONG_OF_C, PYTHON_TESTS_OF_C, c_tests, rules_tests  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CC = shlex.split(os.environ.get("CC", "cc"))
LEAST_CAUGHT = 0.95
LONGEST = 1200
"""Seconds for a program that was not run before."""
BUSY = 30
"""A program that waits for others of the machine, or for nothing, is ended after so many times its seconds."""
COMPILED_AWAY = NOT_COMPILED, SAME_CODE = "does not compile", "compiles to the same code"
TESTING = ["-O1", "-DDMS_TESTING"]
SHIPPED = ["-O2", "-fPIC", "-fvisibility=hidden"]
"""What is compared to find changes without an effect, and linked into the extension."""
LEAKS = ["-fsanitize=leak"]
"""For the linker: a C test that leaves memory behind fails."""
FORKS = {"threads"}
"""Tests whose children start threads, which they cannot beside LeakSanitizer."""


class Ended(Exception):
    """A program that failed, or took too long."""


class Journal:
    """Mutation -> what caught it, or why it is left out, kept in a file of a line each; without a file, in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
        self.outcomes: dict[str, tuple[str, str]] = dict(json.loads(line) for line in lines)

    @staticmethod
    def key(mutation: Mutation, text: str) -> str:
        return hashlib.sha256(repr((mutation, text)).encode()).hexdigest()

    def add(self, key: str, outcome: str, what: str) -> None:
        self.outcomes[key] = outcome, what
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, [outcome, what]]) + "\n")


def run(command: list[str | Path], folder: Path, seconds: float, variables: dict[str, str] | None = None) -> None:
    """Runs a program and all that it starts; raises Ended where it fails."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=lambda: _bounded(seconds),
        env={**os.environ, **(variables or {})},
    )
    try:
        said, _ = process.communicate(timeout=BUSY * seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Ended(f"{command[0]}: did not end") from None
    if process.returncode != 0:
        raise Ended(f"{shlex.join(map(str, command))}: exit status {process.returncode}\n{said[-2000:]}")


class Tests:
    """Programs by name, in the order in which they are tried; each is given several times the processor's time that it
    took before, so that a busy machine ends none."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self.right: set[str] = set()
        """Those that passed without any change."""

    def fail(self, names: Iterable[str], start: Callable[[str, float], None]) -> str | None:
        """The name of the first that fails, or None."""
        for name in names:
            before = _seconds_of_children()
            try:
                start(name, 3 + 5 * self.taken[name] if name in self.taken else LONGEST)
            except Ended:
                return name
            self.taken.setdefault(name, _seconds_of_children() - before)
        return None

    def pass_unchanged(self, names: Iterable[str], start: Callable[[str, float], None]) -> None:
        for name in names:
            if name not in self.right:
                before = _seconds_of_children()
                try:
                    start(name, LONGEST)
                except Ended as why:
                    raise SystemExit(f"{name} fails without any change: {why}") from None
                self.taken[name] = _seconds_of_children() - before
                self.right.add(name)


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bounded(seconds: float) -> None:
    """In a child: no file of a crash, and no more of the processor's time than this."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))


class CoreOfC:
    """csrc in a copy of the tree: objects for the C tests and for the extension, and what a change has to compile."""

    def __init__(self, tree: Path, is_quick: bool) -> None:
        self.tree, self.tests = tree, Tests()
        self.left_out = LONG_OF_C if is_quick else set[str]()
        self.objects = tree / "objects"
        self.sources = sorted([*tree.glob("csrc/*.c"), *tree.glob("csrc/*/*.c")])
        self.paths = sorted(
            str(path.relative_to(tree))
            for pattern in ("*.c", "*.h", "*.inc")
            for path in (tree / "csrc").rglob(pattern)
            if path.parent.name != "python"
        )
        for flavour in ("testing", "shipped"):
            (self.objects / flavour).mkdir(parents=True)
        self.read_by = {source: self._reads(source) for source in self.sources}
        self.leaks = self._leaks()
        self.extension = next((tree / "dmlsplit").glob("_ffi*.so"), tree / "dmlsplit" / "_ffi.abi3.so")

    def mutations(self) -> Iterator[Mutation]:
        for path in self.paths:
            yield from c_mutations(path, (self.tree / path).read_text())

    def prepare(self) -> None:
        for source in self.sources:
            self._compile(source, "testing")
            self._compile(source, "shipped")
        for name in C_TESTS:
            self._compile_test(name)
        self._compile_extension()
        names = [name for name in (*C_TESTS, *PYTHON_TESTS_OF_C) if name not in self.left_out]
        self.tests.pass_unchanged(names, self._run)

    def judge(self, mutation: Mutation) -> str | None:
        """What caught it; None: nothing. Raises Ended where it says nothing: why."""
        path = self.tree / mutation.path
        changed = [source for source, read in self.read_by.items() if path in read]
        kept = {place: place.read_bytes() for source in changed for place in self._places(source)}
        before = path.read_text()
        try:
            path.write_text(mutation.apply(before))
            self._compile_changed(changed, kept, "testing")
            if (caught := self._failed(mutation.path, C_TESTS)) is not None:
                return caught
            self._compile_changed(changed, kept, "shipped")
            return self._failed(mutation.path, PYTHON_TESTS_OF_C)
        finally:
            path.write_text(before)
            for place, old in kept.items():
                place.write_bytes(old)

    def _compile_changed(self, changed: list[Path], kept: dict[Path, bytes], flavour: str) -> None:
        try:
            for source in changed:
                self._compile(source, flavour)
        except Ended:
            raise Ended(NOT_COMPILED) from None
        if all(place.read_bytes() == old for place, old in kept.items() if place.parent.name == flavour):
            raise Ended(SAME_CODE)

    def _failed(self, path: str, tests: tuple[str, ...]) -> str | None:
        return self.tests.fail([test for test in c_tests(path, tests) if test not in self.left_out], self._run)

    def _run(self, name: str, seconds: float) -> None:
        if name.startswith("tests/"):
            self._link_extension()
            run_pytest(self.tree, name, seconds)
            return
        program = self.objects / name
        leaks = [] if name in FORKS else self.leaks
        run([*CC, *leaks, f"{program}.o", *self._all("testing"), "-pthread", "-o", program], self.tree, 120)
        run([program, self._source(name)], self.tree, seconds)

    def _leaks(self) -> list[str]:
        """What makes leaks fail, where the compiler and the system can."""
        source, program = self.objects / "probe.c", self.objects / "probe"
        source.write_text("int main(void) { return 0; }\n")
        try:
            run([*CC, *LEAKS, source, "-o", program], self.tree, 120)
            run([program], self.tree, 120)
        except Ended:
            return []
        return LEAKS

    def _reads(self, source: Path) -> set[Path]:
        done = subprocess.run(
            [*CC, "-MM", "-DDMS_TESTING", "-I", self.tree / "include", source],
            capture_output=True,
            text=True,
            check=True,
        )
        return {Path(name).resolve() for name in done.stdout.replace("\\\n", " ").split()[1:]}

    def _places(self, source: Path) -> list[Path]:
        return [self.objects / flavour / f"{source.stem}.o" for flavour in ("testing", "shipped")]

    def _all(self, flavour: str) -> list[Path]:
        return [self.objects / flavour / f"{source.stem}.o" for source in self.sources]

    def _compile(self, source: Path, flavour: str) -> None:
        flags = TESTING if flavour == "testing" else SHIPPED
        target = self.objects / flavour / f"{source.stem}.o"
        run([*CC, "-std=c11", "-w", *flags, "-I", "include", "-c", source, "-o", target], self.tree, 300)

    def _compile_test(self, name: str) -> None:
        few = ["-DFEW_CASES"] if name.endswith("-few") else []
        source = self._source(name)
        options = ["-std=c11", "-w", *TESTING, *few, "-I", "include", "-I", "csrc"]
        run([*CC, *options, "-c", source, "-o", self.objects / f"{name}.o"], self.tree, 300)

    def _source(self, name: str) -> Path:
        """Of a test, or of the program that is given a file that cannot be written to: its own source."""
        prefix = "" if name == "capture" else "test_"
        return self.tree / "tests" / "c" / f"{prefix}{name.removesuffix('-few')}.c"

    def _compile_extension(self) -> None:
        """The extension's own source, as cffi writes it."""
        write = (
            "import sys; sys.path.insert(0, 'csrc'); import ffi_build as b; "
            f"b.ffi.emit_c_code({str(self.objects / 'ffi.c')!r})"
        )
        run([sys.executable, "-c", write], self.tree, 300)
        headers = ["-I", "include", "-I", "csrc/python", "-I", sysconfig.get_paths()["include"]]
        limited = ["-DPy_LIMITED_API=0x030B0000"] if ".abi3." in self.extension.name else []
        target = self.objects / "ffi.o"
        run([*CC, "-w", *SHIPPED, *limited, *headers, "-c", self.objects / "ffi.c", "-o", target], self.tree, 600)

    def _link_extension(self) -> None:
        run(
            [*CC, "-shared", self.objects / "ffi.o", *self._all("shipped"), "-pthread", "-o", self.extension],
            self.tree,
            120,
        )


class RulesInPython:
    """dmlsplit/rules in a copy of the tree."""

    def __init__(self, tree: Path, is_quick: bool) -> None:
        self.tree, self.tests, self.is_quick = tree, Tests(), is_quick

    def mutations(self) -> Iterator[Mutation]:
        for path in sorted((self.tree / "dmlsplit" / "rules").rglob("*.py")):
            if path.name == "_examples.py":
                continue
            yield from python_mutations(str(path.relative_to(self.tree)), path.read_text("utf-8"))

    def prepare(self) -> None:
        """Tests run unchanged when they catch something for the first time: most are seldom wanted."""

    def judge(self, mutation: Mutation) -> str | None:
        path = self.tree / mutation.path
        before = path.read_text("utf-8")
        after = mutation.apply(before)
        try:
            compiled = compile(after, path, "exec", dont_inherit=True, optimize=2)
        except SyntaxError:
            raise Ended(NOT_COMPILED) from None
        if compiled == compile(before, path, "exec", dont_inherit=True, optimize=2):
            raise Ended(SAME_CODE)
        try:
            path.write_text(after, "utf-8")
            caught = self.tests.fail(rules_tests(mutation.path, self.is_quick), self._run)
        finally:
            path.write_text(before, "utf-8")
        if caught is not None:
            self.tests.pass_unchanged([caught], self._run)
        return caught

    def _run(self, name: str, seconds: float) -> None:
        run_pytest(self.tree, name, seconds)


IMPORTED_BY_TESTS = (
    "cffi",
    "click",
    "hypothesis",
    "jsonschema",
    "ml_dtypes",
    "numpy",
    "onnx",
    "pytest",
    "rich.console",
)
"""Once, for all tests: it takes longer than most of them."""


def run_pytest(tree: Path, names: str, seconds: float) -> None:
    """Runs tests in a child of this process, which has imported what they need but for the package and themselves."""
    for module in IMPORTED_BY_TESTS:
        import_module(module)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _bounded(seconds)
            status = _tests_in_child(tree, names.split())
        finally:
            os._exit(status)
    end = time.monotonic() + BUSY * seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Ended(f"{names}: did not end")
        time.sleep(0.02)
    if status != 0:
        raise Ended(f"{names}: status {status}\n{(tree / 'said').read_text(errors='replace')[-2000:]}")


def _tests_in_child(tree: Path, tests: list[str]) -> int:
    """Python's bytecode is not kept: a change within one second might not be seen."""
    os.setsid()
    os.chdir(tree)
    with (tree / "said").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in (str(ROOT), str(HERE)))]
    os.environ["PYTHONPATH"] = str(tree)
    if not str(find_spec("dmlsplit").origin).startswith(str(tree)):  # type: ignore[union-attr]
        raise ImportError("another dmlsplit comes before the copy")
    if tests[0].endswith("generate.py"):
        sys.argv = [tests[0], "--check"]
        sys.path.insert(0, str(tree / "docs"))
        try:
            runpy.run_path(tests[0], run_name="__main__")
        except SystemExit as ended:
            return int(ended.code or 0)
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", *tests]))


def chosen(places: list[Mutation], seed: int, tree: Path) -> Iterator[Mutation]:
    """All of them in an order that the seed decides: an operator first, then a place, when its turn comes by its own
    line, so that what is edited elsewhere moves few."""
    numbers, texts = random.Random(seed), dict[str, str]()
    left: dict[str, list[tuple[str, int, Mutation]]] = {}
    for at, place in enumerate(places):
        text = texts.setdefault(place.path, (tree / place.path).read_text("utf-8"))
        begin = text.rfind("\n", 0, place.begin) + 1
        own = seed, place.path, text.splitlines()[place.line - 1].strip(), place.begin - begin, place.old, place.new
        left.setdefault(place.operator, []).append((hashlib.sha256(repr(own).encode()).hexdigest(), at, place))
    for of_one in left.values():
        of_one.sort(reverse=True)
    while left:
        operator = numbers.choice(sorted(left))
        yield left[operator].pop()[-1]
        if not left[operator]:
            del left[operator]


def outcome_of(mutation: Mutation, text: str, code: CoreOfC | RulesInPython, ask: bool) -> tuple[str, str]:
    """`left out`, `caught` or `survived`, and why or by what; unless it is to be asked, some are left out at once."""
    if mutation.path.startswith("csrc/") and is_for_tests(text, mutation.line):
        return "left out", "only tests compile it"
    speed = speed_alone(mutation, text)
    if speed is not None and not ask:
        return "left out", f"speed: {speed}"
    try:
        by = code.judge(mutation)
    except Ended as why:
        return "left out", str(why)
    if by is not None:
        return "caught", by
    why_not = explanation(mutation, text)
    return ("survived", "") if why_not is None else ("left out", f"equivalent: {why_not}")


def mutate(name: str, code: CoreOfC | RulesInPython, seed: int, count: int, only: set[str], journal: Journal) -> bool:
    """Whether enough are caught; of those in `only`, where there are any."""
    start, left_out, survivors, caught = time.monotonic(), Counter[str](), [], 0
    is_ready = False
    for number, mutation in enumerate(chosen(list(code.mutations()), seed, code.tree)):
        label = f"{name[0].lower()}{number}"
        if only and label not in only:
            continue
        text = (code.tree / mutation.path).read_text("utf-8")
        key = journal.key(mutation, text)
        if only or journal.outcomes.get(key, ("survived", ""))[0] == "survived":
            if not is_ready:
                code.prepare()
                print(f"{name}: seed {seed}; ready after {time.monotonic() - start:.0f} s", flush=True)
                is_ready = True
            journal.add(key, *outcome_of(mutation, text, code, bool(only)))
        outcome, what = journal.outcomes[key]
        if outcome == "left out":
            left_out[what.partition(":")[0]] += 1
        elif outcome == "caught":
            caught += 1
        else:
            survivors.append((label, mutation))
        if what not in COMPILED_AWAY:
            print(f"  {label} {outcome.upper()}{' by' * (outcome == 'caught')} {what}: {mutation}", flush=True)
        if caught + len(survivors) == (len(only) or count):
            break
    counted = caught + len(survivors)
    print(f"{name}: seed {seed}, {caught} of {counted} caught, in {(time.monotonic() - start) / 60:.0f} minutes")
    print("  left out: " + (", ".join(f"{number} {why}" for why, number in left_out.items()) or "none"))
    for label, mutation in survivors:
        print(f"  survived: {label} {mutation}")
    return caught >= LEAST_CAUGHT * counted


def copy_tree(target: Path) -> None:
    """What the tests read; nothing of version control, environments and builds."""
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "dist", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis"
    )
    shutil.copytree(ROOT, target, ignore=ignored, symlinks=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", metavar="c|python")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args()
    os.nice(5)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    makers = {"c": ("C", CoreOfC), "python": ("Python", RulesInPython)}
    if unknown := set(options.languages) - set(makers):
        parser.error(f"no such language: {', '.join(sorted(unknown))}")
    enough = True
    only = set(filter(None, options.only.split(",")))
    journal = Journal(options.journal and options.journal.absolute())
    with tempfile.TemporaryDirectory(prefix="dmlsplit-mutation-") as folder:
        tree = Path(folder) / "dmlsplit"
        copy_tree(tree)
        for language in options.languages or makers:
            name, make = makers[language]
            wanted = {label for label in only if label[0] == language[0]}
            if not only or wanted:
                enough = (
                    mutate(name, make(tree, options.quick), options.seed, options.count, wanted, journal) and enough
                )
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
