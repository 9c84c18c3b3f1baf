"""Programs for the rules of binding/ and device/: for each rule, one that violates it and one that does not."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

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
        """Binds the first of `bindings` as the input and the others as the outputs (by default buffers a and b), and
        records the dispatch."""
        self.table.bind_inputs(bindings[:1])
        self.table.bind_outputs(bindings[1:] or [dml.BufferBinding(self.a), dml.BufferBinding(self.b)])
        self.device.record_dispatch(op, self.table)


Program: TypeAlias = Callable[[Setup], None]


class Programs(NamedTuple):
    """A program that violates a rule, and one that does not."""

    bad: Program
    good: Program


_BAD: Final[dict[str, Program]] = {}
_GOOD: Final[dict[str, Program]] = {}


def bad(id: str) -> Callable[[Program], Program]:
    """Returns a decorator that registers a function as the program that violates the rule."""
    return partial(_BAD.setdefault, id)


def good(id: str) -> Callable[[Program], Program]:
    """Returns a decorator that registers a function as the program that complies with the rule."""
    return partial(_GOOD.setdefault, id)


def programs(rule: Rule) -> Programs | None:
    """Returns the bad and the good program of a rule; None if the rule is not about the device."""
    return Programs(_BAD[rule.id], _GOOD[rule.id]) if rule.id in _BAD else None


def source(program: Program | type[Setup]) -> str:
    """Returns the source text of a program's body, or of the class of its argument."""
    text = inspect.getsource(program)
    return text if isinstance(program, type) else textwrap.dedent(text.partition(") -> None:\n")[2]).rstrip("\n")


@bad("binding/crash")
def bad_crash(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([None])


@good("binding/crash")
def good_crash(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])


@bad("binding/not-allowed")
def bad_not_allowed(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_persistent_resource(None)


@good("binding/not-allowed")
def good_not_allowed(s: Setup) -> None:
    s.table.bind_persistent_resource(None)


@bad("binding/type-mismatch")
def bad_type_mismatch(s: Setup) -> None:
    s.table.bind_inputs([None])


@good("binding/type-mismatch")
def good_type_mismatch(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


@bad("binding/null")
def bad_null(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(None, 0, 48)])


@good("binding/null")
def good_null(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


@bad("binding/not-wanted")
def bad_not_wanted(s: Setup) -> None:
    s.table.bind_temporary_resource(dml.BufferBinding(s.x, 0, 256))


@good("binding/not-wanted")
def good_not_wanted(s: Setup) -> None:
    s.table.bind_temporary_resource(dml.BufferBinding(None, 0, 0))


@bad("binding/array-count")
def bad_array_count(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([])])


@good("binding/array-count")
def good_array_count(s: Setup) -> None:
    table = s.device.create_binding_table(s.device.create_operator_initializer([s.compiled()]))
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(None, 0, 0)])])


@bad("binding/offset-misaligned")
def bad_offset_misaligned(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 8, 48)])


@good("binding/offset-misaligned")
def good_offset_misaligned(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 16, 48)])


@bad("binding/size-too-small")
def bad_size_too_small(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 47)])


@good("binding/size-too-small")
def good_size_too_small(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 0, 48)])


@bad("binding/out-of-range")
def bad_out_of_range(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 224, 48)])


@good("binding/out-of-range")
def good_out_of_range(s: Setup) -> None:
    s.table.bind_inputs([dml.BufferBinding(s.x, 208, 48)])


@bad("binding/range-wraps")
def bad_range_wraps(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 2**64 - 16, 48))


@good("binding/range-wraps")
def good_range_wraps(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 16, 48))


@bad("binding/table-too-small")
def bad_table_too_small(s: Setup) -> None:
    s.device.create_binding_table(s.op, 3)


@good("binding/table-too-small")
def good_table_too_small(s: Setup) -> None:
    s.device.create_binding_table(s.op, 4)


@bad("binding/count-mismatch")
def bad_count_mismatch(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a)])


@good("binding/count-mismatch")
def good_count_mismatch(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a), dml.BufferBinding(s.b)])


@bad("binding/unbound")
def bad_unbound(s: Setup) -> None:
    s.table.bind_outputs([dml.BufferBinding(s.a), dml.BufferBinding(s.b)])
    s.device.record_dispatch(s.op, s.table)


@good("binding/unbound")
def good_unbound(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x))


@bad("binding/table-of-another")
def bad_table_of_another(s: Setup) -> None:
    other = s.initialized(s.compiled())
    s.dispatch(other, dml.BufferBinding(s.x))


@good("binding/table-of-another")
def good_table_of_another(s: Setup) -> None:
    other = s.initialized(s.compiled())
    s.table.reset(other)
    s.dispatch(other, dml.BufferBinding(s.x))


@bad("binding/outputs-overlap")
def bad_outputs_overlap(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 64, 16), dml.BufferBinding(s.x, 64, 32))


