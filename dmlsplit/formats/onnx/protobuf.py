"""Changes of protobuf messages that protobuf takes several steps for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onnx

from dmlsplit.formats.onnx.tensors import text


def refill(field: Any, entries: Iterable[Any]) -> None:
    """Puts entries, which may be its own, in the place of all that a repeated field has."""
    kept = list(entries)
    del field[:]
    field.extend(kept)


def rename_tensors(node: onnx.NodeProto, new_name: Callable[[str], str]) -> None:
    """Gives the tensors that a node reads and writes other names."""
    for field in (node.input, node.output):
        refill(field, [new_name(text(name)) for name in field])


def add_document(node: onnx.NodeProto, document: str) -> None:
    """Adds a line to the documentation of a node."""
    node.doc_string = "\n".join(filter(None, [text(node.doc_string), document]))


def fresh_name(taken: set[str], base: str) -> str:
    """`base`, or what is made of it by a number, as a name that nothing has yet; it is taken then."""
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
