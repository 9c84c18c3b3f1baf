"""One model made from a seed, and what may not happen while it is read and judged."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import re
import struct
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dmlsplit.checking.files import judge_entry
from dmlsplit.checking.front_ends import FRONT_ENDS, entries_of
from dmlsplit.cli import main
from dmlsplit.formats.operator_files import Entry, failed, read_operators
from dmlsplit.report import json as json_report
from dmlsplit.report import sarif, text
from dmlsplit.system.errors import InputError
from dmlsplit.targets.target import find_target
from tests.fuzz import commands

ROOT = Path(__file__).resolve().parents[2]
MAX_MESSAGE = 2000
"""Characters of a line that says what is wrong."""
_FAULT = re.compile(r"^(?::[0-9]+:[0-9]+)?: (?:error|warning|note)\[[a-z0-9/-]+\] ")
KINDS = {"onnx": "onnx_mutations", "xml": "ir_mutations", "json": "json_mutations"}


class Fault(Exception):
    """What may not happen; the text says what did."""


def kind_of(seed: int) -> str:
    """The kind of model that a seed makes, one of KINDS."""
    return random.Random(seed).choice(list(KINDS))


def build(seed: int, folder: Path) -> Path:
    """Makes the model of a seed in folder/model, with files in and around it that it may and may not read."""
    rng = random.Random(f"{seed}: content")  # not the numbers that chose the kind
    inside = folder / "model"
    for made in (inside / "sub", folder / "elsewhere", folder / "nowhere"):
        made.mkdir(parents=True)
    (inside / "w.bin").write_bytes(struct.pack("<8q", 2, 2, 3, 1, 1, 1, 1, 1))
    (inside / "sub" / "w.bin").write_bytes(struct.pack("<8q", 1, 3, 3, 1, 1, 1, 1, 1))
    # Other numbers: whoever reads these gives another verdict.
    decoy = struct.pack("<8q", 3, 1, 1, 3, 4, 2, 1, 1)
    for path in ("secret.bin", "w.bin", "elsewhere/w.bin", "elsewhere/model.bin"):
        (folder / path).write_bytes(decoy)
    if os.name == "posix":
        (inside / "link.bin").symlink_to("../secret.bin")
        (inside / "loop.bin").symlink_to("loop.bin")
        os.mkfifo(inside / "pipe.bin")
    made: Path = importlib.import_module(f"tests.fuzz.{KINDS[kind_of(seed)]}").write(rng, inside)
    return made


def examine(seed: int, path: Path) -> None:
    """Reads and judges the model that `build` made. Raises Fault."""
    folder = path.parent.parent
    with _watched(path.parent) as opened, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answers = []
        for current in ("elsewhere", "nowhere"):
            os.chdir(folder / current)
            try:
                answers.append(_answer(path))
            except Fault:
                raise
            except Exception:
                raise Fault(traceback.format_exc()) from None
        if seed % 16 == 0:
            _run_command(path, random.Random(seed).choice(("text", "json", "jsonl", "sarif", "html")))
    _check_watched(warned, opened)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        command = commands.Command(path, random.Random(seed))
        with _watched(path.parent, command.writable) as opened:
            command.run()
    try:
        command.check()
    except commands.CommandFault as fault:
        raise Fault(f"{command.arguments}: {fault}") from None
    _check_watched(warned, opened)
    if answers[0] != answers[1]:
        pairs = zip(*(answer.splitlines() for answer in answers), strict=False)
        differing = next(pair for pair in pairs if pair[0] != pair[1])
        raise Fault("the current directory decides:\n{}\n{}".format(*differing))


def _check_watched(warned: list[warnings.WarningMessage], opened: set[str]) -> None:
    if warned:
        raise Fault(f"warned: {warned[0].message}")
    if opened:
        raise Fault("opened: " + "; ".join(sorted(opened)))


_TOGETHER = ("node/shape-unknown", "node/sizes-open")
"""What is said alike of many nodes is one line of text."""


def _answer(path: Path) -> str:
    """All that is said of a file, as text and JSON."""
    file = str(path)
    entries = list(_entries(file, path.suffix))
    items = [judge_entry(entry, find_target()) for entry in entries]
    lines = "".join(text.chunks(items, 1, text.Shown(verbose=True))).splitlines(keepends=True)
    for line in lines:
        if not line.endswith("\n") or not line[:-1].isprintable():
            raise Fault(f"not one printable line: {line!r}")
        if len(line) > MAX_MESSAGE + len(file):
            raise Fault(f"a line of {len(line)} characters: {line[:MAX_MESSAGE]!r}")
    said = [d for item in items for d in item.report.diagnostics if d.rule not in _TOGETHER]
    shown = {line for line in lines if _FAULT.search(line.removeprefix(file))}
    shown = {line for line in shown if not any(f"[{rule}]" in line for rule in _TOGETHER)}
    if shown != {text.plain(text.diagnostic_parts(diagnostic, file)) + "\n" for diagnostic in said}:
        raise Fault(f"{len(said)} faults are not the lines {shown}")
    reports = "".join(json_report.lines(items))
    for line in reports.splitlines():
        json.loads(line)
    json.loads("".join(sarif.document(iter(items))))
    return "".join(lines) + reports


def _entries(file: str, suffix: str) -> Iterator[Entry]:
    """The entries of a file; raises what must not be raised."""
    if suffix not in FRONT_ENDS:
        for entry in read_operators(file):
            if entry.any_operator is not None:
                with contextlib.suppress(InputError):
                    entry.any_operator()
            yield entry
        return
    front_end: Any = importlib.import_module(f"dmlsplit.formats.{FRONT_ENDS[suffix]}")
    try:
        yield from entries_of(file, front_end.read_model(file))
    except (InputError, OSError) as error:
        yield failed(file, 0, error if isinstance(error, InputError) else InputError(error.strerror or str(error)))


def _run_command(path: Path, format_: str) -> None:
    """`dmlsplit check` itself: the exit status, and at most one line on standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["check", str(path), "--format", format_])
    said = err.getvalue()
    if status not in (0, 1, 2) or (status == 2) != bool(said):
        raise Fault(f"exit status {status}; standard error: {said!r}")
    if said.count("\n") > 1 or "could not be judged" in said or "Traceback" in said + out.getvalue():
        raise Fault(f"standard error: {said}")


