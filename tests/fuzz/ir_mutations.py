"""Valid OpenVINO IRs, and changes to their elements: attributes, layers, ports, edges, bodies, names, weights."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from tests.formats.ir import Graph, model
from tests.fuzz.values import INTEGERS, long_name, strange_name

MAX_ELEMENTS = 3000
TYPES = (
    *("Split", "VariadicSplit", "split", "Const", "Parameter", "Result", "Convert", "Reshape", "Squeeze", "Unsqueeze"),
    *("ShapeOf", "ReLU", "If", "Loop", "TensorIterator", "Add", "Gather", "Concat", "Clamp", "SoftMax"),
)
VALUES = (
    *("opset1", "opset13", "extension", "", "i64", "i32", "i8", "i4", "u4", "f16", "f32", "f64", "boolean", "string"),
    *("FP32", "I64", "undefined", "dynamic", "?", "...", "2,2", "1,?,3..", "[2]", "2..8", "-1", "1,1,1,1,1,1,1,1,1,1"),
    *("true", "0x10", "1e3", "٣", " 4 ", "4_0", "9" * 30),
)


def plain() -> Graph:
    return model((6, 4), 1, 2, [(6, 2), (6, 2)])


def variadic() -> Graph:
    return model((6, 4), -2, [2, -1], [(2, 4), (4, 4)], lengths_type="i32")


def chain() -> Graph:
    """Axis and lengths behind layers that move and convert them, and from a shape; a symbol's interval."""
    graph = Graph()
    x = graph.parameter(((2, 8), None, 6), "f16")
    relu = graph.layer("ReLU", (x,), [(None, "f16")], name="r")[0]
    axis = graph.layer("Convert", (graph.const(2, "i8"),), [((), "i64")], destination_type="i64")[0]
    squeezed = graph.layer("Squeeze", (axis, graph.const(0)), [((), "i64")])[0]
    a, b = graph.split(relu, squeezed, 2, [None, None], "f16", name="s")
    shape = graph.layer("ShapeOf", (a,), [((3,), "i64")], output_type="i64")[0]
    graph.split(b, axis, shape, [None, None, None], "f16", name="v")
    lengths = graph.layer("Reshape", (graph.const([1, 2], shape=(1, 2)), graph.const([2])), [((2,), "i64")])[0]
    graph.split(a, axis, lengths, [None, None], "f16", name="w")
    return graph


def bodies() -> Graph:
    """Splits in the bodies of an If, a Loop and a TensorIterator, one in another."""
    graph = Graph()
    x = graph.parameter((4, 6))
    inner = Graph(graph.weights)
    inner.split(inner.parameter((4, 6)), inner.const(1), 3, [(4, 2)] * 3, name="innermost")
    middle = Graph(graph.weights)
    y = middle.parameter((4, 6))
    middle.layer("Loop", (y,), [((4, 6), "f32")], name="l", inside=f"<body>{inner.text()}</body>")
    middle.split(y, middle.const(0), middle.const([1, 3]), [(1, 6), (3, 6)], name="m")
    other = Graph(graph.weights)
    other.split(other.parameter((None, 6)), other.const(0), 2, [None, None], name="o")
    branches = f"<then_body>{middle.text()}</then_body><else_body>{other.text()}</else_body>"
    graph.layer("If", (x,), [((4, 6), "f32")], name="i", inside=branches)
    graph.layer("TensorIterator", (x,), [((4, 6), "f32")] * 2, name="t", inside=f"<body>{inner.text()}</body>")
    return graph


SEEDS: tuple[Callable[[], Graph], ...] = (plain, variadic, chain, chain, bodies, bodies)


