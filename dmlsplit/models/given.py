"""Fills the caller's shapes and sizes into a model before anything is inferred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import onnx
from onnx import helper

from dmlsplit.descriptors.dims import Dim, shape_text
from dmlsplit.formats.arguments import given_size
from dmlsplit.formats.nodes import listed
from dmlsplit.formats.onnx.protobuf import all_graphs, computed, text, values_of
from dmlsplit.formats.onnx.tensors import type_of
from dmlsplit.models.folding import Constant
from dmlsplit.system.errors import GivenShapeError, InputError
from dmlsplit.system.printable import printable

Shapes: TypeAlias = Mapping[str, Sequence[Dim]]
Dims: TypeAlias = Mapping[str, int]
_MOST_SHOWN: Final = 200
"""Characters of a given shape in an error: it may have any rank."""


def fill_in(model: onnx.ModelProto, shapes: Shapes, dims: Dims, require_known_names: bool = True) -> None:
    """Writes the caller's shapes of tensors, and sizes of symbols wherever they occur, into the model, in place.

    If several graphs have a tensor with the same name, the outermost one is used. A size given for a symbolic dimension
    replaces the symbol everywhere. Raises InputError if they contradict the model, and for a name that is not in it
    unless `require_known_names` is False.
    """
    if not shapes and not dims:
        return
    sizes = known_sizes(model.graph, dims, require_known_names)
    declared: dict[str, onnx.ValueInfoProto] = {}
    computing: dict[str, onnx.GraphProto] = {}
    for graph in all_graphs(model.graph):
        for name, value in {value.name: value for value in values_of(graph)}.items():
            declared.setdefault(name, value)
        for name in computed(graph.node):
            computing.setdefault(name, graph)
    for name, given in shapes.items():
        if name not in declared:
            if name not in computing:
                if not require_known_names:
                    continue
                raise _no_tensor(name, model.graph)
            declared[name] = computing[name].value_info.add(name=name)
        _give(declared[name], given, sizes)
    write_sizes(model.graph, sizes)


def known_sizes(graph: onnx.GraphProto, dims: Dims, require_known_names: bool = True) -> dict[str, int]:
    """Returns the sizes in `dims` of the symbols that the graph has. Raises InputError for what is no size, and for
    other symbols unless `require_known_names` is False."""
    known = symbols_of(graph)
    sizes: dict[str, int] = {}
    for name, size in dims.items():
        if name in known:
            sizes[name] = given_size(size, f"dimension '{printable(name)}'")
        elif require_known_names:
            raise InputError(f"there is no symbolic dimension '{printable(name)}'; the model has {listed(known)}")
    return sizes


def write_sizes(graph: onnx.GraphProto, sizes: Dims) -> None:
    """Replaces symbols by their sizes, in place, wherever they occur in the graph and in graphs inside it."""
    for value in _all_values(graph):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def constants(model: onnx.ModelProto, values: Mapping[str, Sequence[int]]) -> dict[str, Constant | None]:
    """Maps each name in `values`, a tensor of the main graph, to its elements as a Constant. Raises InputError for a
    name that is not in the model."""
    values_and_weights = (*values_of(model.graph), *model.graph.initializer)
    known = {value.name for value in values_and_weights} | computed(model.graph.node)
    found: dict[str, Constant | None] = {}
    for name, value in values.items():
        if name not in known:
            raise _no_tensor(name, model.graph)
        found[name] = Constant.of(np.asarray(value))
    return found


def _no_tensor(name: str, graph: onnx.GraphProto) -> InputError:
    inputs = [value.name for value in graph.input]
    return InputError(f"there is no tensor '{printable(name)}'; the inputs are {listed(inputs)}")


def _give(value: onnx.ValueInfoProto, given: Sequence[Dim], sizes: dict[str, int]) -> None:
    kind, shape = type_of(value.type)
    what = f"shape of '{printable(value.name)}'"
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        raise GivenShapeError(f"{what}: it is not a tensor, but {kind}", tensor=value.name)
    if shape is not None and len(shape) != len(given):
        said = f"{printable(shape_text(given), _MOST_SHOWN)} is given"
        raise GivenShapeError(f"{what}: {said}, but the model has {shape_text(shape)}", tensor=value.name)
    merged: list[Dim] = []
    for i, (new, old) in enumerate(zip(given, shape or (None,) * len(given), strict=True)):
        if new is None or isinstance(new, str):
            merged.append(old if old is not None else new)
            continue
        size = given_size(new, f"{what}, dimension {i}")
        bound = sizes.setdefault(old, size) if isinstance(old, str) else size if old is None else old
        if bound != size:
            raise GivenShapeError(
                f"{what}: dimension {i} is {size}, but the model has {shape_text([old])[1:-1]}"
                f"{f' = {bound}' if old != bound else ''}",
                tensor=value.name,
            )
        merged.append(size)
    value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, tuple(merged)))


def symbols_of(graph: onnx.GraphProto) -> dict[str, None]:
    """Returns the names of a graph's symbolic dimensions, as the keys of a dict, in order."""
    dims = (dim for value in _all_values(graph) for dim in value.type.tensor_type.shape.dim)
    return {text(dim.dim_param): None for dim in dims if dim.dim_param}


def _all_values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    for found in all_graphs(graph):
        yield from values_of(found)
