"""Suggests a known name for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """Returns the name in `known` that is closest to `name`; None if none is close, and for more than 100 characters:
    comparing takes quadratic time."""
    import difflib  # most names are correct

    return next(iter(difflib.get_close_matches(name, known, 1, similarity)), None) if len(name) <= 100 else None
