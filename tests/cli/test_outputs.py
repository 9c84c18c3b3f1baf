"""No output replaces an input, by whatever names the two are given, nor another output."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest

from tests import models
from tests.cli.conftest import BAD, GOOD, environment, posix


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """a.json under five names, a model of two files, and a baseline."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text(BAD)
    (tmp_path / "known.json").write_text('{"schema": 1, "diagnostics": []}')
    (tmp_path / "ir.xml").write_text("<net/>")
    (tmp_path / "ir.bin").write_bytes(b"weights")
    (tmp_path / "sub").mkdir()
    os.link("a.json", "hard.json")
    os.link("known.json", "hard_known.json")
    (tmp_path / "soft.json").symlink_to("a.json")
    (tmp_path / "softer.json").symlink_to("soft.json")
    (tmp_path / "new.json").symlink_to("not_there_yet.json")
    (tmp_path / "here").symlink_to(".")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


NAMES = ["a.json", "./a.json", "sub/../a.json", "here/a.json", "hard.json", "soft.json", "softer.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "args",
    [
        ["check", "a.json", "-o"],
        ["check", "ir.xml", "a.json", "--write-baseline"],
        ["check", "soft.json", "--format", "sarif", "-o"],
        ["check", "*.json", "-o"],
        ["draw", "a.json", "-o"],
        ["legalize", "a.json", "-o"],
        ["check", "known.json", "--baseline", "a.json", "-o"],
        ["check", "known.json", "--write-baseline", "a.json", "-o"],
        ["check", "known.json", "-o", "a.json", "--write-baseline"],
    ],
    ids=" ".join,
)
def test_no_name_of_an_input(cli, folder, args, name):
    before = contents(folder)
    status, out, err = cli(*args, name)
    assert (status, out) == (2, "")
    assert "would replace" in err
    assert err.count("\n") == 1
    assert contents(folder) == before


@pytest.mark.parametrize(
    "args",
    [
        ["--baseline", "known.json", "-o", "known.json"],
        ["--baseline", "known.json", "-o", "hard_known.json"],
        ["--baseline", "known.json", "--write-baseline", "known.json", "-o", "known.json"],
        ["--write-baseline", "same.json", "-o", "same.json"],
        ["--write-baseline", "same.json", "-o", "here/same.json"],
        ["--write-baseline", "new.json", "-o", "not_there_yet.json"],
    ],
    ids=" ".join,
)
def test_baselines(cli, folder, args):
    before = contents(folder)
    status, out, err = cli("check", "a.json", *args)
    assert (status, out) == (2, "")
    assert "would replace" in err
    assert contents(folder) == before


def test_a_baseline_is_brought_up_to_date(cli, folder):
    assert cli("check", "a.json", "--baseline", "known.json", "--write-baseline", "known.json").status == 0
    assert b"split/axis-sizes-sum" in (folder / "known.json").read_bytes()


@pytest.mark.parametrize("option", ["-o", "--write-baseline"])
@pytest.mark.parametrize("given", [[], ["--config", "here/dmlsplit.toml"]], ids=["found", "named"])
def test_the_configuration(cli, folder, given, option):
    (folder / "dmlsplit.toml").write_text('fail-on = "warning"\n')
    before = contents(folder)
    status, _, err = cli("check", "a.json", *given, option, "dmlsplit.toml")
    assert (status, err) == (2, "dmlsplit: dmlsplit.toml: this would replace the configuration\n")
    assert contents(folder) == before


def test_the_model_of_a_log(cli, folder):
    (folder / "m.onnx").write_bytes(models.text("(float[2] x) => (float[2] y) { y = Relu(x) }").SerializeToString())
    (folder / "app.log").write_text("Status Message: Non-zero status code returned\n")
    before = contents(folder)
    status, _, err = cli("explain-log", "app.log", "--model", "m.onnx", "-o", "here/m.onnx")
    assert (status, err) == (2, "dmlsplit: here/m.onnx: this would replace the model\n")
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["check", "draw", "legalize"])
def test_weights_of_a_model(cli, folder, command):
    status, _, err = cli(command, "ir.xml", "-o", "ir.bin")
    assert (status, err.split(" (")[0]) == (2, "dmlsplit: ir.bin would replace an input file")
    assert (folder / "ir.bin").read_bytes() == b"weights"


