"""Text from files is hostile: what is shown of it is safe to print, and no longer than a message may be."""

from __future__ import annotations

import re
from typing import Final

_COMMAND: Final = re.compile(r"((?:^|\r)(?:\s|\x1b\[[0-9;]*m)*):(?=:)", re.MULTILINE)
"""`::error ...`, whatever white space is before it: a command to GitHub's runner."""
_MARKED: Final = re.compile(r"#(?=#\w*\[)")
"""`##[error]`, `##vso[...]`, `##teamcity[...]`: commands to servers wherever they stand in a line."""


def printable(text: str, limit: int | None = 120) -> str:
    """`text` from a file, safe to print: control characters, escape codes and lone surrogates as backslash escapes.

    Shortened in the middle to about `limit` characters; None: never.
    """
    if limit is not None:
        text = shortened(text, limit)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, limit: int) -> str:
    """`text`, or about `limit` characters of it where it is longer: the middle is left out."""
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-limit // 4 :]}"


def inert(text: str, *, colons_meant: bool = False) -> str:
    """`text` for a log: none of its lines is a command to a server that runs jobs. `colons_meant`: lines
    that begin with them are commands, or a style sheet's.

    The escapes are those of JSON, so that it stays what it was.
    """
    if "##" in text:
        text = _MARKED.sub(r"\\u0023", text)
    return text if colons_meant or "::" not in text else _COMMAND.sub(r"\1\\u003a", text)
