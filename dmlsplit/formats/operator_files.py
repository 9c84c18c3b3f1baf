"""Reads the operators and graphs of .json (one operator, one graph or a DxDispatch model) and .jsonl files as entries.

Faults of a file raise no exception: each becomes an Entry, so that the rest is still read.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Position
from dmlsplit.descriptors.enums import GRAPH, MODEL_GRAPH
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.json import OtherOperatorError, located, read_operator
from dmlsplit.formats.jsontext import JsonText, KeyPath, is_lines, read_bounded, read_line, shown
from dmlsplit.formats.limits import Limit
from dmlsplit.rules import RULES
from dmlsplit.system.errors import InputError, fault_of
from dmlsplit.system.input_files import NOT_REGULAR, open_input
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity

if TYPE_CHECKING:
    from dmlsplit.descriptors.any_operator import AnyOperatorDesc
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode
    from dmlsplit.formats.sessions import Sessions
    from dmlsplit.graphs import GraphDesc

Kind: TypeAlias = Literal["json", "jsonl"]

_KINDS: Final[Mapping[str, Kind]] = {".json": "json", ".jsonl": "jsonl"}
STANDARD_INPUT: Final = "<stdin>"


@entity
class Entry:
    """One operator of a file, or a substitute for one.

    `name` is the name of the dispatchable in a DxDispatch model, or of the node. `descriptor` is None if the operator
    cannot be read (`error` is the reason; it need not name the file), if it is neither a Split nor a Join (it is then
    in `other`, or a note says that it is unknown), or if `node`, of a framework's model, is not an operator. `locate`
    maps a location to line and column. `index` counts the entries of the file from 0; an entry with index -1 is about
    the file as a whole.
    """

    file: str
    index: int
    name: str | None
    descriptor: OperatorDesc | None
    error: InputError | None
    notes: tuple[Diagnostic, ...]
    locate: Callable[[Location], Position | None]
    node: SplitNode | JoinNode | None = None
    operator: str | None = None
    """The operator name of a node without descriptor."""
    graph: GraphDesc | None = None
    """The graph, if the entry is a DML_GRAPH instead of an operator."""
    other: AnyOperatorDesc | None = None
    """The operator, if it is neither a Split nor a Join."""
    any_operator: Callable[[], AnyOperatorDesc | OperatorDesc] | None = None
    """Returns the descriptor of any operator, read by its schema; raises InputError if it is malformed."""
    of_nodes: int = 0
    """The number of nodes in the node's model."""
    sessions: Sessions | None = None
    """The model's sessions in ONNX Runtime, for a node of an ONNX model, and for such a model as a whole."""


def read_operators(
    source: str | os.PathLike[str] | bytes, *, name: str | None = None, kind: Kind | None = None
) -> Iterator[Entry]:
    """Yields one Entry for each operator or graph of a file, of standard input ("-") or of bytes; a .jsonl file is read
    line by line. If something cannot be read, its Entry has an error; nothing is raised.

    `name` is the file's name in the entries (by default its path). `kind` defaults to the name's suffix; for other
    suffixes, a single JSON document is "json" and any other text "jsonl".
    """
    if isinstance(source, bytes):
        file = name or STANDARD_INPUT
        yield from _read_bytes(source, file, kind or _kind_of(file))
        return
    path = os.fspath(source)
    if path == "-":
        yield from _read_stream(sys.stdin.buffer, name or STANDARD_INPUT, kind)
        return
    file = name or path
    if os.path.isdir(path):
        yield failed(file, 0, InputError(f"Is a directory; name the files in it: {folder_pattern(path)}"))
        return
    try:
        with open_input(path) as stream:
            yield from _read_stream(stream, file, kind or _kind_of(file))
    except InputError as error:
        hint = "; - reads standard input" if error.message == NOT_REGULAR else ""
        yield failed(file, 0, InputError(f"{error}{hint}"))
    except OSError as error:
        yield failed(file, 0, fault_of(error))


def folder_pattern(folder: str) -> str:
    """Returns a glob pattern for the .onnx files below a folder, quoted so that a shell does not expand it."""
    return f"'{printable(folder.replace(os.sep, '/').rstrip('/') or '/', 60)}/**/*.onnx'"


def _kind_of(name: str) -> Kind | None:
    return _KINDS.get(os.path.splitext(name)[1].lower())


def failed(file: str, index: int, error: InputError, name: str | None = None) -> Entry:
    """Returns the entry for a file, or for operator number `index` in it, that cannot be read because of `error`."""
    return Entry(file, index, name, None, error.with_traceback(None), (), _everywhere(error))  # frames hold the text


def _everywhere(error: InputError) -> Callable[[Location], Position | None]:
    """Returns a `locate` function (see Entry) that returns the error's line and column for every location or, if the
    error has no position, None for every location."""
    position = None if error.line is None or error.column is None else (error.line, error.column)
    return lambda location: position


def _read_stream(stream: BinaryIO, file: str, kind: Kind | None) -> Iterator[Entry]:
    if kind == "jsonl":
        yield from _read_lines(stream, file)
        return
    try:
        data = read_bounded(stream)
    except InputError as error:
        yield failed(file, 0, error)
    else:
        yield from _read_bytes(data, file, kind)


def _read_bytes(data: bytes, file: str, kind: Kind | None) -> Iterator[Entry]:
    if kind == "jsonl":
        yield from _read_lines(io.BytesIO(data), file)
        return
    try:
        text = JsonText(data)
    except InputError as error:
        if kind is None and is_lines(data):
            yield from _read_lines(io.BytesIO(data), file)
        else:
            yield failed(file, 0, error)
        return
    yield from _read_text(text, file)


