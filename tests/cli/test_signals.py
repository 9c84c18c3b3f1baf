"""Signals: whenever one comes, what was there before is there, or all that is new; and the exit status tells."""

from __future__ import annotations

import contextlib
import glob
import importlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dmlsplit.system import signals
from dmlsplit.system.processes import Processes
from tests.cli.conftest import BAD, environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX only")

AT_MOMENTS = """
import json, os, signal, sys
from pathlib import Path
from dmlsplit.cli import main
import numpy, dmlsplit.native.arrays, dmlsplit.native.file_split
import dmlsplit.formats.dxdispatch, dmlsplit.checking.front_ends

numbers, samples, args = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

def tree():
    return {str(path): None if path.is_dir() else path.read_bytes() for path in Path(".").rglob("*")}

def restore(before):
    for path in sorted(Path(".").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, content in sorted(before.items()):
        Path(name).mkdir() if content is None else Path(name).write_bytes(content)

def run(moment):
    # A fork has imported everything; moments are calls and returns of functions.
    answer, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1), os.dup2(null, 2)
        count = 0
        def profile(frame, event, argument):
            nonlocal count
            count += 1
            if count == moment:
                for number in numbers:
                    os.kill(os.getpid(), number)
        sys.setprofile(profile)
        try:
            status = main(args)
        except KeyboardInterrupt:  # before the command begins, or after its end
            status = 130
        sys.setprofile(None)
        os.write(said, str(count).encode())
        os._exit(status)
    os.close(said)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(answer) as stream:
        return status, stream.read()

before = tree()
status, count = run(0)
after = tree()
assert after != before, status
statuses, torn = set(), []
for moment in range(1, int(count), max(1, int(count) // samples)):
    restore(before)
    statuses.add(run(moment)[0])
    if tree() not in (before, after):
        torn.append([moment, sorted(set(tree()) ^ set(before))])
print(json.dumps([sorted(statuses), torn]))
"""
COMMANDS = {
    "split": ["split", "x.npy", "--axis", "0", "--sections", "3", "-o", "p/q/d"],
    "split --force": ["split", "x.npy", "--axis", "0", "--sections", "3", "-o", ".", "--force"],
    "check -o": ["check", "a.json", "-o", "out.txt"],
    "run": ["run", "model.json"],
}