# Files that are opened

_READ_BY_PYTHON = tuple(
    os.path.realpath(path)
    for path in {str(ROOT), sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *sys.path}
    if path
)
_WORKERS = ("_worker.py", "_converter.py", "_evaluator.py")
_STARTED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.bind")
_CHANGED = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
_LONGEST_NAME = 255
_watching: tuple[str, str | None, set[str]] | None = None
"""The folder that may be read, one that may be written, and what was done beyond that."""
_made: dict[str, str] = {}
"""The real paths of folders that were made. To resolve each of 2,000 that are inside each other takes a minute."""


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching is None:
        return
    if event == "open" and not isinstance(arguments[0], int):
        fault = _opened(os.fsdecode(arguments[0]), *arguments[1:])
    elif event in _STARTED:
        fault = "" if any(worker in str(arguments) for worker in _WORKERS) else f"{event}{arguments}"
    elif event == "os.mkdir" and os.path.lexists(arguments[0]):  # it fails, and changes nothing
        return
    elif event in _CHANGED:
        paths = [_real(event, os.fsdecode(each)) for each in arguments if isinstance(each, (str, bytes))]
        if any(len(os.path.basename(path)) > _LONGEST_NAME for path in paths):  # it fails, and changes nothing
            return
        fault = "" if all(map(_is_writable, paths)) else f"{event}{arguments}"
    else:
        return
    if fault:
        _watching[2].add(fault)


def _real(event: str, path: str) -> str:
    """The path that an event changes, without links."""
    if event == "os.rmdir" and path in _made:
        return _made.pop(path)
    folder, name = os.path.split(path)
    if event == "os.mkdir" and folder in _made and name != "..":
        return _made.setdefault(path, os.path.join(_made[folder], name))
    real = os.path.realpath(path)
    if event == "os.mkdir":
        _made[path] = real
    elif event in ("os.rename", "os.symlink"):
        _made.clear()
    return real


def _is_writable(path: str) -> bool:
    assert _watching is not None
    return _watching[1] is not None and _within(path, _watching[1])


def _opened(path: str, mode: str | None, flags: int) -> str:
    assert _watching is not None
    real = os.path.realpath(path)
    if flags & (os.O_WRONLY | os.O_RDWR):
        return "" if real == os.devnull or os.path.isdir(real) or _is_writable(real) else f"{path} for writing"
    if real == os.devnull or _within(real, _watching[0]) or real.endswith("/dmlsplit.toml"):
        return ""
    # Modules, where they are imported late, and what they bring along.
    return "" if any(_within(real, root) for root in _READ_BY_PYTHON) else path


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


@contextlib.contextmanager
def _watched(folder: Path, writable: Path | None = None) -> Iterator[set[str]]:
    """The files outside of `folder` that are opened, and all else that reading a model has no need of, or writing into
    a folder."""
    global _watching
    found: set[str] = set()
    _watching = (os.path.realpath(folder), None if writable is None else os.path.realpath(writable), found)
    try:
        yield found
    finally:
        _watching = None


sys.addaudithook(_hook)
