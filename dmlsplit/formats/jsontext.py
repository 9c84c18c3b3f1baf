"""Parses JSON text as DxDispatch does, and finds the line and column of any value on demand.

It accepts more than RFC 8259: `//` and `/* */` comments and trailing commas, which DxDispatch enables in RapidJSON
(kParseCommentsFlag, kParseTrailingCommasFlag; but not kParseNanAndInfFlag, so NaN and Infinity are errors). It is
stricter than DxDispatch: duplicate keys (of which DxDispatch takes the first) and text after the document (which it
does not read) are errors.
"""

from __future__ import annotations

import io
import json
import math
import re
from array import array
from bisect import bisect_right
from functools import cached_property
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in CPython, absent from typeshed
from typing import Any, BinaryIO, Final, NoReturn, TypeAlias

from dmlsplit.descriptors.diagnostics import Position
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError, naming
from dmlsplit.system.input_files import open_input, read_at_most
from dmlsplit.system.printable import printable

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the top-level value to a member."""

MAX_BYTES: Final = Limit.JSON_TEXT.most
MAX_NODES: Final = Limit.JSON_NODES.most
MAX_DEPTH: Final = Limit.JSON_DEPTH.most

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+'
"""A string, terminated or not: it is matched whole, so that no pattern matches inside it."""


class _Pattern:
    """A regular expression that is compiled on first use: most texts need none of these."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, re.DOTALL)


_COMMENT = _Pattern(rf"{_STRING}|(?P<comment>/\*(?:.*?\*/|(?P<open>.*))|//[^\n]*)")
_TRAILING_COMMA = _Pattern(rf"{_STRING}|[\[{{,:][ \t\r\n]*+,|(?P<comma>,)(?=[ \t\r\n]*+[\]}}])")
"""The second branch matches a comma that follows no value (`[,]`), which is not a trailing comma."""
_BRACKET = _Pattern(rf'(?:[^"\[\]{{}}]++|{_STRING})*+(?:(?P<open>[\[{{])|(?P<close>[\]}}])|\Z)')
_CONSTANT = _Pattern(rf"{_STRING}|(?P<constant>-?Infinity|NaN)")
_LONG_NUMBER = _Pattern(rf"{_STRING}|(?P<number>-?[0-9]{{600,}})")
"""The lowest limit on digits that CPython can be set to is 640."""
_NUMBER = _Pattern(rf"{_STRING}|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)")
"""A number of JSON, cut as the decoder cuts it: `1e991e99` begins with one."""
_KEY_OR_BRACKET = _Pattern(rf"(?P<string>{_STRING})(?P<key>[ \t\r\n]*+:)?|[\[{{\]}}]")
_SPACE = re.compile(r"[ \t\r\n]*+")
_NOT_NEWLINE = re.compile(r"[^\n]")


class _Refused(Exception):
    """Raised by the decoder's hooks, which do not know the position; the argument is a function that makes the error
    from the text."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused(JsonText._duplicate_key)
    return members


def _constant(name: str) -> NoReturn:
    raise _Refused(lambda text: text._error(text._find(_CONSTANT), f"{name} is not a JSON number"))


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Refused(lambda json_text: json_text._too_large(text))
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def shown(value: object) -> str:
    """Returns a JSON value as text for messages: short, on one line and printable; objects and arrays only as "an
    object", "an array"."""
    if isinstance(value, str):
        return f"'{printable(value, 60)}'"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, int) and not -(10**40) < value < 10**40:
        return "a number of more than 40 digits"
    return json.dumps(value)


def read_bounded(stream: BinaryIO) -> bytes:
    """Returns all bytes of a stream of JSON text. Raises InputError if there are more than MAX_BYTES, OSError if
    reading fails."""
    data = read_at_most(stream, MAX_BYTES)
    if data is None:
        raise InputError(f"the text is longer than {MAX_BYTES} bytes, the limit for JSON")
    return data


def read_line(stream: BinaryIO, number: int) -> bytes:
    """Returns line `number`, the next one, of a stream with its line end; b"" at the end of the stream. Raises
    InputError if the line exceeds MAX_BYTES, OSError if reading fails."""
    line = stream.readline(MAX_BYTES + 1)
    if len(line) > MAX_BYTES:
        message = f"the line is longer than {MAX_BYTES} bytes, the limit for JSON; the rest is not read"
        raise InputError(message, line=number, column=1)
    return line


