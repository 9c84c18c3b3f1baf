"""Executes a DxDispatch model on the CPU.

A model runs on the emulated device, which judges its operators and bindings as a build of DirectML does. Source:
DxDispatch, src/dxdispatch/Executor.cpp and DmlDispatchable.cpp.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from dmlsplit.descriptors.diagnostics import Diagnostic, DirectMLError, Position, Report
from dmlsplit.descriptors.enums import UINT_MAX
from dmlsplit.descriptors.geometry import Geometry
from dmlsplit.descriptors.location import Step
from dmlsplit.device import (
    BindingTable,
    BufferArrayBinding,
    BufferBinding,
    Device,
    DispatchableOperator,
    OperatorInitializer,
)
from dmlsplit.formats.dxdispatch.model import (
    Bindings,
    Dispatchable,
    DispatchCommand,
    Model,
    PrintCommand,
    ResourceBinding,
    WriteFileCommand,
)
from dmlsplit.formats.dxdispatch.resources import Resource
from dmlsplit.formats.files import reason
from dmlsplit.native.binding import NUMPY_DTYPE
from dmlsplit.native.buffer import Buffer
from dmlsplit.system.atomic_files import write_file
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.targets.target import ReleaseLike, RuntimeLike

MAX_DIMENSIONS: Final = 32
"""The most dimensions of a written .npy file, the limit of the oldest numpy releases."""
_FLOAT_FORMAT: Final = "{:.6g}".format
"""A C++ stream's default format: six significant digits, exponents of at least two digits."""


