"""Executing a DxDispatch model on the CPU.

Source: DxDispatch, src/dxdispatch/Executor.cpp and DmlDispatchable.cpp; for the binding rules, Microsoft's "Binding in
DirectML".
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dmlsplit import execution
from dmlsplit.descriptors import OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.diagnostics import Position, Report
from dmlsplit.enums import MINIMUM_BUFFER_TENSOR_ALIGNMENT, UINT_MAX, TensorFlags
from dmlsplit.errors import BindingError, InputError, NativeError, ValidationError
from dmlsplit.formats.dxdispatch.files import Bytes, reason, write_whole
from dmlsplit.formats.dxdispatch.model import (
    Binding,
    Bindings,
    Dispatchable,
    DispatchCommand,
    Model,
    PrintCommand,
    WriteFileCommand,
)
from dmlsplit.formats.dxdispatch.resources import NUMPY_DTYPE, Resource
from dmlsplit.formats.jsontext import printable

MAX_DIMENSIONS: Final = 32
"""Of a written .npy file: what every numpy release reads."""
_FLOAT_FORMAT: Final = "{:.6g}".format
"""A C++ stream's default: six significant digits, exponents of at least two digits."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    `reports`: the dispatchables whose descriptors are faulty, with line and column in the model; if there is one,
    nothing was executed. `failures`: the files that could not be written, in spite of which the run went on.
    """

    reports: tuple[Report, ...] = ()
    failures: tuple[InputError, ...] = ()

    @property
    def exit_status(self) -> int:
        """That of `dmlsplit run`: 2 where a write failed, 1 where a descriptor is faulty, else 0."""
        return 2 if self.failures else 1 if self.reports else 0


def run(
    model: Model,
    write: Callable[[str], object],
    on_failure: Callable[[InputError], object] = lambda error: None,
) -> RunResult:
    """Executes the commands of a model; `write` gets the lines that DxDispatch prints, each with its newline.

    The model is not changed and may be run again. `on_failure` is told of a file that could not be written as it
    happens. Raises InputError, with the place in the model, where bindings do not fit their operator, a resource
    cannot be printed, or there is not enough memory.

    Departures from what DxDispatch prints: 8-bit integers as numbers instead of characters; no timings; the path of a
    written file as the model spells it. Floats are spelled as libstdc++ does, `-nan` included.
    """
    operators, reports = _compile(model)
    if reports:
        return RunResult(reports)
    runner = _Runner(model, operators, write, on_failure)
    runner.initialize()
    for command in model.commands:
        if isinstance(command, DispatchCommand):
            runner.dispatch(command)
        elif isinstance(command, PrintCommand):
            runner.print(command)
        else:
            runner.write_file(command)
    return RunResult(failures=tuple(runner.failures))


def _compile(model: Model) -> tuple[dict[str, execution.CompiledOperator], tuple[Report, ...]]:
    operators, reports = {}, []
    for index, (name, dispatchable) in enumerate(model.dispatchables.items()):
        parsed = dispatchable.operator
        try:
            operators[name] = execution.compile(parsed.descriptor)
        except ValidationError as error:
            report = error.report.located(parsed.locate)
            diagnostics = (*parsed.notes, *report.diagnostics)
            reports.append(replace(report, diagnostics=diagnostics, file=model.file, index=index))
        except NativeError as error:
            raise model.error(dispatchable.position, f"dispatchable '{printable(name)}': {error}") from None
    return operators, tuple(reports)


@dataclass(frozen=True, slots=True)
class BindPoint:
    """A tensor, or an array of tensors, of an operator."""

    name: str
    tensors: Sequence[TensorDesc | None]
    is_input: bool

    @property
    def owned(self) -> list[bool]:
        return [bool(tensor and tensor.flags & TensorFlags.OWNED_BY_DML) for tensor in self.tensors]


def _bind_points(desc: OperatorDesc) -> tuple[BindPoint, BindPoint]:
    if isinstance(desc, SplitOperatorDesc):
        outputs = (desc.output_tensors or ())[: desc.output_count]
        return BindPoint("InputTensor", [desc.input_tensor], True), BindPoint("OutputTensors", outputs, False)
    inputs = (desc.input_tensors or ())[: desc.input_count]
    return BindPoint("InputTensors", inputs, True), BindPoint("OutputTensor", [desc.output_tensor], False)


@dataclass
class _Runner:
    """The state of a run: the contents of the resources, and the copies of tensors that are OWNED_BY_DML."""

    model: Model
    operators: Mapping[str, execution.CompiledOperator]
    write: Callable[[str], object]
    on_failure: Callable[[InputError], object]
    buffers: dict[str, Bytes] = field(default_factory=dict)
    owned: dict[str, list[Bytes]] = field(default_factory=dict)
    failures: list[InputError] = field(default_factory=list)

    def initialize(self) -> None:
        """Uploads the resources, then initializes the dispatchables."""
        for name, resource in self.model.resources.items():
            if resource.initial_values is None:
                continue
            try:
                buffer = np.zeros(resource.size_in_bytes, np.uint8)
                buffer[: resource.initial_values.size] = resource.initial_values
            except MemoryError:
                message = f"there is not enough memory for {resource.size_in_bytes} bytes"
                raise self.model.error(resource.position, message) from None
            self.buffers[name] = buffer
        for name, dispatchable in self.model.dispatchables.items():
            self._copy_owned(name, dispatchable)

    def _copy_owned(self, name: str, dispatchable: Dispatchable) -> None:
        """What initialization copies: later changes of the resource do not reach the operator."""
        point, _ = _bind_points(dispatchable.operator.descriptor)
        bound = point.name in dispatchable.bindings
        if bound and not all(point.owned):
            message = f"{point.name} is bound at initialization, but not OWNED_BY_DML throughout"
            raise self.model.error(dispatchable.bindings[point.name][0].position, message)
        if any(point.owned) and not bound:
            message = f"{point.name} is OWNED_BY_DML: the dispatchable needs 'bindings' for it"
            raise self.model.error(dispatchable.position, message)
        if bound:
            ranges = self._ranges(point, dispatchable.bindings, dispatchable.position)
            try:
                self.owned[name] = [data.copy() for data in ranges]
            except MemoryError:
                raise self.model.error(dispatchable.position, "there is not enough memory for its copies") from None

    def dispatch(self, command: DispatchCommand) -> None:
        points = _bind_points(self.model.dispatchables[command.dispatchable].operator.descriptor)
        values = {}
        for point in points:
            if point.is_input and command.dispatchable in self.owned:
                if point.name in command.bindings:
                    message = f"{point.name} is OWNED_BY_DML: it is bound at initialization, not at dispatch"
                    raise self.model.error(command.bindings[point.name][0].position, message)
                ranges = self.owned[command.dispatchable]
            else:
                ranges = self._ranges(point, command.bindings, command.position)
            # A memoryview is always raw memory, whereas an array of the tensor's shape would be the tensor itself.
            buffers: list[Any] = [data.data for data in ranges]
            values[point.is_input] = buffers if point.name.endswith("s") else buffers[0]
        try:
            self.operators[command.dispatchable].dispatch(values[True], out=values[False])
        except BindingError as error:
            raise self.model.error(command.position, str(error)) from None

    def _ranges(self, point: BindPoint, bindings: Bindings, position: Position) -> list[Bytes]:
        """The bytes that a bind point's tensors occupy."""
        bound = bindings.get(point.name)
        if bound is None:
            raise self.model.error(position, f"nothing is bound to {point.name}")
        if len(bound) != len(point.tensors):
            place = bound[0].position if bound else position
            message = f"{point.name} has {len(point.tensors)} tensors, but {len(bound)} resources are bound to it"
            raise self.model.error(place, message)
        return [self._range(tensor, binding) for tensor, binding in zip(point.tensors, bound, strict=True)]

    def _range(self, tensor: TensorDesc | None, binding: Binding) -> Bytes:
        assert tensor is not None  # a descriptor without errors has no null pointers
        name = printable(binding.resource)
        resource = self.model.resources[binding.resource]
        buffer = self.buffers.get(binding.resource)
        if buffer is None:
            raise self.model.error(binding.position, f"resource '{name}' is deferred, which only ONNX models can bind")
        offset = binding.element_offset * self._element_size(resource, binding)
        alignment = max(MINIMUM_BUFFER_TENSOR_ALIGNMENT, tensor.guaranteed_base_offset_alignment)
        if offset % alignment:
            message = f"the offset of {offset} bytes into '{name}' is no multiple of {alignment}"
            raise self.model.error(binding.position, message)
        total = tensor.total_tensor_size_in_bytes or 0
        if buffer.size - offset < total:
            left = max(0, buffer.size - offset)
            message = f"'{name}' has {left} bytes from offset {offset} on, the tensor needs {total}"
            raise self.model.error(binding.position, message)
        # DirectML lets two bindings overlap as long as the tensors' own bytes do not.
        return buffer[offset : offset + total]

    def _element_size(self, resource: Resource, binding: Binding) -> int:
        if binding.element_size_in_bytes is not None:
            return binding.element_size_in_bytes
        dtype = NUMPY_DTYPE.get(resource.data_type)
        if dtype is None and binding.element_offset:
            message = "elementOffset needs elementSizeInBytes here: the resource has no initialValuesDataType"
            raise self.model.error(binding.position, message)
        return 0 if dtype is None else dtype.itemsize

    def print(self, command: PrintCommand) -> None:
        """The resource's elements, without what lies beyond its initial values."""
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
        """A resource's first `size` bytes (None: all) as elements of its type; a rest smaller than one is left out."""
        name = printable(resource.name)
        if resource.initial_values is None:
            raise InputError(f"resource '{name}' is deferred and was never made")
        dtype = NUMPY_DTYPE.get(resource.data_type)
        if dtype is None:
            raise InputError(f"resource '{name}' has no initialValuesDataType, hence no elements")
        buffer = self.buffers[resource.name][:size]
        count = buffer.size // dtype.itemsize
        if count > UINT_MAX:
            raise InputError(f"resource '{name}' has {count} elements; DxDispatch stops at {UINT_MAX}")
        return buffer[: count * dtype.itemsize].view(dtype)

    def write_file(self, command: WriteFileCommand) -> None:
        """Writes the whole resource; a failure is noted, and the run goes on."""
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
                raise InputError("the resource is deferred and was never made")
            write_whole(command.file, self.buffers[command.resource].data)
            return
        values = self._elements(resource, None)
        if command.dimensions:
            count = math.prod(command.dimensions)
            if len(command.dimensions) > MAX_DIMENSIONS:
                raise InputError(f"{len(command.dimensions)} dimensions; numpy reads at most {MAX_DIMENSIONS}")
            if count > values.size:
                raise InputError(f"dimensions {list(command.dimensions)} need {count} elements, it has {values.size}")
            values = values[:count].reshape(command.dimensions)
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
        write_whole(command.file, header.getvalue(), values.reshape(-1).view(np.uint8).data)


def _spelled(values: np.ndarray) -> list[str]:
    """Numbers as a C++ stream of libstdc++ prints them."""
    if values.dtype.kind != "f":
        return [str(value) for value in values.tolist()]
    # A FLOAT16 is printed by way of float, a float by way of double: neither changes the value.
    texts = [_FLOAT_FORMAT(value) for value in values.tolist()]
    for i in np.flatnonzero(np.isnan(values) & np.signbit(values)):
        texts[i] = "-nan"
    return texts
