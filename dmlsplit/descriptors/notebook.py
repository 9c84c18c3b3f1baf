"""Notebook renderers for descriptors and reports. The package installs them, because they belong to modules that this
package must not import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _plain_text(shown: object) -> None:
    """Returns None: notebooks then show the plain text."""


picture: Callable[[Any], str | None] = _plain_text
"""Returns the SVG of an operator."""
table: Callable[[Any], str | None] = _plain_text
"""Returns the HTML of a report; None if jinja2 is missing."""
