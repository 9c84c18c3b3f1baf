"""Checks the constants of a model as ONNX Runtime does when it reads them: whether their data are there, and as many as
their dimensions say.

Source: tensorprotoutils.cc, constant_sharing.cc and graph.cc of ONNX Runtime. Observed with 1.18.0, 1.20.1, 1.22.0,
1.23.2, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

import enum
import math
import ntpath
import re
from collections.abc import Container, Iterator, Mapping, Set
from functools import cached_property
from typing import Final, NamedTuple

import onnx
from onnx import TensorProto

from dmlsplit.formats.onnx.protobuf import domain_of, reads, text
from dmlsplit.formats.onnx.tensors import (
    NoDataError,
    ReadExternal,
    holds_its_elements,
    size_of,
    type_name,
)
from dmlsplit.models.graph import attribute
from dmlsplit.onnxruntime.creation import OPTIMIZING, Failure, Place
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

_KEYS: Final = frozenset(("location", "offset", "length", "checksum"))
_PREPACKED: Final = "prepacked"
"""The beginning of the keys of what ONNX Runtime itself stores beside the data."""
_NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}")
_LARGE: Final = 128
"""Constants of this many bytes and more are read as the model is loaded, by versions that do so."""
_SHARED_TYPES: Final = frozenset(
    (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
)
_FOUR_BITS: Final = frozenset((TensorProto.INT4, TensorProto.UINT4))
_MOST_SHARED: Final = 8
"""Constants of the model's own graph with at most this many elements, of these types, are compared with each other."""


_OUTSIDE: Final = "put the file where the model names it, in the model's folder, or save the data in the model"


class Kind(enum.Enum):
    """What is wrong with a constant."""

    FILE = enum.auto()
    """Its data are in a file, and cannot be read from it."""
    OUTSIDE = enum.auto()
    """Its data are in a file outside the folder of the model."""
    DATA = enum.auto()
    """Its data are in the model, and too many or too few."""


class Fault(NamedTuple):
    """What is wrong with a constant of a graph."""

    tensor: onnx.TensorProto
    name: str
    kind: Kind
    why: str


def failures(graph: SessionGraph) -> Iterator[Failure]:
    """Yields the failure of session creation, certain or possible, for the first constant of each kind of fault that a
    node or an output of the graph reads."""
    yield from _of_filled(graph) if graph.options.optimization >= 1 else ()
    found = graph.model.once(("stored", graph.scope.steps), lambda: tuple(_faults(graph)))
    if not found:
        return
    nodes = graph.scope.graph.node
    used = {name for node in nodes for name in reads(node)} | {value.name for value in graph.scope.graph.output}
    strict, seen = graph.runtime.traits.checks_stored_tensors, set()
    by_element = _ReadByElement(graph)
    for fault in found:
        if fault.name not in used or (fault.kind is Kind.OUTSIDE and not strict) or (fault.kind, True) in seen:
            continue
        certain = fault.kind is not Kind.DATA or by_element(fault)
        if (fault.kind, certain) not in seen:
            seen.add((fault.kind, certain))
            cure = "" if fault.kind is Kind.DATA else _OUTSIDE
            yield Failure(OPTIMIZING, f"{printable(fault.name, 60)} {fault.why}", certain, cure=cure)


def of_four_bits(graph: SessionGraph, fused: Container[int], places: Mapping[int, Place]) -> Iterator[Failure]:
    """Yields a failure for each constant of 4-bit elements that nodes of a fused graph read and that is not raw data,
    as DirectML's execution provider does not unpack it. `fused` has the indices of nodes in fused graphs, `places`
    maps the index of each node to its place. Observed with 1.20.1, 1.24.4 and 1.30.0."""
    found = graph.model.once(("four bits", graph.scope.steps), lambda: dict(_not_raw(graph.scope.graph)))
    for node in graph.order if found else ():
        for name in dict.fromkeys(value.name for value in node.inputs) if node.index in fused else ():
            if name not in found:
                continue
            if graph.runtime.traits.reads_large_constants and math.prod(found[name].dims) >= _LARGE * 2:
                continue  # it is unpacked as the model is loaded
            path = graph.path(node.index)
            why = f"{printable(name, 60)}, which {path} reads on DirectML, is a constant of 4-bit elements"
            yield Failure(places[node.index].kernel, f"{why} outside of raw_data", node=path)


