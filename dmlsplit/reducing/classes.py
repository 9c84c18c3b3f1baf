"""The classes of faults that are no ids of rules."""

from __future__ import annotations

from typing import Final

SESSION_FAILS: Final = "session-fails"
"""A session that is not made for a reason that has no rule."""
NEW: Final = "new"
"""What a check of the caller's calls wrong, and nothing here explains."""
