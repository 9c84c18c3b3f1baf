"""Known facts about the tensors of a graph: shapes, element types, and the shapes that the caller gives.

An IR declares the shape of every port; only direct consequences are inferred here: a Parameter's or the caller's shape
passes through layers that keep it, and a Split's outputs follow from its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dmlsplit.descriptors.dims import Dim, Shape, compatible, merged, shape_text
from dmlsplit.formats.arguments import given_size
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.nodes import listed
from dmlsplit.formats.openvino.graph import MAX_RANK, Graph, Layer, Port, PortId, read_shape
from dmlsplit.formats.openvino.types import type_name
from dmlsplit.system.errors import GivenShapeError, InputError
from dmlsplit.system.printable import printable

MAX_NAMES: Final = Limit.IR_NAMES.most
KEEPS_SHAPE: Final = frozenset(
    (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Clamp", "Convert", "Cos", "Cosh"),
        *("Elu", "Erf", "Exp", "Floor", "Gelu", "HSigmoid", "HSwish", "HardSigmoid", "Identity", "IsFinite", "IsInf"),
        *("IsNaN", "Log", "LogSoftmax", "LogicalNot", "MVN", "Mish", "Negative", "NormalizeL2", "PReLU", "ReLU"),
        *("Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "SoftMax", "SoftPlus", "SoftSign", "Softmax", "Sqrt"),
        *("Swish", "Tan", "Tanh"),
    )
)
"""Layers whose output has the shape of their first input, regardless of their other inputs."""


class Output(NamedTuple):
    """An output of a layer. Its names are built on demand, because each may be much longer than the port's text."""

    graph: Graph
    layer: Layer
    port: Port

    def names(self) -> Iterator[str]:
        """Returns an iterator over the port's own names, then the layer's name (with ":port id" if it has several
        outputs), each prefixed with the path of the body that the layer is in."""
        own = self.layer.name if len(self.layer.outputs) == 1 else f"{self.layer.name}:{self.port.id}"
        way = f"{self.graph.name}/" if self.graph.name else ""
        return (f"{way}{name}" for name in chain(self.port.names, (own,)))

    @property
    def name(self) -> str:
        """The output's first name, which messages use."""
        return next(self.names())


class PortTensor(NamedTuple):
    """The known facts about an output. `origin` is the output that determines an unknown shape: the caller can give the
    shape there."""

    shape: Shape | None
    type: str | None
    output: Output | None = None
    origin: Output | None = None


class Names:
    """Names of tensors for the returned nodes, whose total length is limited."""

    def __init__(self) -> None:
        self._left = MAX_NAMES

    def of(self, output: Output | None) -> str:
        """Returns the name of an output, "" for None, and adds its length to the total. Raises InputError if all names
        returned so far exceed MAX_NAMES characters."""
        name = "" if output is None else output.name
        self._left -= len(name)
        if output is not None and self._left < 0:
            raise output.layer.error(f"the names of the model's tensors exceed {MAX_NAMES} characters with this one")
        return name


class GivenShapes:
    """The shapes that the caller gives, by names of tensors or layers."""

    def __init__(self, shapes: Mapping[str, Sequence[Dim]]) -> None:
        self._shapes = {name: _given_shape(name, shape) for name, shape in shapes.items()}
        self._used: set[str] = set()

    def fill(self, output: Output, shape: Shape | None) -> Shape | None:
        """Returns the shape of an output, `shape` with unknown sizes filled in from the shape that the caller gives for
        one of its names; None if neither is known. Raises InputError if the two contradict."""
        for name in output.names() if self._shapes else ():
            if name in self._shapes:
                self._used.add(name)
                if not compatible(shape, self._shapes[name]):
                    given = shape_text(self._shapes[name])
                    said = f"the given shape is {given}, but the model has {shape_text(shape)}"
                    fault = output.layer.error(said)
                    raise GivenShapeError(fault.message, tensor=name, line=fault.line, column=fault.column)
                shape = merged(shape, self._shapes[name])
        return shape

    def check_used(self, graph: Graph) -> None:
        """Raises InputError if the caller gave a shape for a name that no call of `fill` has met, which means that the
        model does not have it; the message lists the graph's inputs."""
        for name in self._shapes:
            if name not in self._used:
                parameters = [layer.name for layer in graph.layers.values() if layer.type == "Parameter"]
                raise InputError(f"there is no tensor '{printable(name)}'; the inputs are {listed(parameters)}")


def put_out(graph: Graph, layer: Layer, first: PortTensor | None, given: GivenShapes) -> dict[PortId, PortTensor]:
    """Maps the id of each output port of a layer other than a split or concat to its facts: declared type, and
    declared shape with the caller's sizes. `first` has the facts of the layer's first input, whose shape passes through
    elementwise layers. Raises InputError for a malformed shape."""
    tensors = {}
    for port in layer.outputs:
        shape, type = _declared(layer, port)
        output = origin = Output(graph, layer, port)
        if layer.type in KEEPS_SHAPE and first is not None and compatible(first.shape, shape):
            shape, origin = merged(first.shape, shape), first.origin or output
        tensors[(layer.id, port.id)] = PortTensor(given.fill(output, shape), type, output, origin)
    return tensors


def _declared(layer: Layer, port: Port) -> tuple[Shape | None, str | None]:
    """Returns shape and type name of an output, each None if unknown: from the attributes of a Parameter or Const,
    else from the port. Raises InputError for a malformed shape."""
    if layer.type not in ("Parameter", "Const"):
        return port.shape, type_name(port.precision)
    type = type_name(layer.data.get("element_type", port.precision))
    if "shape" not in layer.data:
        return port.shape, type
    try:
        return read_shape(layer.data["shape"]), type
    except InputError as error:
        raise layer.error(error.message) from None


def _given_shape(name: str, shape: Iterable[object]) -> Shape:
    what = f"shape of '{printable(name)}'"
    dims = [None if size is None else given_size(size, what) for size in shape]
    if len(dims) > MAX_RANK:
        said = f"{what}: there are {len(dims)} dimensions; the limit is {MAX_RANK}"
        raise GivenShapeError(said, tensor=name)
    return tuple(dims)
