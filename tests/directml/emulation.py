"""What dml.Device answers to a program, in the harness's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dmlsplit as dml
from tests.directml.programs import Bound, Program, Range, Step


class _Missing(Exception):
    """A step uses what was not made."""


class _Crash(Exception):
    """The build would end the process."""


def emulate(program: Program, directml: str, capabilities: dml.Capabilities | None = None) -> list[str] | None:
    """The answers of dml.Device; None where it says that the process ends."""
    device = dml.Device(directml, capabilities=capabilities, on_warning=lambda diagnostic: None)
    emulation = _Emulation(device)
    try:
        return [emulation.step(step) for step in program]
    except _Crash:
        return None


class _Emulation:
    def __init__(self, device: dml.Device) -> None:
        self.device = device
        self.objects: list[Any] = []

    def step(self, step: Step) -> str:
        call: Callable[..., str] = getattr(self, step.name)
        try:
            return call(*step.arguments)
        except _Missing:
            if step.name in ("compile", "initializer", "table"):
                self.objects.append(None)
            return "skipped"

    def get(self, number: int) -> Any:
        if self.objects[number] is None:
            raise _Missing
        return self.objects[number]

    def make(self, call: Callable[..., Any], *arguments: Any) -> str:
        try:
            self.objects.append(call(*arguments))
        except dml.DirectMLError as error:
            if error.hresult is None:
                raise _Crash from None
            self.objects.append(None)
            return f"{error.hresult:08X}"
        return "00000000"

    def query(self, call: Callable[..., Any], *arguments: Any) -> str:
        untouched = 0xDDDDDDDD
        try:
            return f"00000000,{int(call(*arguments))}"
        except dml.DirectMLError as error:
            data = untouched if error.hresult == dml.HResult.DXGI_ERROR_DEVICE_REMOVED else 0
            return f"{error.hresult:08X},{data}"

    def afterwards(self) -> str:
        return f"{self.device.get_device_removed_reason():08X}"

    def levels(self, levels: Sequence[int]) -> str:
        return self.query(self.device.check_feature_support_feature_levels, levels)

    def type(self, number: int) -> str:
        return self.query(self.device.check_feature_support_tensor_data_type, number)

    def buffer(self, size: int) -> str:
        return self.make(dml.Buffer, size)

    def operator(self, desc: dml.OperatorDesc) -> str:
        return self.make(self.device.create_operator, desc)

    def compile(self, number: int, flags: int) -> str:
        return self.make(self.device.compile_operator, self.get(number), flags)

    def initializer(self, numbers: Sequence[int]) -> str:
        return self.make(self.device.create_operator_initializer, [self.get(number) for number in numbers])

    def properties(self, number: int) -> str:
        return ",".join(map(str, self.get(number).binding_properties))

    def table(self, number: int, size: int) -> str:
        return self.make(self.device.create_binding_table, self.get(number), size)

    def reset(self, table: int, number: int, size: int) -> str:
        try:
            self.get(table).reset(self.get(number), size)
        except dml.DirectMLError as error:
            return f"{error.hresult:08X}"
        return "00000000"

    def inputs(self, table: int, bindings: Sequence[Bound]) -> str:
        return self.bind(self.get(table).bind_inputs, [self.bound(binding) for binding in bindings])

    def outputs(self, table: int, bindings: Sequence[Bound]) -> str:
        return self.bind(self.get(table).bind_outputs, [self.bound(binding) for binding in bindings])

    def temporary(self, table: int, binding: Bound) -> str:
        return self.bind(self.get(table).bind_temporary_resource, self.bound(binding))

    def persistent(self, table: int, binding: Bound) -> str:
        return self.bind(self.get(table).bind_persistent_resource, self.bound(binding))

    def bind(self, call: Callable[[Any], None], value: Any) -> str:
        try:
            call(value)
        except dml.DirectMLError:
            raise _Crash from None
        return self.afterwards()

    def dispatch(self, number: int, table: int) -> str:
        dispatchable, table = self.get(number), self.get(table)
        try:
            self.device.record_dispatch(dispatchable, table)
        except dml.DirectMLError as error:
            # Undefined on a GPU, and refused here; the library records it.
            if error.hresult is not None:
                raise
        return self.afterwards()

    def bound(self, binding: Bound) -> dml.BindingDesc:
        if binding.desc is None:
            return dml.BindingDesc(binding.type)
        if isinstance(binding.desc, Range):
            return dml.BindingDesc(binding.type, self.range(binding.desc))
        return dml.BindingDesc(binding.type, dml.BufferArrayBinding([self.range(entry) for entry in binding.desc]))

    def range(self, bound: Range) -> dml.BufferBinding:
        buffer = None if bound.buffer is None else self.get(bound.buffer)
        return dml.BufferBinding(buffer, bound.offset, bound.size)
