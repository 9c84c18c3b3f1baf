"""Layers, ports and edges of an IR, and the numbers and shapes in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dmlsplit.descriptors.diagnostics import Position
from dmlsplit.descriptors.dims import Dim, Shape, interval
from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

MAX_RANK: Final = Limit.IR_RANK.most
MAX_SIZE: Final = 2**63 - 1
"""The largest size of a dimension, which OpenVINO stores in an int64."""

_INTEGER = re.compile(r"\s*(-?[0-9]{1,20})\s*", re.ASCII)
_INTERVAL = re.compile(r"([0-9]{0,20})\s*\.\.\s*([0-9]{0,20})", re.ASCII)
_NAME = re.compile(r"(?:[^,]|(?<=\\),)+", re.DOTALL)

PortId: TypeAlias = tuple[int, int]
"""(layer id, port id)."""


@dataclass(slots=True)
class Port:
    r"""An input or output; `shape` None: the port has no <dim>, so it is a scalar or of unknown rank.

    `listed` holds the port's names, separated by commas; `\,` is a comma in a name.
    """

    id: int
    precision: str | None
    listed: str
    dims: list[Dim] = field(default_factory=list)

    @property
    def names(self) -> Iterator[str]:
        return (name[0].replace("\\,", ",") for name in _NAME.finditer(self.listed))

    @property
    def shape(self) -> Shape | None:
        return tuple(self.dims) if self.dims else None


@dataclass(slots=True)
class Layer:
    """A layer; `data` holds the supported attributes of <data>, `bodies` the graphs inside the layer."""

    id: int
    name: str
    type: str
    version: str
    line: int
    column: int
    data: Mapping[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    bodies: list[Graph] = field(default_factory=list)

    def __str__(self) -> str:
        return f"layer {self.id} '{printable(self.name, 60)}' ({printable(self.type, 60)})"

    @property
    def place(self) -> Position:
        return self.line, self.column

    def error(self, message: str) -> InputError:
        return InputError(f"{self}: {message}", line=self.line, column=self.column)

    def attribute(self, name: str) -> str:
        """Returns the text of an attribute of <data>. Raises InputError if it is missing."""
        if name not in self.data:
            raise self.error(f"<data> has no {name}")
        return self.data[name]

    def integer(self, name: str) -> int:
        """Returns an attribute of <data> as an int. Raises InputError if it is missing or not an integer."""
        number = integer(self.attribute(name))
        if number is None:
            raise self.error(f"{name} is '{printable(self.data[name], 60)}', not an integer")
        return number


@dataclass(slots=True)
class Edge:
    source: PortId
    target: PortId
    line: int
    column: int


@dataclass(slots=True)
class Graph:
    """The model's own graph, or the body of a layer; `name` is its path: "If_3/then_body"."""

    name: str
    layers: dict[int, Layer] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    sources: dict[PortId, PortId] = field(default_factory=dict)
    """Maps input ports to the output ports that feed them."""

    def in_order(self) -> Iterator[Layer]:
        """Yields the layers, each after its producers. Before the first one, fills `sources`, which maps an input port
        to the output port that feeds it.

        Raises InputError for an edge from or to a port that does not exist and for a second edge to a port, before the
        first layer; for a cycle, after all layers that do not depend on it.
        """
        outputs = {(layer.id, port.id) for layer in self.layers.values() for port in layer.outputs}
        inputs = {(layer.id, port.id) for layer in self.layers.values() for port in layer.inputs}
        waiting = dict.fromkeys(self.layers, 0)
        followers: dict[int, list[int]] = {}
        for edge in self.edges:
            self._check(edge, outputs, inputs)
            self.sources[edge.target] = edge.source
            waiting[edge.target[0]] += 1
            followers.setdefault(edge.source[0], []).append(edge.target[0])
        ready = [id for id, count in waiting.items() if count == 0]
        for id in ready:
            yield self.layers[id]
            for follower in followers.get(id, ()):
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    ready.append(follower)
        stuck = next((id for id, count in waiting.items() if count > 0), None)
        if stuck is not None:
            raise self.layers[stuck].error("depends on itself: the edges form a cycle")

    def _check(self, edge: Edge, outputs: Iterable[PortId], inputs: Iterable[PortId]) -> None:
        for what, end, ports in (("from", edge.source, outputs), ("to", edge.target, inputs)):
            if end[0] not in self.layers:
                message = f"an edge leads {what} layer {end[0]}, which does not exist"
            elif end not in ports:
                side = "output" if what == "from" else "input"
                message = f"an edge leads {what} port {end[1]} of {self.layers[end[0]]}, which has no such {side}"
            else:
                continue
            raise InputError(message, line=edge.line, column=edge.column)
        if edge.target in self.sources:
            message = f"two edges lead to port {edge.target[1]} of {self.layers[edge.target[0]]}"
            raise InputError(message, line=edge.line, column=edge.column)


def integer(text: str) -> int | None:
    """Returns the value of the text of a decimal integer of at most 20 digits, with or without a minus sign and blanks
    around it; None for any other text."""
    match = _INTEGER.fullmatch(text)
    return int(match[1]) if match is not None else None


def read_dim(text: str) -> Dim:
    """Returns a size in OpenVINO's notation (6, -1, ?, 2..10, 2.., ..10): an int, an interval, or None for any size.
    Raises InputError for other text."""
    text = text.strip()
    number = integer(text)
    if number is not None and -1 <= number <= MAX_SIZE:
        return None if number == -1 else number
    match = _INTERVAL.fullmatch(text)
    if text == "?":
        return None
    if match is not None:
        low, high = int(match[1] or 0), int(match[2]) if match[2] else None
        if low <= MAX_SIZE and (high is None or low <= high <= MAX_SIZE):
            return interval(low, high)
    raise InputError(f"'{printable(text, 60)}' is not a size; sizes are 6, -1, ? or 2..10")


def read_shape(text: str) -> Shape | None:
    """Returns the shape that a Parameter's text gives: (2, None, interval from 3) for "2,?,3..", () for "", None for
    "..." (unknown rank). Raises InputError for other text and for too many dimensions."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    if text == "...":
        return None
    dims = text.split(",") if text else []
    if len(dims) > MAX_RANK:
        raise InputError(f"the shape has {len(dims)} dimensions; the limit is {MAX_RANK}")
    return tuple(map(read_dim, dims))
