"""The text without which a regular expression does not match: searching a line for it takes a fraction of the time of
the expression."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_LITERAL: Final = re.compile(r"\\[^\w\s]|[^\\.^$*+?{}\[\]|()]")
"""A character that stands for itself."""
_OPTIONAL: Final = re.compile(r"[*?]|\{0?,|\{0\}")
"""Repeats the character before it, perhaps no times."""
_BREAK: Final = re.compile(r"\\\w|\[\^?\]?[^\]]*\]|\{[^}]*\}|.", re.DOTALL)
"""Anything else: a class, a number of repetitions, one character of syntax."""


def fragments_of(pattern: str) -> tuple[str, ...]:
    """Returns texts in lower case of which every text that the pattern matches, in lower case, has at least one: the
    longest literal of each alternative; "" for an alternative without one.

    Groups are not looked into.
    """
    found = [""]
    run, depth, place = "", 0, 0

    def end() -> None:
        nonlocal run
        if len(run) > len(found[-1]):
            found[-1] = run
        run = ""

    while place < len(pattern):
        literal = _LITERAL.match(pattern, place)
        if literal is not None:
            place = literal.end()
            if depth == 0 and _OPTIONAL.match(pattern, place):
                end()
            elif depth == 0:
                run += literal[0][-1]
            continue
        token = _BREAK.match(pattern, place)
        assert token is not None
        place = token.end()
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        end()
        if token[0] == "|" and depth == 0:
            found.append("")
    end()
    return tuple(dict.fromkeys(fragment.lower() for fragment in found))


def has_one(fragments: Iterable[str], lowered: str) -> bool:
    """True if a text in lower case has one of the fragments."""
    for fragment in fragments:  # noqa: SIM110 - a generator takes three times as long
        if fragment in lowered:
            return True
    return False


class Lines:
    """A set of regular expressions, and the fragments of which a line that one of them matches has at least one."""

    def __init__(self, patterns: Iterable[re.Pattern[str]]) -> None:
        self._patterns = [(each, fragments_of(each.pattern)) for each in patterns]
        self._fragments: Sequence[str] = list(dict.fromkeys(each for _, found in self._patterns for each in found))

    def may_match(self, lowered: str) -> bool:
        """False if no expression matches a line whose text in lower case is `lowered`."""
        return has_one(self._fragments, lowered)

    def matches(self, text: str, lowered: str) -> bool:
        """True if an expression matches a line; `lowered` is its text in lower case."""
        return self.may_match(lowered) and any(
            has_one(fragments, lowered) and pattern.search(text) is not None for pattern, fragments in self._patterns
        )
