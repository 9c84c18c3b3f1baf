"""Lines of logs: excerpts of other public threads than those of the table, hostile bytes, a model at hand."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from re import _constants as codes_of_patterns
from re import _parser as parser_of_patterns

import pytest

from dmlsplit.cli import main
from dmlsplit.logs import reading
from dmlsplit.logs.codes import NAMES, SENTENCES, named
from dmlsplit.logs.messages import MESSAGES, PATTERNS, Asks
from dmlsplit.logs.reading import MOST_FINDINGS, MOST_LINE, read
from dmlsplit.targets.runtime_versions import NEWEST

EXCERPTS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "logs" / "excerpts.jsonl").read_text("utf-8").splitlines()
]
REMOVED = b"887A0005 The GPU device instance has been suspended."


def found(text):
    return read(io.BytesIO(text.encode() if isinstance(text, str) else text)).findings


class TestTable:
    def test_each_row_names_a_public_thread_and_a_command_that_exists(self):
        from dmlsplit.cli import cli

        for message in MESSAGES:
            assert re.fullmatch(r"https://github\.com/[\w-]+/[\w.-]+/(issues|pull)/\d+", message.source), message.id
            assert re.fullmatch(r"[a-z-]+", message.id)
            assert message.meaning
            assert not message.meaning.endswith(".")
            if message.next:
                program, command, *words = message.next.split()
                assert program == "dmlsplit"
                options = {option for parameter in cli.commands[command].params for option in parameter.opts}
                assert {word for word in words if word.startswith("-")} <= options
        assert len({message.id for message in MESSAGES}) == len(MESSAGES)

    def test_codes_that_sentences_tell_have_names(self):
        assert set(SENTENCES.values()) <= set(NAMES)

    def test_no_row_hides_another(self):
        """A row without a pattern takes all lines with its codes: rows below it have others."""
        taken = set()
        for message in MESSAGES:
            assert not taken & set(message.codes), message.id
            if not message.pattern:
                taken |= set(message.codes)

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            (0x80070057, "E_INVALIDARG"),
            (0x887A002B, "DXGI_ERROR_ACCESS_DENIED"),
            (0x887A0006, "DXGI_ERROR_DEVICE_HUNG"),
            (0x8007007E, "ERROR_MOD_NOT_FOUND"),
            (0x800704C7, "error 1223 of Windows"),
            (0x887A00FF, "error 255 of DXGI"),
            (0x8BADF00D, ""),
            (0xC0FFEE00, ""),
        ],
    )
    def test_names_of_codes(self, code, name):
        assert named(code) == name


def unbounded(parsed, before=""):
    """Yields each repetition without an upper bound in a parsed pattern: what comes before it in a line that it is
    tried at, the shortest of its kind, and whether a run of what it repeats contains that, too. A search then reads
    such a run once from each place in it."""
    for operator, argument in parsed:
        match operator:
            case codes_of_patterns.BRANCH:
                for each in argument[1]:
                    yield from unbounded(each, before)
                before += shortest(argument[1][0])
            case codes_of_patterns.SUBPATTERN:
                yield from unbounded(argument[-1], before)
                before += shortest(argument[-1])
            case codes_of_patterns.MAX_REPEAT | codes_of_patterns.MIN_REPEAT | codes_of_patterns.POSSESSIVE_REPEAT:
                least, most, repeated = argument
                inner = list(unbounded(repeated, before))
                yield from inner
                if most == codes_of_patterns.MAXREPEAT:
                    yield before, bool(inner) or all(matching(repeated, character) for character in before)
                before += shortest(repeated) * least
            case codes_of_patterns.AT if argument is codes_of_patterns.AT_BOUNDARY:
                before += EDGE
            case _:
                before += shortest([(operator, argument)])


EDGE = "\0"
"""Stands for the start of a word: no run of characters of words has one inside."""


def shortest(parsed):
    """A text that a part of a pattern matches, with the fewest repetitions and the first of alternatives."""
    made = ""
    for operator, argument in parsed:
        match operator:
            case codes_of_patterns.LITERAL:
                made += chr(argument)
            case codes_of_patterns.BRANCH:
                made += shortest(argument[1][0])
            case codes_of_patterns.SUBPATTERN:
                made += shortest(argument[-1])
            case codes_of_patterns.MAX_REPEAT | codes_of_patterns.MIN_REPEAT | codes_of_patterns.POSSESSIVE_REPEAT:
                made += shortest(argument[2]) * argument[0]
            case codes_of_patterns.IN | codes_of_patterns.ANY | codes_of_patterns.NOT_LITERAL:
                made += next(each for each in map(chr, range(32, 127)) if matching([(operator, argument)], each))
            case codes_of_patterns.AT | codes_of_patterns.ASSERT | codes_of_patterns.ASSERT_NOT:
                pass
            case _:
                raise NotImplementedError(operator)
    return made


def matching(parsed, character):
    """Whether a part of a pattern that is one character, or a choice of some, matches `character`."""
    ((operator, argument),) = parsed
    match operator:
        case codes_of_patterns.ANY:
            return character != EDGE
        case codes_of_patterns.LITERAL:
            return character == chr(argument)
        case codes_of_patterns.NOT_LITERAL:
            return character != chr(argument)
        case codes_of_patterns.IN:
            negated = argument[0][0] is codes_of_patterns.NEGATE
            return negated != any(is_of_class(each, character) for each in argument[negated:])
        case _:
            raise NotImplementedError(operator)


CATEGORIES = {
    codes_of_patterns.CATEGORY_WORD: r"\w",
    codes_of_patterns.CATEGORY_DIGIT: r"\d",
    codes_of_patterns.CATEGORY_SPACE: r"\s",
    codes_of_patterns.CATEGORY_NOT_SPACE: r"\S",
}


def is_of_class(item, character):
    operator, argument = item
    match operator:
        case codes_of_patterns.LITERAL:
            return character == chr(argument)
        case codes_of_patterns.RANGE:
            return argument[0] <= ord(character) <= argument[1]
        case codes_of_patterns.CATEGORY:
            return re.fullmatch(CATEGORIES[argument], character) is not None
        case _:
            raise NotImplementedError(operator)


def repeated_within(pattern):
    return [before for before, within in unbounded(parser_of_patterns.parse(pattern)) if within]


class TestPatterns:
    @pytest.mark.parametrize(
        ("pattern", "before"),
        [
            (r"(?:Other|Dml\w*)\.cpp", "Dml"),
            (r"(?i)mem(?:ory)? pattern (?:is|should) .*DML", "mem pattern is "),
            (r"\w++\.", ""),
            (r"a[ab]*?c", "a"),
            (r"\[(?:\w+)*x", "["),
            *((linear, None) for linear in (r"\b\w++\.", r"a b\w*c", r"ab{0,9}c", r"\[[^\[]*\]", r"\.h\(\d+\)")),
        ],
    )
    def test_what_is_quadratic(self, pattern, before):
        assert repeated_within(pattern) == ([] if before is None else [before])

    @pytest.mark.parametrize("message", MESSAGES, ids=lambda each: each.id)
    def test_no_row_reads_a_line_again_from_each_place(self, message):
        assert not repeated_within(message.pattern)

    def test_nor_do_the_forms_of_codes_places_and_errors(self):
        forms = [each for each in vars(reading).values() if isinstance(each, re.Pattern) and each not in PATTERNS]
        forms += [pattern for pattern, _ in reading._ERRORS._patterns]
        assert len(forms) >= 16
        for form in forms:
            if form is not reading._HEXADECIMAL:  # it matches wherever it is tried, so its runs are read once
                assert not repeated_within(form.pattern), form


class TestExcerpts:
    def test_they_are_of_other_threads(self):
        assert len(EXCERPTS) >= 70
        assert len({each["source"] for each in EXCERPTS}) == len(EXCERPTS)
        unknown = [each for each in EXCERPTS if not each["messages"]]
        assert 15 <= len(unknown) <= 25
        used = {message.source for message in MESSAGES}
        assert len([each for each in EXCERPTS if each["source"] in used]) <= 1  # another message of a thread

    @pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda each: each["source"].split("github.com/")[1])
    def test_messages(self, excerpt):
        findings = found(excerpt["text"])
        assert [finding.message.id for finding in findings if finding.message] == excerpt["messages"]
        if not excerpt["messages"]:
            assert findings  # said to be unknown
            assert all(finding.is_error for finding in findings)

    def test_an_unknown_line_has_its_codes_name(self):
        (compiling,) = found(next(each["text"] for each in EXCERPTS if each["source"].endswith("genai/issues/521")))
        assert (compiling.code_text, compiling.place) == ("80070057 E_INVALIDARG", "ComputeShaderFactory.cpp:398")
        (net,) = found("  HResult=0x80131500")
        assert net.code_text == "80131500 COR_E_EXCEPTION"

    def test_node_and_the_place_that_threw(self):
        (finding,) = found(EXCERPTS[0]["text"])
        assert (finding.operator, finding.node) == ("LayerNormalization", "/network/norm1/LayerNormalization")
        assert finding.place == "MLOperatorAuthorImpl.cpp:2468"


class TestLines:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("failed: -2005270523", 0x887A0005),
            ("HRESULT failed with 0x887a0005: x", 0x887A0005),
            ("(887A0005)", 0x887A0005),
            ("00007FF887A0005F", None),
            ("Error: -1234567890", None),
            ("id 8f3a9b21 done", None),
            ("error: 800700571 of 8 items", None),
            ("a C0000005 b", 0xC0000005),
            ("Exception code: 0xc0000005", 0xC0000005),
            ("unrecoverable error (DXGI_ERROR_DEVICE_HUNG)", 0x887A0006),
            ("The parameter is incorrect.", 0x80070057),
            ("returns S_OK, not E_FAIL", 0x80004005),
            ("MY_E_FAIL_CODE", None),
        ],
    )
    def test_codes(self, text, code):
        assert next((finding.code for finding in found(text)), None) == code

    def test_lines_of_one_kind_are_one_finding(self):
        lines = [f"2024-01-01 00:00:0{i} tid({i}f) {REMOVED.decode()}" for i in range(9)]
        (finding,) = found("\n".join(lines))
        assert (finding.line, finding.count) == (1, 9)
        unknown = found("\n".join(f"Error: thing {i} at 0x7f{i}" for i in range(9)))
        assert [each.count for each in unknown] == [9]

    def test_what_reports_no_error_is_passed_over(self):
        assert found("loading\n\nepoch 3: loss 0.80070057\n[I:onnxruntime:, x.cc:1 f] fine\n") == []

    def test_a_wrapped_message(self):
        (finding,) = found("MLOperatorAuthorImpl.cpp(2853) ...\nException(1) tid(...) 80070057\n")
        assert (finding.message.id, finding.line) == ("kernel-fails-at-run", 2)
        (finding,) = found("MLOperatorAuthorImpl.cpp(2853)\n\n\n\n80070057\n")
        assert finding.message is None

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_encodings(self, encoding):
        (finding,) = found(f"h\u00e9\u4e2d\r\n{REMOVED.decode()}\r\n".encode(encoding))
        assert (finding.line, finding.message.id, finding.text) == (2, "device-removed", REMOVED.decode())

    def test_any_bytes(self):
        data = bytes(range(256)) * 300
        assert [each.message.id for each in found(data + b"\n\xff\xfe" + REMOVED + b"\x00\n") if each.message] == [
            "device-removed"
        ]
        assert [each.message.id for each in found(b"\xff\xfe" + REMOVED) if each.message] == []

    def test_long_lines_and_many_findings(self):
        start = time.process_time()
        log = read(io.BytesIO(b"x" * 30_000_000 + REMOVED + b"\n" + REMOVED + b" " * 5_000_000))
        assert [(each.line, each.count) for each in log.findings] == [(2, 1)]
        assert len(log.findings[0].text) <= MOST_LINE
        letters = [chr(97 + i) + chr(97 + j) + chr(97 + k) for i in range(12) for j in range(12) for k in range(12)]
        log = read(io.BytesIO("\n".join(f"Error: {word}" for word in letters).encode()))
        assert len(log.findings) == MOST_FINDINGS
        assert log.more == len(letters) - MOST_FINDINGS
        assert time.process_time() - start < 20

    @pytest.mark.parametrize(
        "text",
        [
            *("error " * 3000, "'" * 16_000, "while running " * 1100, "(" * 16_000, "8" * 16_000),
            *("Error: " + "a" * 16_000, "Error: " + "z" * 16_000, "[E" * 8000, "E " * 8000, "DmlOperator" * 1500),
            *("DmlOperator" * 1450 + " 80070057", "memory pattern is not supported " * 500),
        ],
    )
    def test_no_pattern_takes_long(self, text):
        """No time that is quadratic in the length of a line: ten long ones."""
        start = time.process_time()
        found(f"{text}\n" * 10)
        assert time.process_time() - start < 2

    def test_lines_that_differ_in_numbers_are_of_one_shape(self):
        lines = [f"Error: at 0x{number:08x} in face{number} of foo.pb.cc({number})" for number in range(1, 900, 100)]
        found_places = [(each.count, each.place) for each in found("\n".join(lines))]
        assert found_places == [(len(lines), "pb.cc:1")]


class TestCommand:
    LOG = (
        "Non-zero status code returned while running Split node. Name:'split' Status Message: D:\\a\\AbiCustomRegistry."
        "cpp(519)\\onnxruntime.dll!00007FF9: Exception(3) tid(1) 80070057 The parameter is incorrect.\n"
        "Some nodes were not assigned to the preferred execution providers which may\n"
        "cannot use the graph capture feature as requested\nHResult=0x80131500\n"
    )

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "app.log").write_text(self.LOG)

    def json(self, capsys, *words):
        status = main(["explain-log", "app.log", "--format", "json", *words])
        out, err = capsys.readouterr()
        assert err == ""
        return status, json.loads(out)

    def test_text(self, capsys):
        assert main(["explain-log", "app.log"]) == 1
        out, err = capsys.readouterr()
        assert err == ""
        lines = out.splitlines()
        assert lines[0].startswith("app.log:1: kernel-not-created 80070057 E_INVALIDARG at AbiCustomRegistry.cpp:519: ")
        (source,) = [message.source for message in MESSAGES if message.id == "kernel-not-created"]
        assert f"  source: {source}" in lines
        assert f"  next: dmlsplit check MODEL.onnx --onnxruntime {NEWEST.version}" in lines
        assert "app.log:4: unknown with 80131500 COR_E_EXCEPTION: HResult=0x80131500" in lines
        assert lines[-1] == "4 lines: 3 known messages, 1 unknown"

    def test_warnings_alone_are_status_0(self, capsys):
        Path("app.log").write_text("Some nodes were not assigned to the preferred execution providers\n")
        assert self.json(capsys)[0] == 0

    def test_a_model_explains_or_rules_out(self, capsys):
        onnx = pytest.importorskip("onnx")
        from tests.formats.onnx_graphs import models

        gate = models.gate({"class": "A", "model": "sigmoid(b)*a", "set": "battery"})
        onnx.save(gate, "gate.onnx")
        status, found = self.json(capsys, "--model", "gate.onnx", "--onnxruntime", "1.24.4")
        by_model = {each["message"]: each["by_model"] for each in found["findings"]}
        assert by_model == {
            "kernel-not-created": "explained",  # by the fault of its graph
            "nodes-on-the-cpu": "ruled out",
            "capture-refused": "ruled out",
            None: None,
        }
        assert status == 1
        assert [error["rule"] for error in found["errors"]] == ["graph/fused-wrongly"]
        assert found["findings"][0]["next"] == "dmlsplit check gate.onnx --onnxruntime 1.24.4"

    @pytest.mark.parametrize(
        ("node", "is_another", "said"),
        [
            ("split", False, "is a node of the file: DML"),
            ("split/fused", False, "is not a node of the file: optimization created it"),
            ("DmlFusedNode_0_0", False, "is not a node of the file: optimization created it"),
            ("/encoder/Conv", True, "is not a node of the file: the log may be of another model"),
            (None, None, None),
        ],
    )
    def test_a_log_of_another_model(self, capsys, node, is_another, said):
        onnx = pytest.importorskip("onnx")
        from tests.models import model, value
        from tests.models import node as node_of

        cut = node_of("Split", ["x"], ["a", "b"], axis=1, name="split")
        onnx.save(model([cut], [value("x", [1, 4])], [value("a", None)], opset=13, ir_version=8), "m.onnx")
        at = f" Non-zero status code returned while running Split node. Name:'{node}' Status Message:" if node else ""
        Path("app.log").write_text(
            f"[E:onnxruntime:, sequential_executor.cc:1]{at} AbiCustomRegistry.cpp(518): 80070057\n"
        )
        assert self.json(capsys, "--model", "m.onnx")[1]["of_another_model"] is is_another
        main(["explain-log", "app.log", "--model", "m.onnx"])
        lines = capsys.readouterr().out.splitlines()
        assert ("app.log: is not a log of m.onnx: none of the nodes that it names is in the model" in lines) is (
            is_another is True
        )
        assert said is None or f"  model: {node} {said}" in lines

    def test_standard_input(self, capsys, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(REMOVED)))
        assert main(["explain-log", "-"]) == 1
        assert "standard input:1: device-removed 887A0005" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["missing.log"], "missing.log: No such file"),
            (["."], ".: Is a directory"),
            (["app.log", "--model", "missing.onnx"], "missing.onnx: No such file"),
            (["app.log", "--model", "app.log"], "app.log: "),
            (["app.log", "--onnxruntime", "9"], "'9'"),
        ],
    )
    def test_a_users_mistake_is_one_line(self, words, said, capsys):
        assert main(["explain-log", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err

    def test_colours_are_no_part_of_a_line(self, capsys):
        line = "[E:onnxruntime:, a.cc:1] AbiCustomRegistry.cpp(518): "
        Path("app.log").write_text(f"\x1b[1;31m{line}\x1b[0;93m80070057\x1b[m\n")
        assert main(["explain-log", "app.log"]) == 1
        first, *_, last = capsys.readouterr().out.splitlines()
        assert first == (
            f"app.log:1: kernel-not-created 80070057 E_INVALIDARG at AbiCustomRegistry.cpp:518: {line}80070057"
        )
        assert last == "1 line: 1 known message, 0 unknown"

    def test_escape_codes_are_shown(self, capsys):
        Path("app.log").write_bytes(b"Error: \x1b[31m::error::x\x07 \xc2\x9b\n::error title=x::Error: y\n")
        main(["explain-log", "app.log"])
        out = capsys.readouterr().out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)
        assert not any(line.startswith("::") for line in out.splitlines())

    def test_asks_have_answers(self):
        from dmlsplit.checking.log_findings import _ANSWERS

        assert set(_ANSWERS) == set(Asks)
