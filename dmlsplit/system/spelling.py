"""The name that a misspelt one may mean."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """The one of `known` that is nearest; None where none is near, and for what is too long for a name: comparing takes
    time with the square of the lengths."""
    import difflib  # most names are right

    return next(iter(difflib.get_close_matches(name, known, 1, similarity)), None) if len(name) <= 100 else None