def _not_raw(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yields the constants of a graph with 4-bit elements that are stored in int32_data."""
    for name, tensor in _constants(graph):
        if tensor.data_type in _FOUR_BITS and tensor.int32_data:
            yield name, tensor


def _of_filled(graph: SessionGraph) -> Iterator[Failure]:
    """Yields a failure for each ConstantOfShape that is computed as the session is created, and whose value is not one
    element. DirectML takes any."""
    for node in graph.nodes:
        given = attribute(node, "value") if node.op_type == "ConstantOfShape" else None
        if given is None or not all(graph.is_constant(value.name) for value in node.inputs):
            continue
        if math.prod(given.t.dims) != 1 or not holds_its_elements(given.t):
            path = graph.path(node.index)
            yield Failure(OPTIMIZING, f"{path} is folded, and its value is not one element", node=path)


def _faults(graph: SessionGraph) -> Iterator[Fault]:
    read_external = graph.scope.origin.read_external
    for name, tensor in dict(_constants(graph.scope.graph)).items():
        if tensor.data_location == TensorProto.EXTERNAL:
            kind, why = _fault_of_file(tensor, read_external)
        else:
            kind, why = Kind.DATA, "" if holds_its_elements(tensor) else _misfit(tensor)
        if why:
            yield Fault(tensor, name, kind, why)


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yields the initializers of a graph and the tensors of its Constants, with their names; of two with one name the
    last counts."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant" and node.output and domain_of(node) == "":
            yield from ((node.output[0], each.t) for each in node.attribute[:] if each.name == "value")


def _misfit(tensor: onnx.TensorProto) -> str:
    if tensor.data_type == TensorProto.STRING and tensor.raw_data:
        return "is a tensor of strings with raw data"
    return f"has data that do not fit its type {type_name(tensor.data_type)} and dimensions {list(tensor.dims)}"


def _fault_of_file(tensor: onnx.TensorProto, read_external: ReadExternal) -> tuple[Kind, str]:
    """Returns what is wrong with external data, "" for nothing; a tensor without any is one that was dropped because it
    is large. Data are not read, and files that may not be read are taken to be right."""
    keys = {text(entry.key): text(entry.value) for entry in tensor.external_data}
    if not keys or 0 in tensor.dims:
        return Kind.FILE, ""
    name = type_name(tensor.data_type)
    if tensor.data_type == TensorProto.STRING:
        return Kind.FILE, "is a tensor of strings with external data"
    for key, value in keys.items():
        if not value or (key not in _KEYS and not key.startswith(_PREPACKED)):
            return Kind.FILE, f"has external data with the key '{printable(key, 60)}', or no value for it"
    location = keys.get("location")
    if location is None:
        return Kind.FILE, "has external data without a location"
    numbers = [keys.get(key, "0") for key in ("offset", "length")]
    if not all(map(_NUMBER.fullmatch, numbers)):
        return Kind.FILE, "has external data whose offset or length is not a number"
    (offset, length), size = map(int, numbers), size_of(tensor)
    if size is not None and length not in (0, size):
        kind = f"its type {name} and dimensions {list(tensor.dims)} need {size}"
        return Kind.FILE, f"has {length} bytes of external data; {kind}"
    if offset < 0:
        return Kind.FILE, "has external data at a negative offset"
    if _is_outside(location):
        return Kind.OUTSIDE, f"has external data in '{printable(location, 60)}', outside the model's folder"
    try:
        read_external(location, offset + (size or length or 1) - 1, 1)
    except NoDataError as error:
        return Kind.FILE, error.message
    except InputError:
        pass
    return Kind.FILE, ""


def _is_outside(location: str) -> bool:
    path = ntpath.normpath(location)
    return path.startswith(("\\", "..\\")) or path == ".." or bool(ntpath.splitdrive(path)[0])


class _ReadByElement:
    """Tells which constants in the model the session reads element by element: their size is then checked. DirectML
    copies the bytes that there are."""

    def __init__(self, graph: SessionGraph) -> None:
        self._graph = graph

    def __call__(self, fault: Fault) -> bool:
        graph, tensor = self._graph, fault.tensor
        count, size = math.prod(tensor.dims), size_of(tensor)
        if count == 0 or tensor.data_type == TensorProto.STRING:
            return True
        if graph.runtime.traits.reads_large_constants and size is not None and size >= _LARGE:
            return True
        is_own = graph.is_main and fault.name not in graph.branches.of
        if is_own and graph.options.optimization >= 1 and count <= _MOST_SHARED and tensor.data_type in _SHARED_TYPES:
            return True
        return fault.name in self._on_cpu

    @cached_property
    def _on_cpu(self) -> Set[str]:
        """The names that nodes read that run on the CPU or are folded."""
        graph = self._graph
        remaining = {node.index for node in graph.order}  # the others are folded
        on_cpu = [node for node in graph.nodes if node.index not in remaining or graph.on_dml(node.index) is False]
        return {name for node in on_cpu for name in node.proto.input[:]}
