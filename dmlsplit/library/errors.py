"""Why a library gives no answer."""

from __future__ import annotations

from dmlsplit.system.errors import DmlSplitError


class Unavailable(DmlSplitError):
    """A library or the harness cannot be had here; the message says why, and what would help."""


class NotAdded(Unavailable):
    """A build that can be asked here, but has not been fetched."""


class BuildError(DmlSplitError):
    """What is here is not what it should be."""


class HarnessError(DmlSplitError):
    """The harness itself failed: no answer of the library."""


class SilentEnd(HarnessError):
    """The process ended without an answer or a word."""
