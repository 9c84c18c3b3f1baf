"""What a baseline knows, and what stays new in spite of it."""

import json

import pytest

from tests.cli.conftest import BAD, GOOD, HOSTILE, MALFORMED, WARNED


def model(**operators):
    return json.dumps({"dispatchables": {name: json.loads(text) for name, text in operators.items()}}, indent=1)


@pytest.fixture
def check(cli, tmp_path):
    """Writes files, runs check, and gives status and the rules reported."""

    def check(files, *args):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        status, out, err = cli("check", *files, "--format", "jsonl", *args)
        rules = [d["rule"] for line in out.splitlines() for d in json.loads(line)["diagnostics"]]
        return status, rules, err

    return check


SUM, BEYOND = "split/axis-sizes-sum", "split/outputs-beyond-count"


def test_only_what_is_new_counts(check):
    assert check({"a.json": model(x=BAD, y=WARNED)}, "--write-baseline", "known.json") == (0, [SUM, BEYOND], "")
    known = ("--baseline", "known.json", "--fail-on", "warning")
    assert check({"a.json": model(x=BAD, y=WARNED)}, *known) == (0, [], "")
    assert check({"a.json": "\n\n" + model(z=GOOD, y=WARNED, x=BAD)}, *known) == (0, [], "")
    assert check({"a.json": model(x=BAD, y=WARNED, z=BAD)}, *known) == (1, [SUM], "")
    assert check({"a.json": model(x=BAD, y=WARNED), "b.json": BAD}, *known) == (1, [SUM], "")
    other = BAD.replace('"Sizes": [1, 1, 2, 2]', '"Sizes": [1, 1, 1, 2]')
    assert other != BAD
    assert check({"a.json": model(x=other, y=WARNED)}, *known)[0] == 1
    assert check({"a.json": model(x=BAD, y=WARNED)}, *known, "--directml", "1.8.0")[0] == 1


def test_equal_ones_are_counted(check):
    check({"a.jsonl": f"{BAD}\n{GOOD}\n{BAD}\n"}, "--write-baseline", "known.json")
    assert check({"a.jsonl": f"{GOOD}\n{BAD}\n\n{BAD}\n"}, "--baseline", "known.json")[:2] == (0, [])
    assert check({"a.jsonl": f"{BAD}\n{BAD}\n{BAD}\n"}, "--baseline", "known.json")[:2] == (1, [SUM])


def test_one_that_is_not_there_yet(check, tmp_path):
    """A project may name its baseline before it has one: the run that writes it needs none."""
    status, _, err = check({"a.json": BAD}, "--baseline", "known.json")
    assert (status, err) == (2, "dmlsplit: known.json: does not exist; check --write-baseline writes it\n")
    assert check({}, "a.json", "--baseline", "known.json", "--write-baseline", "other.json")[0] == 2
    assert not (tmp_path / "other.json").exists()
    (tmp_path / "dmlsplit.toml").write_text('baseline = "known.json"')
    assert check({}, "a.json", "--write-baseline", "known.json") == (0, [SUM], "")
    assert check({}, "a.json") == (0, [], "")


def test_the_verdict_stays(cli, check, tmp_path):
    check({"a.json": BAD}, "--write-baseline", "known.json")
    out = cli("check", "a.json", "--baseline", "known.json").out
    assert out.splitlines()[0].startswith("a.json:1:1: not ok")
    assert out.splitlines()[-1] == "1 operator: 1 not ok; in the baseline: 1 error"


def test_files_are_relative_to_the_baseline(check, cli, tmp_path, monkeypatch):
    check({"sub/a.json": BAD}, "--write-baseline", "known.json")
    assert json.loads((tmp_path / "known.json").read_text())["diagnostics"][0]["file"] == "sub/a.json"
    assert cli("check", str(tmp_path / "sub" / "a.json"), "--baseline", "known.json").status == 0
    monkeypatch.chdir(tmp_path / "sub")
    assert cli("check", "./a.json", "--baseline", "../known.json").status == 0


def test_the_file_does_not_depend_on_order(check, tmp_path):
    written = []
    for operators in ({"x": BAD, "y": WARNED, "z": BAD}, {"z": BAD, "y": WARNED, "x": BAD}):
        check({"a.json": model(**operators)}, "--write-baseline", "known.json")
        written.append((tmp_path / "known.json").read_text())
    assert written[0] == written[1]
    assert [list(entry) for entry in json.loads(written[0])["diagnostics"]] == [
        ["file", "name", "judged_by", "rule", "path", "expected", "actual", "count"]
    ] * 3


def test_updating_drops_what_is_gone(check, tmp_path):
    both = ("--baseline", "known.json", "--write-baseline", "known.json")
    check({"a.json": model(x=BAD, y=WARNED)}, "--write-baseline", "known.json")
    assert check({"a.json": model(y=WARNED, z=BAD)}, *both) == (0, [SUM], "")
    names = [entry["name"] for entry in json.loads((tmp_path / "known.json").read_text())["diagnostics"]]
    assert names == ["y", "z"]
    assert check({"a.json": GOOD}, *both)[0] == 0
    assert json.loads((tmp_path / "known.json").read_text()) == {"schema": 1, "diagnostics": []}


def test_what_cannot_be_read_is_never_known(check, tmp_path):
    status, rules, _ = check({"a.json": MALFORMED}, "--write-baseline", "known.json")
    assert (status, rules) == (2, ["input/malformed"])
    assert check({"a.json": MALFORMED}, "--baseline", "known.json")[0] == 2
    assert json.loads((tmp_path / "known.json").read_text())["diagnostics"] == []


def test_hostile_names_come_back(check):
    content = model(**{HOSTILE: BAD})
    check({"a.json": content}, "--write-baseline", "known.json")
    assert check({"a.json": content}, "--baseline", "known.json")[:2] == (0, [])


ENTRY = {
    "file": "a.json", "name": None, "judged_by": "directml 1.15.4", "rule": SUM, "path": "", "expected": 1, "actual": 1,
    "count": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "known.json: does not exist"),
        ("", "known.json:1:1: the text is empty"),
        ("[]", "expected an object, not an array"),
        ("{}", "Field 'schema' is required."),
        ('{"schema": 2, "diagnostics": []}', "known.json:1:12: a baseline of schema 2; this dmlsplit reads schema 1"),
        ('{"schema": 1, "diagnostics": {}}', "expected an array, not an object"),
        ('{"schema": 1, "diagnostics": [5]}', "known.json:1:31: expected an object, not 5"),
        *[
            (json.dumps({"schema": 1, "diagnostics": [{**ENTRY, key: value}]}), f"{key}: expected")
            for key, value in {"file": 1, "name": 1, "count": -1, "expected": [], "actual": True}.items()
        ],
        (json.dumps({"schema": 1, "diagnostics": [{"file": "a"}]}), "Field 'name' is required."),
    ],
)
def test_what_is_no_baseline(check, tmp_path, content, message):
    if content is not None:
        (tmp_path / "known.json").write_text(content)
    status, rules, err = check({"a.json": GOOD}, "--baseline", "known.json")
    assert (status, rules) == (2, [])
    assert message in err
    assert err.count("\n") == 1


def test_an_input_is_not_replaced(check, tmp_path):
    status, _, err = check({"a.json": BAD}, "--write-baseline", "a.json")
    assert (status, err.split(" (")[0]) == (2, "dmlsplit: a.json would replace an input file")
    assert (tmp_path / "a.json").read_text() == BAD