class Mutator:
    """Changes one tree; all choices are `rng`'s."""

    def __init__(self, rng: random.Random, root: Element) -> None:
        self.rng = rng
        self.root = root

    def mutate(self) -> None:
        self.rng.choice(CHANGES)(self)

    def elements(self, *tags: str) -> list[Element]:
        return [element for element in self.root.iter() if not tags or element.tag in tags]

    def pick(self, *tags: str) -> Element:
        found = self.elements(*tags)
        return self.rng.choice(found) if found else self.root

    def value(self) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            return str(rng.choice(INTEGERS))
        if kind < 0.6:
            return rng.choice(VALUES)
        if kind < 0.9:
            values = [value for element in self.elements() for value in element.attrib.values()]
            return rng.choice(values) if values else "x"
        return _of_xml(rng.choice((strange_name, long_name))(rng))

    def may_grow(self, by: int = 1) -> bool:
        return len(self.elements()) + by < MAX_ELEMENTS

    # Changes

    def set_attribute(self) -> None:
        element = self.pick()
        known = [key for other in self.elements(element.tag) for key in other.attrib] or ["name"]
        element.set(self.rng.choice(known), self.value())

    def delete_attribute(self) -> None:
        element = self.pick()
        if element.attrib:
            del element.attrib[self.rng.choice(list(element.attrib))]

    def set_type(self) -> None:
        self.pick("layer").set("type", self.rng.choice(TYPES))

    def set_name(self) -> None:
        """Of a layer or port: of another one, strange, or long."""
        element = self.pick("layer", "port")
        element.set(
            "name" if element.tag == "layer" else "names", ",".join([self.value()] * self.rng.choice((1, 1, 3)))
        )

    def set_dim(self) -> None:
        self.pick("dim").text = self.value()

    def add_dim(self) -> None:
        ElementTree.SubElement(self.pick("port"), "dim").text = self.value()

    def reconnect(self) -> None:
        edge = self.pick("edge")
        end = self.rng.choice(("from", "to"))
        other = self.pick("edge")
        for key in (f"{end}-layer", f"{end}-port"):
            if key in other.attrib:
                edge.set(key, other.attrib[key])

    def repeat(self) -> None:
        """An element is there again, many times perhaps, each layer and port with an id of its own or not."""
        parent = self.pick()
        if not len(parent):
            return
        child = self.rng.choice(list(parent))
        times = self.rng.choice((1, 1, 2, 100))
        if not self.may_grow(times * sum(1 for _ in child.iter())):
            return
        renumbered = self.rng.random() < 0.8
        for i in range(times):
            twin = copy.deepcopy(child)
            if renumbered and "id" in twin.attrib:
                twin.set("id", str(1000 + i))
            parent.append(twin)

    def transplant(self) -> None:
        """A copy of an element goes where another one of its kind is, or anywhere."""
        source = copy.deepcopy(self.pick())
        if not self.may_grow(sum(1 for _ in source.iter())):
            return
        parents = [parent for parent in self.elements() if any(child.tag == source.tag for child in parent)]
        parent = self.rng.choice(parents) if parents and self.rng.random() < 0.8 else self.pick()
        parent.insert(self.rng.randint(0, len(parent)), source)

    def delete(self) -> None:
        parent = self.pick()
        if len(parent):
            parent.remove(self.rng.choice(list(parent)))

    def swap(self) -> None:
        parent = self.pick()
        children = list(parent)
        self.rng.shuffle(children)
        parent[:] = children

    def wrap(self) -> None:
        """All layers go into the body of one."""
        net = self.pick("net", "body", "then_body", "else_body")
        inside = Element(self.rng.choice(("body", "then_body")))
        inside[:] = list(net)
        layer = Element("layer", id="0", name=self.value(), type="TensorIterator", version="opset1")
        layer.append(inside)
        layers = Element("layers")
        layers.append(layer)
        net[:] = [layers, Element("edges")]

    def place(self) -> None:
        """Where a constant's data is, and how much."""
        data = self.pick("data")
        data.set(self.rng.choice(("offset", "size")), str(self.rng.choice(INTEGERS)))


CHANGES = (
    *(Mutator.set_attribute,) * 4,
    *(Mutator.repeat,) * 2,
    *(Mutator.transplant,) * 2,
    *(Mutator.set_name,) * 2,
    Mutator.delete_attribute,
    Mutator.set_type,
    Mutator.set_dim,
    Mutator.add_dim,
    Mutator.reconnect,
    Mutator.delete,
    Mutator.swap,
    Mutator.wrap,
    Mutator.place,
)


def write(rng: random.Random, folder: Path) -> Path:
    """A changed model, and its weights, in a folder."""
    path = rng.choice(SEEDS)().write(folder)
    mutator = Mutator(rng, ElementTree.fromstring(path.read_text("utf-8")))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 8, 20))):
        mutator.mutate()
    data = bytearray(ElementTree.tostring(mutator.root, "utf-8"))
    if rng.random() < 0.05:  # what is no XML
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    _change_weights(rng, path.with_suffix(".bin"))
    return path


def _change_weights(rng: random.Random, weights: Path) -> None:
    data = bytearray(weights.read_bytes())
    kind = rng.random()
    if kind < 0.1 and data:
        data[rng.randrange(len(data))] = rng.randrange(256)
        weights.write_bytes(data)
    elif kind < 0.15:
        weights.write_bytes(data[: rng.randint(0, len(data))])
    elif kind < 0.25:
        weights.unlink()
        target = rng.choice((None, "../secret.bin", "w.bin", "loop.bin", "pipe.bin", "/dev/zero", "sub"))
        if target is not None:
            os.symlink(target, weights)


def _of_xml(text: str) -> str:
    """The same without the characters that XML has no spelling for."""
    return "".join(c for c in text if c >= " " or c in "\t\n\r")
