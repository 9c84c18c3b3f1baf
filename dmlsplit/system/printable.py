"""Makes text from files, which may be hostile, safe to print and short enough for a message."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

# Compiled on first use.
_COMMAND: Final = r"(?m)((?:^|\r)(?:\s|\x1b\[[0-9;]*m)*):(?=:)"
"""`::error ...` after any white space: a command to GitHub's runner."""
_MARKED: Final = r"#(?=#\w*\[)"
"""`##[error]`, `##vso[...]`, `##teamcity[...]`: commands to servers anywhere in a line."""


def printable(text: str, limit: int | None = 120) -> str:
    """Returns `text` from a file made safe to print: control characters, escape codes and lone surrogates become
    backslash escapes.

    Shortened in the middle to about `limit` characters; None: never.
    """
    if limit is not None and len(text) > limit:
        text = shortened(text, limit)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, limit: int) -> str:
    """Returns `text`, shortened in the middle to about `limit` characters if it is longer."""
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-limit // 4 :]}"


def numbered(text: str, taken: Counter[str]) -> str:
    """Returns `text`, with a number behind it if `taken` has it, and adds the result to `taken`."""
    taken[text] += 1
    return text if taken[text] == 1 else numbered(f"{text} ({taken[text]})", taken)


def inert(text: str, *, colons_meant: bool = False) -> str:
    """Returns `text` for a log, with commands to CI servers escaped. `colons_meant`: keeps lines that begin with colons
    as they are, because they are meant as commands or belong to a style sheet.

    Uses JSON's escapes, so that JSON text keeps its meaning.
    """
    if "##" in text:
        text = re.sub(_MARKED, r"\\u0023", text)
    return text if colons_meant or "::" not in text else re.sub(_COMMAND, r"\1\\u003a", text)


def span_of(values: Sequence[object]) -> str:
    """Returns one or more successive values as text: the first and the last, "3_0-4_0", or the only one."""
    return str(values[0]) if len(values) == 1 else f"{values[0]}-{values[-1]}"
