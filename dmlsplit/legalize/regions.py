"""The byte ranges that the operators of a rewriting are bound to."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dmlsplit.system.records import record

BufferKind: TypeAlias = Literal["input", "output", "temporary"]


@record
class Region:
    """A range of bytes: `offset` and `size` within one of the original's buffers, or within a temporary one.

    `index` is an index into the original's inputs or outputs (0 for a single one), or into the temporary buffers.
    """

    buffer: BufferKind
    index: int
    offset: int
    size: int
