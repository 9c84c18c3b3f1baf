"""Use: whether a target takes an operator as it is, rewritten, or not at all."""

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
