"""Notebook renderers for descriptors and reports. The package installs them, since they belong to modules above this
one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _plain_text(shown: object) -> None:
    """Returns None, so that notebooks show the plain text."""


picture: Callable[[Any], str | None] = _plain_text
"""The SVG of an operator."""
table: Callable[[Any], str | None] = _plain_text
"""The HTML of a report; None where jinja2 is missing."""