def _read_lines(stream: BinaryIO, file: str) -> Iterator[Entry]:
    index = faults = 0
    for number in count(1):
        try:
            line = read_line(stream, number)
        except InputError as error:
            yield failed(file, index, error)
            return  # the stream may be endless
        if not line:
            return
        if not line.strip():
            continue
        try:
            text = JsonText(line.rstrip(b"\r\n"), first_line=number)
        except InputError as error:
            entry = failed(file, index, error)
            yield entry
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                return  # UTF-16, in which every line would be an error
        else:
            if _is_record(text.value):
                continue
            entry = _operator(text, (), file, index)
            yield entry
        index += 1
        faults += entry.error is not None
        if faults == Limit.JSON_FAULTS.most:
            message = f"{faults} lines cannot be read, the limit for a file: the rest is not read"
            yield failed(file, index, InputError(message, line=number, column=1))
            return


def _is_record(value: object) -> bool:
    """True if a line's value is a record of `dmlsplit layer` without a descriptor: a return, or a call that takes no
    descriptor."""
    return isinstance(value, dict) and "Type" not in value and ("Call" in value or "Return" in value)


def _read_text(text: JsonText, file: str) -> Iterator[Entry]:
    if not isinstance(text.value, dict) or "dispatchables" not in text.value:
        yield _operator(text, (), file, 0)
        return
    _note_sources(text.value, file)
    dispatchables = text.value["dispatchables"]
    if not isinstance(dispatchables, dict):
        message = f"dispatchables: expected an object, not {shown(dispatchables)}"
        yield failed(file, 0, text.error(("dispatchables",), message))
        return
    for index, name in enumerate(dispatchables):
        yield _operator(text, ("dispatchables", name), file, index)


def _note_sources(model: dict[str, object], file: str) -> None:
    """Records the files that a DxDispatch model names in `sourcePath` as inputs, so that no output replaces them. They
    are not read here."""
    sources: list[str] = []
    todo: list[object] = [model]
    while todo:
        members = todo.pop()
        if isinstance(members, dict):
            todo += members.values()
            source = members.get("sourcePath")
            if isinstance(source, str):
                sources.append(source)
    if sources:
        from dmlsplit.formats.files import AllowedFolders  # importing numpy takes longer than most models

        folders = AllowedFolders(os.path.dirname(os.path.realpath(file)))
        for source in sources:
            folders.note_source(source, file)


def _operator(text: JsonText, key_path: KeyPath, file: str, index: int) -> Entry:
    """Returns the entry of the operator or graph at `key_path`, with an error or note if it is malformed or not
    judged. In a DxDispatch model the last key is the dispatchable's name."""
    name = str(key_path[-1]) if key_path else None
    whole_model = name is not None
    by_schema = partial(_by_schema, text, key_path, whole_model)
    try:
        value = text.get(key_path)
        given = value.get("Type", value.get("type")) if isinstance(value, dict) else None
        if given == GRAPH or (given == MODEL_GRAPH and whole_model):
            return _graph(text, key_path, file, index, name)
        operator = read_operator(text, key_path, whole_model=whole_model)
    except OtherOperatorError as other:
        if _is_known(other.type_name):
            return _other(text, key_path, file, index)
        given, judged = printable(other.type_name), "DML_OPERATOR_SPLIT or DML_OPERATOR_JOIN"
        note = RULES["input/operator-not-judged"].diagnostic(
            Location(), f"{given} is not judged", expected=judged, actual=given, line=other.line, column=other.column
        )
        return Entry(file, index, name, None, None, (note,), _everywhere(other), any_operator=by_schema)
    except InputError as error:
        return replace(failed(file, index, error, name), any_operator=by_schema)
    return Entry(file, index, name, operator.descriptor, None, operator.notes, operator.locate, any_operator=by_schema)


def _graph(text: JsonText, key_path: KeyPath, file: str, index: int, name: str | None) -> Entry:
    from dmlsplit.formats.graph_json import read_graph  # most files contain operators only

    try:
        graph = read_graph(text, key_path)
    except InputError as error:
        return failed(file, index, error, name)
    return Entry(file, index, name, None, None, (), partial(located, text, key_path), graph=graph)


def _is_known(type_name: str) -> bool:
    from dmlsplit.descriptors.schema import known_operator  # most files contain only Splits and Joins

    return known_operator(type_name) is not None


def _other(text: JsonText, key_path: KeyPath, file: str, index: int) -> Entry:
    """Returns the entry of the operator at `key_path`, which is neither a Split nor a Join, with an error if it is
    malformed."""
    from dmlsplit.formats.any_operator_json import read_any  # most files contain only Splits and Joins

    name = str(key_path[-1]) if key_path else None
    whole_model = name is not None
    try:
        desc, notes = read_any(text, key_path, whole_model=whole_model)
    except InputError as error:
        return replace(failed(file, index, error, name), any_operator=partial(_by_schema, text, key_path, whole_model))
    assert not isinstance(desc, OperatorDesc)
    locate = partial(located, text, key_path)
    return Entry(file, index, name, None, None, notes, locate, other=desc, any_operator=lambda: desc)


def _by_schema(text: JsonText, key_path: KeyPath, whole_model: bool) -> AnyOperatorDesc | OperatorDesc:
    from dmlsplit.formats.any_operator_json import read_any  # most files contain only Splits and Joins

    return read_any(text, key_path, whole_model=whole_model).descriptor
