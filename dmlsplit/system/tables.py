"""Reads the tables that are part of the package."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any


def read_table(path: str | PathLike[str]) -> dict[str, Any]:
    """Returns the content of a table: a JSON object, compressed with xz."""
    import lzma  # few programs use operators other than Split and Join

    with open(path, "rb") as stream:
        table: dict[str, Any] = json.loads(lzma.decompress(stream.read()))
    return table