@good("binding/outputs-overlap")
def good_outputs_overlap(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 64, 16), dml.BufferBinding(s.x, 80, 32))


@bad("binding/input-overlaps-output")
def bad_input_overlaps_output(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 32, 16), dml.BufferBinding(s.b))


@good("binding/input-overlaps-output")
def good_input_overlaps_output(s: Setup) -> None:
    s.dispatch(s.op, dml.BufferBinding(s.x, 0, 48), dml.BufferBinding(s.x, 48, 16), dml.BufferBinding(s.b))


@bad("binding/persistent-overlaps-output")
def bad_persistent_overlaps_output(s: Setup) -> None:
    s.table.reset(s.owned)
    s.table.bind_persistent_resource(dml.BufferBinding(s.x, 0, 48))
    s.dispatch(s.owned, None, dml.BufferBinding(s.x, 32, 16), dml.BufferBinding(s.b))


@good("binding/persistent-overlaps-output")
def good_persistent_overlaps_output(s: Setup) -> None:
    s.table.reset(s.owned)
    s.table.bind_persistent_resource(dml.BufferBinding(s.x, 0, 48))
    s.dispatch(s.owned, None, dml.BufferBinding(s.x, 48, 16), dml.BufferBinding(s.b))


@bad("binding/initializer-shares-resource")
def bad_initializer_shares_resource(s: Setup) -> None:
    both = dml.Buffer(512)
    init = s.device.create_operator_initializer([s.compiled(dml.TensorFlags.OWNED_BY_DML)])
    table = s.device.create_binding_table(init)
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(both, 0, 48)])])
    table.bind_outputs([dml.BufferBinding(both, 256, 48)])
    s.device.record_dispatch(init, table)


@good("binding/initializer-shares-resource")
def good_initializer_shares_resource(s: Setup) -> None:
    init = s.device.create_operator_initializer([s.compiled(dml.TensorFlags.OWNED_BY_DML)])
    table = s.device.create_binding_table(init)
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(s.x, 0, 48)])])
    table.bind_outputs([dml.BufferBinding(s.persistent, 0, 48)])
    s.device.record_dispatch(init, table)


@bad("device/minimum-feature-level-too-high")
def bad_minimum_feature_level_too_high(s: Setup) -> None:
    dml.Device(directml="1.8.0", minimum_feature_level="5_1")


@good("device/minimum-feature-level-too-high")
def good_minimum_feature_level_too_high(s: Setup) -> None:
    dml.Device(directml="1.8.0", minimum_feature_level="5_0")


@bad("device/no-feature-level-supported")
def bad_no_feature_level_supported(s: Setup) -> None:
    s.device.check_feature_support_feature_levels([28672])


@good("device/no-feature-level-supported")
def good_no_feature_level_supported(s: Setup) -> None:
    s.device.check_feature_support_feature_levels([28672, 4096])


@bad("device/execution-flags-unknown")
def bad_execution_flags_unknown(s: Setup) -> None:
    s.device.compile_operator(s.op.operator, 8)


@good("device/execution-flags-unknown")
def good_execution_flags_unknown(s: Setup) -> None:
    s.device.compile_operator(s.op.operator, 7)


@bad("device/not-initialized")
def bad_not_initialized(s: Setup) -> None:
    op = s.compiled()
    s.table.reset(op)
    s.dispatch(op, dml.BufferBinding(s.x))


@good("device/not-initialized")
def good_not_initialized(s: Setup) -> None:
    op = s.initialized(s.compiled())
    s.table.reset(op)
    s.dispatch(op, dml.BufferBinding(s.x))


@bad("device/initialized-twice")
def bad_initialized_twice(s: Setup) -> None:
    s.initialized(s.op)


@good("device/initialized-twice")
def good_initialized_twice(s: Setup) -> None:
    s.initialized(s.compiled())


@bad("device/write-order-not-promised")
def bad_write_order_not_promised(s: Setup) -> None:
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))
    part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(2, 3))
    op = s.device.compile_operator(s.device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))
    s.table.reset(s.initialized(op))
    s.dispatch(op, dml.BufferBinding(s.x), dml.BufferBinding(dml.Buffer(64)))


@good("device/write-order-not-promised")
def good_write_order_not_promised(s: Setup) -> None:
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3))
    part = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (4, 3), strides=(1, 4))
    op = s.device.compile_operator(s.device.create_operator(dml.SplitOperatorDesc(whole, [part], 0)))
    s.table.reset(s.initialized(op))
    s.dispatch(op, dml.BufferBinding(s.x), dml.BufferBinding(dml.Buffer(64)))


@bad("device/build-not-observed")
def bad_build_not_observed(s: Setup) -> None:
    device = dml.Device(directml="1.5.1")
    device.compile_operator(device.create_operator(s.op.desc), 8)


@good("device/build-not-observed")
def good_build_not_observed(s: Setup) -> None:
    device = dml.Device(directml="1.8.0")
    device.compile_operator(device.create_operator(s.op.desc), 7)
