"""The conformance suite: its cases, the judge, and commands that are right, wrong, silent and hostile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from hashlib import sha256
from itertools import islice, product
from pathlib import Path

import pytest

from dmlsplit.cli import main
from dmlsplit.conformance import answering, suite
from dmlsplit.conformance.judging import Outcome, expected, judge
from dmlsplit.conformance.peers import Peer
from dmlsplit.conformance.running import GIVEN_UP, run
from dmlsplit.conformance.suite import FILES, Suite
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.fetching import is_added
from dmlsplit.system.errors import InputError

ROOT = Path(__file__).parents[2]
TARGETS = {"directml": "1.15.4", "onnxruntime": "1.24.4"}
LIBRARY = find_build("1.15.4")
HERSELF = [sys.executable, "-m", "dmlsplit", "conformance", "answer"]


def script(text):
    """A command that runs Python; `answer` is dmlsplit's own."""
    head = "import json, sys\nfrom dmlsplit.conformance.answering import Emulated, answer as of\n"
    head += "own = Emulated().answers\n"
    loop = "for line in sys.stdin:\n    question = json.loads(line)\n    answer = of(question, own)\n"
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return [sys.executable, "-c", f"{head}{loop}{body}    print(json.dumps(answer), flush=True)\n"]


DEEP = b"[" * 128 + b"]" * 128


def plain(text):
    """A command that runs Python alone, and skips each question that `text` has no other answer to."""
    loop = "import json, sys\nfor line in sys.stdin:\n    question = json.loads(line)\n"
    body = "".join(f"    {line}\n" for line in f"answer = {{'id': question['id'], 'skip': 'no'}}\n{text}".splitlines())
    return [sys.executable, "-S", "-c", f"{loop}{body}    print(json.dumps(answer), flush=True)\n"]


def outcomes(command, *names, sample=100, **options):
    return list(run(Suite(), names, command, TARGETS, sample=sample, **options))


class TestCases:
    def test_versions_and_counts(self):
        counts = {name: sum(1 for _ in FILES[name].read(1)) for name in ("executions", "models")}
        assert counts == {"executions": 1000, "models": 298}
        first = next(FILES["verdicts"].read(1))
        assert first["id"] == "verdicts/random/0"
        assert expected(first, "1.15.4") == [{"accepted": True, "hresult": "0x00000000"}]
        assert [each["hresult"] for each in expected(first, "1.0.200610")] == ["0x80000003", "0x80070057"]

    @pytest.mark.slow
    def test_a_process_that_ended_is_no_answer(self):
        ended = [case["id"] for case in Suite().cases("verdicts") if not expected(case, "1.15.4")]
        assert len(ended) == 22

    @pytest.mark.parametrize("name", FILES)
    def test_a_line_is_a_case_and_short(self, name):
        for line in islice(suite.lines(name), 50):
            case = json.loads(line)
            assert set(case) == {"id", "question", "answers"}
            assert case["id"].startswith(f"{name}/")
            assert case["question"]["kind"] == FILES[name].kind
            assert len(line) <= suite.MOST_BYTES

    def test_a_sample_is_made_of_the_same_cases(self):
        for name in ("executions", "models"):
            every = dict.fromkeys(line for line in suite.lines(name))
            assert set(suite.lines(name, 7)) < set(every)

    @pytest.mark.parametrize("name", ["verdicts", "executions", "graphs"])
    def test_dmlsplit_answers_as_recorded(self, name):
        """A sample for each of several versions, without a process; test_recorded_verdicts and its like have all."""
        answers, found = answering.Emulated().answers, []
        for case, version in product(FILES[name].read(150), ["1.0.200610", "1.5.0", "1.8.0", "1.13.1", "1.15.4"]):
            wanted = expected(case, version)
            if wanted:
                given = answering.answer({**case["question"], "id": 1, "target": f"directml {version}"}, answers)
                found.append(judge(case, FILES[name], wanted, given))
        assert [result for result in found if result.outcome is Outcome.FAILED] == []
        assert sum(result.outcome is Outcome.PASSED for result in found) > 0.95 * len(found) > 20


