"""Entries of any file that has operators: JSON by itself, and the models of frameworks by what their suffix says."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from dmlsplit.descriptors.diagnostics import Diagnostic, Position
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.operator_files import Entry, failed, read_operators
from dmlsplit.rules import RULES
from dmlsplit.system.errors import fault_of

if TYPE_CHECKING:  # a reader of JSON needs no numpy
    from dmlsplit.descriptors.dims import Dim
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import ModelNodes, OtherNode, SplitNode

FRONT_ENDS: Final[Mapping[str, str]] = {".onnx": "onnx", ".xml": "openvino"}
"""The module of dmlsplit.formats, a FrontEnd, that reads files of a suffix; imported when the first one is read."""


class FrontEnd(Protocol):
    """A module that reads the models of a framework."""

    def read_model(
        self,
        source: str,
        shapes: Mapping[str, Sequence[Dim]],
        dims: Mapping[str, int],
        /,
        *,
        allow_paths: Sequence[str],
        require_known_names: bool,
    ) -> ModelNodes:
        """The nodes in the model of a file, in its order.

        `shapes`, `dims`, `allow_paths` and `require_known_names` are those of Given; its free_dimensions are passed,
        by that name, where there are any. InputError, with line and column
        where there are such, for what cannot be read, and for what is given and contradicts the model; OSError.
        """


class Given(NamedTuple):
    """The caller's knowledge of models: shapes of tensors, sizes of symbols, further folders for their files.

    Of several models not each need have every tensor and symbol: `require_known_names` says whether each must.
    `free_dimensions` are sizes of symbols that ONNX Runtime is told of as the session is made; shapes and dims are
    those of the first Run then.
    """

    shapes: Mapping[str, Sequence[Dim]] = {}
    dims: Mapping[str, int] = {}
    allow_paths: tuple[str, ...] = ()
    require_known_names: bool = True
    free_dimensions: Mapping[str, int] = {}


def is_model(file: str) -> bool:
    """Whether a file is a framework's model, by its suffix."""
    return os.path.splitext(file)[1].lower() in FRONT_ENDS


def read_entries(file: str, given: Given | None = None) -> Iterator[Entry]:
    """The operators of a file, of standard input ("-"), or of a model.

    Every fault is an Entry, those that no reader foresaw included: no file is to end the reading of others.
    """
    read = 0
    try:
        for entry in entries_of(file, _read(file, given or Given())) if is_model(file) else read_operators(file):
            yield entry
            read += 1
        return
    except Exception as error:
        fault = fault_of(error)
    # Only here, where the exception's frames, and all that they held, are gone.
    yield failed(file, read, fault)


def entries_of(file: str, model: ModelNodes) -> Iterator[Entry]:
    """The operators of a model that was read from `file`."""
    for index, item in enumerate(model.items):
        yield replace(_entry(file, index, item), of_nodes=model.of_nodes)
    if not model.items:
        note = RULES["input/no-split"].diagnostic(Location(), "there is no Split and no Concat")
        yield Entry(file, -1, None, None, None, (note,), _place_of(()))


def _read(file: str, given: Given) -> ModelNodes:
    suffix = os.path.splitext(file)[1].lower()
    more: Any = {"free_dimensions": given.free_dimensions} if given.free_dimensions else {}
    front_end = cast("FrontEnd", importlib.import_module(f"dmlsplit.formats.{FRONT_ENDS[suffix]}"))
    return front_end.read_model(
        file,
        given.shapes,
        given.dims,
        allow_paths=given.allow_paths,
        require_known_names=given.require_known_names,
        **more,
    )


def _entry(file: str, index: int, node: SplitNode | JoinNode | OtherNode) -> Entry:
    from dmlsplit.formats.nodes import OtherNode

    if isinstance(node, OtherNode):
        return Entry(file, index, node.name or None, None, None, (node.diagnostic,), _place_of([node.diagnostic]))
    descriptor = node.descriptor() if node.obstacle() is None else None
    return Entry(file, index, node.name or node.path, descriptor, None, (), _place_of(node.report.diagnostics), node)


def _place_of(diagnostics: Sequence[Diagnostic]) -> Any:
    """The diagnostics of nodes have their places already; this one is the node's, the first that is known."""
    places: list[Position] = [(d.line, d.column) for d in diagnostics if d.line is not None and d.column is not None]
    return lambda location: min(places) if places and not location else None


def without_nodes(entry: Entry) -> Entry:
    """The entry as the descriptor that the node stands for, for commands that judge descriptors as they are."""
    if entry.node is None:
        return entry
    obstacle = entry.node.obstacle()
    notes = entry.node.report.diagnostics
    if obstacle is not None and obstacle not in notes and entry.node.report.ok:
        notes = (*notes, obstacle)
    operator = entry.node.op if entry.descriptor is None else None
    return replace(entry, node=None, notes=notes, operator=operator)
