"""How notebooks show descriptors and reports: the package gives the renderers, which stand above all that they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _plain_text(shown: object) -> None:
    """No rendering: notebooks take the plain text."""


picture: Callable[[Any], str | None] = _plain_text
"""The SVG of an operator."""
table: Callable[[Any], str | None] = _plain_text
"""The HTML of a report; None where jinja2 is missing."""
