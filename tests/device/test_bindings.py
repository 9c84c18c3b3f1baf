"""The descriptions of bindings, and the ways in which one can be wrong; tests/directml asks the builds themselves."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from tests.device.conftest import Program

T = dml.TensorDataType
B, A, D = dml.BufferBinding, dml.BufferArrayBinding, dml.BindingDesc
OWNED = dml.TensorFlags.OWNED_BY_DML


def split(**members) -> dml.SplitOperatorDesc:
    whole = dml.BufferTensorDesc(T.FLOAT32, (1, 1, 6, 4), **members)
    return dml.SplitOperatorDesc.from_lengths(whole, 2, (2, 4))


def test_descriptions():
    buffer = dml.Buffer(100)
    assert B(buffer).size_in_bytes == 100
    assert B(buffer, 32).size_in_bytes == 68
    assert B(buffer, 200).size_in_bytes == 0
    assert B(None) == B(None, 0, 0)
    assert A([None, B(buffer)]).bindings == (B(None), B(buffer))
    for call in (
        lambda: B(b"memory"),
        lambda: A([buffer]),
        lambda: D(1, buffer),
        lambda: D(dml.BindingType.BUFFER, A([])),
        lambda: D(2, B(buffer)),
        lambda: B(buffer, 1.5),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (lambda: B(buffer, -1), lambda: B(buffer, 0, 2**64), lambda: D(2**32)):
        with pytest.raises(dml.DescriptorError):
            call()


BUFFER = dml.Buffer(1024)
INPUT = [
    ([B(BUFFER, 0, 96)], []),
    ([BUFFER], []),
    ([B(BUFFER, 0, 100)], []),
    ([B(BUFFER, 928, 96)], []),
    ([], []),
    ([B(BUFFER, 0, 95)], ["binding/size-too-small"]),
    ([B(BUFFER, 0, 0)], ["binding/size-too-small"]),
    ([B(BUFFER, 8, 96)], ["binding/offset-misaligned"]),
    ([B(BUFFER, 944, 96)], ["binding/out-of-range"]),
    ([B(BUFFER, 0, 1025)], ["binding/out-of-range"]),
    ([B(BUFFER, 1020, 90)], ["binding/offset-misaligned", "binding/size-too-small", "binding/out-of-range"]),
    ([B(None, 0, 96)], ["binding/null"]),
    ([B(None)], ["binding/null"]),
    ([D(1)], ["binding/null"]),
    ([None], ["binding/type-mismatch"]),
    ([dml.BindingType.NONE], ["binding/type-mismatch"]),
    ([D(0, B(BUFFER))], ["binding/type-mismatch"]),
    ([A([B(BUFFER, 0, 96)])], ["binding/type-mismatch"]),
    ([D(3)], ["binding/type-mismatch"]),
    ([BUFFER, BUFFER], ["binding/count-mismatch"]),
]


@pytest.mark.parametrize(("bindings", "rules"), INPUT)
@pytest.mark.parametrize("release", ["1.5.1", "1.8.0", "1.15.4"])
def test_inputs(release, bindings, rules):
    program = Program(release)
    op = program.compile(split())
    program.device.create_binding_table(op).bind_inputs(bindings)
    noted = ["device/build-not-observed"] if rules and release == "1.5.1" else []
    assert program.removed_for == rules + noted
    reason = program.device.removed_reason
    if reason is not None:
        assert reason.operator == "DML_OPERATOR_SPLIT"
        assert reason.judged_by == f"directml {release}"
        assert all(d.path.startswith("BindInputs") or d.rule == "device/build-not-observed" for d in reason.diagnostics)


def test_every_fault_of_a_call_is_told(program):
    op = program.compile(split())
    program.device.create_binding_table(op).bind_outputs([B(BUFFER, 8, 32), B(BUFFER, 0, 60)])
    assert [(d.rule, d.path) for d in program.device.removed_reason.diagnostics] == [
        ("binding/offset-misaligned", "BindOutputs[0].Offset"),
        ("binding/size-too-small", "BindOutputs[1].SizeInBytes"),
    ]


@pytest.mark.parametrize(("alignment", "offset", "ok"), [(0, 16, True), (32, 16, False), (256, 512, True)])
def test_the_guaranteed_alignment(program, alignment, offset, ok):
    op = program.compile(split(guaranteed_base_offset_alignment=alignment))
    program.device.create_binding_table(op).bind_inputs([B(BUFFER, offset, 96)])
    assert program.removed_for == ([] if ok else ["binding/offset-misaligned"])


@pytest.mark.parametrize(
    ("binding", "rules"),
    [
        (None, []),
        (D(0, B(BUFFER)), []),
        (B(None), []),
        (B(BUFFER, 0, 96), ["binding/not-wanted"]),
        (B(None, 16, 0), ["binding/not-wanted"]),
        (A([None]), ["binding/not-wanted"]),
        (D(1), ["binding/null"]),
        (D(2), ["binding/null"]),
        (D(9), ["binding/type-mismatch"]),
    ],
)
def test_where_nothing_belongs(binding, rules):
    """An owned input at execution, a temporary and a persistent resource of size 0, an output of an initializer."""
    for bind in range(4):
        program = Program()
        owned, plain = program.compile(split(flags=OWNED)), program.compile(split())
        initializer = program.device.create_operator_initializer([plain])
        table = program.device.create_binding_table((owned, plain, plain, initializer)[bind])
        if bind == 0:
            table.bind_inputs([binding])
        elif bind == 1:
            table.bind_temporary_resource(binding)
        elif bind == 2:
            table.bind_persistent_resource(binding)
        else:
            table.bind_outputs([binding])
        assert program.removed_for == rules


@pytest.mark.parametrize(
    ("binding", "rules"),
    [
        (B(BUFFER, 0, 96), []),
        (B(BUFFER, 768, 256), []),
        (B(BUFFER, 128, 96), ["binding/offset-misaligned"]),
        (B(BUFFER, 0, 95), ["binding/size-too-small"]),
        (B(BUFFER, 1024, 96), ["binding/out-of-range"]),
        (None, ["binding/type-mismatch"]),
    ],
)
def test_persistent_resources(binding, rules):
    for at_initialization in (False, True):
        program = Program()
        op = program.compile(split(flags=OWNED))
        if at_initialization:
            initializer = program.device.create_operator_initializer([op])
            program.device.create_binding_table(initializer).bind_outputs([binding])
        else:
            program.device.create_binding_table(op).bind_persistent_resource(binding)
        assert program.removed_for == rules


@pytest.mark.parametrize(
    ("bindings", "rules"),
    [
        ([A([B(BUFFER, 0, 96)])], []),
        ([], []),
        ([A([B(BUFFER, 0, 95)])], ["binding/size-too-small"]),
        ([A([None])], ["binding/null"]),
        ([A([])], ["binding/array-count"]),
        ([A([B(BUFFER, 0, 96)] * 2)], ["binding/array-count"]),
        ([B(BUFFER, 0, 96)], ["binding/type-mismatch"]),
        ([D(0, B(BUFFER))], ["binding/type-mismatch"]),
        ([D(2)], ["binding/null"]),
        ([A([B(BUFFER, 0, 96)])] * 2, ["binding/count-mismatch"]),
    ],
)
def test_inputs_of_an_initializer(program, bindings, rules):
    initializer = program.device.create_operator_initializer([program.compile(split(flags=OWNED))])
    program.device.create_binding_table(initializer).bind_inputs(bindings)
    assert program.removed_for == rules


def test_an_array_has_an_entry_for_every_input():
    inputs = [dml.BufferTensorDesc(T.FLOAT32, (1, 1, 1, 1), flags=flags) for flags in (1, 0, 1)]
    desc = dml.JoinOperatorDesc(inputs, dml.BufferTensorDesc(T.FLOAT32, (1, 1, 3, 1)), 2)
    for entries, rules in (
        ([B(BUFFER, 0, 4), None, B(BUFFER, 16, 4)], []),
        ([B(BUFFER, 0, 4), B(BUFFER, 16, 4)], ["binding/array-count"]),
        ([B(BUFFER, 0, 4), B(BUFFER, 32, 4), B(BUFFER, 16, 4)], ["binding/not-wanted"]),
        ([B(BUFFER, 0, 4), B(None, 16, 4), B(BUFFER, 16, 4)], ["binding/not-wanted"]),
    ):
        program = Program()
        initializer = program.device.create_operator_initializer([program.compile(desc)])
        program.device.create_binding_table(initializer).bind_inputs([A(entries)])
        assert program.removed_for == rules


def test_what_ends_the_process_is_refused(program):
    initializer = program.device.create_operator_initializer([program.compile(split())])
    table = program.device.create_binding_table(initializer)
    with pytest.raises(dml.DirectMLError) as caught:
        table.bind_inputs([None])
    assert caught.value.hresult is None
    assert [d.rule for d in caught.value.report.diagnostics] == ["binding/crash"]
    assert program.device.removed_reason is None
    for bind in (table.bind_temporary_resource, lambda binding: table.bind_outputs([binding])):
        with pytest.raises(dml.DirectMLError, match="binding/crash"):
            bind(A([]))


def test_the_builds_look_at_every_binding_before_they_crash():
    for other, crashes in ((A([B(BUFFER, 0, 95)]), True), (D(3), False), (A([B(BUFFER, 8, 96)]), False)):
        program = Program()
        ops = [program.compile(split(flags=flags)) for flags in (0, 1)]
        table = program.device.create_binding_table(program.device.create_operator_initializer(ops))
        try:
            table.bind_inputs([None, other])
        except dml.DirectMLError as error:
            crashed = error.hresult is None
        else:
            crashed = False
        assert crashed is crashes
        assert (program.device.removed_reason is None) is crashes
