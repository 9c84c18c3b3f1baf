"""Writes legalized operators as DxDispatch models: either a new model, or a given model with its operators replaced."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.enums import UINT_MAX, TensorDataType, TensorFlags
from dmlsplit.descriptors.geometry import Geometry, TensorLayout, members_of
from dmlsplit.formats.json import FieldReader, to_json
from dmlsplit.formats.jsontext import JsonText, KeyPath
from dmlsplit.legalize import Legalization, Region
from dmlsplit.native.binding import NUMPY_DTYPE

Members: TypeAlias = dict[str, Any]
Sources: TypeAlias = Mapping[str, Sequence[tuple[str, int]]]
"""Maps "input", "output" and "temporary" to (resource, start byte) of each buffer."""
_BYTES: Final = TensorDataType.INT8
"""The type for printing a buffer that has none of its own."""


def legalized_model(file: str, legalizations: Sequence[tuple[str | None, Legalization]]) -> Members:
    """Returns the DxDispatch model, as a JSON object, that runs the legalized operators of a file: the model in the
    file with its operators replaced or, if the file has none, a new one. `legalizations` are as in `new_model`.

    Raises InputError if the model in the file is malformed, OSError if the file cannot be read.
    """
    if file != "-" and file.lower().endswith(".json"):
        text = JsonText.of_file(file)
        if isinstance(text.value, dict) and "dispatchables" in text.value:
            return rewritten_model(text, {name: found for name, found in legalizations if name is not None})
    return new_model(legalizations)


def new_model(legalizations: Iterable[tuple[str | None, Legalization]]) -> Members:
    """Returns a DxDispatch model, as a JSON object, that runs legalized operators one after another, each with separate
    resources, and prints the outputs. `legalizations` are pairs of a name (None: "operator") and a legalization.

    Inputs hold 1, 2, 3, ...
    """
    model: Members = {"resources": {}, "dispatchables": {}, "commands": []}
    for name, found in legalizations:
        operator = _free(name or "operator", model["dispatchables"])
        buffers: dict[str, list[tuple[str, int]]] = {}
        printed = []
        assert found.desc is not None  # it is None only if there is no rewriting
        geometry = Geometry.of(found.desc)
        for kind, tensors in (("input", geometry.inputs), ("output", geometry.outputs)):
            buffers[kind] = []
            for i, tensor in enumerate(tensors):
                resource = _free(
                    f"{operator} {kind} {i}" if len(tensors) > 1 else f"{operator} {kind}", model["resources"]
                )
                buffers[kind].append((resource, 0))
                if not tensor.is_empty:
                    model["resources"][resource] = _resource(tensor)
                    printed += [{"type": "print", "resource": resource}] if kind == "output" else []
        model["commands"] += _commands(_add(model, operator, found, buffers), found, buffers) + printed
    return model


def rewritten_model(text: JsonText, legalizations: Mapping[str, Legalization]) -> Members:
    """Returns the JSON object of a DxDispatch model in which the dispatchables named in `legalizations` are replaced by
    their legalized operators, and the commands that dispatch them by commands that dispatch these.

    Raises InputError, with the place, if the resources or commands of `text` are malformed.
    """
    return _Rewriter(text).model(legalizations)


class _Rewriter(FieldReader):
    def model(self, legalizations: Mapping[str, Legalization]) -> Members:
        given = self.members_of(self.text.value, ())
        self._resources = self.field(given, (), "resources", self.members_of)
        dispatchables = self.field(given, (), "dispatchables", self.members_of)
        changed = {name: found for name, found in legalizations.items() if found.operators != (found.desc,)}
        model: Members = {**copy.deepcopy(given), "commands": []}
        model["dispatchables"] = {name: value for name, value in dispatchables.items() if name not in changed}
        owned: dict[str, Sources] = {}
        names: dict[str, list[str]] = {}
        for name, found in changed.items():
            path: KeyPath = ("dispatchables", name)
            members = self.members_of(dispatchables[name], path)
            bindings = members.get("bindings")  # DxDispatch ignores entries that are not objects
            owned[name] = self._sources(bindings, (*path, "bindings")) if isinstance(bindings, dict) else {}
            names[name] = _add(model, name, found, owned[name])
        for i, value in enumerate(self.field(given, (), "commands", self.items_of)):
            path = ("commands", i)
            members = self.members_of(value, path)
            is_dispatch = str(members.get("type")).lower() == "dispatch"
            dispatched = self.field(members, path, "dispatchable", self.string) if is_dispatch else None
            if dispatched is None or dispatched not in changed:
                model["commands"].append(value)
                continue
            bound = self._sources(self.field(members, path, "bindings", self.members_of), (*path, "bindings"))
            sources = {**owned[dispatched], **bound}
            self._check(changed[dispatched], sources, path)
            model["commands"] += _commands(names[dispatched], changed[dispatched], sources)
        return model

    def _sources(self, bindings: Mapping[str, object], path: KeyPath) -> Sources:
        found = {}
        for point, value in bindings.items():
            items = value if isinstance(value, list) else [value]
            kind = "input" if point.startswith("Input") else "output"
            found[kind] = [
                self._source(item, (*path, point, i) if isinstance(value, list) else (*path, point))
                for i, item in enumerate(items)
            ]
        return found

    def _source(self, value: object, path: KeyPath) -> tuple[str, int]:
        """Returns the name of a binding's resource and the binding's offset in bytes. Raises InputError if the size of
        an element, and hence the offset, is not known."""
        if isinstance(value, str):
            return value, 0
        members = self.members_of(value, path)
        name = self.field(members, path, "name", self.string)
        offset = self.optional(members, path, "elementOffset", self.uint64, 0)
        size = self.optional(members, path, "elementSizeInBytes", self.uint64, 0)
        if offset and not size:
            resource = self._resources.get(name)
            declared = resource.get("initialValuesDataType") if isinstance(resource, dict) else None
            key = ("resources", name, "initialValuesDataType")
            data_type = None if declared is None else NUMPY_DTYPE.get(self.data_type(declared, key))
            if data_type is None:
                message = "elementOffset needs elementSizeInBytes here: the resource has no initialValuesDataType"
                raise self.text.error(path, message)
            size = data_type.itemsize
        return name, offset * size

    def _check(self, found: Legalization, sources: Sources, path: KeyPath) -> None:
        assert found.desc is not None
        geometry = Geometry.of(found.desc)
        for kind, tensors in (("input", geometry.inputs), ("output", geometry.outputs)):
            count = len(sources.get(kind, ()))
            if count != len(tensors):
                message = f"{len(tensors)} {kind} buffers are expected, but {count} are bound"
                raise self.text.error(path, message)


def _add(model: Members, name: str, found: Legalization, buffers: Sources) -> list[str]:
    """Adds to `model`, in place, the operators of a legalization as dispatchables and, if they need one, a temporary
    buffer as a resource. Returns the dispatchables' names, followed by the buffer's name if there is one."""
    names = []
    for i, (operator, regions) in enumerate(zip(found.operators, found.bindings, strict=True)):
        own_name = _free(name if len(found.operators) == 1 else f"{name} {i}", model["dispatchables"])
        dispatchable: Members = to_json(operator)
        if _is_owned(operator) and buffers.get("input"):
            inputs, _ = _bindings(operator, regions, buffers)
            dispatchable["bindings"] = inputs
        model["dispatchables"][own_name] = dispatchable
        names.append(own_name)
    if found.temporary_bytes:
        names.append(_free(f"{name} temporary", model["resources"]))
        model["resources"][names[-1]] = _zeros(_BYTES, found.temporary_bytes)
    return names


def _commands(names: Sequence[str], found: Legalization, buffers: Sources) -> list[Members]:
    """Returns the dispatch commands of a legalization's operators; `names` is the result of `_add`, and `buffers` maps
    "input" and "output" to their resources."""
    if found.temporary_bytes:
        buffers = {**buffers, "temporary": [(names[-1], 0)]}
    commands: list[Members] = []
    for name, operator, regions in zip(names, found.operators, found.bindings, strict=False):
        inputs, outputs = _bindings(operator, regions, buffers)
        bindings = outputs if _is_owned(operator) else {**inputs, **outputs}
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
    return commands


def _bindings(operator: OperatorDesc, regions: Sequence[Region], buffers: Sources) -> tuple[Members, Members]:
    """Returns two JSON objects, the bindings of an operator's inputs and those of its outputs. `regions` are its
    tensors' places in `buffers`, which maps a kind of buffer to (resource, byte offset) pairs; a kind that is missing
    is bound to the resource ""."""
    bound = []
    for region in regions:
        name, start = buffers[region.buffer][region.index] if region.buffer in buffers else ("", 0)
        offset = start + region.offset
        # Counted in byte elements, whatever the resource's type is.
        bound.append({"name": name, "elementOffset": offset, "elementSizeInBytes": 1} if offset else name)
    roles = members_of(operator).roles
    whole, parts = roles.whole_and_parts(bound)
    return roles.sides({roles.whole: whole}, {roles.parts: parts})


def _is_owned(operator: OperatorDesc) -> bool:
    return any(tensor.flags & TensorFlags.OWNED_BY_DML for tensor in Geometry.of(operator).inputs)


def _resource(tensor: TensorLayout) -> Members:
    """Returns the JSON object of a buffer with the tensor's total size, rounded up to 4 bytes. An input is filled with
    1, 2, 3, ..., an output with zeros."""
    data_type = TensorDataType(tensor.data_type)
    count = tensor.extent
    if data_type not in NUMPY_DTYPE:
        data_type, count = _BYTES, -(-count * tensor.bits // 8)
    resource = _zeros(data_type, min(count, UINT_MAX))
    if not tensor.is_output:
        resource["initialValues"] = {"valueCount": min(count, UINT_MAX), "valueStart": 1, "valueDelta": 1}
    resource["sizeInBytes"] = -(-tensor.total // 4) * 4
    return resource


def _zeros(data_type: TensorDataType, count: int) -> Members:
    return {"initialValuesDataType": data_type.name, "initialValues": {"valueCount": count, "value": 0}}


def _free(name: str, taken: Container[str]) -> str:
    """Returns `name`, or "name 2", "name 3", ...: the first that is not in `taken`."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free
