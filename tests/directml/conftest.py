"""The builds that a run asks: one old and one new, all of them with -m directml."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.directml import build
from tests.directml.library import Library

DEFAULT_BUILDS = (build.BUILDS[0], build.BUILDS[-1])
FRESH_SEED = int(os.environ.get("DMLSPLIT_DIRECTML_SEED") or secrets.randbelow(10**9))
COUNT = int(os.environ.get("DMLSPLIT_DIRECTML_COUNT") or 1000)

compared: list[str] = []
"""What the tests have compared, for the end of the run."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "directml: asks Microsoft's library; `-m directml` asks every Linux build")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "made" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("markexpr") == "directml"
        builds = build.BUILDS if chosen else DEFAULT_BUILDS
        metafunc.parametrize("made", builds, ids=[made.name for made in builds], scope="session")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in compared:
        terminalreporter.write_line(line)


@functools.cache
def _fetched(made: build.Build) -> Path | build.Unavailable:
    """Once a run: what could not be fetched is not tried again for every test."""
    try:
        return build.library(made)
    except build.Unavailable as reason:
        return reason


@pytest.fixture(scope="session")
def programs() -> Path:
    """The directory of the harness; skips where it cannot be compiled."""
    try:
        return build.harness()
    except build.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def shared_object(made: build.Build) -> Path:
    """The build's library; skips where it cannot be fetched."""
    found = _fetched(made)
    if isinstance(found, build.Unavailable):
        pytest.skip(str(found))
    return found


@pytest.fixture(scope="session")
def library(programs: Path, shared_object: Path) -> Iterator[Library]:
    with Library(programs, shared_object) as asked:
        yield asked
