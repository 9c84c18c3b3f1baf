"""The uses that a target has for an operator, in a word."""

from __future__ import annotations

import enum


class Use(enum.Enum):
    """The use that a target has for a node."""

    AS_IT_IS = "as it is"
    REWRITTEN = "rewritten"
    REFUSED = "no"
    UNKNOWN = "unknown"
    NOT_ASKED = "-"
    """The node is wrong by its framework's own rules."""
