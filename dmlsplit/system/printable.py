"""Text from files is hostile: what is shown of it is safe to print, and no longer than a message may be."""

from __future__ import annotations


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
