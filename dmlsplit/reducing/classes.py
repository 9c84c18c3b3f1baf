"""The classes of faults that are not ids of rules."""

from __future__ import annotations

from typing import Final

SESSION_FAILS: Final = "session-fails"
"""Session creation fails for a reason that has no rule."""
NEW: Final = "new"
"""The caller's check says that the model is wrong, but no finding explains it."""
