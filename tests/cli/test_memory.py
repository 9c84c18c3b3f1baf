"""Commands where memory, or a thread, is not to be had: one line, and nothing half done."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from dmlsplit.system.errors import fault_of
from tests.cli.conftest import GOOD, command, environment, posix

onnx = pytest.importorskip("onnx")
resource = pytest.importorskip("resource")

from tests.models import model, node, value  # noqa: E402

MEGABYTES = [60, 150, 400]


def made():
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1),
        node("Sigmoid", ["b"], ["s"]),
        node("Mul", ["a", "s"], ["y"]),
    ]
    return model(nodes, [value("x", [1, 8, 4, 4])], [value("y", [1, 4, 4, 4])], opset=13, ir_version=8)


@posix
@pytest.mark.parametrize("most", MEGABYTES)
@pytest.mark.parametrize(
    "arguments",
    ["check m.onnx", "levels m.onnx", "legalize m.onnx --onnxruntime 1.24.4 -o out.onnx", "draw good.json -o out.svg"],
)
def test_address_space(tmp_path, arguments, most):
    onnx.save(made(), tmp_path / "m.onnx")
    (tmp_path / "good.json").write_text(GOOD)
    limit = most << 20
    done = subprocess.run(
        command(*arguments.split()),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert "Traceback" not in done.stdout + done.stderr
    left = sorted(os.listdir(tmp_path))
    if most == max(MEGABYTES):
        assert done.returncode == int("check" in arguments)
    assert len(done.stderr.splitlines()) <= 1  # of a library, where that ends the process by itself
    assert left == ["good.json", "m.onnx"] + [name for name in left if done.returncode == 0 and name.startswith("out.")]


@pytest.mark.parametrize(
    "arguments", ["legalize m.onnx --directml 1.15.4 -o out.onnx", "levels m.onnx --runtimes", "check m.onnx"]
)
def test_no_thread_can_be_started(cli, tmp_path, monkeypatch, arguments):
    """One watches the process that infers shapes."""
    from dmlsplit.models import inference

    def start(thread):
        raise RuntimeError("can't start new thread")

    onnx.save(made(), tmp_path / "m.onnx")
    inference._worker.close()
    monkeypatch.setattr(inference._worker, "answers", inference.Answers())
    monkeypatch.setattr(threading.Thread, "start", start)
    result = cli(*arguments.split())
    assert result.status == 2
    assert result.err.startswith("dmlsplit: m.onnx: a thread cannot be started")
    assert result.err.count("\n") == 1
    assert inference._worker._process is None
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]


@pytest.mark.parametrize(("command_", "judging"), [("levels", "judge_entry"), ("legalize", "judge_alone")])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x"), "it could not be judged: KeyError: 'x'"),
        (MemoryError(), "there is not enough memory to judge it"),
        (RecursionError("too deep"), "it could not be judged: RecursionError: too deep"),
    ],
)
def test_what_nobody_foresaw_is_one_line(cli, tmp_path, monkeypatch, command_, judging, error, said):
    def judged(*arguments):
        raise error

    (tmp_path / "good.json").write_text(GOOD)
    monkeypatch.setattr(f"dmlsplit.cli.{command_}.{judging}", judged)
    result = cli(command_, "good.json")
    assert (result.status, result.err) == (2, f"dmlsplit: good.json: {said}\n")


def test_a_module_that_cannot_be_loaded():
    said = "\n\nIMPORTANT: PLEASE READ THIS\n\nOriginal error was: libx.so: failed to map segment\n"
    assert fault_of(ImportError(said)).message == (
        "a module cannot be loaded: Original error was: libx.so: failed to map segment"
    )


def test_a_file_that_is_named_twice_is_shown_twice(cli, tmp_path):
    onnx.save(made(), tmp_path / "m.onnx")
    once, twice = cli("check", "m.onnx"), cli("check", "m.onnx", "m.onnx")
    assert twice.status == once.status == 1
    assert twice.out.count("m.onnx: 1 Split or Concat among 3 nodes") == 2
