"""OpenVINO IRs built layer by layer, as OpenVINO's own serializer lays them out."""

import struct
from pathlib import Path
from xml.sax.saxutils import quoteattr

CODES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
CODES |= {"f16": "e", "f32": "f", "f64": "d", "boolean": "?"}
PRECISIONS = {"f16": "FP16", "f32": "FP32", "f64": "FP64", "boolean": "BOOL", "u1": "BIN"}


def precision(type):
    return PRECISIONS.get(type, type.upper())


def dim_text(dim):
    """A size as a Parameter's shape has it: None is unknown, a pair an interval."""
    if dim is None:
        return "?"
    if isinstance(dim, int):
        return str(dim)
    low, high = dim
    return f"{low or ''}..{'' if high is None else high}"


def packed(values, type):
    """The bytes of a constant."""
    if type in ("i4", "u4"):
        nibbles = [value & 15 for value in values] + [0]
        return bytes(nibbles[i] | nibbles[i + 1] << 4 for i in range(0, len(values), 2))
    return struct.pack(f"<{len(values)}{CODES[type]}", *values)


class Graph:
    """Layers and edges; a port is a pair of layer and port numbers. Bodies share the model's weights."""

    def __init__(self, weights=None):
        self.layers = []
        self.edges = []
        self.weights = weights if weights is not None else bytearray()

    def layer(self, type, inputs=(), outputs=(), version="opset1", name=None, inside="", **data):
        """Outputs are (shape or None, element type); the answer is the list of output ports."""
        id = len(self.layers)
        name = f"{type}_{id}" if name is None else name
        ports = [self._port(i, None, None) for i in range(len(inputs))]
        made = [self._port(len(inputs) + i, *output) for i, output in enumerate(outputs)]
        attributes = " ".join(f"{key}={quoteattr(str(value))}" for key, value in data.items())
        self.layers.append(
            f'<layer id="{id}" name={quoteattr(name)} type={quoteattr(type)} version={quoteattr(version)}>\n'
            + (f"<data {attributes}/>\n" if data else "")
            + f"<input>{''.join(ports)}</input>\n<output>{''.join(made)}</output>\n{inside}</layer>"
        )
        for i, source in enumerate(inputs):
            if source is not None:
                self.edges.append((*source, id, i))
        return [(id, len(inputs) + i) for i in range(len(outputs))]

    def _port(self, id, shape, type):
        dims = "".join(f"<dim>{dim if isinstance(dim, int) else -1}</dim>" for dim in shape or ())
        return f'<port id="{id}"{f" precision={quoteattr(precision(type))}" if type else ""}>{dims}</port>'

    def parameter(self, shape, type="f32", name="x"):
        """`shape` None: unknown rank."""
        text = "..." if shape is None else ",".join(map(dim_text, shape))
        return self.layer("Parameter", (), [(shape, type)], name=name, shape=text, element_type=type)[0]

    def const(self, values, type="i64", shape=None, name=None):
        """A scalar where `values` is a number; else of shape [n], or of the one given."""
        listed = list(values) if isinstance(values, list | tuple) else [values]
        if shape is None:
            shape = (len(listed),) if isinstance(values, list | tuple) else ()
        data = packed(listed, type)
        offset = len(self.weights)
        self.weights += data
        place = {"offset": offset, "size": len(data), "shape": ",".join(map(str, shape)), "element_type": type}
        return self.layer("Const", (), [(shape, type)], name=name, **place)[0]

    def split(self, data, axis, parts, outputs, type="f32", name="s", **attributes):
        """A Split (`parts` a number) or VariadicSplit (`parts` a port)."""
        made = [(shape, type) for shape in outputs]
        if isinstance(parts, int):
            return self.layer("Split", (data, axis), made, name=name, num_splits=parts, **attributes)
        return self.layer("VariadicSplit", (data, axis, parts), made, name=name, **attributes)

    def text(self):
        edges = [f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in self.edges]
        newline = "\n"
        return f"<layers>\n{newline.join(self.layers)}\n</layers>\n<edges>\n{newline.join(edges)}\n</edges>\n"

    def write(self, folder, name="model", version=11):
        """The path of the XML; the .bin lies beside it."""
        path = Path(folder) / f"{name}.xml"
        path.write_text(f'<?xml version="1.0"?>\n<net name="m" version="{version}">\n{self.text()}</net>\n', "utf-8")
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def model(shape=(6,), axis=0, parts=2, outputs=None, type="f32", axis_type="i64", lengths_type=None):
    """One Split or VariadicSplit, axis and lengths constant; output ports without dimensions unless given."""
    graph = Graph()
    x = graph.parameter(shape, type)
    a = graph.const(axis, axis_type)
    count = parts if isinstance(parts, int) else len(parts)
    lengths = parts if isinstance(parts, int) else graph.const(parts, lengths_type or axis_type)
    graph.split(x, a, lengths, outputs if outputs is not None else [None] * max(count, 0), type)
    return graph
