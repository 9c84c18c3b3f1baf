"""The versions that a run asks: one, all of them with -m onnxruntime."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Iterator

import pytest

from dmlsplit.library.catalogue import Build, onnxruntime_builds
from dmlsplit.library.errors import Unavailable
from dmlsplit.library.fetching import add
from dmlsplit.library.sessions import OnnxRuntime
from tests.onnxruntime.models import DEFAULT

FRESH_SEED = int(os.environ.get("DMLSPLIT_ONNXRUNTIME_SEED") or secrets.randbelow(10**9))
FRESH = pytest.param(FRESH_SEED, id="fresh", marks=(pytest.mark.slow, pytest.mark.thorough))
"""Left out of .ci/run, which judges a change: what a seed finds that nobody has tried is no fault of the change."""
COUNT = int(os.environ.get("DMLSPLIT_ONNXRUNTIME_COUNT") or 200)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "onnxruntime: asks ONNX Runtime under wine; `-m onnxruntime` asks every version")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "made" in metafunc.fixturenames:
        every = metafunc.config.getoption("markexpr") == "onnxruntime"
        chosen = [made for made in onnxruntime_builds() if every or made.version == DEFAULT]
        metafunc.parametrize("made", chosen, ids=[made.version for made in chosen], scope="session")


# What is not available is not tried again for every test.
@functools.cache
def _opened(made: Build) -> OnnxRuntime | Unavailable:
    try:
        return OnnxRuntime(add(made))
    except Unavailable as reason:
        return reason


@pytest.fixture(scope="session")
def runtime(made: Build) -> Iterator[OnnxRuntime]:
    """The version, ready to be asked; skips where it cannot be fetched or run."""
    found = _opened(made)
    if isinstance(found, Unavailable):
        pytest.skip(str(found))
    with found:
        yield found
