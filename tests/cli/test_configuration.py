"""dmlsplit.toml and pyproject.toml: defaults of check, settings of single files, and clear errors."""

import errno
import json
import os
import re
import tomllib

import jsonschema
import pytest

from dmlsplit.checking import configuration, settings
from tests.cli.conftest import BAD, GOOD, INT64, posix


def judges(result):
    return [json.loads(line)["judged_by"] for line in result.out.splitlines()]


@pytest.fixture
def check(cli, tmp_path):
    """Checks a.json with a configuration."""

    def run(text, *args, name="dmlsplit.toml", content=GOOD):
        (tmp_path / name).write_text(text)
        (tmp_path / "a.json").write_text(content)
        return cli("check", "a.json", "--format", "jsonl", *args)

    return run


def test_targets(check):
    assert judges(check('feature-level = "3_0"')) == ["feature level 3_0"]
    assert judges(check('directml = ["1.8.0", "1.15.4"]')) == ["directml 1.8.0", "directml 1.15.4"]
    assert judges(check('feature-level = "3_0"', "--directml", "1.8.0")) == ["directml 1.8.0"]
    assert judges(check('directml = "1.8.0"', "--feature-level", "4_1")) == ["feature level 4_1"]


def test_windows(check):
    assert judges(check('windows = "11-22H2"')) == ["Windows 11 22H2 (directml 1.8.0)"]
    assert judges(check('windows = ["10-22H2", "11-24H2"]', "--windows-ml", "2.1")) == [
        "Windows ML 2.1.71 (onnxruntime 1.24.6)"
    ]
    assert judges(check('windows-ml = "2.6"\nwindows = "10-22H2"')) == [
        "Windows 10 22H2 (directml 1.1.0: feature level 2_0, documented)",
        "Windows ML 2.6.74-rc (onnxruntime 1.30.0)",
    ]
    both = 'onnxruntime = ["1.24.4", "1.30.0"]\nwindows = ["10-22H2"]'
    assert judges(check(both)) == [
        f"onnxruntime {v} over Windows 10 22H2 (directml 1.1.0)" for v in ("1.24.4", "1.30.0")
    ]
    for text in ('windows = "10-1809"', 'windows = "13"', 'windows-ml = "1.8"'):
        refused = check(text)
        assert (refused.status, refused.err.count("\n")) == (2, 1)
        assert "dmlsplit.toml: " in refused.err


def test_pyproject(check):
    text = '[project]\nname = "x"\n[tool.dmlsplit]\nfeature-level = "3_0"\n'
    assert judges(check(text, name="pyproject.toml")) == ["feature level 3_0"]
    assert check(text, content=INT64, name="pyproject.toml").status == 1
    assert judges(check("[tool.other]\n", name="pyproject.toml")) == ["directml 1.15.4"]


def test_the_nearest_one_counts(check, cli, tmp_path, monkeypatch):
    check('feature-level = "3_0"')
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    assert judges(cli("check", "../a.json", "--format", "jsonl")) == ["feature level 3_0"]
    (tmp_path / "inside" / "dmlsplit.toml").write_text("")
    assert judges(cli("check", "../a.json", "--format", "jsonl")) == ["directml 1.15.4"]
    assert judges(cli("check", "../a.json", "--format", "jsonl", "--config", "../dmlsplit.toml")) == [
        "feature level 3_0"
    ]


def test_rules(check):
    assert check("", content=BAD).status == 1
    assert check('ignore = ["split/"]', content=BAD).status == 0
    assert check('ignore = ["split/"]', "--ignore", "tensor/", content=BAD).status == 1  # in its place
    assert check('select = ["tensor/"]', content=BAD).status == 0
    assert check('[per-file-ignores]\n"a.*" = ["split/axis-sizes-sum"]', content=BAD).status == 0
    assert check('[per-file-ignores]\n"b.*" = ["split/axis-sizes-sum"]', content=BAD).status == 1


def test_patterns_are_relative_to_the_file(cli, tmp_path, monkeypatch):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.json").write_text(BAD)
    (tmp_path / "dmlsplit.toml").write_text('[per-file-ignores]\n"old/*" = ["split/"]')
    monkeypatch.chdir(tmp_path / "old")
    assert cli("check", "a.json", "--jobs", "2").status == 0


def test_baseline_and_severity(check, cli, tmp_path):
    (tmp_path / "a.json").write_text(BAD)
    assert cli("check", "a.json", "--write-baseline", "known.json").status == 0
    assert check('baseline = "known.json"', content=BAD).status == 0
    assert check('fail-on = "warning"').status == 0


