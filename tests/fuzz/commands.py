"""The commands that a model is given to, and what none of them may do to files."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import shutil
from pathlib import Path
from typing import Final

import onnx

from dmlsplit.checking.settings import KEYS
from dmlsplit.cli import main
from dmlsplit.formats.limits import Limit
from dmlsplit.targets.releases import releases
from dmlsplit.targets.runtime_versions import runtimes

LEVELS: Final = ("1_0", "2_0", "2_1", "3_0", "5_0", "6_4")
RELEASES: Final = tuple(release.label for release in releases())
RUNTIMES: Final = tuple(runtime.version for runtime in runtimes())
REDUCED_FOR: Final = (
    *("session-fails", "placement/operator", "onnxruntime/made-at-run", "model/open-sizes"),
    *("onnx/split-sum", "onnx/concat-rank-differs", "node/runtime-differs", "onnx/function-recursive"),
)
OPERATOR_FILES: Final = (".json", ".jsonl")
WINDOWS: Final = ("10-22H2", "11-22H2", "11-24H2")
FORMATS: Final = ("text", "json", "jsonl", "sarif", "html", "junit", "github")
SHOWN: Final = (
    *(["--verbose"], ["--only-problems"], ["--fail-on", "unknown"], ["--fail-on", "warning"], ["--select", "onnx/"]),
    *(["--ignore", "node/"], ["--require-dml", "0.5"], ["--require-capture"], ["--assume", "no-float64"]),
    *(["--free-dimension", "n=4"], ["--allow-path", "."], ["--directml", "1.5.1"], ["--onnxruntime", "1.24.4"]),
)
"""Options of check, some of which do not go together."""
NODES: Final = ("0", "1", "7", "-1", "a", "y", "split", "s", "gate", "If", "a#1", "#", "", "9" * 30, "call/a", "\0")
NOWHERE: Final = ("loop.bin", "pipe.bin/x", "n" * 300, "w.bin/x")
"""Names that no file and no folder can have."""
FOLDER: Final = "sub"
"""A name that no file can have."""
MAX_LINES: Final = 3
"""On standard error: what is wrong, and that something is not written for it."""


_VALUES: Final = (
    *('"3_0"', '"1.15.4"', '["1.24.4"]', '["node/"]', '"error"', '"warning"', "1", "-1", "1.5", "true", "[]", "{}"),
    *("{ x = [1, '?'] }", "{ n = 4 }", "{ n = -1 }", "{ '*.onnx' = ['node/'] }", "[[[]]]", "nan", '"\\u0000"'),
    *("9" * 30, "1979-05-27", '"' + "n" * 5000 + '"', "[" * 200 + "]" * 200, "'unclosed"),
)
"""Of settings: right, of another type, nested, huge, no TOML."""


class CommandFault(Exception):
    """What a command may not do; the text says what it did."""


class Command:
    """A command on a model, and the files before it."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self.path = path
        self.out = path.parent / rng.choice(("out", "out/in/there"))
        self.arguments = _arguments(path, self.out, rng)
        self.writable = path.parent if self.arguments[0] == "run" else path.parent / "out"
        self._most_lines = MAX_LINES
        if path.suffix in OPERATOR_FILES:  # one for each operator that is not shown
            self._most_lines += path.read_bytes().count(b"\n") + path.read_bytes().count(b"{")
        elif self.arguments[0] == "draw":  # one for each Split and Concat of each call that is not shown
            self._most_lines += Limit.ONNX_PARTS.most
        self._before = _tree(path.parent.parent)
        self.status: int | None = None
        self.said = self.complained = ""

    def run(self) -> None:
        said, complained = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            self.status = main(self.arguments)
        self.said, self.complained = said.getvalue(), complained.getvalue()

    def check(self) -> None:
        """Raises CommandFault; removes what was written."""
        self._check_words()
        self._check_files()
        shutil.rmtree(self.path.parent / "out", ignore_errors=True)

    def _check_words(self) -> None:
        text = self.said + self.complained
        if self.status not in (0, 1, 2):
            raise CommandFault(f"exit status {self.status}")
        if "Traceback" in text or "could not be judged" in text or "internal error" in text:
            raise CommandFault(text[-2000:])
        if self.complained.count("\n") > self._most_lines or (self.status == 2 and not self.complained):
            raise CommandFault(f"exit status {self.status}; standard error: {self.complained!r}")
        if not all(line.isprintable() for line in text.split("\n") if "\t" not in line):
            raise CommandFault(f"what cannot be printed: {text!r}")

    def _check_files(self) -> None:
        after, top = _tree(self.path.parent.parent), self.path.parent.parent
        new = {name for name in after if self._before.get(name) != after[name]} | self._before.keys() - after.keys()
        outside = {name for name in new if not _is_within(top / name, self.writable)}
        if outside:
            raise CommandFault(f"it changed {sorted(outside)}")
        if "--dry-run" in self.arguments and new:
            raise CommandFault(f"it wrote {sorted(new)}")
        if any(name.endswith((".tmp", ".old")) for name in new):
            raise CommandFault(f"it left {sorted(new)}")
        fixed = self.out / "fixed.onnx"
        if fixed.exists():
            if self.status:
                raise CommandFault(f"it wrote a model, and its status is {self.status}")
            onnx.ModelProto.FromString(fixed.read_bytes())
        elif self.path.suffix == ".onnx" and any(name.endswith(".bin") for name in new):
            raise CommandFault(f"it wrote {sorted(new)}, and no model")
        elif self.status == 0 and str(fixed) in self.arguments and "--dry-run" not in self.arguments:
            raise CommandFault("it wrote no model")


