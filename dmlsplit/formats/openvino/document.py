"""Reads the XML of an IR as a stream into graphs. The text is untrusted: DTDs and entities are refused, and every
quantity is limited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final
from xml.parsers import expat
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler, ErrorHandler
from xml.sax.xmlreader import AttributesImpl, Locator

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.openvino.graph import MAX_RANK, Edge, Graph, Layer, Port, integer, read_dim
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

VERSIONS: Final = (10, 11)
"""The versions of the IR that OpenVINO reads; 10 was introduced in release 2020.2, 11 in 2022.1."""
MAX_BYTES: Final = Limit.IR_FILE.most
MAX_DEPTH: Final = Limit.IR_DEPTH.most
MAX_TAGS: Final = Limit.IR_TAGS.most
MAX_LAYERS: Final = Limit.IR_LAYERS.most
MAX_PORTS: Final = Limit.IR_PORTS.most
MAX_ATTRIBUTE: Final = Limit.IR_ATTRIBUTE.most
MAX_NAME: Final = Limit.IR_NAME.most
MAX_NAMES: Final = Limit.IR_NAMES.most
MAX_DIM: Final = Limit.IR_DIM.most

_CHUNK: Final = 16 << 20
"""Large, because an older expat rescans an unfinished token with each chunk."""


def read_document(stream: BinaryIO) -> Graph:
    """Returns the graph in the XML of an IR. Raises InputError, with the line, if it is malformed or too large,
    OSError if reading fails, MemoryError if the parser runs out of memory."""
    try:
        from defusedxml.common import DefusedXmlException
        from defusedxml.expatreader import DefusedExpatParser
    except ImportError:
        message = "reading an OpenVINO IR needs defusedxml: pip install 'dmlsplit[openvino]'"
        raise InputError(message) from None
    parser = DefusedExpatParser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
    handler = _Handler(parser)
    parser.setContentHandler(handler)
    parser.setErrorHandler(ErrorHandler())
    try:
        size = 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > MAX_BYTES:
                raise InputError(f"the file is larger than {MAX_BYTES >> 20} MiB, the limit for an IR's XML")
            parser.feed(chunk)
        parser.close()
    except InputError:
        raise
    except DefusedXmlException:
        raise handler.error("the text declares a document type or entities, which an IR does not") from None
    except SAXParseException as error:
        if error.getMessage() == expat.errors.XML_ERROR_NO_MEMORY:
            raise MemoryError from None
        line, column = _place(error)
        raise InputError(f"not XML: {printable(error.getMessage(), 200)}", line=line, column=column) from None
    # pyexpat raises these for encodings that Python does not have, or that use more than one byte per character.
    except (SAXException, LookupError, ValueError) as error:
        raise handler.error(f"not XML: {printable(str(error), 200)}") from None
    if handler.graph is None:
        raise InputError("the file is empty")
    return handler.graph


class _Handler(ContentHandler):
    """Builds the graphs.

    The stack has an entry for each open element: its name in _START, the object built, and the children seen so far (by
    name, ports by id).
    """

    def __init__(self, place: Locator) -> None:
        super().__init__()
        self.graph: Graph | None = None
        self._locator = place
        self._stack: list[tuple[str, Any, set[str | int]]] = [("document", None, set())]
        self._dim: list[str] | None = None
        self._elements = self._layers = self._ports = self._ways = 0

    def error(self, message: str) -> InputError:
        line, column = self._place()
        return InputError(message, line=line, column=column)

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        self._elements += 1
        if self._elements > MAX_TAGS:
            raise self.error(f"there are more than {MAX_TAGS} elements")
        if len(self._stack) > MAX_DEPTH:
            raise self.error(f"elements are nested more than {MAX_DEPTH} levels deep")
        parent, built, _ = self._stack[-1]
        start = _START.get((parent, name)) if parent != "document" else _Handler._net
        if start is None:
            self._stack.append(("", None, set()))
            return
        attributes = dict(attrs.items())
        if any(len(value) > MAX_ATTRIBUTE for value in attributes.values()):
            raise self.error(f"an attribute of <{name}> is longer than {MAX_ATTRIBUTE} characters")
        child = start(self, built, name, attributes)
        self._stack.append((_KINDS.get(name, name) if parent != "document" else "graph", child, set()))

    def endElement(self, name: str) -> None:
        kind, built, _ = self._stack.pop()
        if kind == "dim":
            assert self._dim is not None
            try:
                built.dims.append(read_dim("".join(self._dim)))
            except InputError as error:
                raise self.error(f"{self._layer()}: {error.message}") from None
            if len(built.dims) > MAX_RANK:
                raise self.error(f"{self._layer()}: a port has more than {MAX_RANK} dimensions")
            self._dim = None

    def characters(self, content: str) -> None:
        if self._dim is not None and self._stack[-1][0] == "dim":
            self._dim.append(content)
            if sum(map(len, self._dim)) > MAX_DIM:
                raise self.error(f"{self._layer()}: a <dim> is longer than {MAX_DIM} characters")

    # Starts of elements; each returned object is passed to the starts of its children.

    def _net(self, _: None, name: str, attributes: Mapping[str, str]) -> Graph:
        if name.lower() != "net":
            raise self.error(f"not an OpenVINO IR: the root element is <{printable(name, 60)}>, not <net>")
        version = self._integer(attributes, "version", "<net>")
        if version not in VERSIONS:
            age = "an older format" if version < VERSIONS[0] else "not a known format"
            message = f"IR version {version} is {age}; OpenVINO itself reads {VERSIONS[0]} and {VERSIONS[1]} only"
            raise self.error(f"{message}: convert the model again")
        self.graph = Graph("")
        return self.graph

    def _part(self, parent: Any, name: str, _: Mapping[str, str]) -> Any:
        """Starts an element `name` that may occur only once in the element around it, and has no object of its own.
        Returns `parent`, the object of the element around it (a graph or layer), to which its children are added.
        Raises InputError for a second element of this name."""
        seen = self._stack[-1][2]
        if name in seen:
            layer = self._layer()
            raise self.error(f"a second <{name}>{'' if layer is None else f' in {layer}'}")
        seen.add(name)
        return parent

    def _start_layer(self, graph: Graph, _: str, attributes: Mapping[str, str]) -> Layer:
        number = self._natural(attributes, "id", "<layer>")
        line, column = self._place()
        for required in ("name", "type"):
            if required not in attributes:
                raise self.error(f"layer {number} has no {required}")
        if len(attributes["name"]) > MAX_NAME:
            raise self.error(f"the name of layer {number} is longer than {MAX_NAME} characters")
        layer = Layer(number, attributes["name"], attributes["type"], attributes.get("version", ""), line, column)
        if number in graph.layers:
            raise self.error(f"{layer} has the id of {graph.layers[number]}")
        self._layers += 1
        if self._layers > MAX_LAYERS:
            raise self.error(f"there are more than {MAX_LAYERS} layers")
        graph.layers[number] = layer
        return layer

    def _data(self, layer: Layer, name: str, attributes: Mapping[str, str]) -> None:
        self._part(layer, name, attributes)
        layer.data = {key: attributes[key] for key in _DATA if key in attributes}

    def _body(self, layer: Layer, name: str, attributes: Mapping[str, str]) -> Graph:
        self._part(layer, name, attributes)
        outer = next(built for kind, built, _ in reversed(self._stack) if kind == "graph")
        way = "/".join(part for part in (outer.name, layer.name, name) if part)
        self._ways += len(way)
        if len(way) > MAX_NAME:
            raise self.error(f"{layer}: the names on the path to its {name} are longer than {MAX_NAME} characters")
        if self._ways > MAX_NAMES:
            raise self.error(f"the names on the paths to bodies are longer than {MAX_NAMES} characters together")
        graph = Graph(way)
        layer.bodies.append(graph)
        return graph

    def _port(self, layer: Layer, _: str, attributes: Mapping[str, str]) -> Port:
        number = self._natural(attributes, "id", f"{layer}: <port>")
        side, _, seen = self._stack[-1]
        if number in seen:
            raise self.error(f"{layer}: a second port {number}")
        seen.add(number)
        self._ports += 1
        if self._ports > MAX_PORTS:
            raise self.error(f"there are more than {MAX_PORTS} ports")
        port = Port(number, attributes.get("precision"), attributes.get("names", ""))
        (layer.inputs if side == "input" else layer.outputs).append(port)
        return port

    def _start_dim(self, port: Port, _: str, attributes: Mapping[str, str]) -> Port:
        self._dim = []
        return port

    def _edge(self, graph: Graph, _: str, attributes: Mapping[str, str]) -> None:
        names = ("from-layer", "from-port", "to-layer", "to-port")
        a, b, c, d = [self._natural(attributes, name, "<edge>") for name in names]
        graph.edges.append(Edge((a, b), (c, d), *self._place()))

    def _integer(self, attributes: Mapping[str, str], name: str, what: str) -> int:
        if name not in attributes:
            raise self.error(f"{what} has no {name}")
        number = integer(attributes[name])
        if number is None:
            raise self.error(f"{what}: {name} is '{printable(attributes[name], 60)}', not an integer")
        return number

    def _natural(self, attributes: Mapping[str, str], name: str, what: str) -> int:
        number = self._integer(attributes, name, what)
        if number < 0:
            raise self.error(f"{what}: {name} is {number}, but must not be negative")
        return number

    def _place(self) -> tuple[int, int]:
        return _place(self._locator)

    def _layer(self) -> Layer | None:
        return next((built for _, built, _ in reversed(self._stack) if isinstance(built, Layer)), None)


def _place(locator: Locator | SAXParseException) -> tuple[int, int]:
    """Returns line and column of the parser's position, both from 1."""
    return locator.getLineNumber() or 1, (locator.getColumnNumber() or 0) + 1


_Start = Callable[[_Handler, Any, str, Mapping[str, str]], Any]
_DATA: Final = ("element_type", "shape", "offset", "size", "num_splits", "axis", "output_type", "destination_type")
"""The attributes of <data> that are read."""
_BODIES: Final = ("body", "then_body", "else_body")
_KINDS: Final = dict.fromkeys(_BODIES, "graph")
_START: Final[Mapping[tuple[str, str], _Start]] = {
    ("graph", "layers"): _Handler._part,
    ("graph", "edges"): _Handler._part,
    ("layers", "layer"): _Handler._start_layer,
    ("layer", "data"): _Handler._data,
    ("layer", "input"): _Handler._part,
    ("layer", "output"): _Handler._part,
    **{("layer", body): _Handler._body for body in _BODIES},
    ("input", "port"): _Handler._port,
    ("output", "port"): _Handler._port,
    ("port", "dim"): _Handler._start_dim,
    ("edges", "edge"): _Handler._edge,
}
"""Handlers by the kind of the parent and the name of the element; other elements are skipped with their content."""
