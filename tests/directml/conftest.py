"""The builds that a run asks: one old and one new for Linux, all of them with -m directml."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlsplit.library.catalogue import LINUX, Build, Platform, directml_builds
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import library as fetched
from dmlsplit.library.harness import Harness
from dmlsplit.library.harness import harness as made_harness
from dmlsplit.library.process import Library

BUILDS = directml_builds()
LINUX_BUILDS = [made for made in BUILDS if made.platform is LINUX]
DEFAULT_BUILDS = (LINUX_BUILDS[0], LINUX_BUILDS[-1])
FRESH_SEED = int(os.environ.get("DMLSPLIT_DIRECTML_SEED") or secrets.randbelow(10**9))
FRESH = pytest.param(FRESH_SEED, id="fresh", marks=(pytest.mark.slow, pytest.mark.thorough))
"""Left out of .ci/run, which judges a change: what a seed finds that nobody has tried is no fault of the change."""
COUNT = int(os.environ.get("DMLSPLIT_DIRECTML_COUNT") or 1000)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "directml: asks Microsoft's library; `-m directml` asks every build")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "made" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("markexpr") == "directml"
        builds = BUILDS if chosen else DEFAULT_BUILDS
        metafunc.parametrize("made", builds, ids=[made.name for made in builds], scope="session")


# What is not available is not tried again for every test.
@functools.cache
def _fetched(made: Build) -> Path | Unavailable:
    try:
        return fetched(made)
    except Unavailable as reason:
        return reason


@functools.cache
def _harness(target: Platform) -> Harness | Unavailable:
    try:
        return made_harness(target)
    except Unavailable as reason:
        return reason


@pytest.fixture(scope="session")
def harness(made: Build) -> Harness:
    """The harness of the build's platform; skips where it cannot be compiled or run."""
    found = _harness(made.platform)
    if isinstance(found, Unavailable):
        pytest.skip(str(found))
    return found


@pytest.fixture(scope="session")
def shared_object(made: Build, harness: Harness) -> Path:
    """The build's library; skips where it cannot be fetched."""
    found = _fetched(made)
    if isinstance(found, Unavailable):
        pytest.skip(str(found))
    return found


@pytest.fixture(scope="session")
def library(harness: Harness, shared_object: Path) -> Iterator[Library]:
    with Library(harness, shared_object) as asked:
        yield asked