def _tree(folder: Path) -> dict[str, str]:
    """What is in a folder and below: names, and what stands for the content."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root, name)
            status = path.lstat()
            text = ""
            if path.is_file() and not path.is_symlink():
                text = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder))] = f"{status.st_mode} {status.st_ino if text else ''} {text}"
    return found


def _is_within(path: Path, folder: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(folder)


def _arguments(path: Path, out: Path, rng: random.Random) -> list[str]:
    """A command line; what it writes is in `out`, unless it cannot be written where it is told to."""
    arguments = rng.choice(_COMMANDS)(path, out, rng)
    if "-o" in arguments and rng.random() < 0.08:
        places = NOWHERE if arguments[0] == "why" else (*NOWHERE, FOLDER)  # why writes into a folder
        arguments[arguments.index("-o") + 1] = rng.choice(
            (str(path), "", *(str(path.parent / each) for each in places))
        )
    return arguments


def _target(rng: random.Random) -> list[str]:
    return rng.choice(
        (
            ["--feature-level", rng.choice(LEVELS)],
            ["--directml", rng.choice(RELEASES)],
            ["--windows", rng.choice(WINDOWS)],
            *(["--onnxruntime", rng.choice(RUNTIMES)],) * 5,
            ["--onnxruntime", rng.choice(RUNTIMES), "--windows", rng.choice(WINDOWS)],
        )
    )


def _check(path: Path, out: Path, rng: random.Random) -> list[str]:
    form = rng.choice(FORMATS)
    given = ["check", str(path), *_target(rng), "--format", form, *rng.choice(([], _sizes(rng)))]
    for _ in range(rng.choice((0, 1, 1, 2))):
        given += rng.choice(SHOWN)
    if rng.random() < 0.4:
        out.mkdir(parents=True)
        given += rng.choice((["-o", str(out / "report")], ["--write-baseline", str(out / "known.json")]))
    return given


def _configured(path: Path, out: Path, rng: random.Random) -> list[str]:
    settings = path.parent.parent / "dmlsplit.toml"
    settings.write_bytes(configuration(rng))
    return ["check", str(path), "--config", str(settings)]


def _explain(path: Path, out: Path, rng: random.Random) -> list[str]:
    out.mkdir(parents=True)
    more = rng.choice(([], _sizes(rng), ["-o", str(out / "explained")]))
    form = rng.choice(("text", "json", "html"))
    return ["explain", str(path), rng.choice(NODES), "--onnxruntime", rng.choice(RUNTIMES), "--format", form, *more]


def _why(path: Path, out: Path, rng: random.Random) -> list[str]:
    more = rng.choice((["-o", str(out)], ["-o", str(out), "--seed", "7"], ["--format", "json"], _sizes(rng), []))
    rule = ["--rule", rng.choice(REDUCED_FOR)] if rng.random() < 0.5 else []
    return ["why", str(path), "--onnxruntime", rng.choice(RUNTIMES), *rule, *more]


def _levels(path: Path, out: Path, rng: random.Random) -> list[str]:
    shown = rng.choice(([], ["--json"], ["--verbose"], ["--only-problems"]))
    return ["levels", str(path), *rng.choice(([], ["--releases"], ["--runtimes"])), *shown]


def _draw_or_plan(path: Path, out: Path, rng: random.Random) -> list[str]:
    out.mkdir(parents=True)
    return rng.choice((["plan", str(path)], ["draw", str(path), *_target(rng), "-o", str(out / "drawn.svg")]))


def _legalize(path: Path, out: Path, rng: random.Random) -> list[str]:
    if path.suffix != ".onnx":
        out.mkdir(parents=True)
        if path.suffix in OPERATOR_FILES and rng.random() < 0.5:
            return _of_operators(path, out, rng)
        return ["legalize", str(path), *_target(rng), *rng.choice(([], ["-o", str(out / "fixed.json")]))]
    more = rng.choice(
        (
            *(["-o", str(out / "fixed.onnx"), "--copy-data"],) * 3,
            ["-o", str(path.parent / "out" / "fixed.onnx"), "--copy-data", "--diff"],
            ["-o", str(out / "fixed.onnx")],
            ["--dry-run"],
            ["--diff"],
            ["--format", "html", "-o", str(path.parent / "out" / "page.html")],
            ["-o", str(out / "fixed.json")],
            [],
        )
    )
    if any(each.endswith((".json", ".html")) for each in more):
        out.mkdir(parents=True)
    return ["legalize", str(path), *_target(rng), *more]


def _of_operators(path: Path, out: Path, rng: random.Random) -> list[str]:
    """A command line of those that take operators and DxDispatch models only; `run` writes where the model says."""
    return rng.choice(
        (
            ["run", str(path)],
            ["run", str(path), "--directml", rng.choice(RELEASES)],
            ["plan", str(path)],
            ["draw", str(path), "-o", str(out / "drawn.svg")],
            ["explain-log", str(path)],
        )
    )


def _sizes(rng: random.Random) -> list[str]:
    option, value = rng.choice(
        (
            ("--dim", f"n={rng.choice((0, 1, 4, 2**31, 2**64))}"),
            ("--shape", f"x:{rng.choice(('4,6', '?', '1,2,3', ''))}"),
        )
    )
    return [option, value]


def configuration(rng: random.Random) -> bytes:
    """A configuration: settings that are right, of another type, unknown, nested, huge or no TOML."""
    keys = (*KEYS, "nothing", "a.b.c", "models.'*.onnx'.dims", "per-file-ignores.'*'", ".".join("a" * 60))
    lines = []
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        key, value = rng.choice(keys), rng.choice((*_VALUES, f"0x{'f' * rng.choice((8, 16, 4000))}"))
        lines.append(f"{key} = {value}")
    data = bytearray("\n".join(lines).encode())
    if data and rng.random() < 0.2:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


_COMMANDS: Final = (
    *(_legalize,) * 6,
    *(_check,) * 4,
    *(_levels,) * 2,
    *(_configured,) * 2,
    *(_explain,) * 2,
    _why,
    _draw_or_plan,
)
