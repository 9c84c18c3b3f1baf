"""Reads the lines of a log, and finds the known messages in them.

Lines with the same message, place and node are one finding. A line that has the form of an error and matches no message
is a finding without one; all other lines are skipped.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from dmlsplit.logs.codes import NAMES, SENTENCES, named
from dmlsplit.logs.fragments import Lines, fragments_of, has_one
from dmlsplit.logs.messages import MESSAGES, PATTERNS, Message

MOST_LINE: Final = 16_384
"""The most characters of a line that are read; the rest of a longer one is skipped."""
_PIECE: Final = 1 << 16
_LINES_BEFORE: Final = 2
"""The most lines of a wrapped message before the one with its code."""
MOST_FINDINGS: Final = 1_000
"""The most findings that are kept separately; lines of further ones are only counted."""

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
"""A terminal's escape sequence: it has no meaning here, and may come right before a code."""
_CODE: Final = re.compile(r"(?<![0-9A-Za-z.])(?:0[xX])?([8Cc][0-9A-Fa-f]{7})(?![0-9A-Za-z])")
_DECIMAL: Final = re.compile(r"(?<![\w.])-([12]\d{9})(?![\w.])")
"""A code in the form that Python and .NET print: a negative 32-bit number."""
_NAMED: Final[Mapping[str, int]] = {
    **{name: code for code, name in NAMES.items() if code and re.fullmatch(r"[A-Z][A-Z0-9_]*", name)},
    **SENTENCES,
}
_WORDS: Final = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(_NAMED, key=len, reverse=True)))})(?!\w)")
"""A code by its name, or by Windows' message for it."""
_IN_WORDS: Final = Lines([re.compile("|".join(map(re.escape, _NAMED)))])
_BY_TEXT: Final = Lines(pattern for message, pattern in zip(MESSAGES, PATTERNS, strict=True) if not message.codes)
"""The messages that a line may have without a code."""
_ROWS: Final = [(m, pattern, fragments_of(m.pattern)) for m, pattern in zip(MESSAGES, PATTERNS, strict=True)]
_PLACE: Final = re.compile(r"\b(\w++\.(?:cpp|cc|h))[(:](\d+)")
_NODE: Final = re.compile(r"while running (\S{1,100}) node\. ?Name: ?'([^']{0,500})'")
_ERRORS: Final = Lines(
    map(
        re.compile,
        (
            r"\[[EF]:\s?onnxruntime",
            r"\[ONNXRuntimeError\]",
            r"\[ErrorCode:\w+\]",
            r"Error:|Exception:",
            r"(?i)\bfatal\b",
            r"(?i)\b(?:unrecoverable|unexpected|internal compiler) error\b",
            r"(?i)check failed",
            r"(?i)\bfailed(?:[:.]|\s+(?:to|with)\b)",
            r"(?i)\berror\b.{0,40}:",
            r"\[[EF][^\s\[]* .{0,200}\.(?:cc|cpp):\d+\]",
            r"\b[EF] \S+\.cc:\d+\]",
        ),
    )
)
"""Forms of a line that reports an error."""
_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]++")


@dataclass
class Finding:
    """`count` lines with one message; the first is line `line` (from 1), with the text `text`.

    `message` is None if it is not a known one. `code` is the HRESULT in the lines, `place` the source file and its
    line, `operator` and `node` what was running; each is None if the lines do not contain it.
    """

    line: int
    text: str
    message: Message | None
    code: int | None = None
    place: str | None = None
    operator: str | None = None
    node: str | None = None
    count: int = 1

    @property
    def code_text(self) -> str:
        """The code and its name, such as "80070057 E_INVALIDARG"; "" if there is no code."""
        return "" if self.code is None else f"{self.code:08X} {named(self.code)}".rstrip()

    @property
    def is_error(self) -> bool:
        """True if the message means that something fails, or is not a known one."""
        return self.message is None or self.message.error

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        message = self.message
        return {
            "line": self.line,
            "count": self.count,
            "text": self.text,
            "message": None if message is None else message.id,
            "error": self.is_error,
            "meaning": None if message is None else message.meaning,
            "source": None if message is None else message.source,
            "code": None if self.code is None else f"0x{self.code:08X}",
            "code_name": (named(self.code) or None) if self.code is not None else None,
            "place": self.place,
            "operator": self.operator,
            "node": self.node,
        }


