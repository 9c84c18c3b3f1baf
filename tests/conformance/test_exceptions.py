"""The list of exceptions names rows that exist, and says why."""

from tests.conformance.corpus import EXCEPTIONS, rows


def test_every_exception_is_a_row():
    assert set(EXCEPTIONS) <= {row["id"] for name in ("cases", "observed") for row in rows(name)}
    assert all(exception["reason"] for exception in EXCEPTIONS.values())
