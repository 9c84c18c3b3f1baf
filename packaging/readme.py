"""The README as a package index shows it: there, links and pictures that lead into the repository lead nowhere."""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_PARTS: Final = re.compile(
    r"```.*?```|(?P<picture>!?)\[(?P<text>(?:`[^`\n]*`|[^\]`])*)\]\((?!https?:)[^)\s]*\)|`[^`\n]*`", re.DOTALL
)
"""Code, which stays as it is, and links and pictures within the repository."""


def on_index(text: str) -> str:
    """The text without comments; pictures become what they show, in words, and links their text."""
    return _PARTS.sub(_shown, _COMMENT.sub("", text))


def _shown(part: re.Match[str]) -> str:
    if part["text"] is None:
        return part[0]
    return f"*{part['text']}*" if part["picture"] else part["text"]
