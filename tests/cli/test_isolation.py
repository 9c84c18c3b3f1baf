"""One file never takes another's verdict with it: whatever ends its reading is one line that names it."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit.checking import files as checking
from dmlsplit.system import processes
from dmlsplit.system.garbage import rarely_collected
from tests.cli.conftest import BAD, GOOD, environment, posix
from tests.models import model, node, value
from tests.planted import plant

RECURSIVE = Path(__file__).parents[1] / "data" / "onnx" / "recursive_reference.onnx"
ROOT = Path(dml.__file__).parents[1]


@pytest.fixture
def good(tmp_path):
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "bad.json").write_text(BAD)
    return tmp_path


def answers(text):
    """File, whether it was read, and whether its operator is ok, of each line."""
    reports = map(json.loads, text.splitlines())
    return [(r["file"], [d["rule"] for d in r["diagnostics"]] != ["input/malformed"], r["ok"]) for r in reports]


def raising(error):
    def read_model(*arguments, **options):
        raise error

    return read_model


class TestInThisProcess:
    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
            (KeyError("two\nlines"), "KeyError: 'two\\nlines'"),
            (ZeroDivisionError(), "ZeroDivisionError"),
            (AssertionError("a\n\x1b[31mb"), r"AssertionError: a\n\x1b[31mb"),
            (MemoryError(), "there is not enough memory to judge it"),
        ],
    )
    @pytest.mark.parametrize("format_", ["text", "json", "jsonl", "sarif"])
    def test_a_front_end_that_raises(self, cli, good, monkeypatch, error, said, format_):
        from dmlsplit.formats import openvino

        monkeypatch.setattr(openvino, "read_model", raising(error))
        status, out, err = cli("check", "m.xml", "good.json", "bad.json", "--format", format_)
        assert status == 2
        assert err.startswith("dmlsplit: m.xml: ")
        assert said in err
        assert err.count("\n") == 1
        assert "Traceback" not in out
        if format_ == "text":
            assert "good.json:1:1: ok" in out
        if format_ == "jsonl":
            assert answers(out) == [("m.xml", False, False), ("good.json", True, True), ("bad.json", True, False)]

    @pytest.mark.parametrize("command", ["levels", "legalize", "plan", "draw"])
    def test_other_commands(self, cli, good, monkeypatch, command):
        from dmlsplit.formats import openvino

        monkeypatch.setattr(openvino, "read_model", raising(RecursionError("deep")))
        status, _, err = cli(command, "m.xml")
        assert status == 2
        assert err == "dmlsplit: m.xml: it could not be judged: RecursionError: deep\n"

    def test_what_was_read_before_stays(self, cli, good, monkeypatch):
        """The judging of the second line raises: the first has its verdict, and the other file, too."""
        real = checking.judged

        def judge(descriptor, target):
            if descriptor.axis == 1:
                raise RecursionError("deep")
            return real(descriptor, target)

        monkeypatch.setattr(checking, "judged", judge)
        (good / "lines.jsonl").write_text(f"{GOOD}\n{GOOD.replace(': 2}', ': 1}')}\n")
        assert '"Axis": 1' in (good / "lines.jsonl").read_text()
        status, out, err = cli("check", "lines.jsonl", "good.json", "--format", "jsonl")
        assert status == 2
        assert err == "dmlsplit: lines.jsonl: it could not be judged: RecursionError: deep\n"
        assert answers(out) == [("lines.jsonl", True, True), ("lines.jsonl", False, False), ("good.json", True, True)]
        assert [json.loads(line)["index"] for line in out.splitlines()] == [0, 1, 0]

    def test_an_interrupt_is_no_fault_of_a_file(self, good, monkeypatch):
        monkeypatch.setattr(checking, "judged", raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            list(dml.check_files([good / "good.json"]))


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_recursive_reference(process, good, jobs):
    pytest.importorskip("onnx")
    shutil.copy(RECURSIVE, good / "recursive.onnx")
    result = process("check", "recursive.onnx", "good.json", "--jobs", jobs)
    assert b"good.json:1:1: ok" in result.stdout
    assert b"recursive.onnx: " in result.stdout
    assert b"Traceback" not in result.stdout + result.stderr
    assert result.stderr.count(b"\n") <= 1


PLANTED = """
import os
import dmlsplit.formats.openvino as front_end

read = front_end.read_model

