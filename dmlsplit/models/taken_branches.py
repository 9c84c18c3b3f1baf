"""The branches that replaced their Ifs, and the places of these Ifs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx

from dmlsplit.formats.onnx.protobuf import all_nodes, first_output, reads, subgraphs
from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.names_inside import NamesInside


@dataclass(slots=True, eq=False, repr=False)
class TakenBranches:
    """The branches by number. `places` number the nodes of the graphs that had such Ifs, by their first outputs, in the
    order in which ONNX Runtime visits each graph before it takes a branch."""

    of: dict[str, int] = field(default_factory=dict)
    """Maps each name that a branch computes to the number of the branch."""
    around: dict[int, int | None] = field(default_factory=dict)
    """The number of the branch around a branch; None if its If is in the graph itself."""
    ifs: dict[int, int] = field(default_factory=dict)
    """The place of a branch's If."""
    places: dict[str, int] = field(default_factory=dict)
    given: dict[str, set[int]] = field(default_factory=dict)
    """Maps the outputs of branches to the numbers of the branches that compute them."""
    late: set[str] = field(default_factory=set)
    """The outputs of Shapes whose input gets static sizes only after branches have taken the places of their Ifs."""
    readers: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of the branches whose Ifs read a tensor, in either branch."""
    names: dict[int, NamesInside] = field(default_factory=dict)
    """The names in both branches of a branch's If."""
    inside: dict[str, set[str]] = field(default_factory=dict)
    """The names that the graphs in a node read until their branches were taken, and no longer do, by the node's first
    output."""

    def visit(self, nodes: Iterable[onnx.NodeProto], functions: dict[str, int]) -> list[onnx.NodeProto]:
        """Adds the places of a graph's nodes to `places`, and returns the nodes in that order. `functions` maps the
        names that nodes of functions write to numbers; these nodes count as added last, in the order of the numbers."""
        visited = _walk(list(nodes), functions)
        self.places |= {first_output(node): place for place, node in enumerate(visited)}
        return visited

    def take(self, node: onnx.NodeProto, brought: Iterable[str]) -> None:
        """Adds the branch of an If, `node`, under the next number; `brought` are the names that the branch computes."""
        name, number = first_output(node), len(self.ifs)
        self.ifs[number] = self.places.get(name, 0)
        self.around[number] = self.of.get(name)
        self.names[number] = NamesInside.of(node)
        for each in node.output:
            if each:
                self.given.setdefault(each, set()).add(number)
        inside = (inner for graph in subgraphs(node) for inner in all_nodes(graph.node))
        made = {output for inner in inside for output in inner.output}
        for each in dict.fromkeys(reads(node)):
            if each not in made:
                self.readers.setdefault(each, []).append(number)
        self.of |= dict.fromkeys(brought, number)

    def leave(self, node: onnx.NodeProto, before: Iterable[str]) -> None:
        """Notes what the graphs in a node no longer read, now that branches have been taken in them; `before` are the
        names that the node read until then."""
        self.inside.setdefault(first_output(node), set()).update(set(before).difference(reads(node)))

    def chain(self, name: str) -> tuple[int, ...]:
        """Returns the numbers of the branches around a tensor, the outermost first; () if there are none."""
        return self._chain(self.of.get(name))

    def _chain(self, number: int | None) -> tuple[int, ...]:
        """Returns the number of a branch behind those of the branches around it; () for None."""
        found: list[int] = []
        while number is not None:
            found.insert(0, number)
            number = self.around[number]
        return tuple(found)

    def within(self, numbers: Iterable[int], chain: tuple[int, ...]) -> list[int]:
        """Returns those of the numbers of branches whose Ifs are in the last branch of a chain; in the graph itself for
        ()."""
        return [number for number in numbers if self._chain(self.around[number]) == chain]

    def order(self, name: str) -> tuple[int, ...]:
        """Returns a sort key for the node whose first output is `name`: nodes are sorted in the order in which ONNX
        Runtime visits them, those of a branch at the place of its If."""
        return *(self.ifs[number] for number in self.chain(name)), self.places.get(name, 0)


class UntakenIfs:
    """The names that Ifs read until branches take their places, while passes put tensors in place of others."""

    def __init__(self, branches: TakenBranches) -> None:
        self._branches = branches
        self._readers = {name: list(numbers) for name, numbers in branches.readers.items()}
        self._names = dict(branches.names)

    def can_rename(self, name: str, new: str, chain: tuple[int, ...]) -> bool:
        """True if the name `new` can replace `name` in each If in the last branch of a chain; see `NamesInside`."""
        ifs = self._branches.within(self._readers.get(name, ()), chain)
        return all(self._names[number].can_rename(name, new) for number in ifs)

    def rename(self, name: str, new: str) -> None:
        """Replaces a name in all Ifs."""
        for number in self._readers.get(name, ()):
            self._names[number] = self._names[number].renamed(name, new)
            self._readers.setdefault(new, []).append(number)


def _walk(nodes: list[onnx.NodeProto], functions: dict[str, int]) -> list[onnx.NodeProto]:
    """Returns the nodes in the order in which ONNX Runtime visits them, as Graph.walk does; `functions` as in
    `TakenBranches.visit`."""
    producers = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    before = [{producers[name] for name in reads(node) if name in producers} - {i} for i, node in enumerate(nodes)]
    read = {each for found in before for each in found}

    def number(i: int) -> tuple[int, int]:
        place = functions.get(first_output(nodes[i]))
        return (0, i) if place is None else (1, place)

    leaves = sorted((i for i in range(len(nodes)) if i not in read), key=number)
    return [nodes[i] for i in depth_first(leaves, lambda i: sorted(before[i], key=number))]