class TestJudge:
    GRAPHS = FILES["graphs"]

    @pytest.mark.parametrize(
        ("recorded", "given", "outcome"),
        [
            ({"accepted": True, "right": True}, {"accepted": True, "right": True}, "passed"),
            ({"accepted": True, "right": True}, {"accepted": True, "right": False}, "failed"),
            ({"accepted": True, "right": True}, {"accepted": True, "right": None}, "skipped"),
            ({"accepted": True, "right": True}, {"accepted": True}, "skipped"),
            ({"accepted": True, "right": True}, {"accepted": False}, "failed"),
            ({"accepted": True, "right": True}, {"accepted": 1, "right": 1}, "failed"),
            ({"accepted": False}, {"accepted": False, "right": True}, "passed"),
            ({"accepted": False}, {"skip": "no graphs"}, "skipped"),
            ({"accepted": False}, {}, "skipped"),
            ({"accepted": True, "outputs": ["right", "wrong"]}, {"accepted": True, "outputs": ["right"]}, "failed"),
            (
                {"accepted": True, "outputs": ["right", "wrong"]},
                {"accepted": True, "outputs": [None, "wrong"]},
                "passed",
            ),
            (
                {"accepted": True, "outputs": ["right", "wrong"]},
                {"accepted": True, "outputs": [None, "right"]},
                "failed",
            ),
        ],
    )
    def test_outcome(self, recorded, given, outcome):
        assert judge({"id": "graphs/0"}, self.GRAPHS, [recorded], given).outcome == outcome

    def test_nodes_that_are_named_are_compared(self):
        recorded = {"created": True, "nodes": {"a": "DML", "b": "CPU"}, "copies": [1, 0]}
        known = {"created": True, "nodes": {"a": "DML"}}
        assert judge({"id": "m"}, FILES["models"], [recorded], known).values == 2
        wrong = judge({"id": "m"}, FILES["models"], [recorded], {**known, "copies": [1, 2]})
        assert (wrong.outcome, wrong.reason) == ("failed", "copies[1] is 2, but 0 is recorded")

    def test_one_of_several_recorded_answers_suffices(self):
        recorded = [{"accepted": False, "hresult": code} for code in ("0x80000003", "0x80070057")]
        for code, outcome in (("0x80070057", "passed"), ("0x8007000e", "failed")):
            found = judge({"id": "v"}, FILES["verdicts"], recorded, {"accepted": False, "hresult": code})
            assert found.outcome == outcome


