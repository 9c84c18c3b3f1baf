"""Programs in few words: an operator, initialized and bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import dmlsplit as dml


class Program:
    """A device, and what it was told to warn of."""

    def __init__(self, directml: str | None = None, **settings) -> None:
        self.warned: list[dml.Diagnostic] = []
        self.device = dml.Device(directml, on_warning=self.warned.append, **settings)

    @property
    def warnings(self) -> list[str]:
        return [d.rule for d in self.warned]

    @property
    def removed_for(self) -> list[str]:
        reason = self.device.removed_reason
        return [] if reason is None else [d.rule for d in reason.diagnostics]

    def compile(self, desc: dml.OperatorDesc, flags: int = 0):
        return self.device.compile_operator(self.device.create_operator(desc), flags)

    def initialize(self, op, inputs: Sequence[dml.BufferBinding | None] = ()) -> dml.BufferBinding | None:
        """Its persistent resource."""
        initializer = self.device.create_operator_initializer([op])
        table = self.device.create_binding_table(initializer)
        size = op.binding_properties.persistent_resource_size
        persistent = None
        if size:
            persistent = dml.BufferBinding(dml.Buffer(size + 256), 256)
            table.bind_inputs([dml.BufferArrayBinding(inputs)])
            table.bind_outputs([persistent])
        self.device.record_dispatch(initializer, table)
        return persistent

    def table(self, op, inputs, outputs, persistent=None):
        table = self.device.create_binding_table(op)
        table.bind_inputs(inputs)
        table.bind_outputs(outputs)
        if persistent is not None:
            table.bind_persistent_resource(persistent)
        return table

    def run(self, desc: dml.OperatorDesc, inputs, outputs) -> None:
        op = self.compile(desc)
        self.initialize(op)
        self.device.record_dispatch(op, self.table(op, inputs, outputs))


@pytest.fixture
def program() -> Program:
    return Program()


def filled(size: int, seed: int = 1) -> dml.Buffer:
    buffer = dml.Buffer(size)
    buffer.array[:] = np.random.default_rng(seed).integers(0, 256, size)
    return buffer


def vector(length: int, data_type=dml.TensorDataType.UINT8, **members) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(data_type, (length,), **members)
