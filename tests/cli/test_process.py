"""What only a process of its own shows: signals, closed and full streams, terminals, encodings, start-up."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

import dmlsplit as dml
from dmlsplit.rules import RULES
from tests.cli.conftest import BAD, GOOD, HOSTILE_SHOWN, MALFORMED, command, environment, on_terminal, posix

needs_dev_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")


def test_python_m_gives_the_exit_status(process, tmp_path):
    (tmp_path / "a.json").write_text(BAD)
    result = process("check", "a.json")
    assert result.returncode == 1
    assert b"1 operator: 1 not ok; 1 error\n" in result.stdout
    assert result.stderr == b""


def test_version(process):
    assert process("--version").stdout.startswith(b"dmlsplit ")


def test_no_command(process):
    result = process()
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"Commands:" in result.stderr


def test_unknown_command(process):
    result = process("chekc")
    assert result.returncode == 2
    assert result.stderr.startswith(b"dmlsplit: No such command 'chekc'")
    assert result.stderr.count(b"\n") == 1


@posix
@pytest.mark.parametrize(
    "args",
    [
        *(["check", "a.jsonl"], ["levels"], ["--help"]),
        *(
            pytest.param(more, marks=pytest.mark.slow)
            for more in (["check", "a.jsonl", "--format", "json"], ["rule"], ["doctor"])
        ),
    ],
    ids=" ".join,
)
def test_closed_pipe_is_quiet(tmp_path, args):
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n" * 300)
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        command(*args), cwd=tmp_path, env=environment(), stdout=write, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (141, b"")


@posix
def test_interrupt(tmp_path):
    child = subprocess.Popen(
        command("check", "-"),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    child.stdin.write(b" " * (4 << 20))  # more than a pipe holds: the child is at work when all is written
    for _ in range(20):  # a signal between Python's look for signals and its read waits for the next one
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=3)
            break
    out, err = child.communicate()
    assert child.returncode == 130
    assert b"Traceback" not in err
    assert out == b""


@needs_dev_full
@pytest.mark.parametrize("args", [["check", "a.jsonl"], ["levels"], ["--help"], ["doctor"]], ids=" ".join)
def test_full_disk_on_standard_output(process, tmp_path, args):
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n" * 300)
    with open("/dev/full", "wb") as full:
        result = process(*args, stdout=full)
    assert result.returncode == 2
    assert result.stderr in (
        b"dmlsplit: standard output: No space left on device\n",
        b"dmlsplit: No space left on device\n",  # from within click
    )


@posix
def test_full_disk_while_writing_a_file(process, tmp_path):
    """A limit on file sizes stands in for the disk: writing fails half way."""
    resource = pytest.importorskip("resource")
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n" * 3000)
    (tmp_path / "out").write_text("old")
    result = process(
        "check",
        "a.jsonl",
        "-o",
        "out",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
    )
    assert (result.returncode, result.stderr) == (2, b"dmlsplit: out: File too large\n")
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "out"]


@posix
@pytest.mark.parametrize("descriptor", [1, 2], ids=["stdout", "stderr"])
def test_closed_streams(process, tmp_path, descriptor):
    (tmp_path / "a.json").write_text(MALFORMED)
    result = process("check", "a.json", preexec_fn=lambda: os.close(descriptor))
    assert result.returncode == 2
    assert b"Traceback" not in result.stderr
    if descriptor == 1:
        assert b"dmlsplit: standard output: Bad file descriptor\n" in result.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a file name")
@pytest.mark.parametrize(
    ("format_", "encoding"), [("text", "utf-8"), ("text", "ascii"), ("json", "ascii"), ("jsonl", "latin-1")]
)
def test_file_name_that_is_not_utf8(process, tmp_path, format_, encoding):
    with open(os.fsencode(tmp_path) + b"/\xff\xfc.json", "w") as file:
        file.write(BAD)
    result = process("check", b"\xff\xfc.json", "--format", format_, env={"PYTHONIOENCODING": encoding})
    assert (result.returncode, result.stderr) == (1, b"")
    assert rb"\udcff\udcfc.json" in result.stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_characters_that_the_output_lacks(process, tmp_path, encoding):
    (tmp_path / "model.json").write_text(f'{{"dispatchables": {{"名前": {GOOD}}}}}', encoding="utf-8")
    result = process("check", "model.json", env={"PYTHONIOENCODING": encoding})
    assert (result.returncode, result.stderr) == (0, b"")
    assert rb"'\u540d\u524d'" in result.stdout


@pytest.mark.parametrize("args", [["check", "a.json"], ["levels"], ["rule"], ["--version"]], ids=" ".join)
def test_numpy_and_rich_are_not_imported(tmp_path, args):
    (tmp_path / "a.json").write_text(GOOD)
    code = (
        "import sys; from dmlsplit.cli import main; status = main(sys.argv[1:]);"
        "print([name for name in ('numpy', 'rich', 'dmlsplit.native.core') if name in sys.modules], file=sys.stderr);"
        "sys.exit(status)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=tmp_path, env=environment(), capture_output=True, check=True
    )
    assert result.stderr.strip() == b"[]"


def test_a_command_is_imported_when_it_is_asked_for(tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    code = (
        "import sys; from dmlsplit.cli import COMMANDS, main; status = main(sys.argv[1:]);"
        "others = [f'dmlsplit.cli.{name}' for name in COMMANDS if name != 'check'];"
        "packages = ['dmlsplit.rules.onnx', 'dmlsplit.rules.onnxruntime', 'dmlsplit.checking.open_sizes'];"
        "packages += ['dmlsplit.system.processes'];"
        "packages += ['dmlsplit.targets.windows', 'dmlsplit.verdicts.model_placements', 'dmlsplit.report.baseline'];"
        "names = [*others, *packages, 'difflib', 'logging'];"
        "print([name for name in names if name in sys.modules], file=sys.stderr); sys.exit(status)"
    )
    command = [sys.executable, "-c", code, "check", "a.json"]
    result = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    assert result.stderr.strip() == b"[]"


class TestTerminal:
    def test_colours_and_a_caret(self, tmp_path):
        (tmp_path / "a.json").write_text('{"Type": "DML_OPERATOR_SPLIT",\n "Desc": 5}')
        status, out = on_terminal(tmp_path, "check", "a.json")
        assert status == 2
        assert "\x1b[1;31merror\x1b[0m[input/malformed]" in out
        assert '    2 | \x1b[0m "Desc": 5}\n' in out
        assert "      | \x1b[0m\x1b[1;31m         ^\x1b[0m\n" in out
        assert "dmlsplit: " not in out  # the person sees the report

    ARGS = pytest.mark.parametrize(
        "args",
        [
            ["check", "a.json"],
            ["levels"],
            ["rule"],
            *(pytest.param(more, marks=pytest.mark.slow) for more in (["levels", "a.json"], ["rule", "tensor/null"])),
        ],
        ids=" ".join,
    )

    @ARGS
    def test_no_color_leaves_out_styles_only(self, tmp_path, args):
        (tmp_path / "a.json").write_text(BAD)
        plain, styled = (on_terminal(tmp_path, *args, **changes)[1] for changes in ({"NO_COLOR": "1"}, {}))
        assert "\x1b" not in plain
        assert plain == re.sub("\x1b\\[[0-9;]*m", "", styled)
        assert "^\n" in plain or args[0] != "check"

    @ARGS
    def test_terminal_that_only_prints(self, tmp_path, args):
        (tmp_path / "a.json").write_text(BAD)
        _, out = on_terminal(tmp_path, *args, TERM="dumb")
        assert "\x1b" not in out
        assert (
            out
            == subprocess.run(
                command(*args), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, check=False
            ).stdout
        )

    @pytest.mark.parametrize("args", [["levels"], ["rule"]], ids=" ".join)
    def test_tables(self, tmp_path, args):
        status, out = on_terminal(tmp_path, *args, COLUMNS="120")
        assert status == 0
        assert "┃" in out

    @pytest.mark.parametrize("columns", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (80, 120)), 200])
    @pytest.mark.parametrize("args", [["check", "a.json"], ["levels", "many.jsonl"], ["rule", "split/axis-sizes-sum"]])
    def test_widths(self, tmp_path, args, columns):
        (tmp_path / "a.json").write_text(BAD.replace(", ", ",\t") + " " * 300)
        (tmp_path / "many.jsonl").write_text(f"{GOOD}\n" * 40)
        _, out = on_terminal(tmp_path, *args, COLUMNS=str(columns), NO_COLOR="1")
        lines = out.splitlines()
        if args[0] == "check":
            at = next(i for i, line in enumerate(lines) if line.endswith("^"))
            assert len(lines[at - 1]) <= columns
        else:
            longest = max(len(line) for line in lines if "://" not in line and ": DML_OPERATOR" not in line)
            assert min(columns, 100) - 20 < longest <= max(columns, 80)

    def test_examples_of_a_page_are_json(self, tmp_path):
        _, out = on_terminal(tmp_path, "rule", "join/axis-sizes-sum", NO_COLOR="1")
        bad, good = (
            part.split("  error[")[0].split(":\n", 1)[1] for part in re.split("^(?=Bad|Good)", out, flags=re.M)[1:]
        )
        assert [dml.loads(bad), dml.loads(good)] == [
            make() for make in (RULES["join/axis-sizes-sum"].bad, RULES["join/axis-sizes-sum"].good)
        ]

    @pytest.mark.parametrize("columns", ["40", "80", "200"])
    def test_rule_list_is_whole(self, tmp_path, columns):
        _, out = on_terminal(tmp_path, "rule", COLUMNS=columns, NO_COLOR="1")
        assert max(map(len, out.splitlines())) <= max(int(columns), 80)
        assert len(out.splitlines()) < (5 if columns == "40" else 3) * len(RULES)  # no column of single words
        assert "tensor/dimension-count-not-supported" in out
        assert "…" not in out
        assert "documented" in out

    def test_hostile_names(self, tmp_path):
        name = r"a\u001b[31m[bold red]b[/]\r\n\u202ec\ud800"
        (tmp_path / "model.json").write_text(f'{{"dispatchables": {{"{name}": {GOOD}}}}}')
        status, out = on_terminal(tmp_path, "check", "model.json")
        assert status == 0
        assert f"'{HOSTILE_SHOWN}'" in out
        assert "\x1b[31m" not in out


@posix
class TestCompletion:
    def complete(self, process, *words):
        env = {"_DMLSPLIT_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        result = process(env=env)
        assert (result.returncode, result.stderr) == (0, b"")
        return [line.split(",", 1)[1] for line in result.stdout.decode().splitlines()]

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_script(self, process, shell):
        result = process(env={"_DMLSPLIT_COMPLETE": f"{shell}_source"})
        if shell == "bash" and b"Bash version" in result.stderr:
            pytest.skip("an old bash")
        assert result.returncode == 0
        assert b"_DMLSPLIT_COMPLETE" in result.stdout

    def test_words(self, process):
        assert self.complete(process, "dmlsplit", "sp") == ["split"]
        assert self.complete(process, "dmlsplit", "rule", "split/axis-out") == ["split/axis-out-of-range"]
        assert self.complete(process, "dmlsplit", "check", "--ignore", "split/axis-out") == ["split/axis-out-of-range"]
        assert "1.15.4" in self.complete(process, "dmlsplit", "run", "--directml", "1.15")
        assert self.complete(process, "dmlsplit", "check", "--feature-level", "6_") == [
            "6_0",
            "6_1",
            "6_2",
            "6_3",
            "6_4",
        ]
        assert "1.15.4" in self.complete(process, "dmlsplit", "check", "--directml", "1.")
        assert self.complete(process, "dmlsplit", "check", "a") == ["a"]  # file names are the shell's business