class TestCommands:
    def test_dmlsplit_itself(self):
        found = outcomes(HERSELF, *FILES, sample=90)
        failed = [result.id for result in found if result.outcome is Outcome.FAILED]
        assert [id for id in failed if not id.startswith("models/")] == []
        assert len(failed) <= 1
        assert {result.id.split("/")[0] for result in found} == set(FILES)

    @pytest.mark.skipif(not is_added(LIBRARY), reason=f"dmlsplit library add {LIBRARY} has not been run")
    def test_the_real_library(self):
        targets = {**TARGETS, "directml": LIBRARY.release.directml}
        found = list(run(Suite(), ["verdicts", "graphs"], [*HERSELF, "--library"], targets, sample=60))
        assert [result for result in found if result.outcome is Outcome.FAILED] == []
        passed = [result.id for result in found if result.outcome is Outcome.PASSED]
        assert sum(id.startswith("verdicts") for id in passed) > 80
        reasons = {result.reason for result in found if result.outcome is Outcome.SKIPPED}
        assert reasons == {"right is not known"}  # it executes nothing

    @pytest.mark.parametrize(
        ("name", "fault"),
        [
            ("verdicts", "answer['accepted'] = not answer['accepted']"),
            ("verdicts", "answer['hresult'] = '0x80004005'"),
            ("executions", "answer['buffers'][-1] = answer['buffers'][-1][:-1] + 'x'"),
            ("executions", "answer['buffers'].pop()"),
            ("graphs", "answer['right'] = not answer['right']"),
            ("models", "answer['nodes'] = {name: 'CPU' for name in answer['nodes']}"),
            ("models", "answer['created'] = not answer['created']"),
        ],
    )
    def test_a_mutant_fails(self, name, fault):
        found = outcomes(script(fault), name, sample=150)
        failed = [result for result in found if result.outcome is Outcome.FAILED]
        assert len(failed) >= len(found) / 2

    def test_a_right_graph_in_place_of_the_builds_wrong_one(self):
        perfect = plain("answer = {'id': question['id'], 'accepted': True, 'right': True}")
        wrong = {result.id for result in outcomes(perfect, "graphs", sample=40) if result.outcome is Outcome.FAILED}
        assert wrong
        left = {
            result.id: result.reason
            for result in outcomes(perfect, "graphs", sample=40, correct=True)
            if result.outcome is Outcome.FAILED
        }
        assert left.keys() < wrong
        assert set(left.values()) <= {"accepted is True, but False is recorded"}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "it ended by SIGKILL without an answer"),
            ("sys.exit(3)", "it ended with status 3 without an answer"),
            ("import time; time.sleep(60)", "no answer within 1 seconds"),
            ("print('hello')", "an answer that is not a JSON object: hello"),
            ("print('[' * 100000)", "an answer that is not a JSON object: ["),
            ("print('{\"id\": 7}')", "an answer that has a different id"),
            ("print('{\"id\": ' + '[' * 129 + ']' * 129 + '}')", "an answer that is not a JSON object: {"),
            ("sys.stdout.write('x' * 3_000_000)", "an answer longer than 1,048,576 bytes"),
        ],
    )
    @pytest.mark.skipif(sys.platform == "win32", reason="names signals")
    def test_one_question_that_breaks_it_is_one_failed_case(self, text, reason):
        broken = plain(f"if question['id'] == 'executions/split/200':\n    {text}")
        start = time.monotonic()
        found = outcomes(broken, "executions", seconds=1 if "sleep" in text else 60)
        assert time.monotonic() - start < 40
        assert {result.outcome for result in found if result.id != "executions/split/200"} == {Outcome.SKIPPED}
        assert (found[2].id, found[2].outcome) == ("executions/split/200", Outcome.FAILED)
        assert found[2].reason.startswith(reason)

    def test_a_command_that_answers_one_question_and_ends(self):
        once = plain("print(json.dumps(answer), flush=True)\nsys.exit()")
        assert {result.outcome for result in outcomes(once, "executions")} == {Outcome.SKIPPED}

    @pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
    def test_a_child_that_keeps_the_pipe_open_does_not_hold_it_up(self):
        start = time.monotonic()
        found, _ = outcomes(["sh", "-c", "sleep 60 & sleep 60"], "executions", sample=1000, seconds=1)
        assert (found.outcome, found.reason) == (Outcome.FAILED, "no answer within 1 seconds")
        assert time.monotonic() - start < 20

    @pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
    @pytest.mark.parametrize("text", ["setsid sleep 20 & sleep 20", "setsid sleep 20 & exec >&-; sleep 20"])
    def test_nor_does_one_in_a_session_of_its_own(self, text):
        """It is not ended with the command, and has both pipes."""
        start = time.monotonic()
        found, _ = outcomes(["sh", "-c", text], "executions", sample=1000, seconds=1)
        assert (found.outcome, found.reason) == (Outcome.FAILED, "no answer within 1 seconds")
        assert time.monotonic() - start < 10

    def test_a_command_that_answers_before_it_has_read_all_is_heard(self):
        """As cat does: a pipe of Linux holds 64 KB."""
        echo = "import os\nwhile piece := os.read(0, 4096): os.write(1, piece)"
        with Peer([sys.executable, "-S", "-c", echo], seconds=20) as peer:
            for id in (1, 2):
                question = {"id": id, "long": "x" * 900_000}
                assert peer.ask(question) == question

    def test_a_silent_command_is_given_up(self):
        found = outcomes([sys.executable, "-S", "-c", ""], "executions", sample=20)
        assert [result.outcome for result in found] == [Outcome.FAILED] * GIVEN_UP + [Outcome.SKIPPED] * (50 - GIVEN_UP)
        assert found[-1].reason == "not asked, after 25 without an answer"

    def test_no_such_command(self):
        with pytest.raises(InputError, match=r"^no-such-command: it cannot be started: "):
            outcomes(["no-such-command"], "executions")