@pytest.mark.parametrize("command", ["check", "draw", "legalize"])
def test_what_standard_input_is_read_from(folder, command):
    with open(folder / "a.json") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "dmlsplit", command, "-", "-o", "hard.json"],
            stdin=stream,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "hard.json would replace standard input" in done.stderr
    assert (folder / "a.json").read_text() == BAD


def test_standard_input_without_a_file(cli, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    assert cli("check", "-", "-o", "a.json").status == 0


class TestSplit:
    COMMAND = ("split", "x.npy", "--axis", "0", "--sections", "2", "--force", "-o")

    @pytest.mark.parametrize("link", [os.link, os.symlink])
    def test_a_piece_that_is_the_input(self, cli, tmp_path, monkeypatch, link):
        monkeypatch.chdir(tmp_path)
        np.save("x.npy", np.arange(4))
        link("x.npy", "x.1.npy")
        before = contents(tmp_path)
        status, _, err = cli(*self.COMMAND, ".")
        assert status == 2
        assert f"{os.path.join('.', 'x.1.npy')} would replace an input file" in err
        assert contents(tmp_path) == before

    def test_an_input_that_is_a_link_to_a_piece(self, cli, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        os.mkdir("d")
        np.save("d/x.0.npy", np.arange(4))
        os.symlink("d/x.0.npy", "x.npy")
        before = contents(tmp_path / "d")
        assert cli(*self.COMMAND, "d").status == 2
        assert contents(tmp_path / "d") == before

    def test_the_descriptor(self, cli, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "x.json").write_bytes(bytes(48))
        (tmp_path / "x.0.json").write_text(GOOD)
        status, _, err = cli("split", "x.json", "--descriptor", "x.0.json", "-o", ".", "--force")
        assert status == 2
        assert "x.0.json would replace an input file" in err
        assert (tmp_path / "x.0.json").read_text() == GOOD

    @pytest.mark.parametrize("fault", [["--sections", "3"], ["--lengths", "1,2"], ["--sections", "2"]])
    def test_no_folders_are_left(self, cli, tmp_path, monkeypatch, fault):
        monkeypatch.chdir(tmp_path)
        np.save("x.npy", np.arange(4))
        monkeypatch.setattr("dmlsplit.native.file_split._copy", lambda *args: 1 / 0)
        assert cli("split", "x.npy", "--axis", "0", *fault, "-o", "p/q/r").status == 2
        assert os.listdir() == ["x.npy"]

    def test_old_pieces_come_back_where_one_cannot_be_replaced(self, cli, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        np.save("x.npy", np.arange(4))
        for i in range(4):
            (tmp_path / f"x.{i}.npy").write_text(f"old {i}")
        before = contents(tmp_path)
        replace = os.replace

        def failing(old, new):
            if new.endswith("x.3.npy") and old.endswith(".tmp"):
                raise PermissionError(13, "Permission denied", old, None, new)
            replace(old, new)

        monkeypatch.setattr(os, "replace", failing)
        status, _, err = cli("split", "x.npy", "--axis", "0", "--sections", "4", "-o", ".", "--force")
        assert (status, err) == (2, f"dmlsplit: {os.path.join('.', 'x.3.npy')}: Permission denied\n")
        assert contents(tmp_path) == before


@pytest.mark.parametrize("option", ["-o", "--write-baseline"])
def test_a_loop_of_links_is_an_error(cli, folder, option):
    os.symlink("two", "one")
    os.symlink("one", "two")
    status, _, err = cli("check", "a.json", option, "one")
    assert status == 2
    assert err.splitlines()[-1].startswith("dmlsplit: one: ")
    assert os.path.islink("one")
    assert os.path.islink("two")


def test_a_link_to_nothing_is_written_through(cli, folder):
    assert cli("check", "a.json", "-o", "new.json").status == 1
    assert "not ok" in (folder / "not_there_yet.json").read_text()
    assert os.path.islink("new.json")


OUTPUTS = {
    "a report": (["check", "a.json", "-o", "{}/x.txt"], 1, "x.txt"),
    "pieces": (["split", "x.npy", "--axis", "0", "--sections", "2", "--force", "-o", "{}"], 0, "x.0.npy"),
    "a model": (["legalize", "gate.onnx", "--onnxruntime", "1.24.4", "-o", "{}/x.onnx"], 0, "x.onnx"),
    "a reduction": (["why", "gate.onnx", "--onnxruntime", "1.24.4", "-o", "{}"], 1, "why.json"),
}
GATE = "(float[1,8,4,4] x) => (float[1,4,4,4] o) { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }"


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
@pytest.mark.parametrize("leads", ["there", "nowhere"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_folder_that_is_a_link_is_followed(cli, folder, output, leads):
    """By all commands alike, also where they make it; a link that is found in it is no name of the user's."""
    onnx = pytest.importorskip("onnx")
    onnx.save(models.text(GATE), "gate.onnx")
    np.save("x.npy", np.arange(4))
    (folder / "mine").write_bytes(b"mine")
    os.symlink(leads, "to")
    if leads == "there":
        os.mkdir("there")
    arguments, status, name = OUTPUTS[output]
    assert cli(*(each.format("to") for each in arguments)).status == status
    assert os.path.islink("to")
    assert (folder / leads / name).is_file()
    if arguments[-1] == "{}":  # the command's own names
        (folder / leads / name).unlink()
        (folder / leads / name).symlink_to("../mine")
        assert cli(*(each.format("to") for each in arguments)).status == status
        assert not (folder / leads / name).is_symlink()
        assert (folder / "mine").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "a.json", "-o"],
        ["check", "a.json", "--write-baseline"],
        ["draw", "a.json", "-o"],
        ["legalize", "a.json", "-o"],
        ["legalize", "gate.onnx", "--onnxruntime", "1.24.4", "-o"],
        ["levels", "a.json", "-o"],
        ["split", "x.npy", "--axis", "0", "--sections", "2", "-o"],
        ["tune", "-o"],
        ["why", "gate.onnx", "-o"],
    ],
    ids=" ".join,
)
def test_no_name_is_no_current_folder(cli, folder, arguments):
    np.save("x.npy", np.arange(4))
    before = contents(folder)
    status, out, err = cli(*arguments, "")
    assert (status, out, "a name is expected" in err, err.count("\n")) == (2, "", True, 1)
    assert contents(folder) == before


@posix
@pytest.mark.parametrize("words", [("check",), ("legalize", "-o", "out.json"), ("draw", "-o", "out.svg")])
def test_a_current_folder_that_is_gone_is_named(cli, tmp_path, monkeypatch, words):
    (tmp_path / "a.json").write_text(GOOD)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = cli(*words, str(tmp_path / "a.json"))
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("dmlsplit: the current folder: ")


def test_longest_name(cli, folder):
    name = "n" * 250 + ".json"
    assert cli("check", "a.json", "-o", name).status == 1
    assert "not ok" in (folder / name).read_text()


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_standard_output_by_its_name(process, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    assert b"1 operator: 1 ok" in process("check", "a.json", "-o", "/dev/stdout").stdout


@pytest.mark.parametrize("number", ["4_0", "\u0664", "\uff14", "+4", "4.0", "1e1", "", "9" * 19])
@pytest.mark.parametrize(
    "args",
    [
        ["split", "x.npy", "-o", "d", "--sections", "2", "--axis"],
        ["split", "x.npy", "-o", "d", "--axis", "0", "--sections"],
        ["split", "x.npy", "-o", "d", "--axis", "0", "--lengths"],
        ["split", "x.npy", "-o", "d", "--axis", "0", "--sections", "2", "--threads"],
        ["check", "a.json", "--jobs"],
        ["draw", "a.json", "--index"],
    ],
    ids=" ".join,
)
def test_numbers_are_ascii_digits(cli, folder, args, number):
    np.save("x.npy", np.arange(40))
    status, out, err = cli(*args, number)
    assert (status, out) == (2, "")
    assert "is not " in err or "neither" in err
    assert not os.path.exists("d")


@pytest.mark.parametrize("option", ["--shape=x:4_0", "--shape=x:\u0664", "--dim=n=4_0", "--dim=n=\u0664", "--dim=n=-1"])
def test_sizes_are_ascii_digits(cli, folder, option):
    status, _, err = cli("check", "a.json", option)
    assert status == 2
    assert "is expected" in err
