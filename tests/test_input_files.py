"""Input files are regular files: a pipe or a device is refused before it is opened, wherever one is named."""

from __future__ import annotations

import os
import subprocess
from functools import partial

import pytest

import dmlsplit as dml
import dmlsplit.onnx
from dmlsplit.system.errors import InputError
from dmlsplit.system.input_files import input_size, open_input
from tests.cli.conftest import GOOD, command, environment

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


def test_a_regular_file(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "link"):
        with open_input(tmp_path / name) as stream:
            assert stream.read() == b"abc"
    with pytest.raises(FileNotFoundError):
        open_input(tmp_path / "b")
    with pytest.raises(IsADirectoryError):
        open_input(tmp_path)


@pytest.mark.parametrize("name", ["a\0", "\0.onnx", "\ud800.json", "\ud800.xml"])
def test_what_cannot_be_the_name_of_a_file(name):
    with pytest.raises(InputError, match="no file can have this name"):
        open_input(name)
    with pytest.raises(InputError, match="no file can have this name"):
        input_size(name)
    (report,) = dml.check_files([name])
    assert [diagnostic.message for diagnostic in report.diagnostics] == ["no file can have this name"]
    if name.endswith(".onnx"):
        pytest.importorskip("onnx")
        for call in (dmlsplit.onnx.read, partial(dmlsplit.onnx.legalize, onnxruntime="1.24.4")):
            with pytest.raises(InputError, match="no file can have this name"):
                call(name)


@posix
@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero", "/dev/tty", "pipe", "link"])
def test_what_is_none_is_not_opened(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    monkeypatch.setattr(os, "open", lambda *arguments: pytest.fail("it was opened"))
    with pytest.raises(InputError, match="not a regular file"):
        open_input(name)


@posix
def test_what_becomes_a_pipe_meanwhile_does_not_block(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    stat = os.stat

    def and_replaced(*arguments):
        found = stat(*arguments)
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "stat", and_replaced)
    with pytest.raises(InputError, match="not a regular file"):
        open_input(path)


def run(arguments, folder):
    return subprocess.run(
        command(*arguments.split()),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


COMMANDS = [
    "check pipe.json",
    "check pipe.jsonl",
    "check pipe.onnx",
    "check pipe.xml",
    "check model.xml",
    "check good.json --config pipe.toml",
    "check good.json --baseline pipe.json",
    "check good.json --jobs 2 pipe.json",
    "levels pipe.json",
    "levels pipe.onnx",
    "legalize pipe.json",
    "legalize pipe.onnx --onnxruntime 1.24.4 -o out.onnx",
    "legalize pipe.onnx --onnxruntime 1.24.4 --dry-run",
    "draw pipe.onnx",
    "plan pipe.json",
    "run pipe.json",
    "run resources.json",
    "split pipe.npy --axis 0 --sections 2 -o pieces",
    "split pipe.bin --descriptor good.json -o pieces",
    "split good.bin --descriptor pipe.json -o pieces",
]


@posix
@pytest.mark.parametrize("arguments", COMMANDS)
def test_every_command_refuses_a_pipe(tmp_path, arguments):
    for suffix in ("json", "jsonl", "onnx", "xml", "toml", "npy", "bin"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "good.bin").write_bytes(bytes(48))
    os.mkfifo(tmp_path / "model.bin")
    (tmp_path / "model.xml").write_text(IR)
    source = '{"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "pipe.bin"}}'
    model = f'{{"resources": {{"R": {source}}}, "dispatchables": {{}}, "commands": []}}'
    (tmp_path / "resources.json").write_text(model)
    before = sorted(os.listdir(tmp_path))
    result = run(arguments, tmp_path)
    assert result.returncode == 2
    assert "it is not a regular file" in result.stdout + result.stderr
    assert result.stderr.count("\n") <= 1
    assert sorted(os.listdir(tmp_path)) == before


@posix
@pytest.mark.parametrize("name", ["dmlsplit.toml", "pyproject.toml"])
def test_a_configuration_that_is_found(tmp_path, name):
    os.mkfifo(tmp_path / name)
    (tmp_path / "good.json").write_text(GOOD)
    result = run("check good.json", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"dmlsplit: {tmp_path / name}: it is not a regular file\n"


IR = """<?xml version="1.0"?>
<net name="n" version="11">
  <layers>
    <layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
      <output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
    <layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>
      <output><port id="0" precision="I64"/></output></layer>
    <layer id="2" name="s" type="Split" version="opset1"><data num_splits="1"/>
      <input><port id="0" precision="FP32"><dim>4</dim></port><port id="1" precision="I64"/></input>
      <output><port id="2" precision="FP32"><dim>2</dim></port></output>
    </layer>
  </layers>
  <edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/></edges>
</net>
"""