class TestQuestions:
    """Answers to what is no question of the suite."""

    @pytest.mark.parametrize(
        "question",
        [
            {},
            {"target": "directml 1.15.4"},
            {"target": "directml 9.9", "kind": "operator"},
            {"target": "directml 1.15.4", "kind": "operator", "operator": {"Type": "DML_OPERATOR_SPLIT"}},
            {"target": "directml 1.15.4", "kind": "operator"},
            {"target": "directml 1.15.4", "kind": "model", "model": "?"},
            {"target": "onnxruntime 1.24.4", "kind": "model", "model": 7},
            {"target": "onnxruntime 1.24.4", "kind": "model", "model": "AAAA"},
            {"target": "feature_level 3_0 x", "kind": "graph", "graph": []},
        ],
    )
    def test_is_skipped_with_a_reason(self, question):
        given = answering.answer({"id": 5, **question}, answering.Emulated().answers)
        assert given.keys() == {"id", "skip"}
        assert given["skip"]

    def test_a_binding_beyond_its_buffer(self):
        case = next(FILES["executions"].read(1))
        question = {**case["question"], "id": 1, "target": "directml 1.15.4"}
        question["inputs"] = [{"buffer": 0, "offset": 1 << 40, "size": 10}]
        assert answering.answer(question, answering.Emulated().answers)["skip"] == "buffer 0 is too short"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The two smaller files; docs/generate.py counts all."""
    found = tmp_path_factory.mktemp("suite") / "new" / "files"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "FILES", {name: FILES[name] for name in ("executions", "models")})
        assert main(["conformance", "export", str(found)]) == 0
    return found


class TestFiles:
    def test_table_of_contents(self, folder, capsys):
        table = json.loads((folder / "contents.json").read_text())
        assert [file["name"] for file in table["files"]] == ["executions.jsonl", "models.jsonl"]
        assert (table["schema"], table["version"]) == (1, 1)
        for file in table["files"]:
            assert (folder / file["name"]).read_bytes().count(b"\n") == file["cases"]
            page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
            assert f"| {file['cases']:,} | `{file['sha256']}` |" in page

    def test_the_runners_come_with_the_files(self, folder):
        for name in suite.RUNNERS:
            assert (folder / name).read_bytes() == (ROOT / "examples" / "conformance" / name).read_bytes()

    def test_what_is_read_is_what_was_written(self, folder):
        for name in ("executions", "models"):
            assert list(Suite(str(folder)).cases(name, 25)) == list(Suite().cases(name, 25))

    def test_a_file_that_was_changed_is_refused(self, folder, tmp_path, capsys):
        (tmp_path / "contents.json").write_bytes((folder / "contents.json").read_bytes())
        data = (folder / "models.jsonl").read_bytes()
        (tmp_path / "models.jsonl").write_bytes(data.replace(b'"created":true', b'"created":null', 1))
        arguments = ["conformance", "run", "--suite", str(tmp_path), "--only", "models", "--", *HERSELF]
        assert main(arguments) == 2
        assert "models.jsonl: its SHA-256 does not match contents.json" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{}", "[]", '{"schema": 2}', "[" * 100_000, '{"schema": 1, "files": [1]}', "\xff"),
            *('{"schema": "%s"}' % ("x" * 10_000), '{"schema": [%s]}' % ("1," * 5000 + "1")),
        ],
    )
    def test_no_table_of_contents(self, text, tmp_path, capsys):
        (tmp_path / "contents.json").write_bytes(text.encode("latin-1"))
        assert main(["conformance", "run", "--suite", str(tmp_path), "--", *HERSELF]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "contents.json: " in said
        assert len(said) < 500

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
    @pytest.mark.parametrize("name", ["contents.json", "models.jsonl"])
    def test_what_is_no_regular_file_is_named(self, name, tmp_path, capsys):
        (tmp_path / "contents.json").write_text(json.dumps({"schema": 1, "files": []}))
        (tmp_path / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / name)
        assert main(["conformance", "run", "--suite", str(tmp_path), "--only", "models", "--", *HERSELF]) == 2
        assert capsys.readouterr().err == f"dmlsplit: {tmp_path / name}: it is not a regular file\n"

    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"1",
            b'{"id": 1}',
            b'{"id": "a", "question": {"kind": 1}, "answers": [1]}',
            b'{"id": "a", "question": {"kind": 1}, "answers": [{"by": 1, "is": {}}]}',
            b'{"id": "a", "question": {"kind": 1}, "answers": [{"by": [], "is": {"a": %b}}]}' % DEEP,
        ],
    )
    def test_no_case(self, line, tmp_path, capsys):
        data = line + b"\n"
        table = {"schema": 1, "files": [{"name": "models.jsonl", "sha256": sha256(data).hexdigest()}]}
        (tmp_path / "contents.json").write_text(json.dumps(table))
        (tmp_path / "models.jsonl").write_bytes(data)
        arguments = ["conformance", "run", "--suite", str(tmp_path), "--only", "models", "--", *HERSELF]
        assert main(arguments) == 2
        assert "models.jsonl:1: it is not a case" in capsys.readouterr().err

    def test_a_line_that_is_too_long(self, tmp_path):
        """Of a case as long as may be, and one byte longer."""
        case = '{"id": "a", "question": {"kind": "%s"}, "answers": []}'
        for size in (suite.MOST_BYTES, suite.MOST_BYTES + 1):
            data = (case % ("x" * (size - len(case) + 2)) + "\n").encode()
            table = {"schema": 1, "files": [{"name": "models.jsonl", "sha256": sha256(data).hexdigest()}]}
            (tmp_path / "contents.json").write_text(json.dumps(table))
            (tmp_path / "models.jsonl").write_bytes(data)
            found = Suite(str(tmp_path)).cases("models")
            if size == suite.MOST_BYTES:
                assert [each["id"] for each in found] == ["a"]
            else:
                with pytest.raises(InputError, match=r"models\.jsonl:1: the line is longer than 1,048,576 bytes"):
                    next(found)

    def test_the_runner_in_a_page_of_python(self, folder, tmp_path):
        """Over every hundredth execution, by dmlsplit and by a mutant."""
        table = json.loads((folder / "contents.json").read_text())
        lines = (folder / "executions.jsonl").read_bytes().splitlines(keepends=True)[::100]
        (tmp_path / "executions.jsonl").write_bytes(b"".join(lines))
        file = {**table["files"][0], "sha256": sha256(b"".join(lines)).hexdigest()}
        (tmp_path / "contents.json").write_text(json.dumps({**table, "files": [file]}))
        for command, status, said in (
            (HERSELF, 0, "10 passed, 0 skipped, 0 failed"),
            (plain("answer = {'id': question['id'], 'accepted': False}"), 1, "0 passed, 0 skipped, 10 failed"),
            ([sys.executable, "-S", "-c", ""], 1, "0 passed, 0 skipped, 10 failed"),
        ):
            words = [sys.executable, folder / "judge.py", tmp_path, "1.15.4", *command]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            assert (done.returncode, done.stdout.splitlines()[-1], done.stderr) == (status, said, "")

    @pytest.mark.slow
    @pytest.mark.skipif(shutil.which("cc") is None or shutil.which("c++") is None, reason="no C++ compiler")
    def test_the_runner_in_cpp(self, tmp_path):
        """It judges itself, and is judged: what it executes and accepts is as recorded."""
        folder = tmp_path / "suite"
        assert main(["conformance", "export", str(folder)]) == 0
        include = f"-I{ROOT / 'include'}"
        sources = [*(ROOT / "csrc").glob("*.c"), *(ROOT / "csrc").glob("*/*.c")]
        subprocess.run(["cc", "-O1", include, "-c", *sources], cwd=tmp_path, check=True, timeout=600)
        judge_cpp, judge = folder / "judge.cpp", tmp_path / "judge"
        warnings = ["-std=c++17", "-Wall", "-Wextra", "-Werror"]
        objects = tmp_path.glob("*.o")
        subprocess.run(
            ["c++", *warnings, include, judge_cpp, *objects, "-pthread", "-o", judge], check=True, timeout=600
        )

        def said(*words):
            done = subprocess.run([judge, *words], capture_output=True, text=True, timeout=300)
            return done.returncode, done.stdout.splitlines()[-1]

        assert said(folder / "executions.jsonl", "1.15.4") == (0, "1000 passed, 0 skipped, 0 failed")
        assert said(folder / "verdicts.jsonl", "1.8.0") == (0, "5560 passed, 43 skipped, 0 failed")
        assert said(folder / "models.jsonl", "1.24.4") == (1, "0 passed, 296 skipped, 0 failed")
        found = outcomes([str(judge)], "verdicts", "executions", sample=10)
        assert [result for result in found if result.outcome is Outcome.FAILED] == []
        assert sum(result.outcome is Outcome.PASSED for result in found) > 0.98 * len(found)


class TestReports:
    MUTANT = plain(
        "if question['id'] == 'executions/split/100':\n    answer = {**question, 'buffers': ['<&\\x1b>', None]}"
    )

    def run(self, capsys, *options):
        words = ["conformance", "run", "--only", "executions", "--sample", "100", *options, "--", *self.MUTANT]
        status = main(words)
        out, err = capsys.readouterr()
        assert (status, err) == (1, "")
        return out

    def test_text(self, capsys):
        out = self.run(capsys)
        assert out.splitlines()[-1] == "0 passed, 1 failed, 9 skipped"
        assert r"  executions/split/100: buffers[0] is <&\x1b>, " in out

    def test_ids_are_shown_not_obeyed(self, tmp_path, capsys):
        case = {"id": "a\nb\x1b[31m" + "c" * 1000, "question": {"kind": "model"}}
        data = json.dumps({**case, "answers": [{"by": ["1.24.4"], "is": {"created": True}}]}).encode() + b"\n"
        table = {"schema": 1, "files": [{"name": "models.jsonl", "sha256": sha256(data).hexdigest()}]}
        (tmp_path / "contents.json").write_text(json.dumps(table))
        (tmp_path / "models.jsonl").write_bytes(data)
        words = ["--suite", str(tmp_path), "--only", "models", "--onnxruntime", "1.24.4", "--", "false"]
        assert main(["conformance", "run", *words]) == 1
        out = capsys.readouterr().out
        assert out.count("  a\\nb\\x1b[31mc") == 1
        assert max(map(len, out.splitlines())) < 300

    def test_json(self, capsys):
        found = json.loads(self.run(capsys, "--format", "json"))
        assert found["counts"] == {"passed": 0, "failed": 1, "skipped": 9}
        assert found["targets"] == {"directml": "1.15.4"}
        assert [each["id"] for each in found["results"] if each["outcome"] == "failed"] == ["executions/split/100"]

    def test_junit(self, capsys):
        suite = ET.fromstring(self.run(capsys, "--format", "junit")).find("testsuite")
        assert len(suite.findall("testcase")) == 10
        (failed,) = [case for case in suite if case.find("failure") is not None]
        assert failed.attrib == {"name": "executions/split/100", "classname": "executions"}

    def test_html(self, capsys, tmp_path):
        pytest.importorskip("jinja2")
        self.run(capsys, "--format", "html", "-o", str(tmp_path / "page.html"))
        page = (tmp_path / "page.html").read_text("utf-8")
        assert "0 passed, 1 failed, 9 skipped" in page
        assert "buffers[0] is &lt;&amp;\\x1b&gt;" in page


class TestUsage:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["run"], "COMMAND"),
            (["run", "--sample", "0", "x"], "0 is less than 1"),
            (["run", "--directml", "9.9", "x"], "unknown DirectML release '9.9'"),
            (["run", "--only", "verdicts", "--suite", "/nonexistent", "x"], "contents.json: No such file"),
            (["run", "no-such-command"], "no-such-command: it cannot be started"),
            (["run", "--only", "executions", "--directml", "1.9.0", "x"], "no case was answered by directml 1.9.0"),
        ],
    )
    def test_one_line(self, words, said, capsys):
        assert main(["conformance", *words]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert said in err

    def test_a_line_that_is_no_question(self):
        done = subprocess.run(HERSELF, input="7\n", capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert "a line of standard input is not a question" in done.stderr
