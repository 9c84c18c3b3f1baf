"""OASIS's schema of SARIF 2.1.0, as https://json.schemastore.org/sarif-2.1.0.json serves it."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "data" / "sarif-2.1.0.json.xz"


@cache
def _validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(lzma.decompress(PATH.read_bytes()))
    assert schema["properties"]["version"]["enum"] == ["2.1.0"]
    return jsonschema.Draft7Validator(schema)


def faults(log) -> list[str]:
    """What the schema has against a log; the test is skipped where jsonschema is not installed."""
    return [f"{error.json_path}: {error.message[:200]}" for error in _validator().iter_errors(log)]
