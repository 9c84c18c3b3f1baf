"""Local functions: which there are, and the graph that a call of one stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import onnx

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.given import subgraphs
from dmlsplit.formats.onnx.tensors import text

Key: TypeAlias = tuple[str, str, str]
"""Domain, name, overload."""

MAX_EXPANDED: Final = Limit.ONNX_EXPANDED.most
"""Calls, those inside of functions included, that onnx's shape inference is asked to follow."""
DEFAULT_DOMAINS: Final = ("", "ai.onnx")
SPLITS: Final = ("Split", "SplitToSequence")


def domain_of(node: onnx.NodeProto | onnx.FunctionProto) -> str:
    """ "" for ai.onnx as well."""
    domain = text(node.domain)
    return "" if domain in DEFAULT_DOMAINS else domain


class Functions:
    """The functions of a model by what calls them."""

    def __init__(self, functions: Iterable[onnx.FunctionProto]) -> None:
        self._functions = {(domain_of(f), text(f.name), _overload(f)): f for f in functions}
        self._calls = {key: self._called(f.node) for key, f in self._functions.items()}
        self._expansions = self._counted()
        self._splitting = self._with_splits()

    def key_of(self, node: onnx.NodeProto) -> Key | None:
        """The function that a node calls, None where it is an operator."""
        key = (domain_of(node), text(node.op_type), _overload(node))
        return key if key in self._functions else None

    def __getitem__(self, key: Key) -> onnx.FunctionProto:
        return self._functions[key]

    def splits(self, nodes: Iterable[onnx.NodeProto]) -> bool:
        """Whether there is a Split of any domain among nodes, in their graphs or in the functions that they call."""
        return any(
            node.op_type in SPLITS if key is None else key in self._splitting
            for node in all_nodes(nodes)
            for key in (self.key_of(node),)
        )

    def called_by(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.FunctionProto]:
        """The functions called by nodes, by their graphs and by these functions.

        None where they call themselves, or one another so often that whoever follows the calls would not end.
        """
        calls = self._called(nodes)
        if self.expanded(calls) > MAX_EXPANDED:
            return []
        found: dict[Key, None] = {}
        while calls:
            key = calls.pop()
            if key not in found:
                found[key] = None
                calls += self._calls[key]
        return [self._functions[key] for key in found]

    def expanded(self, calls: Iterable[Key]) -> int:
        """How many calls there are with those inside of them; more than MAX_EXPANDED where that is without end."""
        total = 0
        for key in calls:
            total += self._expansions.get(key, MAX_EXPANDED + 1)
        return total

    def _counted(self) -> dict[Key, int]:
        """For each function that does not call itself in the end: one call of it and all that are inside."""
        callers = self._callers()
        left = {key: Counter(called) for key, called in self._calls.items()}
        done = [key for key, called in left.items() if not called]
        counts: dict[Key, int] = {}
        while done:
            key = done.pop()
            total = 1 + sum(counts[other] * times for other, times in Counter(self._calls[key]).items())
            counts[key] = min(total, MAX_EXPANDED + 1)
            for caller in callers.get(key, ()):
                if left[caller].pop(key, 0) and not left[caller]:
                    done.append(caller)
        return counts

    def _callers(self) -> dict[Key, list[Key]]:
        callers: dict[Key, list[Key]] = {}
        for key, called in self._calls.items():
            for other in set(called):
                callers.setdefault(other, []).append(key)
        return callers

    def _called(self, nodes: Iterable[onnx.NodeProto]) -> list[Key]:
        return [key for node in all_nodes(nodes) if (key := self.key_of(node)) is not None]

    def _with_splits(self) -> set[Key]:
        callers = self._callers()
        todo = [
            key
            for key, function in self._functions.items()
            if any(node.op_type in SPLITS and self.key_of(node) is None for node in all_nodes(function.node))
        ]
        found = set(todo)
        while todo:
            for caller in callers.get(todo.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    todo.append(caller)
        return found


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of their graphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)


def _overload(message: onnx.NodeProto | onnx.FunctionProto) -> str:
    return text(getattr(message, "overload", ""))


def body_of(function: onnx.FunctionProto, call: onnx.NodeProto) -> onnx.GraphProto:
    """The body as a graph, attributes by reference replaced by the call's values or the function's defaults."""
    given = {text(attribute.name): attribute for attribute in getattr(function, "attribute_proto", ())}
    given.update({text(attribute.name): attribute for attribute in call.attribute})
    graph = onnx.GraphProto(name=text(function.name))
    graph.node.extend(function.node)
    graph.value_info.extend(getattr(function, "value_info", ()))
    _replace_references(graph, given)
    return graph


def _replace_references(graph: onnx.GraphProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    for node in graph.node:
        kept = []
        for attribute in node.attribute:
            reference = text(attribute.ref_attr_name)
            if reference and reference not in given:
                continue  # an optional attribute that the call leaves out
            actual = onnx.AttributeProto()
            actual.CopyFrom(given[reference] if reference else attribute)
            actual.name = attribute.name
            kept.append(actual)
        del node.attribute[:]
        node.attribute.extend(kept)
        for subgraph in subgraphs(node):
            _replace_references(subgraph, given)
