"""Which node of a session a caller names: by path, by name, by output, or by its index in the JSON of `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Final

from dmlsplit.formats.nodes import OtherNode
from dmlsplit.formats.sessions import NodeKey
from dmlsplit.onnxruntime.onnx_session import Item
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.system.spelling import nearest

_MOST_LISTED: Final = 4
"""The most names that an error message lists."""
_MOST_COMPARED: Final = 10_000
"""The most names that an unknown one is compared with."""


@record
class SessionNode:
    """A node of a session: its graph, its index there, and which of the nodes with its operator and path it is."""

    graph: int
    index: int
    path: str
    operator: str
    number: int
    names: frozenset[str]
    """Its path, its name, and its outputs."""


def session_nodes(graphs: Sequence[SessionGraph]) -> Iterator[SessionNode]:
    """Yields the nodes of all graphs of a session, in order, with the removed and the folded ones."""
    seen: Counter[tuple[str, str]] = Counter()
    for k, graph in enumerate(graphs):
        for index, node in enumerate(graph.nodes):
            path = graph.path(index)
            names = frozenset(filter(None, (path, node.proto.name, *node.proto.output)))
            yield SessionNode(k, index, path, node.op_type, seen[node.op_type, path], names)
            seen[node.op_type, path] += 1


@record
class Wanted:
    """The requested node: the one with `key`, or if that is None any node with this path or name."""

    path: str
    key: NodeKey | None = None
    number: int | None = None
    """The index among the nodes with this name."""

    @property
    def operator(self) -> str:
        return "" if self.key is None else self.key.op

    def among(self, nodes: Sequence[SessionNode]) -> list[SessionNode]:
        """Returns the nodes in `nodes` that may be meant: by key if there is one, else by path or, if no node has the
        path, by name; only number `number` of them if that is given. [] if there is none."""
        if self.key is not None:
            return [each for each in nodes if NodeKey(each.operator, each.path, each.number) == self.key]
        found = [each for each in nodes if each.path == self.path] or [
            each for each in nodes if self.path in each.names
        ]
        return found if self.number is None else found[self.number : self.number + 1]


def wanted_node(node: str | int, items: Sequence[Item], names: Container[str]) -> Wanted:
    """Returns which node a caller names. An int, or the text of a number that is not in `names`, is an index into
    `items`, the nodes that `check` lists; text#k is the node number k with the path or name `text`. Raises InputError
    for an index out of range; that a name exists is not checked."""
    if isinstance(node, int) or (node not in names and parsed_index(node) is not None):
        index = node if isinstance(node, int) else parsed_index(node)
        assert index is not None
        if not 0 <= index < len(items):
            counted = f"0 to {len(items) - 1}" if items else "none"
            raise InputError(f"there is no node {index}; check lists {counted}")
        item = items[index]
        return Wanted(_path_of(item), _key_of(item))
    path, separator, number = node.rpartition("#")
    if node not in names and separator and (which := parsed_index(number)) is not None:
        return Wanted(path, number=which)
    key = next((found for item in items if (found := _key_of(item)) is not None and found.path == node), None)
    return Wanted(node) if node in names or key is None else Wanted(node, key)


def parsed_index(text: str) -> int | None:
    """Returns the value of a text of one to nine decimal digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _key_of(item: Item) -> NodeKey | None:
    """Returns the key of a Split or Concat in its sessions; None for other nodes."""
    return None if isinstance(item, OtherNode) or item.in_session is None else item.in_session.place


def _path_of(item: Item) -> str:
    return str(item.diagnostic.location.node) if isinstance(item, OtherNode) else item.path


def only_node(wanted: Wanted, found: Sequence[SessionNode], nodes: Sequence[SessionNode]) -> SessionNode:
    """Returns the only node in `found`. Raises InputError if there is none, with names from `nodes` that resemble the
    wanted one, or if there are several, with a name for each."""
    if len(found) == 1:
        return found[0]
    name = printable(wanted.path)
    if found:
        some = [f"{name}#{k} ({each.operator} {each.path})" for k, each in enumerate(found[:_MOST_LISTED])]
        more = ", ..." if len(found) > _MOST_LISTED else ""
        raise InputError(f"{len(found)} nodes are named '{name}'; ask for one of {', '.join(some)}{more}")
    within = [each.path for each in nodes if each.path.startswith(f"{wanted.path}/")]
    if within:
        more = ", ..." if len(within) > _MOST_LISTED else ""
        raise InputError(f"'{name}' is a call of a function; its nodes are {', '.join(within[:_MOST_LISTED])}{more}")
    known = [each.path for each in nodes]
    near = [each.path for each in nodes if each.path.endswith(f"/{name}") or each.operator == wanted.path]
    near = list(dict.fromkeys(near))[:_MOST_LISTED]
    near = near or list(filter(None, [nearest(wanted.path, islice(known, _MOST_COMPARED))]))
    listed = f"{', '.join(known[:_MOST_LISTED])}{', ...' if len(known) > _MOST_LISTED else ''}"
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {listed}" if known else ""
    raise InputError(f"there is no node '{name}'{hint}")
