"""Nodes with constant inputs for which the CPU's kernel fails as they are folded: their indices are outside of their
tensor, or their axis beyond its dimensions. Up to 1.24 that fails session creation; later versions leave them in the
graph. An output without a name fails it as well.

Source: gather.cc, gather_elements.cc, gather_nd.cc, scatter.cc, scatter_nd.cc and constant_folding.cc of ONNX Runtime;
observed with all versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Facts, Node, attribute

_Sizes: TypeAlias = Callable[[Node, Array, Shape], Shape]
"""Returns the sizes of the dimensions that the last dimension of the indices is about; one size if each index is about
the same dimension."""


def failing_fold(facts: Facts, node: Node) -> str:
    """Returns why the folding of a node with constant inputs fails; "" if it does not, or if that is not known."""
    given = attribute(node, "axis") if node.op_type in _ALONG_AXES and node.inputs else None
    read = None if given is None else facts.shape(node.inputs[0].name)
    if given is not None and read is not None and not -len(read) <= given.i < len(read):
        return f"its axis {given.i} is not among {len(read)} dimensions"
    sizes_of = _INDEXED.get(node.op_type)
    if sizes_of is None or len(node.inputs) < 2:
        return ""
    shape, indices = facts.shape(node.inputs[0].name), facts.elements(node.inputs[1].name)
    if not is_static(shape) or indices is None or indices.dtype.kind not in "iu":
        return ""
    sizes = sizes_of(node, indices, shape)
    for place, size in enumerate(sizes):
        checked = indices[..., place] if len(sizes) > 1 else indices
        if isinstance(size, int) and (outside := checked[(checked < -size) | (checked >= size)]).size:
            return f"its index {int(outside.flat[0])} is not among {size} elements"
    return ""


def unnamed_output(facts: Facts, node: Node) -> str:
    """Returns why the folding of a node with an output without a name fails; "" if it does not. From 1.30 on only that
    of a Split fails: its kernel writes all outputs."""
    fails = node.op_type == "Split" or not facts.traits.folds_known_sizes
    place = next((i for i, value in enumerate(node.outputs) if not value.name), None) if fails else None
    return "" if place is None else f"its output {place} has no name"


def _along_axis(node: Node, _: Array, shape: Shape) -> Shape:
    given = attribute(node, "axis")
    axis = 0 if given is None else given.i
    return (shape[axis],) if -len(shape) <= axis < len(shape) else ()


def _by_tuples(node: Node, indices: Array, shape: Shape) -> Shape:
    given = attribute(node, "batch_dims")
    first = 0 if given is None else given.i
    count = indices.shape[-1] if indices.ndim else 0
    return shape[first : first + count] if first >= 0 and first + count <= len(shape) else ()


_INDEXED: Final[Mapping[str, _Sizes]] = {
    **dict.fromkeys(("Gather", "GatherElements", "Scatter", "ScatterElements"), _along_axis),
    **dict.fromkeys(("GatherND", "ScatterND"), _by_tuples),
}
"""The operators whose second input are indices into the first."""
_ALONG_AXES: Final = frozenset({"Concat", "Gather"})
"""Operators whose kernels read an axis in 64 bits; inference reads the lowest 32."""
