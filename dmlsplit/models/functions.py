"""The local functions of a model, and the graph that a call of a function expands to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import onnx

from dmlsplit.formats.limits import Budget, Limit
from dmlsplit.formats.onnx.costs import ENDLESS, Cost, cost_of, cost_of_attribute
from dmlsplit.formats.onnx.protobuf import all_nodes, domain_of, graphs_of, text
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

Key: TypeAlias = tuple[str, str, str]
"""(domain, name, overload)."""

JUDGED: Final = frozenset({"Split", "Concat"})
LOOKED_FOR: Final = JUDGED | {"SplitToSequence", "ConcatFromSequence"}
"""The judged operators, and the operators that are listed without a judgement: sequence operators, and either kind
in another domain."""


def key_of(message: onnx.NodeProto | onnx.FunctionProto, name: str) -> Key:
    """Returns the key (domain, name, overload) of a function, or of the function that a node with this name calls."""
    return domain_of(message), name, text(message.overload)


def name_of(key: Key) -> str:
    """Returns the name of a function in messages."""
    return f"function {printable(':'.join(filter(None, key)))}"


class Functions:
    """The functions of a model by the keys that calls use; their bodies are counted against `budget`."""

    def __init__(self, functions: Iterable[onnx.FunctionProto], budget: Budget) -> None:
        self._budget = budget
        self._functions = {key_of(f, f.name): f for f in functions}
        self._names = {name for _, name, _ in self._functions}
        self._calls = {key: self._called(f.node) for key, f in self._functions.items()}
        self._sizes = {key: cost_of(f.node).own for key, f in self._functions.items()}
        callers: dict[Key, list[Key]] = {}
        for key, called in self._calls.items():
            for other in set(called):
                callers.setdefault(other, []).append(key)
        self._costs: dict[Key, Cost] = {}
        self._counts: dict[Key, int] = {}
        self._add_costs(callers)
        self._splitting: set[Key] = set()
        splitting = [key for key, function in self._functions.items() if self.splits(function.node)]
        splitting += self._functions.keys() - self._costs.keys()  # what calls itself is reported
        self._splitting.update(depth_first(splitting, lambda key: callers.get(key, ())))

    def key_of(self, node: onnx.NodeProto) -> Key | None:
        """Returns the key of the function that a node calls; None if the node is an operator."""
        if node.op_type not in self._names:
            return None
        key = key_of(node, node.op_type)
        return key if key in self._functions else None

    def __getitem__(self, key: Key) -> onnx.FunctionProto:
        return self._functions[key]

    def ends(self, key: Key) -> bool:
        """True if neither the function, nor one that it calls, calls itself in its own body. Such a function may be
        called again by a graph that its caller hands to it."""
        return key in self._costs

    def recursive(self, nodes: Iterable[onnx.NodeProto]) -> str:
        """Returns the name of a function that calls itself, directly or through others, and that the nodes call, or a
        function that they call; "" if there is none."""
        called, seen = self._called(nodes), set[Key]()
        while endless := next((key for key in called if key not in self._costs), None):
            if endless in seen:
                return name_of(endless)
            seen.add(endless)
            called = self._calls[endless]  # one of these is endless
        return ""

    def splits(self, nodes: Iterable[onnx.NodeProto]) -> bool:
        """True if the nodes, the graphs in them, or the functions they call contain an operator in LOOKED_FOR, whatever
        its domain, or call a function that calls itself."""

        def splits(node: onnx.NodeProto) -> bool:
            key = self.key_of(node)
            return node.op_type in LOOKED_FOR if key is None else key in self._splitting

        return any(map(splits, all_nodes(nodes)))

    def count(self, nodes: Iterable[onnx.NodeProto]) -> int:
        """Returns the number of nodes, including those of graphs in them and, for each call, of the function; at most
        ENDLESS. A recursive call counts as one node."""
        if not self._functions:
            return min(sum(1 for _ in all_nodes(nodes)), ENDLESS)
        keys = map(self.key_of, all_nodes(nodes))
        return min(sum(1 if key is None else self._counts.get(key, 1) for key in keys), ENDLESS)

    def called_by(self, nodes: Iterable[onnx.NodeProto]) -> list[onnx.FunctionProto]:
        """Returns the functions that the nodes, the graphs in them, and these functions call, callees before callers.
        Returns [] if a function calls itself, or if following the calls would copy more than ONNX_EXPANDED.

        Raises LimitError if the functions returned so far are too large together.
        """
        calls = self._called(nodes)
        if not calls or cost_of(nodes, self._cost).own > self._budget.most(Limit.ONNX_EXPANDED):
            return []
        found = list(depth_first(calls, self._calls.__getitem__))
        for key in found:
            self._budget.spend(Limit.ONNX_COPIED, self._sizes[key])
        return [self._functions[key] for key in found]

    def body(self, key: Key, call: onnx.NodeProto) -> onnx.GraphProto:
        """Returns the nodes of a function as a graph, in which references to attributes are replaced with the call's
        attributes or their defaults.

        Raises LimitError if the graphs returned so far are too large together.
        """
        function = self._functions[key]
        self._budget.spend(Limit.ONNX_COPIED, self._sizes[key])
        given = {attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)}
        graph = onnx.GraphProto(name=function.name)
        graph.node.extend(function.node)
        graph.value_info.extend(function.value_info)
        _replace_references(graph.node, given, self._budget)
        return graph

    def _cost(self, node: onnx.NodeProto) -> Cost | None:
        """Returns the cost, in bytes, of expanding the function that a node calls and the calls in its body; None if
        the node is not a call."""
        key = self.key_of(node)
        return None if key is None else self._costs.get(key, Cost(ENDLESS))

    def _add_costs(self, callers: Mapping[Key, Sequence[Key]]) -> None:
        """Computes and records, for each function that does not call itself, the cost of expanding a call of it and its
        number of nodes. `callers` maps a function to its callers."""
        left = {key: set(called) for key, called in self._calls.items()}
        done = [key for key, called in left.items() if not called]
        while done:
            key = done.pop()
            function = self._functions[key]
            cost = cost_of(function.node, self._cost)
            # as if no call gave an attribute that has a default
            copied = {
                a.name: cost.copies.get(a.name, 0) * cost_of_attribute(a, self._cost).own
                for a in function.attribute_proto
            }
            own = cost.own + sum(copied.values())
            self._costs[key] = Cost(min(own, ENDLESS), cost.copies)
            self._counts[key] = self.count(function.node)
            for caller in callers.get(key, ()):
                left[caller].discard(key)
                if not left[caller]:
                    done.append(caller)

    def _called(self, nodes: Iterable[onnx.NodeProto]) -> list[Key]:
        if not self._functions:
            return []
        return [key for node in all_nodes(nodes) if (key := self.key_of(node)) is not None]


def check_references(model: onnx.ModelProto) -> None:
    """Raises InputError if an attribute outside functions refers to an attribute of a function."""
    defaults = [default for function in model.functions for default in function.attribute_proto]
    bodies = [model.graph.node, *(graph.node for default in defaults for graph in graphs_of(default))]
    for attribute in chain(defaults, (a for body in bodies for node in all_nodes(body) for a in node.attribute)):
        if attribute.ref_attr_name:
            name, reference = printable(attribute.name), printable(attribute.ref_attr_name)
            raise InputError(
                f"attribute '{name}' refers to attribute '{reference}' of a function, but is not in a function"
            )


def recursive(model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]) -> str:
    """Returns the name of a function of the model that calls itself, and that the nodes call as in
    `Functions.recursive`; "" if there is none."""
    return Functions(model.functions, Budget(0)).recursive(nodes) if model.functions else ""


def _replace_references(
    nodes: Iterable[onnx.NodeProto], given: Mapping[str, onnx.AttributeProto], budget: Budget
) -> None:
    """Replaces, in place, references to attributes with the values in `given`; a reference without a value is removed.
    Raises LimitError if the copies exceed the budget."""
    for node in nodes:
        for index in range(len(node.attribute) - 1, -1, -1):
            attribute = node.attribute[index]
            reference = attribute.ref_attr_name
            if not reference:
                for graph in graphs_of(attribute):
                    _replace_references(graph.node, given, budget)
            elif reference in given:
                name = attribute.name
                budget.spend(Limit.ONNX_COPIED, cost_of_attribute(given[reference]).own)
                attribute.CopyFrom(given[reference])
                attribute.name = name
            else:
                del node.attribute[index]  # an optional attribute that the call omits
