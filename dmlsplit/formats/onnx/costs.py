"""Estimates the memory, in bytes, that copies of nodes take, before anything is copied.

A function passes on its attributes, including graphs, and each reference to an attribute is a copy: a chain of
functions with two references each doubles a graph at every call. So the cost of a call consists of a number of bytes
and, for each attribute, of the number of copies of the value that the call passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import onnx

from dmlsplit.formats.onnx.protobuf import graphs_of

MESSAGE: Final = 64
"""The cost of a node or attribute without its content."""
A_BYTE: Final = 4
"""The cost of one byte of content in the file."""
ENDLESS: Final = 1 << 62
"""More than any limit: the cost of a function that calls itself."""


class Cost(NamedTuple):
    """The memory that copying nodes takes: `own` is the fixed part in bytes, `copies` maps the name of each attribute
    of the enclosing function to the number of copies of its value."""

    own: int
    copies: Mapping[str, int] = {}


Callee: TypeAlias = Callable[[onnx.NodeProto], Cost | None]
"""The cost of expanding a node's call; None if the node is not a call, or is not expanded."""


def not_followed(node: onnx.NodeProto) -> None:
    """Returns None for every node: the Callee to use when calls of functions are not expanded."""


def cost_of(nodes: Iterable[onnx.NodeProto], callee: Callee = not_followed) -> Cost:
    """Returns the Cost of one copy of each node, with its graphs: the bytes, and the copies of the enclosing function's
    attributes. `callee` returns the cost of expanding a node's call of a function, or None if the node is not a call or
    is not expanded."""
    own, copies = 0, Counter[str]()
    for node in nodes:
        called = callee(node) or Cost(0)
        own += MESSAGE + called.own
        content = node.ByteSize()
        for attribute in node.attribute[:]:
            content -= attribute.ByteSize()
            times = 1 + called.copies.get(attribute.name, 0)
            given = cost_of_attribute(attribute, callee)
            own += given.own * times
            for name, number in given.copies.items():
                copies[name] = min(copies[name] + number * times, ENDLESS)
        own = min(own + A_BYTE * max(content, 0), ENDLESS)
    return Cost(own, copies)


def cost_of_attribute(attribute: onnx.AttributeProto, callee: Callee = not_followed) -> Cost:
    """Returns the memory, in bytes, that a copy of an attribute takes. A reference to an attribute of the enclosing
    function costs a copy of that attribute's value."""
    if attribute.ref_attr_name:
        return Cost(MESSAGE, {attribute.ref_attr_name: 1})
    own, copies = MESSAGE + A_BYTE * attribute.ByteSize(), Counter[str]()
    for graph in graphs_of(attribute):
        inside = cost_of(graph.node, callee)
        own = min(own + inside.own, ENDLESS)
        for name, number in inside.copies.items():
            copies[name] = min(copies[name] + number, ENDLESS)
    return Cost(own, copies)
