"""Sparse constants that ONNX Runtime does not load: their indices do not fit them.

Source: DenseTensorFromSparse and CopySparseData in tensorprotoutils.cc of ONNX Runtime. Observed with 1.18.0, 1.20.1,
1.22.0, 1.23.2, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import onnx

from dmlsplit.formats.onnx.tensors import holds_its_elements, no_external_data, value_of
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable


def of(graphs: Iterable[onnx.GraphProto], nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.SparseTensorProto]:
    """Yields the sparse initializers of graphs, then the sparse constants in the Constants among nodes."""
    for each in graphs:
        yield from each.sparse_initializer
    for node in nodes:
        if node.op_type == "Constant":
            yield from (each.sparse_tensor for each in node.attribute[:] if each.name == "sparse_value")


def refused(tensor: onnx.SparseTensorProto) -> str:
    """Returns why no version loads a sparse constant, "" if some do."""
    return _named(tensor, _misfit(tensor))


def refused_if_checked(tensor: onnx.SparseTensorProto) -> str:
    """Returns why the versions that check all indices do not load a sparse constant; "" if they load it, or no version
    does. Others write outside the memory of the tensor."""
    return "" if _misfit(tensor) else _named(tensor, _beyond(tensor))


def _named(tensor: onnx.SparseTensorProto, why: str) -> str:
    return why and f"the sparse constant {printable(tensor.values.name, 60)} {why}: the model is not loaded"


def _count(tensor: onnx.SparseTensorProto) -> int:
    return math.prod(tensor.values.dims)


def _misfit(tensor: onnx.SparseTensorProto) -> str:
    """Returns why no version loads a sparse constant, as a clause about it; "" if some do."""
    sizes, rank, count = list(tensor.indices.dims), len(tensor.dims), _count(tensor)
    if min(tensor.dims, default=0) < 0:
        return f"has the dimensions {list(tensor.dims)}"
    if len(sizes) not in (1, 2):
        return f"has indices of {len(sizes)} dimensions, which may be 1 or 2"
    if len(sizes) == 2 and sizes[1] != rank:
        return f"has indices of {sizes[1]} numbers each, but {rank} dimensions"
    if sizes[0] < count or (len(sizes) == 2 and sizes[0] > count):
        return f"has {sizes[0]} indices for {count} values"
    if tensor.indices.data_location != onnx.TensorProto.EXTERNAL and not holds_its_elements(tensor.indices):
        return f"has indices whose data do not fit their dimensions {sizes}"
    found = _indices(tensor)
    if found is not None and found.ndim == 1 and found.size and found.min() < 0:
        return f"has the index {found.min()}"
    return ""


def _beyond(tensor: onnx.SparseTensorProto) -> str:
    """Returns why versions that check all indices do not load a sparse constant, as a clause about it; "" if they
    do."""
    values, count = tensor.values, _count(tensor)
    if len(values.dims) != 1:
        return f"has values of {len(values.dims)} dimensions, which must be 1"
    if tensor.indices.dims[0] != count:
        return f"has {tensor.indices.dims[0]} indices for {count} values"
    if values.data_location != onnx.TensorProto.EXTERNAL and not holds_its_elements(values):
        return f"has values whose data do not fit their dimensions {list(values.dims)}"
    found = _indices(tensor)
    if found is None or not found.size:
        return ""
    most = np.array(tensor.dims if found.ndim == 2 else math.prod(tensor.dims), np.float64)
    is_beyond = (found < 0) | (found >= most)
    return f"has indices beyond its dimensions {list(tensor.dims)}" if is_beyond.any() else ""


def _indices(tensor: onnx.SparseTensorProto) -> np.ndarray | None:
    """Returns the indices; None if they are not known."""
    try:
        found = value_of(tensor.indices, no_external_data)
    except InputError:
        return None
    return found if found is not None and found.dtype.kind in "iu" else None
