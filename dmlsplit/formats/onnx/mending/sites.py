"""The Splits and Concats of a model with the places where they stand; those of a function at each of its calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError, EncodeError

from dmlsplit.dims import Dim
from dmlsplit.errors import InputError
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.onnx import given, loading
from dmlsplit.formats.onnx.functions import Key, check_references, key_of
from dmlsplit.formats.onnx.protobuf import graphs_of
from dmlsplit.formats.onnx.reading import Reader
from dmlsplit.formats.onnx.scope import Scope, Step
from dmlsplit.formats.onnx.tensors import ReadExternal, text


@dataclass(frozen=True, slots=True)
class Place:
    """A graph of a model: of its function `key`, None for the model's own, the graph at the end of `steps`."""

    key: Key | None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """One Split or Concat, at one call of the functions around it; `index` is that of the node in its graph."""

    place: Place
    index: int
    proto: onnx.NodeProto
    """As that call has it: without references to attributes of the function."""
    node: SplitNode | JoinNode
    scope: Scope

    @property
    def path(self) -> str:
        return self.node.path


def sites_of(
    model: onnx.ModelProto,
    read_external: ReadExternal,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> list[Site]:
    """The nodes of a model, in order. InputError for what is no model, or has no such tensors and dimensions."""
    try:
        model = loading.without_weights(model)
        check_references(model)
        given.fill_in(model, shapes or {}, dims or {})
        reader = _SiteReader(
            model, read_external, frozenset(shapes or ()), resized=bool(shapes or dims), budget=Budget(model.ByteSize())
        )
        for _ in reader.items(model, {}):
            pass
    except (RecursionError, DecodeError, EncodeError):  # protobuf has its own limit, of 100 messages in one another
        raise InputError("its graphs are nested too deeply") from None
    return reader.sites


def nodes_at(model: onnx.ModelProto, place: Place) -> onnx.GraphProto | onnx.FunctionProto | None:
    """The graph or function at a place; None where a call of a function brings the graph with it."""
    if place.key is None:
        graph: onnx.GraphProto | onnx.FunctionProto = model.graph
    else:
        graph = next(function for function in model.functions if key_of(function, text(function.name)) == place.key)
    for index, name, number in place.steps:
        attribute = next(a for a in graph.node[index].attribute if text(a.name) == name)
        graphs = list(graphs_of(attribute))
        if number >= len(graphs):
            return None
        graph = graphs[number]
    return graph


class _SiteReader(Reader):
    """A Reader that notes where what it reads stands."""

    def __init__(
        self, model: onnx.ModelProto, read_external: ReadExternal, given: Collection[str], resized: bool, budget: Budget
    ) -> None:
        super().__init__(model, read_external, given, resized, budget)
        self.sites: list[Site] = []

    def _judged(
        self, index: int, node: onnx.NodeProto, scope: Scope, calls: tuple[Key, ...], hint: str
    ) -> SplitNode | JoinNode:
        found = super()._judged(index, node, scope, calls, hint)
        place = Place(calls[-1] if calls else None, scope.steps)
        self.sites.append(Site(place, index, node, found, scope))
        return found
