"""The shapes of a node's outputs as ONNX Runtime infers them when it makes a session.

Sources: the shape inference of Split and Concat (onnx/defs/tensor/defs.cc), which keeps the axis's size in a signed int
of 32 bits; MergeShapeInfo of ONNX Runtime's graph.cc, which merges inferred and declared shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dmlsplit.descriptors.dims import Shape
from dmlsplit.onnxruntime.facts import LengthsFrom, RuntimeFacts
from dmlsplit.system.integers import signed


def static_axis(facts: RuntimeFacts) -> int | None:
    """Returns the size of a Split's axis in the 32 bits of shape inference; None if it is unknown."""
    shape = facts.shapes[0]
    size = shape[facts.axis_of(len(shape))] if shape else None
    return signed(size) if isinstance(size, int) else None


def output_shapes(facts: RuntimeFacts) -> list[Shape | None]:
    """Returns the shapes of the outputs that have a name, for inputs with static shapes; None for one whose rank
    contradicts its declaration."""
    found = []
    for i, shape in enumerate(_inferred(facts)):
        if i not in facts.omitted:
            found.append(merged_with_declared(shape, facts.declared[i] if i < len(facts.declared) else None))
    return found


def merged_with_declared(inferred: Shape, declared: Shape | None) -> Shape | None:
    """Returns the shape of a tensor with an inferred and a declared shape, as ONNX Runtime merges them; if sizes
    contradict each other, only the equal ones are known; None if the ranks contradict each other."""
    if declared is None:
        return inferred
    if len(inferred) != len(declared):
        return None
    pairs = list(zip(inferred, declared, strict=True))
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        return tuple([a if a == b else None for a, b in pairs])
    return tuple([b if isinstance(b, int) else a for a, b in pairs])


def _inferred(facts: RuntimeFacts) -> Iterator[Shape]:
    shape = facts.shapes[0]
    assert shape is not None
    axis = facts.axis_of(len(shape))
    if facts.is_split:
        size = static_axis(facts)
        assert size is not None
        lengths = _lengths(facts, size)
    else:
        sizes = [other[axis] for other in facts.shapes if other is not None]
        lengths = (signed(sum(size for size in sizes if isinstance(size, int))),)
    for length in lengths:
        yield (*shape[:axis], length, *shape[axis + 1 :])


def _lengths(facts: RuntimeFacts, size: int) -> Shape:
    if facts.given in (LengthsFrom.ATTRIBUTE, LengthsFrom.CONSTANT):
        assert facts.lengths is not None
        return facts.lengths
    count = facts.outputs
    if facts.given is LengthsFrom.DEFAULT:
        return (None,) * count
    # C's integer division truncates
    chunk = math.trunc(size / count) + (1 if facts.given is LengthsFrom.NUM_OUTPUTS and math.fmod(size, count) else 0)
    return (*(chunk,) * (count - 1), size - chunk * (count - 1))
