"""The Splits and Concats of a model with their places; those of a function at each of its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import onnx

from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.limits import Budget
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.formats.onnx.protobuf import graphs_of, text
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.models.functions import Key, key_of
from dmlsplit.models.inference import Inference
from dmlsplit.models.places import Place, Spot
from dmlsplit.models.reading import Reader
from dmlsplit.models.scope import Scope
from dmlsplit.system.records import entity


@entity
class Site:
    """One Split or Concat at one call of the functions around it; `index` is its index in its graph."""

    place: Place
    index: int
    proto: onnx.NodeProto
    """The node with references replaced with the call's attributes."""
    node: SplitNode | JoinNode
    scope: Scope

    @property
    def path(self) -> str:
        return self.node.path


Body: TypeAlias = onnx.GraphProto | onnx.FunctionProto


class Sites(NamedTuple):
    """The Splits and Concats of a model. If `typed`, their scopes know the types of all tensors, and `scopes` are those
    of all graphs, at each call."""

    found: Sequence[Site]
    typed: bool
    scopes: Mapping[Place, Sequence[Scope]]


def sites_of(
    model: onnx.ModelProto, read_external: ReadExternal, inference: Inference, *, typed: bool = False
) -> Sites:
    """Returns the Split and Concat nodes of a model without weights, in order. Raises InputError if it is no valid
    model.

    `typed`: types are inferred for all tensors, even if none of the nodes needs inference.
    """
    reader = _SiteReader(model, read_external, inference, typed=typed)
    for _ in reader.items(model, {}):
        pass
    return Sites(reader.sites, reader.typed, reader.scopes)


class Bodies:
    """The graphs and functions of a model, by their places."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._graph = model.graph
        self._functions = {key_of(function, text(function.name)): function for function in model.functions}
        self._inner: dict[Spot, dict[tuple[str, int], onnx.GraphProto]] = {}

    def at(self, place: Place) -> Body | None:
        """Returns the graph or function at a place of this model; None if the place is inside a graph that the caller
        of a function passes to it as an attribute."""
        found: Body = self._graph if place.key is None else self._functions[place.key]
        for depth, (index, name, number) in enumerate(place.steps):
            spot = Place(place.key, place.steps[:depth]), index
            if spot not in self._inner:
                attributes = found.node[index].attribute
                self._inner[spot] = {(text(a.name), k): g for a in attributes for k, g in enumerate(graphs_of(a))}
            graph = self._inner[spot].get((name, number))
            if graph is None:
                return None
            found = graph
        return found


class _SiteReader(Reader):
    """A Reader that records the place of each Split and Concat, and the scope of each graph."""

    def __init__(
        self, model: onnx.ModelProto, read_external: ReadExternal, inference: Inference, *, typed: bool
    ) -> None:
        self._infers = typed
        self.typed = True
        """True if all graphs were read, and inferred."""
        super().__init__(model, read_external, (), False, Budget(model.ByteSize()), inference)
        self.sites: list[Site] = []
        self.scopes: dict[Place, list[Scope]] = {}

    def _reads(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        found = self._infers or super()._reads(nodes)
        self.typed = self.typed and found
        return found

    def _entered(self, scope: Scope, calls: tuple[Key, ...]) -> None:
        self.scopes.setdefault(_place(scope, calls), []).append(scope)

    def _found(
        self, found: SplitNode | JoinNode, index: int, node: onnx.NodeProto, scope: Scope, calls: tuple[Key, ...]
    ) -> None:
        self.sites.append(Site(_place(scope, calls), index, node, found, scope))

    def _needs_none(self, graph: onnx.GraphProto) -> bool:
        none = not self._infers and super()._needs_none(graph)
        self.typed = self.typed and not none
        return none


def _place(scope: Scope, calls: Sequence[Key]) -> Place:
    return Place(calls[-1] if calls else None, scope.steps)