def test_shapes_of_models(cli, tmp_path):
    pytest.importorskip("onnx")
    from tests.models import model, node, value

    cut = node("Split", ["x"], ["a", "b"], name="cut", axis=1)
    made = model([cut], [value("x", ["n", "c"])], ["a", "b"], opset=11)
    for name in ("one", "two"):
        (tmp_path / f"{name}.onnx").write_bytes(made.SerializeToString())

    def shapes(text, *args):
        (tmp_path / "dmlsplit.toml").write_text(text)
        said = cli("check", "one.onnx", "two.onnx", *args).out
        return ["1,4" in said.replace(" ", ""), "1,6" in said.replace(" ", "")]

    assert shapes("[shapes]\nx = [1, 4]") == [True, False]
    assert shapes('[models."one.onnx".shapes]\nx = [1, 4]\n[models."two*".dims]\nn = 1\nc = 6') == [True, True]
    assert shapes("[shapes]\nx = [1, 4]", "--shape", "x:1,6") == [False, True]


@pytest.mark.parametrize("suffix", ["onnx", "xml"])
def test_a_shape_that_contradicts_the_model_names_the_file_that_gives_it(cli, tmp_path, suffix):
    path = tmp_path / f"m.{suffix}"
    if suffix == "onnx":
        pytest.importorskip("onnx")
        from tests.models import model, node, value

        cut = node("Split", ["data"], ["a", "b"], name="cut", axis=1)
        made = model([cut], [value("data", [6, "c"])], ["a", "b"], opset=11)
        path.write_bytes(made.SerializeToString())
    else:
        pytest.importorskip("defusedxml")
        from tests.formats.hostile_ir import XML, write

        write(tmp_path, XML)
    for shape in ([1, 2, 3], [7, 4], [1] * 3000):
        (tmp_path / "dmlsplit.toml").write_text(f"shapes = {{data = {shape}}}")
        result = cli("check", path.name)
        assert result.status == 2
        assert result.err.startswith(f"dmlsplit: {path.name}:")
        assert str(tmp_path / "dmlsplit.toml") in result.err
        assert result.err.count("\n") == 1
        assert len(result.err) < 600
        given = "data:" + ",".join(map(str, shape))
        assert "dmlsplit.toml" not in cli("check", path.name, "--shape", given).err


WRONG = {
    "feature-level = 3": "feature-level is 3; a text is expected",
    'featurelevel = "3_0"': "featurelevel is not a setting; did you mean feature-level?",
    'feature-level = "99"': "99",
    'ignore = "tensor/"': "ignore is 'tensor/'; a list of texts is expected",
    'ignore = ["tensor/sizes"]': "there is no rule 'tensor/sizes'",
    '[per-file-ignores]\n"a" = ["none"]': "per-file-ignores: there is no rule 'none'",
    "[dims]\nn = -1": "dims is {'n': -1}; a table of sizes",
    "[dims]\nn = true": "a table of sizes",
    '[shapes]\nx = "1,2"': "a table of shapes",
    '[models."a"]\nshape = 1': "models.'a'.shape is not a setting; did you mean shapes?",
    "[models]\na = 1": "a table of tables",
    'baseline = "a\\u0000"': "baseline is 'a\\x00'; a path is expected",
    'fail-on = "note"': '"error", "warning", "unknown" or a list of these is expected',
    "a = \nb = 1": ":1:5: is not TOML",
    "a = '\x00'": "is not TOML",
    "dims = {batch = 0x8000000000000000}": "a table of sizes",
}

BEYOND = {
    f"fail-on = 0x{'f' * 10_000}": "fail-on is beyond what can be shown",
    f"dims = {{batch = 0x{'f' * 10_000}}}": "a table of sizes",
    f"{'long' * 10_000} = 1": "is not a setting",
    f"ignore = '{'long' * 10_000}'": "a list of texts is expected",
    f"select{'.a' * 15} = 1": "a list of texts is expected",
    f"{'[' * 2000}": "is not TOML",
    f"dims = {'{a=' * 2000}": "is not TOML",
}
"""Too large, or too deep, for a schema."""


@pytest.mark.parametrize("text", [*WRONG, *BEYOND], ids=lambda text: text[:30])
def test_errors_name_the_file(check, text):
    result = check(text)
    assert (result.status, result.out) == (2, "")
    assert "dmlsplit.toml" in result.err
    assert {**WRONG, **BEYOND}[text] in result.err
    assert result.err.count("\n") == 1
    assert len(result.err) < 600


LONG_KEYS = {
    "bare": "a" + ".a" * 30_000 + " = 1",
    "spaced": "a" + " . a" * 30_000 + " = 1",
    "quoted": '"a.b"' + '."a\\".b"' * 20_000 + " = 1",
    "literal": "'a'" + ".'='" * 20_000 + " = 1",
    "table": "[" + "a." * 30_000 + "b]",
    "inline": "x = { a" + ".b" * 30_000 + " = 1 }",
    "of models": "[models" + ".a" * 17 + "]\nx = 1",
}


