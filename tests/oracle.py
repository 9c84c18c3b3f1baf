"""The recorded descriptors of the real library, as dmlsplit's."""

from __future__ import annotations

from typing import Any

from dmlsplit.conformance import recorded
from dmlsplit.conformance.recorded import operator as operator
from dmlsplit.conformance.recorded import reason_to_leave_out as reason_to_leave_out
from dmlsplit.conformance.recorded import tensor as tensor


def records(name: str) -> list[dict[str, Any]]:
    return list(recorded.lines(f"oracle/{name}"))


def header(name: str) -> dict[str, Any]:
    """The first of the records: what was asked, and the builds."""
    found: dict[str, Any] = next(recorded.lines(f"oracle/{name}"))
    return found
