"""Programs for the rules of the scopes binding/ and device/: for each rule, one that violates it and one that does not.

The programs of a rule are the two functions that end in its slug: binding/null has bad_null and good_null.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import dmlsplit as dml
from dmlsplit.device.dispatchables import DispatchableOperator
from dmlsplit.rules import Rule


class Setup:
    """The setup of every program: a device, a split of 48 bytes into 16 and 32, a table for it, and buffers."""

    def __init__(self, on_warning: Callable[[dml.Diagnostic], object] | None = None) -> None:
        self.device = dml.Device(directml="1.15.4", on_warning=on_warning)
        self.x, self.a, self.b = dml.Buffer(256), dml.Buffer(16), dml.Buffer(32)
        self.persistent = dml.Buffer(48)
        self.op = self.initialized(self.compiled())
        self.owned = self.initialized(self.compiled(dml.TensorFlags.OWNED_BY_DML))
        self.table = self.device.create_binding_table(self.op)

    def compiled(self, flags: dml.TensorFlags = dml.TensorFlags.NONE) -> DispatchableOperator:
        x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2), flags=flags)
        desc = dml.SplitOperatorDesc.from_lengths(x, 2, (2, 4))
        return self.device.compile_operator(self.device.create_operator(desc))

    def initialized(self, op: DispatchableOperator) -> DispatchableOperator:
        initializer = self.device.create_operator_initializer([op])
        table = self.device.create_binding_table(initializer)
        if op.binding_properties.persistent_resource_size:
            table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(dml.Buffer(48))])])
            table.bind_outputs([dml.BufferBinding(self.persistent)])
        self.device.record_dispatch(initializer, table)
        return op

    def dispatch(self, op: DispatchableOperator, *bindings: dml.BufferBinding | None) -> None:
        """Binds the input, and the outputs (buffers of their own where none are given), and records the dispatch."""
        self.table.bind_inputs(bindings[:1])
        self.table.bind_outputs(bindings[1:] or [dml.BufferBinding(self.a), dml.BufferBinding(self.b)])
        self.device.record_dispatch(op, self.table)


Program: TypeAlias = Callable[[Setup], None]


class Programs(NamedTuple):
    """A program that violates a rule, and one that does not."""

    bad: Program
    good: Program


def programs(rule: Rule) -> Programs | None:
    """The programs of a rule; None where the rule is not the device's."""
    slug = rule.id.partition("/")[2].replace("-", "_")
    is_devices = rule.scope in ("binding", "device")
    return Programs(globals()[f"bad_{slug}"], globals()[f"good_{slug}"]) if is_devices else None


def source(program: Program | type[Setup]) -> str:
    """A program's lines, or those of what it finds."""
    text = inspect.getsource(program)
    return text if isinstance(program, type) else textwrap.dedent(text.partition("\n")[2]).rstrip("\n")


def bad_crash(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([None])


def good_crash(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])


def bad_not_allowed(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_persistent_resource(None)


def good_not_allowed(s: Setup) -> None:
    s.table.bind_persistent_resource(None)


def bad_type_mismatch(s: Setup) -> None:
    s.table.bind_inputs([None])


def good_type_mismatch(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


def bad_null(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(None, 0, 48)])


def good_null(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


def bad_not_wanted(s: Setup) -> None:
    s.table.bind_temporary_resource(dml.BufferBinding(s.x, 0, 256))


def good_not_wanted(s: Setup) -> None:
    s.table.bind_temporary_resource(dml.BufferBinding(None, 0, 0))


def bad_array_count(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([])])


def good_array_count(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])


def bad_offset_misaligned(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 8, 48)])


def good_offset_misaligned(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 16, 48)])


def bad_size_too_small(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 47)])


def good_size_too_small(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


def bad_out_of_range(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 224, 48)])


def good_out_of_range(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 208, 48)])


def bad_range_wraps(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 2**64 - 16, 48))


def good_range_wraps(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 16, 48))


def bad_table_too_small(s: Setup) -> None:
    s.device.create_binding_table(s.op, 3)


def good_table_too_small(s: Setup) -> None:
    s.device.create_binding_table(s.op, 4)


def bad_count_mismatch(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a)])


def good_count_mismatch(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a), dml.BufferBinding(s.b)])


def bad_unbound(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a), dml.BufferBinding(s.b)])
    s.device.record_dispatch(s.op, s.table)


