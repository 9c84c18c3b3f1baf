"""The emulated device: runs a DirectML program with a Split or Join, from device creation to the dispatch.

device = dml.Device(directml="1.15.4")
op = device.compile_operator(device.create_operator(desc))
table = device.create_binding_table(op)
table.bind_inputs([dml.BufferBinding(source, 0, 48)])
...
device.record_dispatch(op, table)
"""

from dmlsplit.device.bindings import Binding as Binding
from dmlsplit.device.bindings import BindingDesc, BufferArrayBinding, BufferBinding
from dmlsplit.device.device import Capabilities, Device
from dmlsplit.device.dispatchables import (
    BindingProperties,
    Dispatchable,
    DispatchableGraph,
    DispatchableOperator,
    Operator,
    OperatorInitializer,
)
from dmlsplit.device.table import BindingTable

__all__ = [
    "BindingDesc",
    "BindingProperties",
    "BindingTable",
    "BufferArrayBinding",
    "BufferBinding",
    "Capabilities",
    "Device",
    "Dispatchable",
    "DispatchableGraph",
    "DispatchableOperator",
    "Operator",
    "OperatorInitializer",
]
