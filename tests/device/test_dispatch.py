"""What a dispatch copies, warns of and refuses; what initialization copies."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.native import reference
from tests.device.conftest import Program, filled, vector

T = dml.TensorDataType
OWNED = dml.TensorFlags.OWNED_BY_DML
B = dml.BufferBinding


def test_a_program(program):
    x = dml.BufferTensorDesc(T.FLOAT32, (1, 1, 6, 2))
    source, a, b = dml.Buffer(4096), dml.Buffer(64), dml.Buffer(4096)
    values = source.array[256:304].view(np.float32)
    values[:] = np.arange(12)
    program.run(dml.SplitOperatorDesc.from_lengths(x, 2, (2, 4)), [B(source, 256, 48)], [B(a, 16, 16), B(b, 512)])
    assert a.array[16:32].view(np.float32).tolist() == [0, 1, 2, 3]
    assert b.array[512:544].view(np.float32).tolist() == [4, 5, 6, 7, 8, 9, 10, 11]
    assert not a.array[:16].any()
    assert not a.array[32:].any()
    assert not b.array[:512].any()
    assert not b.array[544:].any()
    assert program.warnings == []
    assert program.device.removed_reason is None


def test_a_table_can_be_dispatched_again(program):
    op = program.compile(dml.SplitOperatorDesc.from_lengths(vector(8), 0, (4, 4)))
    program.initialize(op)
    source, a, b, other = filled(8), dml.Buffer(4), dml.Buffer(4), dml.Buffer(4)
    table = program.table(op, [source], [a, b])
    for value in (1, 2):
        source.array[:] = value
        program.device.record_dispatch(op, table)
        assert set(a.array) == set(b.array) == {value}
    source.array[:] = 3
    table.bind_outputs([other, b])
    program.device.record_dispatch(op, table)
    assert (set(a.array), set(other.array)) == ({2}, {3})
    table.bind_inputs([])
    program.device.record_dispatch(op, table)
    assert program.removed_for == ["binding/unbound"]


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_random_operators_in_one_memory(seed):
    """Anything may overlap anything: the outcome is that of the parts run one after another, each read before it is
    written."""
    rng = random.Random(seed)
    data_type = rng.choice((T.UINT8, T.UINT16, T.FLOAT32, T.INT64))
    sizes = [rng.randint(1, 4) for _ in range(3)]
    axis = rng.randrange(3)
    lengths = [rng.randint(1, 3) for _ in range(rng.randint(1, 4))]

    def tensor(length):
        shape = [length if d == axis else size for d, size in enumerate(sizes)]
        strides = None
        if rng.random() < 0.5:  # a permutation with gaps: nothing of one tensor overlaps itself
            strides, step = [0, 0, 0], rng.randint(1, 2)
            for d in rng.sample(range(3), 3):
                strides[d] = step
                step *= shape[d] + rng.randint(0, 1)
        return dml.BufferTensorDesc(data_type, shape, strides=strides)

    whole, parts = tensor(sum(lengths)), [tensor(length) for length in lengths]
    is_split = rng.random() < 0.5
    desc = dml.SplitOperatorDesc(whole, parts, axis) if is_split else dml.JoinOperatorDesc(parts, whole, axis)
    memory = filled(16384, seed)
    apart = rng.random() < 0.5
    at, bindings = 0, []
    for tensor_desc in (whole, *parts):
        total = tensor_desc.total_tensor_size_in_bytes
        offset = at if apart else 16 * rng.randrange(rng.choice((2, 8, 32)))
        at += -(-total // 16) * 16
        bindings.append(B(memory, offset, total))
    expected = bytearray(memory.array)
    start = 0
    for part, bound in zip(parts, bindings[1:], strict=True):
        before = bytearray(expected)
        coordinates = [range(n) for n in part.sizes]
        for c in np.ndindex(*map(len, coordinates)):
            shifted = [i + start if d == axis else i for d, i in enumerate(c)]
            there = bindings[0].offset + place(whole, shifted)
            here = bound.offset + place(part, c)
            source, target = (there, here) if is_split else (here, there)
            size = np.dtype(f"u{BYTES[data_type]}").itemsize
            expected[target : target + size] = before[source : source + size]
        start += part.sizes[axis]
    inputs, outputs = (bindings[:1], bindings[1:]) if is_split else (bindings[1:], bindings[:1])
    program = Program()
    program.run(desc, inputs, outputs)
    assert program.device.removed_reason is None
    assert bytes(memory.array) == bytes(expected)
    assert not apart or program.warnings == []


BYTES = {T.UINT8: 1, T.UINT16: 2, T.FLOAT32: 4, T.INT64: 8}


def place(tensor, coordinates) -> int:
    strides = tensor.strides or [int(np.prod(tensor.sizes[d + 1 :])) for d in range(len(tensor.sizes))]
    return BYTES[tensor.data_type] * sum(int(i) * s for i, s in zip(coordinates, strides, strict=True))


def test_owned_inputs_lie_where_the_builds_put_them(program):
    tensors = [
        vector(4, flags=OWNED),
        vector(4),
        vector(4, flags=OWNED, guaranteed_base_offset_alignment=64, total_tensor_size_in_bytes=7),
        vector(4, flags=OWNED, guaranteed_base_offset_alignment=4096),
    ]
    op = program.compile(dml.JoinOperatorDesc(tensors, vector(16), 0))
    assert op.persistent_offsets == [0, None, 64, 256]
    assert op.binding_properties.persistent_resource_size == 260
    one, two, three, four = (filled(4096, seed) for seed in range(4))
    persistent = program.initialize(op, [B(one, 16, 4), None, B(three, 64, 7), B(four, 0, 9)])
    memory = persistent.buffer.array[256:]
    assert bytes(memory[:4]) == bytes(one.array[16:20])
    assert bytes(memory[64:71]) == bytes(three.array[64:71])
    assert not memory[71:256].any()
    assert bytes(memory[256:]) == bytes(four.array[:4])
    expected = [bytes(b.array[at : at + 4]) for b, at in ((one, 16), (two, 0), (three, 64), (four, 0))]
    one.array[:] = three.array[:] = four.array[:] = 0
    out = dml.Buffer(16)
    program.device.record_dispatch(op, program.table(op, [None, two, None, None], [out], persistent))
    assert bytes(out.array) == b"".join(expected)
    assert program.warnings == []


def test_several_operators_in_one_initializer(program):
    owned = dml.SplitOperatorDesc.from_lengths(vector(8, flags=OWNED), 0, (4, 4))
    ops = [program.compile(desc) for desc in (owned, dml.SplitOperatorDesc.from_lengths(vector(8), 0, (8,)), owned)]
    initializer = program.device.create_operator_initializer(ops)
    table = program.device.create_binding_table(initializer)
    first, last, persistent = filled(8, 1), filled(8, 2), dml.Buffer(512)
    table.bind_inputs([dml.BufferArrayBinding([B(b)]) for b in (first, None, last)])
    table.bind_outputs([B(persistent, 0, 8), None, B(persistent, 256)])
    program.device.record_dispatch(initializer, table)
    assert bytes(persistent.array[:8]) == bytes(first.array)
    assert bytes(persistent.array[256:264]) == bytes(last.array)
    assert [op.initializations for op in ops] == [1, 1, 1]
    assert program.device.removed_reason is None


def test_a_dispatch_that_a_warning_stops_does_not_count(program):
    def stop(diagnostic):
        raise dml.DirectMLWarning(str(diagnostic))

    device = dml.Device(program.device.release.name, on_warning=stop)
    owned = dml.SplitOperatorDesc.from_lengths(vector(8, flags=OWNED), 0, (8,))
    op = device.compile_operator(device.create_operator(owned))
    initializer = device.create_operator_initializer([op])
    table = device.create_binding_table(initializer)
    both = dml.Buffer(1024)
    table.bind_inputs([dml.BufferArrayBinding([B(both, 0, 8)])])
    table.bind_outputs([B(both, 0, op.binding_properties.persistent_resource_size)])
    with pytest.raises(dml.DirectMLWarning):
        device.record_dispatch(initializer, table)
    assert op.initializations == 0


def test_an_operator_twice_in_one_initializer(program):
    op = program.compile(dml.SplitOperatorDesc.from_lengths(vector(8), 0, (8,)))
    initializer = program.device.create_operator_initializer([op, op])
    program.device.record_dispatch(initializer, program.device.create_binding_table(initializer))
    assert program.warnings == ["device/initialized-twice"]
    assert op.initializations == 2


def test_persistent_resources_on_each_other(program):
    """The copies of the second operator replace those of the first, which a GPU need not agree with."""
    owned = dml.SplitOperatorDesc.from_lengths(vector(300, flags=OWNED), 0, (300,))
    ops = [program.compile(owned) for _ in range(2)]
    initializer = program.device.create_operator_initializer(ops)
    first, last, persistent = filled(300, 1), filled(300, 2), dml.Buffer(1024)
    table = program.device.create_binding_table(initializer)
    table.bind_inputs([dml.BufferArrayBinding([B(b)]) for b in (first, last)])
    for offset, rules in ((512, []), (256, ["binding/outputs-overlap"])):
        program.warned.clear()
        table.bind_outputs([B(persistent, 0, 300), B(persistent, offset, 300)])
        program.device.record_dispatch(initializer, table)
        assert [rule for rule in program.warnings if rule != "device/initialized-twice"] == rules
        expected = bytes(first.array[:offset]) + bytes(last.array)
        assert bytes(persistent.array[: min(offset, 300)]) == expected[: min(offset, 300)]
        assert bytes(persistent.array[offset : offset + 300]) == bytes(last.array)
    assert program.device.removed_reason is None


def overlapping(data_type=T.FLOAT32) -> dml.SplitOperatorDesc:
    part = dml.BufferTensorDesc(data_type, (4, 3), strides=(2, 3))
    return dml.SplitOperatorDesc(dml.BufferTensorDesc(data_type, (4, 3)), [part], 0)


@pytest.mark.parametrize("data_type", [T.UINT8, T.FLOAT32, T.INT64])
def test_overlapping_elements_run_with_a_warning(program, data_type):
    """Every place holds one of the values written to it, and nothing else is touched."""
    desc = overlapping(data_type)
    size = BYTES[data_type]
    source, out = filled(12 * size), dml.Buffer(64 * size)
    out.array[:] = 0xAB
    program.run(desc, [source], [out])
    assert program.warnings == ["device/write-order-not-promised"]
    values = source.array.view(f"u{size}").reshape(4, 3)
    found = out.array.view(f"u{size}")
    candidates: dict[int, set[int]] = {}
    for i, j in np.ndindex(4, 3):
        candidates.setdefault(2 * i + 3 * j, set()).add(int(values[i, j]))
    for at, value in enumerate(found):
        assert int(value) in candidates.get(at, {int.from_bytes(b"\xab" * size, "little")})


def test_outputs_on_the_input(program):
    """The second output is read after the first one was written."""
    memory = filled(64)
    before = bytes(memory.array)
    program.run(
        dml.SplitOperatorDesc.from_lengths(vector(32), 0, (16, 16)), [B(memory, 0, 32)], [B(memory, 16), B(memory, 48)]
    )
    assert program.warnings == ["binding/input-overlaps-output"]
    assert bytes(memory.array) == before[:16] + before[:16] + before[32:48] + before[:16]


def test_hazards_that_the_builds_accept(program):
    desc = dml.SplitOperatorDesc.from_lengths(vector(32), 0, (8, 8, 16))
    memory, source = dml.Buffer(256), filled(32)
    program.run(desc, [source], [B(memory, 0), B(memory, 16), B(memory, 16)])
    assert program.warnings == ["binding/outputs-overlap"]
    assert bytes(memory.array[16:32]) == bytes(source.array[16:])
    # What counts is what may be written, not what is bound.
    program.warned.clear()
    program.run(desc, [source], [B(memory, 0), B(memory, 16), B(memory, 32)])
    assert program.warnings == []
    # Total sizes count, not elements: DirectML may write up to them.
    padded = dml.SplitOperatorDesc(vector(8), [vector(4, total_tensor_size_in_bytes=20), vector(4)], 0)
    program.run(padded, [source], [B(memory, 0), B(memory, 16)])
    assert program.warnings == ["binding/outputs-overlap"]


WRAPPING = dml.SplitOperatorDesc(
    dml.BufferTensorDesc(T.FLOAT32, (1, 1, 3, 1), strides=(0, 0, 2**30, 1), total_tensor_size_in_bytes=8),
    [dml.BufferTensorDesc(T.FLOAT32, (1, 1, n, 1)) for n in (1, 2)],
    2,
)


@pytest.mark.parametrize("size", [4096, 2**33 + 64])
def test_a_dispatch_that_would_leave_its_buffer_is_refused(size):
    """Also where the buffer is large enough: which address a build computes is not known."""
    program = Program("1.8.0")
    a, b = filled(4), filled(8)
    before = bytes(a.array), bytes(b.array)
    try:
        source = dml.Buffer(size)
    except MemoryError:
        pytest.skip("there is not enough address space")
    with pytest.raises(dml.DirectMLError) as caught:
        program.run(WRAPPING, [source], [a, b])
    assert caught.value.hresult is None
    assert [d.rule for d in caught.value.report.diagnostics] == ["tensor/implied-size-wraps"]
    assert (bytes(a.array), bytes(b.array)) == before
    assert program.device.removed_reason is None


def test_an_owned_one_too():
    program = Program("1.8.0")
    whole = dml.BufferTensorDesc(
        T.FLOAT32, (1, 1, 3, 1), strides=(0, 0, 2**30, 1), total_tensor_size_in_bytes=8, flags=OWNED
    )
    op = program.compile(dml.SplitOperatorDesc(whole, WRAPPING.output_tensors, 2))
    persistent = program.initialize(op, [B(dml.Buffer(8))])
    table = program.table(op, [None], [dml.Buffer(4), dml.Buffer(8)], persistent)
    with pytest.raises(dml.DirectMLError, match="implied-size-wraps"):
        program.device.record_dispatch(op, table)


def test_ranges_that_wrap(program):
    desc = dml.SplitOperatorDesc.from_lengths(vector(16), 0, (16,))
    op = program.compile(desc)
    program.initialize(op)
    source, out = filled(64), dml.Buffer(64)
    for wrapped in (B(source, 2**64 - 16, 16), B(source, 16, 2**64 - 16), B(source, 2**64 - 16, 64)):
        table = program.table(op, [wrapped], [out])
        with pytest.raises(dml.DirectMLError, match="range-wraps"):
            program.device.record_dispatch(op, table)
        table.bind_inputs([source])
        program.device.record_dispatch(op, table)
    assert program.device.removed_reason is None


def test_volatile_descriptors_are_not_asked_for_yet(program):
    """The builds take such a dispatch: what is missing may be bound until the GPU executes."""
    op = program.compile(
        dml.SplitOperatorDesc.from_lengths(vector(8), 0, (8,)), dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    )
    table = program.device.create_binding_table(op)
    with pytest.raises(dml.DirectMLError, match="binding/unbound"):
        program.device.record_dispatch(op, table)
    assert program.device.removed_reason is None


def test_many_outputs(program):
    count = 5000
    desc = dml.SplitOperatorDesc.from_lengths(vector(count), 0, (1,) * count)
    source, memory = filled(count), dml.Buffer(16 * count)
    program.run(desc, [source], [B(memory, 16 * i, 4) for i in range(count)])
    assert bytes(memory.array[::16]) == bytes(source.array)
    assert program.warnings == []


def test_the_reference_agrees(program):
    desc = dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(T.FLOAT16, (3, 5, 2)), 1, (1, 2, 2))
    inputs = [filled(t.total_tensor_size_in_bytes, i) for i, t in enumerate(desc.input_tensors)]
    out = dml.Buffer(60)
    program.run(desc, inputs, [out])
    expected = reference.Memory(bytearray(60))
    reference.join(desc, [reference.Memory(bytearray(b.array)) for b in inputs], expected)
    assert bytes(out.array) == bytes(expected.data)
