"""dmlsplit rule, plan, doctor and config; every command has help with an example, and ends in one line on failure."""

from __future__ import annotations

import gc
import json
import os
import shlex
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.cli import cli as group
from dmlsplit.cli import config, doctor
from dmlsplit.formats.any_operator_json import loads as load_any
from dmlsplit.formats.graph_json import loads as load_graph
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.places import folder_of
from dmlsplit.native import core
from dmlsplit.rules import RULES, DescriptorRule, NodeRule
from dmlsplit.rules.any_operator import AnyOperatorRule
from dmlsplit.rules.whole_model import ModelRule
from tests.cli.conftest import BAD, GOOD, MALFORMED, OTHER


@pytest.mark.parametrize("name", list(group.commands))
def test_help_has_an_example(cli, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = cli(name, "--help")
    assert (status, err) == (0, "")
    assert f"  dmlsplit {name}" in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_garbage_collector_of_a_program_that_calls_it_stays_as_it_is(cli):
    before = gc.get_threshold()
    assert cli("rule").status == 0
    assert gc.get_threshold() == before


def test_what_a_command_leaves_is_not_collected_as_it_ends(cli, monkeypatch):
    monkeypatch.setattr("dmlsplit.system.garbage._COLLECTIONS", (1000, 1 << 30, 1 << 30))
    collected, left = [], []
    gc.callbacks.append(noted := lambda phase, info: collected.append(info["generation"]))
    monkeypatch.setattr("dmlsplit.cli._streams.flush", lambda: left.extend([] for _ in range(50_000)))
    monkeypatch.setattr("dmlsplit.cli._streams.leave", lambda: left.extend([] for _ in range(2000)))
    status = cli("rule").status
    gc.callbacks.remove(noted)
    assert status == 0
    assert set(collected) == {0}


class TestRule:
    def test_list_has_every_rule_on_a_line(self, cli):
        lines = cli("rule").out.splitlines()
        assert [line.split("  ")[0] for line in lines] == list(RULES)
        assert all(rule.summary in line for rule, line in zip(RULES.values(), lines, strict=True))

    @pytest.mark.parametrize("id", RULES)
    def test_text(self, cli, id):
        status, out, err = cli("rule", id)
        assert (status, err) == (0, "")
        words, rule = " ".join(out.split()), RULES[id]
        for expected in (id, rule.summary, rule.explanation, *(source.title for source in rule.sources)):
            assert " ".join(expected.split()) in words
        examples = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        if isinstance(rule, NodeRule):
            assert examples == [json.loads(json.dumps(node.to_dict())) for node in (rule.bad, rule.good)]
        elif isinstance(rule, ModelRule):
            assert examples == [asdict(rule.bad), asdict(rule.good)]
        elif id in graphs.EXAMPLES:
            assert [load_graph(json.dumps(example)) for example in examples] == list(map(graphs.EXAMPLES[id], (0, 1)))
        else:
            makers = (rule.bad, rule.good) if isinstance(rule, (DescriptorRule, AnyOperatorRule)) else ()
            assert [load_any(json.dumps(example)) for example in examples] == [make() for make in makers]

    def test_json(self, cli):
        answers = json.loads(cli("rule", "--json").out)
        assert [answer["id"] for answer in answers] == list(RULES)
        assert json.loads(cli("rule", answers[5]["id"], "--json").out) == answers[5]
        for answer, rule in zip(answers, RULES.values(), strict=True):
            assert answer["sources"]
            for name in ("bad", "good"):
                found = answer[name]
                if isinstance(rule, NodeRule):
                    assert found == json.loads(json.dumps(getattr(rule, name).to_dict()))
                elif isinstance(rule, ModelRule):
                    assert found == asdict(getattr(rule, name))
                elif rule.id in graphs.EXAMPLES:
                    assert load_graph(json.dumps(found)) == graphs.EXAMPLES[rule.id](name == "good")
                elif isinstance(rule, (DescriptorRule, AnyOperatorRule)):
                    assert load_any(json.dumps(found)) == getattr(rule, name)()
                else:
                    assert found is None

    @pytest.mark.parametrize(
        ("id", "suggestion"),
        [
            ("split/axis-out-of-rnage", "did you mean split/axis-out-of-range?"),
            ("size-mismatch", "did you mean split/size-mismatch or join/size-mismatch?"),
            ("nothing\x1b[31m", "'dmlsplit rule' lists them"),
        ],
        ids=["typo", "no scope", "hostile"],
    )
    def test_unknown(self, cli, id, suggestion):
        status, out, err = cli("rule", id)
        assert (status, out) == (2, "")
        assert suggestion in err
        assert err.startswith("dmlsplit: there is no rule '")
        assert err.removesuffix("\n").isprintable()

    def test_lists_the_rules_of_a_scope(self, cli):
        every = cli("rule")[1].splitlines()
        assert cli("rule", "split/") == (0, "".join(f"{line}\n" for line in every if line.startswith("split/")), "")
        listed = json.loads(cli("rule", "split/", "--format", "json")[1])
        assert [each["id"] for each in listed] == [id for id in RULES if id.startswith("split/")]
        assert cli("rule", "splits/")[0] == 2


class TestPlan:
    def test_describes_the_compiled_plan(self, cli, tmp_path):
        (tmp_path / "a.json").write_text(GOOD)
        status, out, err = cli("plan", "a.json")
        assert (status, err) == (0, "")
        described = dml.compile(dml.loads(GOOD)).plan.describe().splitlines()
        assert out.splitlines()[1:] == [f"  {line}" for line in [*described, f"the machine, {core.profile()}"]]

    def test_faulty_and_malformed(self, cli, tmp_path):
        (tmp_path / "a.jsonl").write_text(f"{BAD}\n{MALFORMED}\n{OTHER}\n")
        status, out, err = cli("plan", "a.jsonl")
        assert status == 2
        assert "error[split/axis-sizes-sum] OutputTensors: " in out
        assert err == "dmlsplit: a.jsonl:2:10: the JSON text ends too early\n"
        (tmp_path / "b.json").write_text(BAD)
        assert cli("plan", "b.json").status == 1

    def test_undecided_overlap_has_no_plan(self, cli, tmp_path):
        bad = RULES["tensor/output-overlap-undecided"].bad
        (tmp_path / "a.json").write_text(dml.dumps(bad()))
        status, out, _ = cli("plan", "a.json")
        assert status == 1
        assert "  no plan: " in out

    def test_without_the_extension(self, cli, tmp_path, monkeypatch):
        monkeypatch.setattr(core, "IMPORT_ERROR", "No module named 'dmlsplit._ffi'")
        (tmp_path / "a.json").write_text(GOOD)
        status, out, err = cli("plan", "a.json")
        assert (status, out) == (2, "")
        assert err.startswith("dmlsplit: the C extension of dmlsplit is missing")


class TestTune:
    def test_its_output_is_that_of_every_command(self, cli, tmp_path, monkeypatch):
        """Links are followed, - is standard output, and a folder is refused before the machine is measured."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(core, "measure_profile", lambda: self.PROFILE)
        os.mkdir("folder")
        os.symlink("profile", "link")
        assert cli("tune", "-o", "-").out == core.format_profile(self.PROFILE)
        assert cli("tune", "-o", "link").status == 0
        assert sorted(os.listdir()) == ["folder", "link", "profile"]
        assert os.path.islink("link")
        monkeypatch.setattr(core, "measure_profile", lambda: pytest.fail("it was measured"))
        status, _, err = cli("tune", "-o", "folder")
        assert (status, err) == (2, "dmlsplit: folder: Is a directory\n")

    PROFILE = core.Profile(
        0,
        0,
        4096,
        core.NEVER * 4 - 1,
        0,
        "pages",
        call=7,
        ahead=64,
        streamed_height=1,
        cached_height=2,
        claim_fills=core.NEVER,
        gathered=256,
    )

    def test_a_file_for_the_environment(self, cli, tmp_path, monkeypatch):
        monkeypatch.setattr(core, "measure_profile", lambda: self.PROFILE)
        status, out, err = cli("tune", "-o", "machine.profile")
        assert (status, out, err) == (0, "", "")
        assert cli("tune").out == (tmp_path / "machine.profile").read_text()
        done = subprocess.run(
            [sys.executable, "-m", "dmlsplit", "doctor"],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"DMLSPLIT_PROFILE": str(tmp_path / "machine.profile"), "DMLSPLIT_CLAIM": "99"},
        )
        for line in (
            "stream_copies 4096",
            "stream_turns never",
            "claim 99",
            "fetch pages",
            "call 7",
            "cached_height 2",
            "claim_fills never",
            "gathered 256",
        ):
            assert f"profile      {line} (environment)\n" in done.stdout

    def test_a_measurement(self):
        found = core.measure_profile()
        assert found.origin == "measuring"
        assert found.stream_turns <= found.stream_copies
        assert core.parse_profile(core.format_profile(found)).stream_copies == found.stream_copies


class TestDoctor:
    def test_says_what_is_there(self, cli):
        status, out, err = cli("doctor")
        assert (status, err) == (0, "")
        for kernel in core.kernels():
            assert f"kernel       {kernel.name} ({kernel.isa}): " in out
        assert f"extension    {core.version()}\n" in out
        for line in core.profile().lines():
            assert f"profile      {line}\n" in out
        assert f"python       CPython {sys.version.split()[0]}" in out or "PyPy" in out

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (None, "cannot be read: No such file or directory"),
            ("call 1\ncall x\n", "line 2 is neither"),
            ("\n" * 4095, "it has more than 4,094 bytes"),
        ],
    )
    def test_a_profile_that_is_not_taken(self, cli, tmp_path, monkeypatch, text, said):
        if text is not None:
            (tmp_path / "p").write_text(text)
        monkeypatch.setenv("DMLSPLIT_PROFILE", "p")
        status, out, _ = cli("doctor")
        assert status == 1
        assert f"profile      DMLSPLIT_PROFILE=p {said}" in out.replace("is not used: ", "")

    def test_missing_extension(self, cli, monkeypatch):
        monkeypatch.setattr(core, "IMPORT_ERROR", "No module named 'dmlsplit._ffi'")
        status, out, _ = cli("doctor")
        assert status == 1
        assert "extension    missing (No module named 'dmlsplit._ffi'): operators can be judged, but not run" in out

    def test_extension_of_another_version(self, cli, monkeypatch):
        monkeypatch.setattr(doctor, "__version__", "99.0")
        status, out, _ = cli("doctor")
        assert status == 1
        assert "but the package has 99.0; reinstall dmlsplit" in out

    def test_extension_without_a_function(self, cli, monkeypatch):
        def missing():
            raise AttributeError("dmlsplit_cpu_features")

        monkeypatch.setattr(core, "cpu_features", missing)
        status, out, _ = cli("doctor")
        assert status == 1
        assert "belongs to another version (dmlsplit_cpu_features)" in out

    def test_optional_packages(self, cli, monkeypatch):
        monkeypatch.setattr(doctor, "OPTIONAL_PACKAGES", {"click": "none", "no_such_package": "extra"})
        status, out, _ = cli("doctor")
        assert status == 0
        assert "no_such_package not installed; pip install 'dmlsplit[extra]'\n" in out
        assert "click        8." in out

    def test_libraries(self, cli, tmp_path, monkeypatch):
        monkeypatch.setenv("DMLSPLIT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("PATH", str(tmp_path))
        status, out, _ = cli("doctor")
        assert status == 0
        assert "wine         not found; dmlsplit ask runs Windows builds with it\n" in out
        assert "library      none added; 'dmlsplit library add' fetches builds for dmlsplit ask\n" in out
        added = [find_build(name) for name in ("onnxruntime-1.24.4", "torch-directml-0.2.5.dev240914")]
        for build in added:
            for name in build.files:
                (folder_of(build) / name).parent.mkdir(parents=True, exist_ok=True)
                (folder_of(build) / name).write_bytes(b"")
        (tmp_path / "wine").write_text("")
        (tmp_path / "wine").chmod(0o755)
        out = cli("doctor").out
        assert f"wine         {tmp_path / 'wine'}\n" in out
        assert [line for line in out.splitlines() if line.startswith("library ")] == [
            f"library      {added[1]} (Linux): {folder_of(added[1])}",
            f"library      {added[0]} (wine): {folder_of(added[0])}",
        ]

    def test_libraries_of_a_user_without_a_home(self, cli, monkeypatch):
        def home():
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", home)
        for name in ("DMLSPLIT_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        status, out, _ = cli("doctor")
        assert (status, out.splitlines()[-1]) == (0, "library      not known: Could not determine home directory.")


@pytest.mark.parametrize(
    ("error", "status", "err"),
    [
        (MemoryError(), 2, "dmlsplit: there is not enough memory\n"),
        (KeyboardInterrupt(), 130, "\n"),
        (BrokenPipeError(), 141, ""),
        (PermissionError(13, "Permission denied", "a\x1bb"), 2, "dmlsplit: a\\x1bb: Permission denied\n"),
        (dml.InputError("bad\nthing", file="f", line=1, column=2), 2, "dmlsplit: f:1:2: bad thing\n"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), 2, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_way_to_fail(cli, monkeypatch, error, status, err):
    def fail():
        raise error

    monkeypatch.setattr(core, "version", fail)
    result = cli("doctor")
    assert (result.status, result.out) == (status, "")
    assert result.err.count("\n") <= 1
    assert err is None or result.err == err


class TestConfig:
    def test_headers_sources_and_the_linker(self, cli):
        status, out, _ = cli("config", "--cflags", "--sources", "--libs")
        include, *words = shlex.split(out)
        assert status == 0
        assert (Path(include.removeprefix("-I")) / "dmlsplit.h").is_file()
        assert {Path(word).name for word in words if word.endswith(".c")} >= {"dms_plan.c", "avx2.c"}
        assert words[-1] == "-pthread" or sys.platform == "win32"
        assert (Path(cli("config", "--cmake-dir").out.strip()) / "CMakeLists.txt").is_file()

    def test_nothing_asked(self, cli):
        assert cli("config").status == 2

    def test_an_installation_without_headers(self, cli, monkeypatch, tmp_path):
        monkeypatch.setattr(config, "PLACES", (tmp_path,))
        status, out, err = cli("config", "--cflags")
        assert (status, out) == (2, "")
        assert "no headers" in err


@pytest.mark.parametrize("group", ["conformance", "layer", "library"])
def test_a_group_without_a_command_is_one_line(cli, group):
    result = cli(group)
    assert (result.status, result.out) == (2, "")
    assert result.err == f"dmlsplit: Missing command. (try 'dmlsplit {group} --help')\n"