@dataclass
class Log:
    """The findings in a log, in the order of their first lines. `lines` were read; `more` lines had findings beyond
    MOST_FINDINGS."""

    findings: list[Finding]
    lines: int = 0
    more: int = 0


def read(stream: BinaryIO) -> Log:
    """Returns the findings in a log of any bytes: UTF-8, or UTF-16 with a byte order mark."""
    log = Log([])
    known: dict[object, Finding] = {}
    before: deque[str] = deque(maxlen=_LINES_BEFORE)
    for number, coloured in enumerate(_lines(stream), 1):
        log.lines, text = number, _COLOUR.sub("", coloured)
        finding = _finding(number, text, before)
        if finding is None:
            before.append(text)
            continue
        before.clear()
        about = (finding.message, finding.code, finding.place, finding.node)
        key = about if finding.message is not None else _shape(text)
        if key in known:
            known[key].count += 1
        elif len(known) < MOST_FINDINGS:
            known[key] = finding
            log.findings.append(finding)
        else:
            log.more += 1
    return log


def _finding(number: int, text: str, before: Iterable[str]) -> Finding | None:
    """Returns the finding in a line; None if it has none. A line with a code may be the end of a wrapped message; the
    lines `before` it are then searched too."""
    lowered = text.lower()
    codes = _codes(text, lowered)
    found = _message(text, lowered, codes)
    if found is None and codes:
        whole = " ".join([*before, text])
        found = _message(whole, whole.lower(), codes)
        text = text if found is None else whole
    if found is None and not codes and not _ERRORS.matches(text, lowered):
        return None
    wanted = [code for code in codes if found is None or not found.codes or code in found.codes]
    places, node = _PLACE.findall(text), _NODE.search(text)
    return Finding(
        number,
        text,
        found,
        wanted[0] if wanted else None,
        ":".join(places[-1]) if places else None,  # the place that threw comes after those that caught
        node[1] if node else None,
        node[2] if node else None,
    )


def _message(text: str, lowered: str, codes: Iterable[int]) -> Message | None:
    """Returns the first known message in a text with these codes; None if it has none."""
    if not codes and not _BY_TEXT.may_match(lowered):
        return None
    for message, pattern, fragments in _ROWS:
        if message.codes and not any(code in message.codes for code in codes):
            continue
        if has_one(fragments, lowered) and pattern.search(text) is not None:
            return message
    return None


def _codes(text: str, lowered: str) -> list[int]:
    """Returns the codes of failures in a line, given by number, name or message: HRESULTs of errors, and known
    NTSTATUSes. `lowered` is the text in lower case."""
    found = [int(digits, 16) for digits in _CODE.findall(text)]
    found += [2**32 - int(digits) for digits in _DECIMAL.findall(text) if int(digits) <= 2**31]
    found += [_NAMED[word] for word in _WORDS.findall(text)] if _IN_WORDS.may_match(lowered) else []
    if not found:
        return []
    return [code for code in dict.fromkeys(found) if code and (code in NAMES or (code >> 28 == 8 and named(code)))]


def _shape(text: str) -> str:
    """Returns the text with everything that differs between repetitions (numbers and addresses) replaced by "#"."""
    return _HEXADECIMAL.sub(lambda found: found[0] if found[0].isalpha() else "#", text)


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Yields the lines of a text in UTF-8, or in UTF-16 with a byte order mark; of each at most MOST_LINE
    characters."""
    piece = stream.read(_PIECE)
    encoding = "utf-16" if piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = ""
    while piece:
        *lines, rest = (rest + decoder.decode(piece)).split("\n")
        yield from (line[:MOST_LINE].rstrip("\r") for line in lines)
        rest = rest[:MOST_LINE]  # the continuation of the line is skipped as well
        piece = stream.read(_PIECE)
    if rest:
        yield rest.rstrip("\r")