@record
class RunResult:
    """The outcome of a run.

    `reports`: the reports on dispatchables whose descriptors the device refuses, with line and column in the model; if
    there is one, nothing was executed. `failures`: the files that could not be written; the run continued after them.
    `warnings`: actions of the run that DirectML's documentation forbids, or whose outcome it leaves undefined.
    """

    reports: tuple[Report, ...] = ()
    failures: tuple[InputError, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def exit_status(self) -> int:
        """The exit status of `dmlsplit run`: 2 if a file could not be written, 1 if a descriptor was refused, else
        0."""
        return 2 if self.failures else 1 if self.reports else 0


def run(
    model: Model,
    write: Callable[[str], object],
    on_failure: Callable[[InputError], object] = lambda error: None,
    directml: ReleaseLike = None,
    *,
    onnxruntime: RuntimeLike = None,
) -> RunResult:
    """Executes the commands of a model on the emulated device of a release, or of the release that a version of ONNX
    Runtime ships (by default the newest known), and returns the outcome: refused operators, files that could not be
    written, and warnings.

    `write` is called with each line that DxDispatch prints, including its newline. The model is not changed and may be
    run again. `on_failure` is called as soon as a file cannot be written. Raises InputError, with the place in the
    model, if bindings do not fit their operator (the device is then removed, as DirectML's would be, or refuses the
    dispatch), if a resource cannot be printed, or if there is not enough memory; ValueError for an unknown release or
    version.

    Output differs from DxDispatch's in this: 8-bit integers are printed as numbers instead of characters, no timings
    are printed, and the path of a written file is as the model spells it. Floats are spelled as libstdc++ does, `-nan`
    included.
    """
    found: list[Diagnostic] = []
    device = Device(directml, onnxruntime=onnxruntime, on_warning=found.append)
    operators, reports = _create_operators(model, device)
    if reports:
        return RunResult(reports)
    runner = _Runner(model, device, operators, write, on_failure, found)
    runner.initialize()
    for command in model.commands:
        if isinstance(command, DispatchCommand):
            runner.dispatch(command)
        elif isinstance(command, PrintCommand):
            runner.print(command)
        else:
            runner.write_file(command)
    return RunResult(failures=tuple(runner.failures), warnings=tuple(runner.warnings))


def _create_operators(model: Model, device: Device) -> tuple[dict[str, DispatchableOperator], tuple[Report, ...]]:
    operators, reports = {}, []
    for index, (name, dispatchable) in enumerate(model.dispatchables.items()):
        parsed = dispatchable.operator
        try:
            operators[name] = device.compile_operator(device.create_operator(parsed.descriptor))
        except DirectMLError as error:
            report = error.report.located(parsed.locate)
            diagnostics = (*parsed.notes, *report.diagnostics)
            reports.append(replace(report, diagnostics=diagnostics, file=model.file, index=index))
    return operators, tuple(reports)


BindPoint: TypeAlias = tuple[str, int]
"""A tensor or an array of tensors of an operator: (the member's name, its number of tensors)."""


def _bind_points(operator: Geometry) -> tuple[BindPoint, BindPoint]:
    """Returns the bind points, (name, number of tensors), of the operator's inputs and of its outputs."""
    roles = operator.roles
    return roles.sides((roles.whole, 1), (roles.parts, len(operator.parts)))


@dataclass
class _Runner:
    """The state of a run: the resources, and the persistent resources of operators with tensors OWNED_BY_DML."""

    model: Model
    device: Device
    operators: Mapping[str, DispatchableOperator]
    write: Callable[[str], object]
    on_failure: Callable[[InputError], object]
    found: list[Diagnostic]
    """The device's warnings since the list was last cleared."""
    buffers: dict[str, Buffer] = field(default_factory=dict)
    persistent: dict[str, BufferBinding] = field(default_factory=dict)
    failures: list[InputError] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    def initialize(self) -> None:
        """Allocates `self.buffers`, a buffer for each resource that has initial values, and copies these to its
        beginning; then initializes all dispatchables. Raises InputError if memory is short or a binding is refused."""
        for name, resource in self.model.resources.items():
            if resource.initial_values is None:
                continue
            try:
                self.buffers[name] = Buffer(resource.size_in_bytes)
            except MemoryError:
                message = f"there is not enough memory for {resource.size_in_bytes} bytes"
                raise self.model.error(resource.position, message) from None
            self.buffers[name].array[: resource.initial_values.size] = resource.initial_values
        for name, dispatchable in self.model.dispatchables.items():
            self._initialize(name, dispatchable)

    def _initialize(self, name: str, dispatchable: Dispatchable) -> None:
        """Initializes the operator of a dispatchable. Its tensors OWNED_BY_DML are copied into a buffer in
        `self.persistent`, so that later changes to the resources do not affect it. Raises InputError for bindings that
        do not fit."""
        operator = self.operators[name]
        inputs, _ = _bind_points(operator.geometry)
        name_of_inputs, bindings = inputs[0], dispatchable.bindings
        owned = [at is not None for at in operator.persistent_offsets]
        if any(owned) and name_of_inputs not in bindings:
            message = f"{name_of_inputs} is OWNED_BY_DML: the dispatchable needs 'bindings' for it"
            raise self.model.error(dispatchable.position, message)
        initializer = self.device.create_operator_initializer([operator])
        table = self.device.create_binding_table(initializer)
        places: dict[tuple[Step, ...], ResourceBinding] = {}
        if bindings:
            entries = self._ranges(inputs, bindings, dispatchable.position) if name_of_inputs in bindings else ()
            bound = bindings.get(name_of_inputs, ())
            places = {("BindInputs", 0, "Bindings", i): binding for i, binding in enumerate(bound)}
            table.bind_inputs([BufferArrayBinding(entries or [None] * len(owned))])
        size = operator.binding_properties.persistent_resource_size
        if size:
            try:
                self.persistent[name] = BufferBinding(Buffer(size))
            except MemoryError:
                raise self.model.error(dispatchable.position, "there is not enough memory for its copies") from None
            table.bind_outputs([self.persistent[name]])
        self._record(initializer, table, dispatchable.position, places)

    def dispatch(self, command: DispatchCommand) -> None:
        operator = self.operators[command.dispatchable]
        dispatchable = self.model.dispatchables[command.dispatchable]
        inputs, outputs = _bind_points(operator.geometry)
        table = self.device.create_binding_table(operator)
        name_of_inputs, count = inputs
        if name_of_inputs in dispatchable.bindings and name_of_inputs not in command.bindings:
            table.bind_inputs([None] * count)
        else:
            table.bind_inputs(self._ranges(inputs, command.bindings, command.position))
        if command.dispatchable in self.persistent:
            table.bind_persistent_resource(self.persistent[command.dispatchable])
        table.bind_outputs(self._ranges(outputs, command.bindings, command.position))
        places: dict[tuple[Step, ...], ResourceBinding] = {
            (call, i): bound
            for call, (name, _) in (("BindInputs", inputs), ("BindOutputs", outputs))
            for i, bound in enumerate(command.bindings.get(name, ()))
        }
        self._record(operator, table, command.position, places)

    def _record(
        self,
        dispatchable: DispatchableOperator | OperatorInitializer,
        table: BindingTable,
        position: Position,
        places: Mapping[tuple[Step, ...], ResourceBinding],
    ) -> None:
        """Executes an operator or initializer with its bindings, and appends the device's warnings to `self.warnings`
        with line and column. Raises InputError if the device refuses or is removed.

        `places` maps the steps of a bind call's location to the resource bound there; `position` is used for all other
        faults.
        """

        def told(d: Diagnostic) -> tuple[Position, str]:
            steps = d.location.steps
            bound = next((binding for outer, binding in places.items() if steps[: len(outer)] == outer), None)
            resource = "" if bound is None else f", resource '{printable(bound.resource)}'"
            place = position if bound is None else bound.position
            return place, f"{d.path}{resource}: {d.message} [{d.rule}]"

        refused = self.device.removed_reason
        if refused is None:
            try:
                self.device.record_dispatch(dispatchable, table)
            except DirectMLError as error:
                refused = error.report
            except MemoryError:
                raise self.model.error(position, "there is not enough memory to dispatch it") from None
        refused = refused or self.device.removed_reason
        if refused is not None:
            code = "" if refused.hresult is None else f"; the device is removed (0x{refused.hresult:08X})"
            places_and_texts = [told(diagnostic) for diagnostic in refused.diagnostics]
            raise self.model.error(places_and_texts[0][0], "; ".join(text for _, text in places_and_texts) + code)
        for diagnostic in self.found:
            (line, column), _ = told(diagnostic)
            self.warnings.append(replace(diagnostic, line=line, column=column))
        self.found.clear()

    def _ranges(self, point: BindPoint, bindings: Bindings, position: Position) -> list[BufferBinding]:
        """Returns the buffer ranges bound to the tensors of bind point `point`, in order. Raises InputError at
        `position` if nothing, or the wrong number of resources, is bound."""
        name, count = point
        bound = bindings.get(name)
        if bound is None:
            raise self.model.error(position, f"nothing is bound to {name}")
        if len(bound) != count:
            place = bound[0].position if bound else position
            raise self.model.error(place, f"{name} has {count} tensors, but {len(bound)} resources are bound to it")
        return [self._range(binding) for binding in bound]

    def _range(self, binding: ResourceBinding) -> BufferBinding:
        """Returns the bytes of a resource from the binding's offset to its end. Sizes wrap at 64 bits, as in
        DxDispatch. Raises InputError if the resource was never made, or if the offset exceeds 64 bits."""
        name = printable(binding.resource)
        resource = self.model.resources[binding.resource]
        buffer = self.buffers.get(binding.resource)
        if buffer is None:
            raise self.model.error(binding.position, f"resource '{name}' is deferred, which only ONNX models can bind")
        offset = binding.element_offset * self._element_size(resource, binding)
        if offset >= 2**64:
            message = f"the offset of {offset} bytes into '{name}' does not fit into 64 bits"
            raise self.model.error(binding.position, message)
        return BufferBinding(buffer, offset, (buffer.size_in_bytes - offset) % 2**64)

    def _element_size(self, resource: Resource, binding: ResourceBinding) -> int:
        if binding.element_size_in_bytes is not None:
            return binding.element_size_in_bytes
        dtype = NUMPY_DTYPE.get(resource.data_type)
        if dtype is None and binding.element_offset:
            message = "elementOffset needs elementSizeInBytes here: the resource has no initialValuesDataType"
            raise self.model.error(binding.position, message)
        return 0 if dtype is None else dtype.itemsize

    def print(self, command: PrintCommand) -> None:
        """Passes to `self.write` one line with the resource's elements, up to the end of its initial values. Raises
        InputError if the resource has no elements that can be printed."""
        resource = self.model.resources[command.resource]
        try:
            values = self._elements(resource, None if resource.initial_values is None else resource.initial_values.size)
            text = ", ".join(_spelled(values))
        except MemoryError:
            raise self.model.error(command.position, "there is not enough memory to print it") from None
        except InputError as error:
            raise self.model.error(command.position, error.message) from None
        self.write(f"Resource '{printable(command.resource, None)}': {text}\n")

    def _elements(self, resource: Resource, size: int | None) -> np.ndarray:
        """Returns the first `size` bytes of a resource (None: all) as an array of its data type; an incomplete element
        at the end is dropped. Raises InputError for a resource without data or type, and for too many elements."""
        name = printable(resource.name)
        if resource.initial_values is None:
            raise InputError(f"resource '{name}' is deferred and was never created")
        dtype = NUMPY_DTYPE.get(resource.data_type)
        if dtype is None:
            raise InputError(f"resource '{name}' has no initialValuesDataType, so its elements have no type")
        buffer = self.buffers[resource.name].array[:size]
        count = buffer.size // dtype.itemsize
        if count > UINT_MAX:
            raise InputError(f"resource '{name}' has {count} elements; DxDispatch stops at {UINT_MAX}")
        return buffer[: count * dtype.itemsize].view(dtype)

    def write_file(self, command: WriteFileCommand) -> None:
        """Writes all bytes of a resource to a file and reports it by `self.write`. A failure is not raised: it is
        appended to `self.failures` and passed to `self.on_failure`."""
        names = f"'{printable(command.resource)}' to '{printable(command.target_path)}'"
        try:
            self._write_file(command)
        except (OSError, InputError, MemoryError) as error:
            why = "there is not enough memory" if isinstance(error, MemoryError) else reason(error)
            failure = self.model.error(command.position, f"failed to write resource {names}: {why}")
            self.failures.append(failure)
            self.on_failure(failure)
        else:
            resource, target = printable(command.resource, None), printable(command.target_path, None)
            self.write(f"Resource '{resource}' written to '{target}'\n")

    def _write_file(self, command: WriteFileCommand) -> None:
        resource = self.model.resources[command.resource]
        if not command.file.lower().endswith(".npy"):
            if resource.initial_values is None:
                raise InputError("the resource is deferred and was never created")
            write_file(command.file, self.buffers[command.resource].array.data)
            return
        values = self._elements(resource, None)
        if command.dimensions:
            count = math.prod(command.dimensions)
            if len(command.dimensions) > MAX_DIMENSIONS:
                raise InputError(f"{len(command.dimensions)} dimensions; numpy reads at most {MAX_DIMENSIONS}")
            if count > values.size:
                raise InputError(
                    f"dimensions {list(command.dimensions)} need {count} elements, but it has {values.size}"
                )
            values = values[:count].reshape(command.dimensions)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
        write_file(command.file, header.getvalue(), values.reshape(-1).view(np.uint8).data)


def _spelled(values: np.ndarray) -> list[str]:
    """Returns each number as text, as a C++ stream of libstdc++ prints it."""
    if values.dtype.kind != "f":
        return [str(value) for value in values.tolist()]
    # A FLOAT16 is printed as a float, and a float as a double; neither conversion changes the value.
    texts = [_FLOAT_FORMAT(value) for value in values.tolist()]
    for i in np.flatnonzero(np.isnan(values) & np.signbit(values)):
        texts[i] = "-nan"
    return texts