def good_unbound(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x))


def bad_table_of_another(s: Setup) -> None:
    other = s.initialized(s.compiled())
    s.dispatch(other, dml.BufferBinding(s.x))


def good_table_of_another(s: Setup) -> None:
    other = s.initialized(s.compiled())
    s.table.reset(other)
    s.dispatch(other, dml.BufferBinding(s.x))


def bad_outputs_overlap(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 64, 16), dml.BufferBinding(s.x, 64, 32))


def good_outputs_overlap(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 64, 16), dml.BufferBinding(s.x, 80, 32))


def bad_input_overlaps_output(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 32, 16), dml.BufferBinding(s.b))


def good_input_overlaps_output(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 48, 16), dml.BufferBinding(s.b))


def bad_persistent_overlaps_output(s: Setup) -> None:
    s.table.reset(s.owned)
    s.table.bind_persistent_resource(dml.BufferBinding(s.x, 0, 48))
    s.dispatch(s.owned, None, dml.BufferBinding(s.x, 32, 16), dml.BufferBinding(s.b))


def good_persistent_overlaps_output(s: Setup) -> None:
    s.table.reset(s.owned)
    s.table.bind_persistent_resource(dml.BufferBinding(s.x, 0, 48))
    s.dispatch(s.owned, None, dml.BufferBinding(s.x, 48, 16), dml.BufferBinding(s.b))


def bad_initializer_shares_resource(s: Setup) -> None:
    both = dml.Buffer(512)
    init = s.device.create_operator_initializer([s.compiled(dml.TensorFlags.OWNED_BY_DML)])
    table = s.device.create_binding_table(init)
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(both, 0, 48)])])
    table.bind_outputs([dml.BufferBinding(both, 256, 48)])
    s.device.record_dispatch(init, table)


def good_initializer_shares_resource(s: Setup) -> None:
    init = s.device.create_operator_initializer([s.compiled(dml.TensorFlags.OWNED_BY_DML)])
    table = s.device.create_binding_table(init)
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(s.x, 0, 48)])])
    table.bind_outputs([dml.BufferBinding(s.persistent, 0, 48)])
    s.device.record_dispatch(init, table)


def bad_minimum_feature_level_too_high(s: Setup) -> None:
    dml.Device(directml="1.8.0", minimum_feature_level="5_1")


def good_minimum_feature_level_too_high(s: Setup) -> None:
    dml.Device(directml="1.8.0", minimum_feature_level="5_0")


def bad_no_feature_level_supported(s: Setup) -> None:
    s.device.check_feature_support_feature_levels([28672])


def good_no_feature_level_supported(s: Setup) -> None:
    s.device.check_feature_support_feature_levels([28672, 4096])


def bad_execution_flags_unknown(s: Setup) -> None:
    s.device.compile_operator(s.op.operator, 8)


def good_execution_flags_unknown(s: Setup) -> None:
    s.device.compile_operator(s.op.operator, 7)


def bad_not_initialized(s: Setup) -> None:
    op = s.compiled()
    s.table.reset(op)
    s.dispatch(op, dml.BufferBinding(s.x))


def good_not_initialized(s: Setup) -> None:
    op = s.initialized(s.compiled())
    s.table.reset(op)
    s.dispatch(op, dml.BufferBinding(s.x))


def bad_initialized_twice(s: Setup) -> None:
    s.initialized(s.op)


def good_initialized_twice(s: Setup) -> None:
    s.initialized(s.compiled())


def bad_write_order_not_promised(s: Setup) -> None:
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))
    part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(2, 3))
    op = s.device.compile_operator(s.device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))
    s.table.reset(s.initialized(op))
    s.dispatch(op, dml.BufferBinding(s.x), dml.BufferBinding(dml.Buffer(64)))


def good_write_order_not_promised(s: Setup) -> None:
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))
    part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(1, 4))
    op = s.device.compile_operator(s.device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))
    s.table.reset(s.initialized(op))
    s.dispatch(op, dml.BufferBinding(s.x), dml.BufferBinding(dml.Buffer(64)))


def bad_build_not_observed(s: Setup) -> None:
    device = dml.Device(directml="1.5.1")
    device.compile_operator(device.create_operator(s.op.desc), 8)


def good_build_not_observed(s: Setup) -> None:
    device = dml.Device(directml="1.8.0")
    device.compile_operator(device.create_operator(s.op.desc), 7)
