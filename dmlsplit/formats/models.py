"""Entries of any file that has operators: JSON by itself, and the models of frameworks by what their suffix says."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from dmlsplit.diagnostics import Diagnostic, Position
from dmlsplit.errors import InputError
from dmlsplit.formats.operators import Entry, failed, read_operators
from dmlsplit.location import Location
from dmlsplit.rules import RULES

if TYPE_CHECKING:  # numpy is not for who reads JSON only
    from dmlsplit.formats.nodes import Dim, ModelNodes, OtherNode, SplitNode

FRONT_ENDS: Final[Mapping[str, str]] = {".onnx": "onnx", ".xml": "openvino"}
"""The module of dmlsplit.formats that reads files of a suffix."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller says of models: shapes of tensors, sizes of symbols, further folders for their files.

    Of several models not each need have every tensor and symbol: `everywhere` says whether each must.
    """

    shapes: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    allow_paths: tuple[str, ...] = ()
    everywhere: bool = True


def is_model(file: str) -> bool:
    """Whether a file is a framework's model, by its suffix."""
    return os.path.splitext(file)[1].lower() in FRONT_ENDS


def read_entries(file: str, given: Given | None = None) -> Iterator[Entry]:
    """The operators of a file, of standard input ("-"), or of a model; every fault is an Entry."""
    if not is_model(file):
        yield from read_operators(file)
        return
    try:
        model = _read(file, given or Given())
    except (InputError, OSError) as error:
        said = error if isinstance(error, InputError) else InputError(error.strerror or str(error))
        yield failed(file, 0, said)
        return
    for index, item in enumerate(model.items):
        yield _entry(file, index, item)
    if not model.items:
        note = RULES["input/no-split"].diagnostic(Location(), "there is no Split")
        yield Entry(file, -1, None, None, None, (note,), _nowhere)


def _read(file: str, given: Given) -> ModelNodes:
    front_end: Any = importlib.import_module(f"dmlsplit.formats.{FRONT_ENDS[os.path.splitext(file)[1].lower()]}")
    known = {} if given.everywhere else {"everywhere": False}
    model: ModelNodes = front_end.read_model(file, given.shapes, given.dims, allow_paths=given.allow_paths, **known)
    return model


def _entry(file: str, index: int, node: SplitNode | OtherNode) -> Entry:
    from dmlsplit.formats.nodes import OtherNode

    if isinstance(node, OtherNode):
        return Entry(file, index, node.name or None, None, None, (node.diagnostic,), _place_of([node.diagnostic]))
    descriptor = node.descriptor() if node.obstacle() is None else None
    return Entry(file, index, node.name or node.path, descriptor, None, (), _place_of(node.report.diagnostics), node)


def _place_of(diagnostics: Sequence[Diagnostic]) -> Any:
    """The diagnostics of nodes have their places already; this one is the node's, the first that is known."""
    places: list[Position] = [(d.line, d.column) for d in diagnostics if d.line is not None and d.column is not None]
    return lambda location: min(places) if places and not location else None


def _nowhere(location: Location) -> Position | None:
    return None


def without_nodes(entry: Entry) -> Entry:
    """The entry as the descriptor that the node stands for, for who judges descriptors as they are."""
    if entry.node is None:
        return entry
    obstacle = entry.node.obstacle()
    notes = entry.node.report.diagnostics
    if obstacle is not None and obstacle not in notes and entry.node.report.ok:
        notes = (*notes, obstacle)
    operator = entry.node.op if entry.descriptor is None else None
    return replace(entry, node=None, notes=notes, operator=operator)
