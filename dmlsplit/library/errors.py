"""The errors of libraries that cannot be asked."""

from __future__ import annotations

from dmlsplit.system.errors import DmlSplitError


class Unavailable(DmlSplitError):
    """A library or the harness is not available here; the message says why, and what to do about it."""


class NotAdded(Unavailable):
    """A build that can be asked here, but has not been fetched."""


class BuildError(DmlSplitError):
    """A file of a build does not have the expected content."""


class HarnessError(DmlSplitError):
    """The harness itself failed; the library gave no answer."""


class SilentEnd(HarnessError):
    """The process ended without an answer or a message."""
