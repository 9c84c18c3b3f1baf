"""The caller's shapes and sizes, filled in before anything is inferred."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import onnx

from dmlsplit.errors import InputError
from dmlsplit.formats.jsontext import printable
from dmlsplit.formats.nodes import Dim, Shape, shape_text
from dmlsplit.formats.onnx.tensors import make_type, text, type_of

Shapes: TypeAlias = Mapping[str, Sequence[Dim]]
Dims: TypeAlias = Mapping[str, int]


def fill_in(model: onnx.ModelProto, shapes: Shapes, dims: Dims, everywhere: bool = True) -> None:
    """Gives tensors of the main graph their shapes, and symbols their sizes wherever they stand.

    A size given for a symbolic dimension binds the symbol. InputError for what contradicts the model, and for what is
    not in it unless `everywhere` is False.
    """
    known = symbols_of(model.graph)
    sizes: dict[str, int] = {}
    for name, size in dims.items():
        if name not in known:
            if not everywhere:
                continue
            raise InputError(f"there is no symbolic dimension '{printable(name)}'; the model has {_listed(known)}")
        sizes[name] = _size(size, f"dimension '{printable(name)}'")
    declared = {text(value.name): value for value in _values(model.graph)}
    computed = {text(name) for node in model.graph.node for name in node.output if name}
    for name, given in shapes.items():
        if name not in declared:
            if name not in computed:
                if not everywhere:
                    continue
                inputs = [text(value.name) for value in model.graph.input]
                raise InputError(f"there is no tensor '{printable(name)}'; the inputs are {_listed(inputs)}")
            declared[name] = model.graph.value_info.add(name=name)
        _give(declared[name], given, sizes)
    for value in _all_values(model.graph):
        _replace(value, sizes)


def _give(value: onnx.ValueInfoProto, given: Sequence[Dim], sizes: dict[str, int]) -> None:
    kind, shape = type_of(value.type)
    what = f"shape of '{printable(text(value.name))}'"
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        raise InputError(f"{what}: it is no tensor, but {kind}")
    if shape is not None and len(shape) != len(given):
        raise InputError(f"{what}: {shape_text(given)} is given, the model has {shape_text(shape)}")
    merged: list[Dim] = []
    for i, (new, old) in enumerate(zip(given, shape or (None,) * len(given), strict=True)):
        if new is None or isinstance(new, str):
            merged.append(old if old is not None else new)
            continue
        size = _size(new, f"{what}, dimension {i}")
        bound = sizes.setdefault(old, size) if isinstance(old, str) else size if old is None else old
        if bound != size:
            raise InputError(
                f"{what}: dimension {i} is {size}, the model has {old}{f' = {bound}' if old != bound else ''}"
            )
        merged.append(size)
    value.type.CopyFrom(make_type(value.type.tensor_type.elem_type, tuple(merged)))


def _replace(value: onnx.ValueInfoProto, sizes: Dims) -> None:
    if value.type.WhichOneof("value") == "tensor_type":
        for dim in value.type.tensor_type.shape.dim:
            size = sizes.get(text(dim.dim_param))
            if size is not None:
                dim.dim_value = size


def _size(value: object, what: str) -> int:
    try:
        size = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what}: {printable(repr(value))} is no size") from None
    if not 0 <= size < 2**63:
        raise InputError(f"{what}: {size} is no size")
    return size


def symbols_of(graph: onnx.GraphProto) -> dict[str, None]:
    """The names of sizes, in order."""
    shapes: list[Shape] = [shape for value in _all_values(graph) if (shape := type_of(value.type)[1]) is not None]
    return {dim: None for shape in shapes for dim in shape if isinstance(dim, str)}


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.output
    yield from graph.value_info
    yield from graph.input


def _all_values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from _values(graph)
    for node in graph.node:
        for subgraph in subgraphs(node):
            yield from _all_values(subgraph)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes, in order."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _listed(names: Sequence[str] | Mapping[str, None]) -> str:
    shown = [printable(name, 40) for name in list(names)[:8]]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "") if shown else "none"
