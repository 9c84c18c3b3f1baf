"""A build that answers, as tests/directml has it: fetched at the first run, skipped where that cannot be."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from dmlsplit.library.catalogue import LINUX, Build, directml_builds, find_build
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import add
from dmlsplit.library.harness import harness

collect_ignore = [] if sys.platform == "linux" else ["test_fetching.py", "test_process.py"]
"""What nothing else than Linux has: the harness's pipes, wine."""

LINUX_BUILDS = [build for build in directml_builds() if build.platform is LINUX]
NEWEST = LINUX_BUILDS[-1]


@functools.cache
def _asked(build: Build) -> Path | Unavailable:
    try:
        harness(build.platform)
        return add(build)
    except Unavailable as reason:
        return reason


def require(build: Build) -> Build:
    """The build, skipping where it cannot be asked."""
    found = _asked(build)
    if isinstance(found, Unavailable):
        pytest.skip(str(found))
    return build


@pytest.fixture(scope="session")
def newest() -> Build:
    """The newest build for Linux."""
    return require(NEWEST)


@pytest.fixture(scope="session")
def onnxruntime() -> Build:
    """ONNX Runtime 1.24.4."""
    build = require(find_build("onnxruntime-1.24.4"))
    try:
        harness(build.platform, "sessions")
    except Unavailable as reason:
        pytest.skip(str(reason))
    return build
