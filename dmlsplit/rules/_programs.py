"""What the examples of the binding/ and device/ rules begin with."""

from __future__ import annotations

from typing import Final

PROGRAM: Final = """\
import dmlsplit as dml

device = dml.Device(directml="1.15.4")
flags = dml.TensorFlags


def compiled(**members):
    x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2), **members)  # 48 bytes
    desc = dml.SplitOperatorDesc.from_lengths(x, 2, (2, 4))  # into 16 and 32
    return device.compile_operator(device.create_operator(desc))


def initialized(op):
    initializer = device.create_operator_initializer([op])
    table = device.create_binding_table(initializer)
    if op.binding_properties.persistent_resource_size:
        table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(dml.Buffer(48))])])
        table.bind_outputs([dml.BufferBinding(persistent)])
    device.record_dispatch(initializer, table)
    return op


x, a, b, persistent = dml.Buffer(256), dml.Buffer(16), dml.Buffer(32), dml.Buffer(48)
op = initialized(compiled())
owned = initialized(compiled(flags=flags.OWNED_BY_DML))
table = device.create_binding_table(op)
"""