@pytest.mark.parametrize("samples", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("signals", "statuses"),
    [(["SIGTERM"], {-15}), (["SIGINT"], {130}), (["SIGHUP", "SIGHUP"], {-1})],
    ids=["SIGTERM", "SIGINT", "SIGHUP twice"],
)
def test_at_any_moment(tmp_path, command, signals, statuses, samples):
    np.save(tmp_path / "x.npy", np.arange(12))
    for name in ("x.1.npy", "out.txt", "w.bin"):
        (tmp_path / name).write_text("old")
    (tmp_path / "a.json").write_text(BAD)
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4]}
    write = {"type": "writeFile", "resource": "X", "targetPath": "w.bin"}
    (tmp_path / "model.json").write_text(
        json.dumps({"resources": {"X": resource}, "dispatchables": {}, "commands": [write]})
    )
    numbers = json.dumps([getattr(signal, name) for name in signals])
    done = subprocess.run(
        [sys.executable, "-c", AT_MOMENTS, numbers, str(samples), *COMMANDS[command]],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    assert done.stderr == ""
    found, torn = json.loads(done.stdout)
    assert torn == []
    assert statuses <= set(found) <= statuses | {0, 1}  # those that came when all was done


WHILE_MOVING = """
import os, signal, sys
from dmlsplit.cli import main
replace, left = os.replace, [int(sys.argv[1])]
def replacing(old, new):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), int(sys.argv[2]))
    replace(old, new)
os.replace = replacing
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGHUP", -1)])
@pytest.mark.parametrize("move", [3, *(pytest.param(end, marks=pytest.mark.slow) for end in (1, 5))])
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["new", "force"])
def test_while_pieces_get_their_names(tmp_path, name, status, move, force):
    """The set is complete then: a signal waits until it is."""
    np.save(tmp_path / "x.npy", np.arange(10))
    for i in range(5 if force else 0):
        (tmp_path / f"x.{i}.npy").write_text("old")
    done = subprocess.run(
        [
            *(sys.executable, "-c", WHILE_MOVING, str(move), str(int(getattr(signal, name)))),
            *("split", "x.npy", "--axis", "0", "--sections", "5", "-o", ".", *force),
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    assert (done.returncode, done.stderr.strip()) == (status, b"")
    assert sorted(os.listdir(tmp_path)) == ["x.0.npy", "x.1.npy", "x.2.npy", "x.3.npy", "x.4.npy", "x.npy"]
    assert [np.load(tmp_path / f"x.{i}.npy").tolist() for i in range(5)] == [[2 * i, 2 * i + 1] for i in range(5)]


OUTSIDE_COMMANDS = """
import os, signal, sys
from dmlsplit.system.atomic_files import atomic_files
replace = os.replace
def replacing(old, new):
    os.kill(os.getpid(), int(sys.argv[1]))
    replace(old, new)
os.replace = replacing
with atomic_files() as files:
    for name in ("a", "b"):
        files.create(name)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_outside_commands(tmp_path, name):
    """What a Python program calls waits, too, and what the signal does by default is done then."""
    number = getattr(signal, name)
    done = subprocess.run(
        [sys.executable, "-c", OUTSIDE_COMMANDS, str(int(number))],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (-number, 130 if name == "SIGINT" else None)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="it looks for what processes have opened")
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", -15)])
def test_processes_of_check_end_with_it(tmp_path, name, status):
    """They are at work when the signal comes: each has a long file open."""
    for i in range(2):
        (tmp_path / f"{i}.jsonl").write_text(f"{BAD}\n" * 100_000)
    (tmp_path / "out").write_text("old")
    child = subprocess.Popen(
        [sys.executable, "-m", "dmlsplit", "check", "0.jsonl", "1.jsonl", "--jobs", "2", "-o", "out"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while child.poll() is None and not opened_somewhere(str(tmp_path / "0.jsonl"), str(tmp_path / "1.jsonl")):
        time.sleep(0.01)
    child.send_signal(getattr(signal, name))
    # Its workers have the same streams: these end when all have ended.
    _, err = child.communicate(timeout=60)
    assert child.returncode == status
    assert b"Traceback" not in err
    assert sorted(os.listdir(tmp_path)) == ["0.jsonl", "1.jsonl", "out"]
    assert (tmp_path / "out").read_text() == "old"


def opened_somewhere(*paths):
    """Whether some processes have each of these files open."""
    found = set()
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return found.issuperset(paths)


WHILE_IMPORTING = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
module = sys.argv.pop(1)
runpy.run_module("dmlsplit", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["dmlsplit.cli", "click", "dmlsplit.rules", "dmlsplit.report.svg"])
def test_while_modules_are_imported(tmp_path, module):
    """Those of every command, and those of the one that is run."""
    (tmp_path / "a.json").write_text(BAD)
    done = subprocess.run(
        [sys.executable, "-c", WHILE_IMPORTING, module, "draw", "a.json", "-o", "a.svg"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (130, b"")  # click ends the line


def test_an_import_defers_signals_once(tmp_path, monkeypatch):
    """For the module and all that it imports: setting the handlers takes longer than many an import."""
    names = [f"deferring_{number}" for number in range(9)]
    for name, imported in zip(names, [*names[1:], "signal"], strict=True):
        (tmp_path / f"{name}.py").write_text(f"import {imported}")
    monkeypatch.syspath_prepend(tmp_path)
    set_handlers = []
    with signals.raised():
        before = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch:
            patch.setattr(signal, "signal", lambda *given, set_one=signal.signal: set_handlers.append(set_one(*given)))
            importlib.import_module(names[-1])
            of_one = len(set_handlers)
            importlib.import_module(names[0])
        assert signal.getsignal(signal.SIGTERM) is before
    for name in names:
        del sys.modules[name]
    assert len(set_handlers) == 2 * of_one > 0


WHILE_INITIALIZING = """
import os, signal, sys
from importlib.machinery import ExtensionFileLoader
from dmlsplit.cli import main

module, moment = sys.argv.pop(1), int(sys.argv.pop(1))
create_module, exec_module = vars(ExtensionFileLoader)["create_module"], vars(ExtensionFileLoader)["exec_module"]
count = 0

def profile(frame, event, argument):
    # Moments are calls and returns: of what is written in Python, and by it.
    global count
    count += 1
    if count == moment:
        os.kill(os.getpid(), signal.SIGTERM)

def creating(self, spec):
    if spec.name == module:
        sys.setprofile(profile)
    return create_module(self, spec)

def executing(self, made):
    exec_module(self, made)
    if made.__name__ == module:
        sys.setprofile(None)
        if count < moment:
            os.kill(os.getpid(), signal.SIGTERM)

ExtensionFileLoader.create_module, ExtensionFileLoader.exec_module = creating, executing
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("module", ["onnx.onnx_cpp2py_export", "google._upb._message"])
@pytest.mark.parametrize("moment", [8, 200, 800])  # made and not yet initialized; within its initialization
def test_while_extensions_initialize_themselves(tmp_path, module, moment):
    """They end the process by SIGSEGV or SIGABRT where the Python code that they call raises."""
    pytest.importorskip("google._upb._message")
    (tmp_path / "model.onnx").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", WHILE_INITIALIZING, module, str(moment), "check", "model.onnx"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGTERM
    assert b"Error" not in done.stderr


def test_processes_of_check_are_interrupted_by_it_alone():
    """The terminal's SIGINT goes to all of them, and would be a traceback each."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with Processes(2) as executor:
        masks = [executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []) for _ in range(4)]
        assert all(signal.SIGINT in mask.result() for mask in masks)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_reader_that_does_not_read_keeps_nothing_alive(tmp_path):
    """The text that is still to be written is dropped: writing it would wait for ever."""
    (tmp_path / "a.jsonl").write_text(f"{BAD}\n" * 2000)
    read, write = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-m", "dmlsplit", "check", "a.jsonl"], cwd=tmp_path, env=environment(), stdout=write
    )
    os.close(write)
    os.read(read, 1)  # it is writing
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60) == -signal.SIGTERM
    os.close(read)