@pytest.mark.parametrize("text", LONG_KEYS.values(), ids=LONG_KEYS)
def test_keys_that_tomllib_takes_long_for_are_refused_before(check, text, monkeypatch):
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    result = check(f"\n{text}")
    assert (result.status, result.out) == (2, "")
    assert "dmlsplit.toml:2: joins more than 16 keys with dots" in result.err


HARMLESS = {
    "dots in texts": 'directml = ["1.8.0", "1.10.1"]\nignore = []  # a.b.c.d.e.f.g.h.i.j.k',
    "no keys": "# " + "a" * 100_000,
    "quotes": "#" + '"' * 100_000,
    "escapes": '#"' + "\\" * 100_000,
    "escaped quotes": '#"' + '\\"' * 100_000,
    "escaped quotes in keys": '# "a' + '\\".' * 60_000,
    "dots": "#" + "." * 100_000,
    "spaces": "# a" + " " * 100_000 + "b",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_the_search_for_long_keys_takes_time_with_the_size(text):
    """A quadratic one would take minutes."""
    assert re.search(configuration._LONG_KEY, text * 2) is None


@pytest.mark.parametrize("name", ["dmlsplit.toml", "pyproject.toml"])
def test_a_file_beyond_the_limit_is_not_parsed(check, name):
    result = check("#" * (2**18 + 1) + "\n[tool.dmlsplit]", name=name)
    assert (result.status, result.out) == (2, "")
    assert f"{name}: is larger than 262144 bytes" in result.err


def test_a_pyproject_that_does_not_name_us_is_not_parsed(check):
    assert judges(check("no toml at all" + "#" * 2**19, name="pyproject.toml")) == ["directml 1.15.4"]


@pytest.mark.parametrize("key", ["[" * 17, "x" * 1025])
@pytest.mark.parametrize("table", ["models", "per-file-ignores"])
def test_patterns_have_a_limit(check, key, table):
    result = check(f'[{table}]\n"{key}" = {"{}" if table == "models" else "[]"}')
    assert (result.status, result.out) == (2, "")
    assert "has more than 1024 characters" in result.err


@posix
def test_a_pipe_is_no_configuration(cli, tmp_path):
    (tmp_path / "good.json").write_text(GOOD)
    os.mkfifo(tmp_path / "pipe")
    assert cli("check", "good.json").status == 0
    assert "it is not a regular file" in cli("check", "good.json", "--config", "pipe").err
    (tmp_path / "dmlsplit.toml").symlink_to(tmp_path / "pipe")
    assert "it is not a regular file" in cli("check", "good.json").err


def test_a_link_that_leads_nowhere_is_no_missing_file(cli, tmp_path):
    (tmp_path / "good.json").write_text(GOOD)
    (tmp_path / "dmlsplit.toml").symlink_to(tmp_path / "gone")
    result = cli("check", "good.json")
    assert result.status == 2
    assert "dmlsplit.toml: No such file or directory" in result.err


def test_no_configuration_in_the_file_given(check):
    result = check("", "--config", "pyproject.toml")
    assert result.status == 2
    (line,) = result.err.splitlines()
    assert "pyproject.toml" in line


@pytest.mark.parametrize("text", WRONG)
def test_the_schema_says_the_same(text):
    """Of what a schema can say: names of rules and targets are not in it."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    faults = list(jsonschema.Draft202012Validator(settings.SCHEMA).iter_errors(table))
    assert bool(faults) is ("there is no rule" not in WRONG[text] and WRONG[text] != "99")


def test_the_schema_takes_what_is_right():
    text = 'directml = ["1.8.0"]\n[shapes]\nx = [1, "?"]\n[models."a*".dims]\nn = 0\n[per-file-ignores]\n"*" = []'
    jsonschema.Draft202012Validator.check_schema(settings.SCHEMA)
    jsonschema.validate(tomllib.loads(text), settings.SCHEMA)


@pytest.mark.parametrize("key", ["feature-level", "directml", "onnxruntime"])
def test_a_value_of_any_length_is_a_short_line(cli, tmp_path, key):
    (tmp_path / "dmlsplit.toml").write_text(f'{key} = "{"x" * 100_000}"\n')
    (tmp_path / "a.json").write_text(GOOD)
    status, _, err = cli("check", "a.json")
    assert (status, err.count("\n")) == (2, 1)
    assert len(err) < 1000


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that cannot be read")
def test_a_file_that_cannot_be_read_is_named(cli, tmp_path):
    (tmp_path / "a.json").write_text(GOOD)
    for option in ("--config", "--baseline"):
        status, _, err = cli("check", "a.json", option, "/proc/self/mem")
        assert (status, err) == (2, f"dmlsplit: /proc/self/mem: {os.strerror(errno.EIO)}\n")
