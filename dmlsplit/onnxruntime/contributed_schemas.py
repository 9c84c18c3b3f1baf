"""The schemas of ONNX Runtime's own operators: those of com.microsoft, and those that it adds to the default domain.

packaging/contributed.py asks each version for its schemas, and writes the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from dmlsplit.system.tables import read_table
from dmlsplit.targets.runtime_versions import Runtime, key_of

PLACE: Final = "onnxruntime/contributed.json.xz"
CONTRIBUTED: Final = "com.microsoft"


def is_added(op_type: str, opset: int) -> bool:
    """True for an operator that a version of ONNX Runtime adds to the default domain at an opset."""
    return any(row is not None for row in rows_of("", op_type, opset))


def schema(row: int) -> Mapping[str, Any]:
    """Returns a row of the table: "counts" (the minimum and maximum numbers of inputs, then of outputs), "inputs" and
    "outputs" ([type, option, is_homogeneous] each), "types" (those of each type parameter) and "attributes" ([type, is
    required] by name)."""
    found: Mapping[str, Any] = _table()["rows"][row]
    return found


@lru_cache(maxsize=4096)
def rows_of(domain: str, op_type: str, opset: int) -> Mapping[int | None, frozenset[int]]:
    """Maps the numbers of an operator's rows at an opset of its domain to the columns of the versions that have them;
    None to those of the versions without the operator. A deprecated operator is one that a version does not have."""
    known: Mapping[str, Sequence[int | None]] = _table()["operators"].get(f"{domain}.{op_type}" if domain else op_type)
    since = max((version for version in map(int, known or ()) if version <= opset), default=0)
    cells = known[str(since)] if since else [None] * len(_table()["versions"])
    rows = [None if cell is None or schema(cell)["deprecated"] else cell for cell in cells]
    return {row: frozenset(i for i, each in enumerate(rows) if each == row) for row in dict.fromkeys(rows)}


@cache
def column_of(runtime: Runtime) -> int | None:
    """Returns the column of a version of ONNX Runtime, or of the newest older one; None for one that is older than all
    of the table."""
    older = [i for i, version in enumerate(_table()["versions"]) if key_of(version) <= runtime.key]
    return older[-1] if older else None


@cache
def _table() -> dict[str, Any]:
    return read_table(Path(__file__).parents[1] / PLACE)
