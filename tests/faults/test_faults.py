"""Each call to the system on a command's files fails once, is cut short, or is the last one before the process is
killed: outputs are whole or not there, inputs are untouched, and nothing else is left.

The calls are found by running the command: whatever opens, writes, renames or removes a file of its folder is one, so
that a new one is met without being named here. See faults.c.
"""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from tests import models
from tests.cli.conftest import BAD, INT64, environment

HERE = Path(__file__).parent
SHORT, KILL = -1, -2
"""Faults beside the errors; see faults.c."""
ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR, errno.EACCES)
TEMPORARY = re.compile(r"(.*/)?(dmlsplit-[0-9a-f]{16}\.(tmp|old)|\.making-[^/]*(/.*)?)")
"""What a process that was killed may leave."""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD as Linux has it"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on the path"),
]

Tree = Mapping[str, bytes | None]


def model(*, weights: bool = True) -> bytes:
    """A gated linear unit, which DirectML 1.15 computes wrong, and a weight in weights.bin."""
    made = models.text(
        "(float[1,8,4,4] x) => (float[1,4,4,4] o) { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"
    )
    if not weights:
        return made.SerializeToString()
    weight = made.graph.initializer.add(name="w", data_type=onnx.TensorProto.FLOAT, dims=[16])
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="deep/weights.bin")
    return made.SerializeToString()


def npy(array: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def program() -> bytes:
    """A DxDispatch model that writes two files."""
    write = {"type": "writeFile", "resource": "X"}
    return json.dumps(
        {
            "resources": {"X": {"initialValuesDataType": "INT32", "initialValues": [1, 2, 3]}},
            "dispatchables": {},
            "commands": [{**write, "targetPath": "new/x.npy"}, {**write, "targetPath": "x.bin"}],
        }
    ).encode()


class Scenario(NamedTuple):
    """A command in a folder with these files; `together`: its outputs are all there, or none is, and the first one is
    there only where all are."""

    command: str
    files: Tree
    together: tuple[str, ...] = ()
    report: bytes = b""
    """A pattern of the output that says what could not be read."""


NOT_READ = rb".* 1 not read; \d+ errors?\n"
ONNX = {"in/m.onnx": model(), "in/deep/weights.bin": bytes(range(64))}
PLAIN = {"in/m.onnx": model(weights=False)}
DESCRIPTOR = {"d.json": INT64.encode(), "bad.json": BAD.encode()}
PIECES = {f"p/x.{i}.npy": b"old %d" % i for i in range(4)}
ARRAY = {"x.npy": npy(np.arange(600).reshape(2, 300))}
SCENARIOS = {
    "model": Scenario("legalize in/m.onnx --onnxruntime 1.24.4 -o in/fixed.onnx", ONNX),
    "model replaced": Scenario(
        "legalize in/m.onnx --onnxruntime 1.24.4 -o in/fixed.onnx", {**ONNX, "in/fixed.onnx": b"old"}
    ),
    "model and data": Scenario(
        "legalize in/m.onnx --onnxruntime 1.24.4 -o out/fixed.onnx --copy-data",
        {**ONNX, "out/fixed.onnx": b"old"},
        together=("out/fixed.onnx", "out/deep/weights.bin"),
    ),
    "model and data in new folders": Scenario(
        "legalize in/m.onnx --onnxruntime 1.24.4 -o new/out/fixed.onnx --copy-data",
        ONNX,
        together=("new/out/fixed.onnx", "new/out/deep/weights.bin"),
    ),
    "changes as a page": Scenario("legalize in/m.onnx --onnxruntime 1.24.4 --format html -o changes.html", ONNX),
    "reduction": Scenario(
        "why in/m.onnx --onnxruntime 1.24.4 -o small",
        {**PLAIN, **{f"small/{name}": b"old" for name in ("why.json", "model.onnx", "inputs.7.npy", "notes.txt")}},
        together=("small/model.onnx", "small/why.json", "small/explain.json", "small/inputs.0.npy"),
    ),
    "operators": Scenario("legalize d.json --feature-level 2_1 -o o.json", {**DESCRIPTOR, "o.json": b"old"}),
    "report": Scenario("check bad.json -o report.txt", DESCRIPTOR, report=NOT_READ),
    "page": Scenario(
        "check bad.json d.json --format html -o report.html",
        {**DESCRIPTOR, "report.html": b"old"},
        report=rb"<!doctype html>.*not read.*</html>\s*",
    ),
    "report and baseline": Scenario(
        "check bad.json -o report.txt --write-baseline known.json",
        {**DESCRIPTOR, "known.json": b"old"},
        report=NOT_READ + rb'|\{"schema": .*\}\s*',
    ),
    "picture": Scenario("draw d.json -o d.svg", DESCRIPTOR),
    "levels": Scenario("levels d.json --format json -o levels.json", DESCRIPTOR, report=rb"\[.*input/malformed.*\]\s*"),
    "pieces": Scenario(
        "split x.npy --axis 1 --sections 3 -o p/new",
        ARRAY,
        together=tuple(f"p/new/x.{i}.npy" for i in range(3)),
    ),
    "pieces replaced": Scenario(
        "split x.npy --axis 1 --sections 3 -o p --force",
        {**ARRAY, **PIECES},
        together=tuple(f"p/x.{i}.npy" for i in range(4)),
    ),
    "resources": Scenario("run program.json", {"program.json": program(), "x.bin": b"old"}),
    "profile": Scenario("tune -o machine.profile", {"machine.profile": b"old"}),
    "library": Scenario("library add it", {"cache/onnxruntime": None}, together=("cache/onnxruntime/1.18.0",)),
}


def tree(folder: Path) -> dict[str, bytes | None]:
    """Names and contents of files, folders (None) included."""
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


def restore(folder: Path, files: Tree) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content)