class JsonText:
    """A parsed JSON document: `value`, and the position of each member in the text.

    `source` is bytes (UTF-8, with or without a byte order mark) or str; `file` names it in errors; `first_line` is the
    number of its first line, if it is a line of a larger file. Raises InputError, with the place, if the text is not
    JSON.
    """

    def __init__(self, source: str | bytes, *, file: str | None = None, first_line: int = 1) -> None:
        self.file = file
        self._first_line = first_line
        self._line_starts: array[int] | None = None
        self._children: dict[int, dict[str | int, int]] = {}
        text = source if isinstance(source, str) else self._decoded(source)
        self._text = text.removeprefix("\ufeff")
        self.value = self._parsed()

    @classmethod
    def of_file(cls, file: str) -> JsonText:
        """Returns the parsed JSON document of a file. Raises InputError if it is malformed or too long, OSError if it
        cannot be read."""
        with naming(file), open_input(file) as stream:
            return cls(read_bounded(stream), file=file)

    def position(self, path: KeyPath) -> Position:
        """Returns line and column (from 1, in code points) of the value at `path`; if the text does not contain it,
        those of the nearest enclosing value."""
        return self._position(self._offset(path))

    def get(self, path: KeyPath) -> object:
        """Returns the parsed value at `path`, which must exist."""
        value: Any = self.value
        for key in path:
            value = value[key]
        return value

    def error(self, path: KeyPath, message: str) -> InputError:
        """Returns, without raising it, an InputError with the line and column of the value at `path`."""
        return self._error(self._offset(path), message)

    def _error(self, offset: int, message: str) -> InputError:
        line, column = self._position(offset)
        return InputError(message, file=self.file, line=line, column=column)

    def _position(self, offset: int) -> Position:
        if self._line_starts is None:
            self._line_starts = array("Q", [0])
            self._line_starts.extend(newline.end() for newline in re.finditer("\n", self._text))
        line = bisect_right(self._line_starts, offset)
        return self._first_line + line - 1, offset - self._line_starts[line - 1] + 1

    # Reading

    def _decoded(self, data: bytes) -> str:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
            message = "the text is UTF-16 or UTF-32; JSON is UTF-8"
            raise InputError(message, file=self.file, line=self._first_line, column=1)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self._text = data[: error.start].decode("utf-8").removeprefix("\ufeff")
            raise self._error(len(self._text), f"byte 0x{data[error.start]:02X} is not UTF-8") from None

    def _parsed(self) -> object:
        nodes = self._text.count("[") + self._text.count("{")
        if nodes > MAX_NODES:
            raise self._error(0, f"there are more than {MAX_NODES} arrays and objects")
        comments = self._text.count("//") + self._text.count("/*")
        if comments > Limit.JSON_COMMENTS.most:
            raise self._error(0, f"there are more than {Limit.JSON_COMMENTS.most} comments")
        if nodes > MAX_DEPTH:
            self._check_depth()
        try:
            return self._decode()
        except json.JSONDecodeError as strict_error:
            relaxed = self._without_extras()
            if relaxed == self._text:
                raise self._syntax_error(strict_error) from None
        self._text = relaxed
        try:
            return self._decode()
        except json.JSONDecodeError as error:
            raise self._syntax_error(error) from None

    def _decode(self) -> object:
        try:
            start = self._skip_space(0)
            value, end = _DECODER.raw_decode(self._text, start)
        except _Refused as refused:
            raise refused.args[0](self) from None
        except json.JSONDecodeError:
            raise
        except ValueError:  # int() refuses to convert more digits than sys.get_int_max_str_digits()
            raise self._error(self._find(_LONG_NUMBER), "the number has too many digits") from None
        end = self._skip_space(end)
        if end != len(self._text):
            raise json.JSONDecodeError("Extra data", self._text, end)
        return value

    def _too_large(self, number: str) -> InputError:
        place = next(match for match in _NUMBER.compiled.finditer(self._text) if match["number"] == number)
        return self._error(place.start(), f"the number {printable(number, 40)} is out of the range of a double")

    def _syntax_error(self, error: json.JSONDecodeError) -> InputError:
        if not self._text.strip():
            return InputError("the text is empty", file=self.file, line=self._first_line, column=1)
        if error.pos >= len(self._text.rstrip()):
            return self._error(error.pos, "the JSON text ends too early")
        return self._error(error.pos, f"not JSON: {error.msg[0].lower()}{error.msg[1:]}")

    def _find(self, pattern: _Pattern) -> int:
        """Returns the offset in the text of the first match of a named group of `pattern`; named groups match only
        outside strings. 0 if none matches."""
        for match in pattern.compiled.finditer(self._text):
            if match.lastgroup is not None:
                return match.start(match.lastgroup)
        return 0

    def _check_depth(self) -> None:
        depth = 0
        # A comment may contain brackets.
        for match in _BRACKET.compiled.finditer(self._without_comments()):
            if match["open"]:
                depth += 1
                if depth > MAX_DEPTH:
                    raise self._error(match.start("open"), f"nested more than {MAX_DEPTH} levels deep")
            elif match["close"]:
                depth -= 1

    def _without_comments(self) -> str:
        def blank(match: re.Match[str]) -> str:
            if match["open"] is not None:
                raise self._error(match.start(), "the comment is not closed")
            comment = match["comment"]
            return match[0] if comment is None else _NOT_NEWLINE.sub(" ", comment)

        return _COMMENT.compiled.sub(blank, self._text) if "/" in self._text else self._text

    def _without_extras(self) -> str:
        """Returns the text with comments and trailing commas replaced by spaces; all other characters keep their
        offsets."""
        return _TRAILING_COMMA.compiled.sub(lambda match: " " if match["comma"] else match[0], self._without_comments())

    def _duplicate_key(self) -> InputError:
        """Returns, without raising it, the error for the first duplicate key. The text before it must be
        well-formed."""
        scopes: list[set[str]] = []
        for match in _KEY_OR_BRACKET.compiled.finditer(self._text):
            if match["string"] is None:
                if match[0] in "[{":
                    scopes.append(set())
                else:
                    scopes.pop()
            elif match["key"] is not None:
                key, _ = scanstring(self._text, match.start() + 1)
                if key in scopes[-1]:
                    return self._error(match.start(), f"duplicate key {shown(key)}")
                scopes[-1].add(key)
        raise AssertionError("the decoder found a duplicate key")

    # Places

    def _skip_space(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        assert match is not None  # it matches the empty string
        return match.end()

    def _offset(self, path: KeyPath) -> int:
        offset = self._skip_space(0)
        for key in path:
            if self._text[offset] not in "[{":
                break
            # Cached, because a report may look up every member of a long array.
            if offset not in self._children:
                self._children[offset] = self._child_offsets(offset)
            if key not in self._children[offset]:
                break
            offset = self._children[offset][key]
        return offset

    def _child_offsets(self, offset: int) -> dict[str | int, int]:
        """Maps each key or index of the object or array that starts at `offset` to the offset of its value."""
        text = self._text
        is_object = text[offset] == "{"
        children: dict[str | int, int] = {}
        at = self._skip_space(offset + 1)
        while text[at] not in "]}":
            key: str | int = len(children)
            if is_object:
                key, at = scanstring(text, at + 1)
                at = self._skip_space(self._skip_space(at) + 1)  # the colon
            children[key] = at
            at = self._next(at)
        return children

    def _next(self, value_offset: int) -> int:
        """Returns the offset of the next key or item after the value at `value_offset`, or that of the closing
        bracket."""
        _, end = _DECODER.raw_decode(self._text, value_offset)
        end = self._skip_space(end)
        return self._skip_space(end + 1) if self._text[end] == "," else end


def is_lines(data: bytes) -> bool:
    """True if any line is a JSON object by itself. A malformed document has no such line, and therefore gives one
    error, not one for each line."""
    for line in io.BytesIO(data):
        if line.lstrip().startswith(b"{"):
            try:
                JsonText(line)
            except InputError:
                continue
            return True
    return False