def read_model(file, *arguments, **options):
    if "killed" in file:
        os.kill(os.getpid(), 9)
    if "raises" in file:
        raise RecursionError("deep")
    return read(file, *arguments, **options)

front_end.read_model = read_model
"""


@posix
def test_killed_workers(process, good):
    """A worker that reads a certain file is killed, as the system does where memory is short: others read the rest."""
    pytest.importorskip("defusedxml")
    (good / "planted").mkdir()
    (good / "planted" / "sitecustomize.py").write_text(PLANTED)
    names = ["good.json", "killed.xml", "bad.json", "raises.xml", "killed2.xml", "none.xml", *["good.json"] * 3]
    paths = os.pathsep.join([str(good / "planted"), str(ROOT)])
    result = process("check", *names, "--jobs", "2", "--format", "jsonl", env={"PYTHONPATH": paths})
    assert result.returncode == 2
    killed = b"it could not be judged: the process that read it was killed, probably because memory ran out"
    assert result.stderr.splitlines() == [
        b"dmlsplit: killed.xml: " + killed,
        b"dmlsplit: raises.xml: it could not be judged: RecursionError: deep",
        b"dmlsplit: killed2.xml: " + killed,
        b"dmlsplit: none.xml: No such file or directory",
    ]
    ok = {"good.json": (True, True), "bad.json": (True, False)}
    assert answers(result.stdout.decode()) == [(name, *ok.get(name, (False, False))) for name in names]


@pytest.mark.slow
@posix
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_too_little_memory(process, good, jobs):
    """Of 40 MB that take 400 MB to read, under a limit of 300 MB."""
    resource = pytest.importorskip("resource")
    (good / "large.json").write_text(f"[{'1.5,' * 10_000_000}1]")
    limit = 300 << 20
    result = process(
        "check",
        *("large.json", "good.json", "large.json", "bad.json"),
        *("--jobs", jobs, "--format", "jsonl"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert result.returncode == 2
    line = b"dmlsplit: large.json: there is not enough memory to judge it\n"
    assert result.stderr == 2 * line
    assert answers(result.stdout.decode()) == [
        ("large.json", False, False),
        ("good.json", True, True),
        ("large.json", False, False),
        ("bad.json", True, False),
    ]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nothing_is_imported_from_the_current_folder(good, tmp_path_factory, jobs):
    """By the installed script; `python -m` itself looks there first."""
    pytest.importorskip("onnx")
    shutil.copy(RECURSIVE, good / "recursive.onnx")
    script = tmp_path_factory.mktemp("bin") / "dmlsplit"
    script.write_text(
        "import sys\nfrom dmlsplit.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    said = plant(good)
    done = subprocess.run(
        [sys.executable, script, "check", "recursive.onnx", "good.json", "bad.json", "--jobs", jobs],
        cwd=good,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert b"good.json:1:1: ok" in done.stdout
    assert not said.exists(), said.read_text()


def test_processes_are_started_anew(good):
    """The pool of --jobs is whole again after a file that ended one of its processes."""
    with processes.Processes(2) as executor:
        with pytest.raises(BrokenExecutor):
            executor.submit(os._exit, 1).result()
        assert executor.submit(os.path.exists, good / "good.json").result()


def test_processes_look_for_unused_objects_as_rarely_as_the_command():
    with rarely_collected():
        here = gc.get_threshold()
    with processes.Processes(1) as executor:
        assert executor.submit(gc.get_threshold).result() == here


def test_a_model_whose_nodes_have_a_cycle_is_one_error(good, cli):
    split = node("Split", ["x"], ["a", "b"], axis=1)
    x = value("x", [1, 8, 4, 4])
    for name, nodes in (("cycle.onnx", [node("Relu", ["y"], ["y"]), split]), ("fine.onnx", [split])):
        (good / name).write_bytes(model(nodes, [x], opset=13).SerializeToString())
    for files in (("cycle.onnx", "fine.onnx"), ("fine.onnx", "cycle.onnx")):
        status, out, err = cli("check", *files)
        assert status == 2
        assert err.count("form a cycle") == 1
        assert "fine.onnx" in out
    for command in (["levels"], ["levels", "--runtimes"], ["legalize", "-o", "out.onnx"], ["draw"]):
        status, out, err = cli(*command, "cycle.onnx")
        assert (status, out, err.count("form a cycle")) == (2, "", 1)
