"""JSON text as DxDispatch takes it: extras, positions, and what is refused, with its place."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlsplit.formats import jsontext
from dmlsplit.formats.jsontext import MAX_DEPTH, JsonText, shown
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.spelling import nearest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("// first\n[1, 2]", [1, 2], id="line-comment"),
        pytest.param("[1, 2] // last", [1, 2], id="line-comment-at-end"),
        pytest.param('/* a\n b */ {"a"/**/:/*,*/1}', {"a": 1}, id="block-comments"),
        pytest.param("[1, 2, ]", [1, 2], id="trailing-comma-array"),
        pytest.param('{"a": 1\n,\n}', {"a": 1}, id="trailing-comma-object"),
        pytest.param("[[1,],/*x*/]", [[1]], id="comma-comment-bracket"),
        pytest.param('["// no", "/* no */", ",]", "\\",]",]', ["// no", "/* no */", ",]", '",]'], id="not-in-strings"),
        pytest.param(b"\xef\xbb\xbf[1]", [1], id="byte-order-mark"),
        pytest.param('"\\ud800"', "\ud800", id="lone-surrogate-kept"),
        pytest.param("[" * MAX_DEPTH + "]" * MAX_DEPTH, None, id="deepest"),
        pytest.param("[" + '"[[[[",' * 100 + "1]", ["[[[["] * 100 + [1], id="brackets-in-strings-are-not-depth"),
    ],
)
def test_accepted(text, value):
    parsed = JsonText(text).value
    assert value is None or parsed == value


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        pytest.param(b"", 1, 1, "empty", id="empty"),
        pytest.param(b" \n ", 1, 1, "empty", id="blank"),
        pytest.param(b'{"a": [1,\n 2', 2, 3, "ends too early", id="truncated"),
        pytest.param(b'{"a', 1, 2, "unterminated string", id="truncated-string"),
        pytest.param(b"[1 /* [", 1, 4, "comment is not closed", id="truncated-comment"),
        pytest.param(b"[,]", 1, 2, "expecting value", id="comma-without-value"),
        pytest.param(b"[/**/,]", 1, 6, "expecting value", id="comma-without-value-comment"),
        pytest.param(b"[1,,]", 1, 4, "", id="two-commas"),
        pytest.param(b'{"a": ,}', 1, 7, "expecting value", id="comma-as-value"),
        pytest.param(b"[1] [2]", 1, 5, "extra data", id="two-documents"),
        pytest.param(b'["\xc3\xa9",\n "\xff"]', 2, 3, "byte 0xFF is not UTF-8", id="not-utf-8"),
        pytest.param('["é"]'.encode("utf-16"), 1, 1, "UTF-16", id="utf-16"),
        pytest.param('["é"]'.encode("utf-16-le"), 1, 1, "UTF-16", id="utf-16-without-mark"),
        pytest.param(b'{"x": 1, // {\n "y": {"a": 1, "a": 2}}', 2, 16, "duplicate key 'a'", id="duplicate-key"),
        pytest.param(b'{"a": 1, "\\u0061": 2}', 1, 10, "duplicate key 'a'", id="duplicate-key-escaped"),
        pytest.param(b'{"a":{"b":1},"c":[{"b":1}],"a":2}', 1, 28, "duplicate key 'a'", id="duplicate-outer-key"),
        pytest.param(b"[" * 200_000, 1, MAX_DEPTH + 1, "levels deep", id="too-deep"),
        pytest.param(b'{"a":' * 1000 + b"1" + b"}" * 1000, 1, 5 * MAX_DEPTH + 1, "levels deep", id="too-deep-objects"),
        pytest.param(b'["11", ' + b"9" * 1_000_000 + b"]", 1, 8, "too many digits", id="million-digits"),
        pytest.param(b'["NaN", NaN]', 1, 9, "NaN is not a JSON number", id="nan"),
        pytest.param(b"[-Infinity]", 1, 2, "-Infinity", id="infinity"),
        pytest.param(b'["1e400",\n 1E400]', 2, 2, "the number 1E400 is out of the range", id="large"),
        pytest.param(b"/* 1e4 */ [-1e4, -1e400,]", 1, 18, "the number -1e400 is out", id="large among extras"),
        pytest.param(b"[" + b"1" * 400 + b".5]", 1, 2, "11...11111111.5 is out of the range", id="large and long"),
        pytest.param(b'["\x01"]', 1, 3, "control character", id="control-character"),
        pytest.param(b"[1]\0", 1, 4, "extra data", id="nul"),
    ],
)
def test_refused(text, line, column, message):
    with pytest.raises(InputError) as caught:
        JsonText(text, file="f.json")
    error = caught.value
    assert (error.file, error.line, error.column) == ("f.json", line, column)
    assert message in error.message


def test_positions():
    text = JsonText('{ // é\n  "é": [10, {"b" : "x"}],\r\n\t"c":\n null,\n}')
    assert text.position(()) == (1, 1)
    assert text.position(("é",)) == (2, 8)
    assert text.position(("é", 0)) == (2, 9)
    assert text.position(("é", 1, "b")) == (2, 20)
    assert text.position(("c",)) == (4, 2)


@pytest.mark.parametrize("path", [("é", 9), ("é", "b"), ("é", 0, "z")], ids=repr)
def test_position_of_an_absent_member_is_the_nearest_around_it(path):
    text = JsonText('{"é": [10]}')
    assert text.position(path) == (text.position(("é", 0)) if path[:2] == ("é", 0) else text.position(("é",)))


def test_first_line():
    assert JsonText("[1]", first_line=7).position((0,)) == (7, 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def _members(value, path=()):
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _members(item, (*path, key))


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_every_member_is_found(value, indent, ascii_only):
    source = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    text = JsonText(source)
    assert text.value == value
    lines = source.split("\n")
    for path, member in _members(value):
        line, column = text.position(path)
        rest = "\n".join(lines[line - 1 :])[column - 1 :]
        assert json.JSONDecoder().raw_decode(rest)[0] == member


@given(st.binary(max_size=60) | st.text('[]{},:"/*\\ntrue1 ', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    with suppress(InputError):
        JsonText(data)


def test_hostile_text_takes_linear_time():
    for pattern in ('"\\', "/*", "[ ", ",", ", ", "//\n", '"', '{"a":[1,', "[/**/"):
        with pytest.raises(InputError):
            JsonText(pattern * 100_000)
        with pytest.raises(InputError):
            JsonText("[]" * 200 + pattern * 100_000)


def test_arrays_and_objects_are_counted(monkeypatch):
    monkeypatch.setattr(jsontext, "MAX_NODES", 3)
    assert JsonText("[[], {}]").value == [[], {}]
    with pytest.raises(InputError, match="1:1: there are more than 3 arrays and objects"):
        JsonText("[[], {}, []]")


def test_comments_are_counted(monkeypatch):
    monkeypatch.setattr(jsontext.Limit.JSON_COMMENTS, "most", 3)
    assert JsonText('/**/ ["http://a"] // b').value == ["http://a"]
    with pytest.raises(InputError, match=r"^1:1: there are more than 3 comments$"):
        JsonText('/**/ ["http://a"] // b //')


def test_the_deepest_place_is_found_behind_strings_and_comments():
    text = '["[", /* [[ */ ' + "[" * (jsontext.MAX_DEPTH - 1) + '"]\\"", ['
    with pytest.raises(InputError, match="nested more than 128 levels deep") as caught:
        JsonText(text)
    assert caught.value.column == len(text)


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("plain é 文", "plain é 文"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\u202e", "a\\nb\\u202e"),
        ("\ud800", "\\ud800"),
    ],
    ids=["plain", "escape-code", "newline-and-bidi", "surrogate"],
)
def test_printable(text, harmless):
    assert printable(text) == harmless
    printable(text).encode("utf-8")


def test_shown_is_short():
    for value in ("x" * 10_000, 10**4000, list(range(10_000)), {"a": 1}, None, True, 1.5):
        assert len(shown(value)) < 80


def test_a_long_name_has_no_neighbour():
    """A thousand different characters, each a thousand times: comparing two of these takes hours."""
    name = "".join(map(chr, range(1000, 2000))) * 1000
    assert nearest("resourcee", ["resource", "x"]) == "resource"
    assert nearest(name, [f"{name}x"]) is None
