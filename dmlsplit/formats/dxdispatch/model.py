"""The content of a DxDispatch model: resources, dispatchables and commands, each with its position in the text.

Source: DxDispatch, src/model/JsonParsers.cpp and Model.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from dmlsplit.descriptors.diagnostics import Position
from dmlsplit.formats.dxdispatch.resources import Resource, ResourceReader
from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.json import OtherOperatorError, ParsedOperator, read_operator
from dmlsplit.formats.jsontext import JsonText, KeyPath, shown
from dmlsplit.system.atomic_files import file_key
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.system.spelling import nearest


@record
class ResourceBinding:
    """A range of a resource, from `element_offset` elements on to its end.

    The element size in bytes is None if the resource's data type determines it. `elementCount`, `format`, `shape` and
    `counter` do not affect DirectML operators and are ignored.
    """

    resource: str
    element_offset: int
    element_size_in_bytes: int | None
    position: Position


Bindings: TypeAlias = Mapping[str, tuple[ResourceBinding, ...]]
"""Maps a bind point to its bindings, one for each tensor."""


@record
class Dispatchable:
    """An operator; `bindings` are for its initialization (OWNED_BY_DML tensors)."""

    name: str
    operator: ParsedOperator
    bindings: Bindings
    position: Position


@record
class DispatchCommand:
    dispatchable: str
    bindings: Bindings
    position: Position


@record
class PrintCommand:
    resource: str
    position: Position


@record
class WriteFileCommand:
    """`target_path` is the path as the model spells it, `file` the resolved path; empty `dimensions` mean one
    dimension."""

    resource: str
    target_path: str
    file: str
    dimensions: tuple[int, ...]
    position: Position


Command: TypeAlias = DispatchCommand | PrintCommand | WriteFileCommand


@record
class Model:
    """A model; `run` executes it."""

    file: str
    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: tuple[Command, ...]

    def error(self, position: Position, message: str) -> InputError:
        """Returns, without raising it, an InputError with `message` at a position (line, column) of the file."""
        return InputError(message, file=self.file, line=position[0], column=position[1])


def read(path: str | os.PathLike[str], allow_paths: Iterable[str | os.PathLike[str]] = ()) -> Model:
    """Returns the model in a file, with the initial values of its resources.

    Files that it refers to must be, after resolving links, in its folder or in one of `allow_paths`. Descriptors are
    judged by `run`, not here. Raises InputError, with the place, if anything is malformed, cannot be opened or uses an
    operator other than DML_OPERATOR_SPLIT and DML_OPERATOR_JOIN.
    """
    file = os.fspath(path)
    try:
        text = JsonText.of_file(file)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=file) from None
    return _ModelReader(text, AllowedFolders(os.path.dirname(os.path.realpath(file)), allow_paths)).model(file)


class _ModelReader(ResourceReader):
    def __init__(self, text: JsonText, folders: AllowedFolders) -> None:
        super().__init__(text, folders)
        self._resources: dict[str, Resource] = {}
        self._dispatchables: dict[str, Dispatchable] = {}

    def model(self, file: str) -> Model:
        top = self.members_of(self.text.value, ())
        for name in self.field(top, (), "resources", self.members_of):
            self._resources[name] = self.resource(name, ("resources", name))
        for name in self.field(top, (), "dispatchables", self.members_of):
            self._dispatchables[name] = self._dispatchable(name, ("dispatchables", name))
        commands = self.field(top, (), "commands", self.items_of)
        return Model(
            file,
            self._resources,
            self._dispatchables,
            tuple([self._command(command, ("commands", i)) for i, command in enumerate(commands)]),
        )

    def _dispatchable(self, name: str, path: KeyPath) -> Dispatchable:
        try:
            operator = read_operator(self.text, path, whole_model=True)
        except OtherOperatorError as error:
            message = f"{error.message}, the operators that dmlsplit runs"
            raise InputError(message, file=error.file, line=error.line, column=error.column) from None
        bindings: Bindings = {}
        members = self.members_of(self.text.get(path), path)
        if isinstance(members.get("bindings"), dict):  # DxDispatch ignores anything else
            bindings = self._bindings(members["bindings"], (*path, "bindings"))
        return Dispatchable(name, operator, bindings, self.text.position(path))

    def _command(self, value: object, path: KeyPath) -> Command:
        members = self.members_of(value, path)
        position = self.text.position(path)
        kind = self.field(members, path, "type", self.string).lower()
        if kind == "dispatch":
            name = self._known(members, path, "dispatchable", self._dispatchables)
            bindings = self.field(members, path, "bindings", self._bindings)
            return DispatchCommand(name, bindings, position)
        if kind == "print":
            return PrintCommand(self._known(members, path, "resource", self._resources), position)
        if kind != "writefile":
            raise self.text.error((*path, "type"), f"{shown(members['type'])} is not dispatch, print or writeFile")
        resource = self._known(members, path, "resource", self._resources)
        target = self.field(members, path, "targetPath", self.string)
        if target.lower().endswith((".jpg", ".png")):
            raise self.text.error((*path, "targetPath"), "images (.jpg, .png) are not supported; write .npy")
        try:
            file = self._folders.beside(target)
            if file_key(file) in self._inputs:
                raise InputError(f"'{printable(target)}' would replace an input file")
        except InputError as error:
            raise self.text.error((*path, "targetPath"), error.message) from None
        dimensions = self.optional(members, path, "dimensions", self.uints, None)
        return WriteFileCommand(resource, target, file, tuple(dimensions or ()), position)

    def _known(self, members: dict[str, object], path: KeyPath, key: str, known: Mapping[str, object]) -> str:
        """Returns the string `members[key]`, the name of a resource or dispatchable. Raises InputError if it is not in
        `known` (by name), with a suggestion if one is close."""
        name = self.field(members, path, key, self.string)
        if name not in known:
            near = nearest(name, known, 0.75)
            suggestion = f"; did you mean {shown(near)}?" if near else ""
            kind = "dispatchable" if known is self._dispatchables else "resource"
            raise self.text.error((*path, key), f"the model has no {kind} {shown(name)}{suggestion}")
        return name

    def _bindings(self, value: object, path: KeyPath) -> Bindings:
        bindings = {}
        for point, source in self.members_of(value, path).items():
            if isinstance(source, list):
                bindings[point] = tuple([self._binding(item, (*path, point, i)) for i, item in enumerate(source)])
            else:
                bindings[point] = (self._binding(source, (*path, point)),)
        return bindings

    def _binding(self, value: object, path: KeyPath) -> ResourceBinding:
        position = self.text.position(path)
        if isinstance(value, str):
            if value not in self._resources:
                raise self.text.error(path, f"the model has no resource {shown(value)}")
            return ResourceBinding(value, 0, None, position)
        if not isinstance(value, dict):
            raise self.text.error(path, f"expected the name of a resource or an object, not {shown(value)}")
        return ResourceBinding(
            self._known(value, path, "name", self._resources),
            self.optional(value, path, "elementOffset", self.uint64, 0),
            self.optional(value, path, "elementSizeInBytes", self.uint64, 0) or None,
            position,
        )
