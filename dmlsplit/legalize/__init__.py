"""Rewrites an operator that a target refuses: finds operators that a level or release accepts and that move the same
bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlsplit.descriptors.call_types import DescT
from dmlsplit.system.lazy import lazy
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, find_target

if TYPE_CHECKING:
    from dmlsplit.legalize.regions import BufferKind, Region
    from dmlsplit.legalize.result import Legalization
    from dmlsplit.legalize.search import movable_types

__all__ = ["BufferKind", "Legalization", "Region", "legalize", "movable_types"]


_NAMES = {
    "dmlsplit.legalize.regions": "BufferKind Region",
    "dmlsplit.legalize.result": "Legalization",
    "dmlsplit.legalize.search": "movable_types",
}

__getattr__, __dir__ = lazy(__name__, _NAMES)


def legalize(
    desc: DescT, *, feature_level: LevelLike = None, directml: ReleaseLike = None, onnxruntime: RuntimeLike = None
) -> Legalization[DescT]:
    """Returns operators (usually one) that a feature level or a release accepts and that have the same effect as a
    descriptor.

    They run on the same buffers, at the offsets that the result's `bindings` give, and write no byte that the original
    would not write. If the descriptor itself is accepted, it is returned unchanged. The target is named as in
    `validate`; the default is the newest release.

    A faulty descriptor raises no exception: the result's `ok` is False, and its `report` lists the faults that no
    rewriting can remove. Raises ValueError for an unknown level, release or version of ONNX Runtime or for several at
    once, TypeError for anything but a descriptor.
    """
    from dmlsplit.legalize.search import rewritten

    return rewritten(desc, find_target(feature_level, directml, onnxruntime))
