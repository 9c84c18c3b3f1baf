"""Walks over the messages of ONNX models, and changes of protobuf messages that take several steps.

These functions take models as they are in files; elsewhere, loading.without_weights has escaped their strings.

What visits each node of a model walks over copies of repeated fields (`node.input[:]`): protobuf ends a walk over the
field itself with an IndexError, which takes longer than the short walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

import onnx

DEFAULT_DOMAINS: Final = ("", "ai.onnx")


def text(name: str | bytes) -> str:
    """Returns a string of a model as str. protobuf returns invalid UTF-8 as bytes, in which backslash escapes replace
    invalid bytes."""
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")


def domain_of(message: onnx.NodeProto | onnx.FunctionProto | onnx.OperatorSetIdProto) -> str:
    """Returns the domain of a node, function or opset import; "" for the default domain, which is also called
    "ai.onnx"."""
    domain = message.domain
    return "" if domain in DEFAULT_DOMAINS else text(domain)


def operator_of(node: onnx.NodeProto) -> str:
    """Returns a node's operator if it is in the default domain, else ""."""
    return text(node.op_type) if domain_of(node) == "" else ""


def graphs_of(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    """Yields the graphs in an attribute, in order."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs[:]


def graphs_named(node: onnx.NodeProto, name: str) -> list[onnx.GraphProto]:
    """Returns the graphs in the node's attributes named `name`, in order; [] if there are none."""
    return [graph for attribute in node.attribute[:] if attribute.name == name for graph in graphs_of(attribute)]


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yields the graphs in a node's attributes, in order; graphs nested in these are not included."""
    for attribute in node.attribute[:]:
        if attribute.HasField("g"):
            yield attribute.g
        if attribute.graphs:
            yield from attribute.graphs[:]


def has_graphs(node: onnx.NodeProto) -> bool:
    """True if an attribute of the node contains a graph."""
    for attribute in node.attribute[:]:  # noqa: SIM110 - a generator takes twice as long, and each node is asked often
        if attribute.HasField("g") or attribute.graphs:
            return True
    return False


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yields a graph and all graphs nested in its nodes; a graph comes before the graphs in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute[:]:
            for subgraph in graphs_of(attribute) if attribute.HasField("g") or attribute.graphs else ():
                yield from all_graphs(subgraph)


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields the nodes and all nodes in their subgraphs, at any depth; a node comes before the nodes in it."""
    todo = [iter(nodes)]
    while todo:
        for node in todo[-1]:
            yield node
            for attribute in node.attribute[:]:
                if attribute.HasField("g") or attribute.graphs:
                    break
            else:  # inlined has_graphs, to save a call for each node
                continue
            if inner := [each for graph in subgraphs(node) for each in graph.node]:
                todo.append(iter(inner))
                break
        else:
            todo.pop()


def values_of(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    """Yields the declarations of outputs, then of other values, then of inputs. For a name declared twice the last
    declaration counts, because the caller's shapes are declared at inputs."""
    return chain(graph.output, graph.value_info, graph.input)


def computed(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Returns the names of the tensors that the nodes write; subgraphs are not examined."""
    return {text(name) for node in nodes for name in node.output[:] if name}


def first_output(node: onnx.NodeProto) -> str:
    """Returns the first name that a node writes, "" if it writes none."""
    for name in node.output[:]:
        if name:
            return text(name)
    return ""


def own_name(node: onnx.NodeProto) -> str:
    """Returns the name of a node among the nodes of its graph, which no other of them has in a valid model: its own
    name or, without one, the first name that it writes; its operator if it writes none."""
    return node.name or first_output(node) or node.op_type


def reads(node: onnx.NodeProto) -> Iterable[str]:
    """Returns the names of the tensors that a node and its subgraphs read, including the subgraphs' outputs; a name may
    occur several times."""
    return _reads_inside(node) if has_graphs(node) else [text(name) for name in node.input[:] if name]


def _reads_inside(node: onnx.NodeProto) -> Iterator[str]:
    for each in all_nodes([node]):
        yield from map(text, filter(None, each.input[:]))
        for graph in subgraphs(each) if has_graphs(each) else ():
            yield from (text(value.name) for value in graph.output)


def refill(field: Any, entries: Iterable[Any]) -> None:
    """Replaces all entries of a repeated protobuf field, in place; `entries` may be read from the field itself."""
    kept = list(entries)
    del field[:]
    field.extend(kept)


def rename_tensors(node: onnx.NodeProto, new_name: Callable[[str], str]) -> None:
    """Replaces, in place, each name that the node reads or writes by `new_name(name)`; it is also called with "" for an
    omitted tensor."""
    for field in (node.input, node.output):
        refill(field, [new_name(text(name)) for name in field])


def add_document(node: onnx.NodeProto, document: str) -> None:
    """Appends the line `document` to the node's doc_string, in place."""
    node.doc_string = "\n".join(filter(None, [text(node.doc_string), document]))


class Names(set[str]):
    """A set of names that are in use."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__(names)
        self._numbers: dict[str, int] = {}
        """The last number appended to a name."""

    def fresh(self, base: str) -> str:
        """Returns a name that is not in the set, `base` or `base` with a number, and adds it to the set."""
        name = base
        while name in self:
            number = self._numbers[base] = self._numbers.get(base, 1) + 1
            name = f"{base}_{number}"
        self.add(name)
        return name

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> Names:
        """Returns the set of all tensor names in a graph and its subgraphs."""
        found = cls()
        for each in all_graphs(graph):
            for value in (*each.input, *each.output, *each.initializer, *each.value_info):
                found.add(text(value.name))
            for node in each.node:
                found.update(map(text, (*node.input[:], *node.output[:])))
        return found
