"""Suggests a name for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The closest of `known`; None where none is close, and for names beyond a length: comparing takes time quadratic
    in it."""
    import difflib  # most names are correct

    return next(iter(difflib.get_close_matches(name, known, 1, similarity)), None) if len(name) <= 100 else None
