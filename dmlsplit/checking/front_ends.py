"""Reads the entries of any file with operators: JSON directly, models by the framework of their suffix."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from dmlsplit.descriptors.diagnostics import Diagnostic, Position
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.operator_files import Entry, failed, read_operators
from dmlsplit.rules import RULES
from dmlsplit.system.errors import GivenShapeError, InputError, fault_of
from dmlsplit.system.printable import printable

if TYPE_CHECKING:  # reading JSON needs no numpy
    from dmlsplit.descriptors.dims import Dim
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import ModelNodes, OtherNode, SplitNode
    from dmlsplit.targets.target import Target
    from dmlsplit.verdicts.model_placements import SessionAnswer

FRONT_ENDS: Final[Mapping[str, str]] = {".onnx": "onnx", ".xml": "openvino"}
"""Maps each suffix to the module of dmlsplit.formats, a FrontEnd, that is imported on first use."""


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
        """Returns the nodes in the model of a file, in its order.

        `shapes`, `dims`, `allow_paths` and `require_known_names` are Given's; its free_dimensions are passed, by that
        name, if there are any. Raises InputError, with line and column if known, for an unreadable model, and for given
        facts that contradict it; OSError if it cannot be opened.
        """


class Given(NamedTuple):
    """What the caller knows about models: shapes of tensors, sizes of symbols, further folders for their files.

    `require_known_names`: every model must have every tensor and symbol. `free_dimensions` are ONNX Runtime's overrides
    of symbols at session creation; shapes and dims then apply to the first Run. `shapes_from` maps tensors in `shapes`
    to the file that gives their shape, for errors; tensors that the caller named directly are not in it.
    """

    shapes: Mapping[str, Sequence[Dim]] = {}
    dims: Mapping[str, int] = {}
    allow_paths: tuple[str, ...] = ()
    require_known_names: bool = True
    free_dimensions: Mapping[str, int] = {}
    shapes_from: Mapping[str, str] = {}


def given_for(files: Iterable[str], given: Given) -> Given:
    """Returns `given` for these files: a single model must have every tensor and symbol, while of several models each
    takes those that it has."""
    return given._replace(require_known_names=sum(map(is_model, files)) == 1)


def is_model(file: str) -> bool:
    """True if the file's suffix is that of a framework's model."""
    return os.path.splitext(file)[1].lower() in FRONT_ENDS


def read_entries(file: str, given: Given | None = None) -> Iterator[Entry]:
    """Yields the entries of a file, of standard input ("-"), or of a model.

    Every fault, even an unexpected exception, becomes an Entry, so that one file never prevents the reading of others.
    """
    read = 0
    try:
        for entry in entries_of(file, _read(file, given or Given())) if is_model(file) else read_operators(file):
            yield entry
            read += 1
        return
    except Exception as error:
        fault = fault_of(error)
    # Only from here on are the exception's frames, and everything they held, freed.
    yield failed(file, read, fault)


def entries_of(file: str, model: ModelNodes) -> Iterator[Entry]:
    """Yields an entry for each node of a model that was read from `file`; for a model without any, one that says so."""
    for index, item in enumerate(model.items):
        yield _entry(file, index, item, model)
    if not model.items:
        note = RULES["input/no-split"].diagnostic(Location(), "there is no Split and no Concat")
        yield Entry(file, -1, None, None, None, (note,), _place_of(()), sessions=model.sessions)


def _read(file: str, given: Given) -> ModelNodes:
    suffix = os.path.splitext(file)[1].lower()
    more: Any = {"free_dimensions": given.free_dimensions} if given.free_dimensions else {}
    front_end = cast("FrontEnd", importlib.import_module(f"dmlsplit.formats.{FRONT_ENDS[suffix]}"))
    try:
        return front_end.read_model(
            file,
            given.shapes,
            given.dims,
            allow_paths=given.allow_paths,
            require_known_names=given.require_known_names,
            **more,
        )
    except GivenShapeError as error:
        source = given.shapes_from.get(error.tensor)
        if source is None:
            raise
        said = f"{error.message} (the shape is from {printable(source)})"
        raise InputError(said, file=error.file, line=error.line, column=error.column) from None


def _entry(file: str, index: int, node: SplitNode | JoinNode | OtherNode, model: ModelNodes) -> Entry:
    from dmlsplit.formats.nodes import OtherNode

    known: Any = {"of_nodes": model.of_nodes, "sessions": model.sessions}
    if isinstance(node, OtherNode):
        place = _place_of([node.diagnostic])
        return Entry(file, index, node.name or None, None, None, (node.diagnostic,), place, **known)
    name, place = node.name or node.path, _place_of(node.report.diagnostics)
    return Entry(file, index, name, node.descriptor_if_any(), None, (), place, node, **known)


def _place_of(diagnostics: Sequence[Diagnostic]) -> Any:
    """Returns a `locate` function that returns the first known place of these diagnostics for the node itself, and None
    for places inside it."""
    places: list[Position] = [(d.line, d.column) for d in diagnostics if d.line is not None and d.column is not None]
    return lambda location: min(places) if places and not location else None


def without_nodes(entry: Entry) -> Entry:
    """Returns the entry with its node replaced by the node's descriptor, or by the reason why it has none, for commands
    that judge only descriptors; an entry without a node is returned unchanged."""
    if entry.node is None:
        return entry
    obstacle = entry.node.obstacle()
    notes = entry.node.report.diagnostics
    if obstacle is not None and obstacle not in notes and entry.node.report.ok:
        notes = (*notes, obstacle)
    operator = entry.node.op if entry.descriptor is None else None
    return replace(entry, node=None, notes=notes, operator=operator)


def session_of(path: str, target: Target, given: Given) -> SessionAnswer:
    """Returns the target's ONNX Runtime's treatment of a model. Raises InputError if it is not a readable model,
    OSError if it cannot be opened."""
    from dmlsplit.onnxruntime.prediction import session  # needs onnx

    assert target.runtime is not None
    return session(path, target.runtime, shapes=given.shapes, dims=given.dims, **session_keywords(target, given))


def session_keywords(target: Target, given: Given) -> dict[str, Any]:
    """Returns the keyword arguments for a session that follow from the target and the given facts, other than shapes
    and sizes of a run."""
    return {
        "free_dimensions": given.free_dimensions,
        "options": target.session_options,
        "allow_paths": given.allow_paths,
    }