class Server:
    """The process that serves commands with faults; see serve.py."""

    def __init__(self, preloaded: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / "serve.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(LD_PRELOAD=str(preloaded), DMLSPLIT_CACHE="cache"),
        )

    def run(self, scenario: Scenario, folder: Path, at: int, fault: int = 0) -> dict[str, Any]:
        """`at`: the call to change; 0: none; -1: the command is run by the server itself, which then has imported all
        modules."""
        request = {"command": scenario.command.split(), "folder": str(folder), "at": at, "fault": fault}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    preloaded = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", HERE / "faults.c", "-o", preloaded, "-ldl"], check=True)
    made = Server(preloaded)
    yield made
    made.close()


class Trial:
    """A scenario's calls, and what is there before and after it."""

    def __init__(self, server: Server, scenario: Scenario, folder: Path) -> None:
        self.server, self.scenario, self.folder = server, scenario, folder / "work"
        restore(self.folder, scenario.files)
        self.before = tree(self.folder)
        server.run(scenario, self.folder, -1)
        restore(self.folder, self.before)
        done = server.run(scenario, self.folder, 0)
        self.status, self.count = done["status"], done["count"]
        self.after = tree(self.folder)
        self.outputs = [
            name for name in {**self.before, **self.after} if self.before.get(name, 0) != self.after.get(name, 0)
        ]
        assert self.status in (0, 1), done["said"]
        assert {name for name in self.outputs if self.after.get(name) is not None} & {*scenario.together, *self.outputs}

    def run(self, at: int, fault: int) -> dict[str, Any]:
        restore(self.folder, self.before)
        return self.server.run(self.scenario, self.folder, at, fault)

    def check(self, at: int, fault: int, found: dict[str, Any]) -> None:
        """Of a command that has ended by itself."""
        now, place = tree(self.folder), f"{found['name']}, call {at}, fault {fault}: {found['said']!r}"
        assert found["name"], place
        assert {name for name in now if name not in self.before and name not in self.after} == set(), place
        for name in {**self.before, **self.after}:
            sides = (self.before.get(name, 0), self.after.get(name, 0))
            assert now.get(name, 0) in sides or self.is_report(now.get(name)), (name, place)
        for name in self.before.keys() - set(self.outputs):
            assert now[name] == self.before[name], (name, place)
        if self.scenario.together:
            states = {
                tuple(now.get(name, 0) == side.get(name, 0) for side in (self.before, self.after))
                for name in self.outputs
            }
            assert len(states) == 1, (states, place)
        complete = now == self.after
        assert (found["status"] == self.status) == complete, (found["status"], place)
        assert complete or found["status"] in (1, 2), place
        said = found["said"].splitlines()
        assert complete or 1 <= len(said) <= 2, place  # what is wrong, and that something is not written for it
        assert complete or any(name in said[0] for name in {**self.before, **self.after}), place
        assert all(line.startswith("dmlsplit: ") and "judged" not in line for line in said), place

    def is_report(self, content: bytes | None) -> bool:
        """Whether it is a whole report on what could not be read."""
        return bool(self.scenario.report and content and re.fullmatch(self.scenario.report, content, re.DOTALL))

    def check_killed(self, at: int, found: dict[str, Any]) -> None:
        """Of a process that was killed before a call."""
        now, place = tree(self.folder), f"killed before call {at}"
        assert found["status"] == -signal.SIGKILL
        folders = {str(parent) for name in self.after for parent in Path(name).parents}
        known = {*self.before, *self.after, *folders}
        assert {name for name in now if name not in known and not TEMPORARY.fullmatch(name)} == set(), place
        for name in self.outputs:
            allowed = [self.before.get(name, 0), self.after.get(name, 0)]
            allowed += [0] if self.scenario.together else []
            assert now.get(name, 0) in allowed, (name, place)
        for name in self.before.keys() - set(self.outputs):
            assert now[name] == self.before[name], (name, place)
        if self.scenario.together and self.scenario.together[0] in now:
            assert any(
                all(now.get(name, 0) == side.get(name, 0) for name in self.scenario.together)
                for side in (self.before, self.after)
            ), place


MARKS = {"library": [pytest.mark.slow], "reduction": [pytest.mark.slow, pytest.mark.thorough]}


@pytest.fixture(params=[pytest.param(name, marks=MARKS.get(name, ())) for name in SCENARIOS])
def trial(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Trial:
    return Trial(server, SCENARIOS[request.param], tmp_path)


def test_each_call_fails_once(trial: Trial) -> None:
    assert trial.count >= 6
    for at in range(1, trial.count + 1):
        fault = ERRORS[at % len(ERRORS)]
        trial.check(at, fault, trial.run(at, fault))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("fault", ERRORS)
def test_each_call_fails_once_by_each_error(trial: Trial, fault: int) -> None:
    for at in range(1, trial.count + 1):
        trial.check(at, fault, trial.run(at, fault))


def test_each_read_and_each_write_is_cut_short(trial: Trial) -> None:
    cut = 0
    for at in range(1, trial.count + 1):
        found = trial.run(at, SHORT)
        assert (found["status"], tree(trial.folder)) == (trial.status, trial.after), (at, found)
        cut += found["name"] in ("read", "write")
    assert cut


def test_the_process_is_killed_before_each_call(trial: Trial) -> None:
    for at in range(1, trial.count + 1):
        trial.check_killed(at, trial.run(at, KILL))
