"""Compiled operators: results against the reference, and every refusal before anything is written."""

import dataclasses
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.native import core, reference
from tests.strategies import DATA_TYPES, valid_operator

F32 = dml.TensorDataType.FLOAT32
X = dml.BufferTensorDesc(F32, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 3))
JOIN = dml.JoinOperatorDesc.from_lengths(X, 2, (2, 1, 3))


def example():
    return np.arange(1, 13, dtype="f4").reshape(1, 1, 6, 2)


def pieces(value=0.0):
    return [np.full((1, 1, n, 2), value, "f4") for n in (2, 1, 3)]


def run_both(d, digit):
    """The operator on raw memory, by the C core and by the reference; all buffers afterwards.

    A byte is a digit, in base 251, of its own place among all of them.
    """
    is_split = isinstance(d, dml.SplitOperatorDesc)
    whole, parts = (d.input_tensor, d.output_tensors) if is_split else (d.output_tensor, d.input_tensors)
    results = []
    for compiled in (True, False):
        sizes = [t.total_tensor_size_in_bytes + 5 for t in (whole, *parts)]
        places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        buffers = [bytearray((each // 251**digit % 251).astype("u1")) for each in places]
        if compiled:
            views = [memoryview(b)[3:] for b in buffers]
            op = dml.compile(d)
            if is_split:
                op.dispatch(views[0], out=views[1:])
            else:
                op.dispatch(views[1:], out=views[0])
        else:
            memory = [reference.Memory(b, 3) for b in buffers]
            if is_split:
                reference.split(d, memory[0], memory[1:])
            else:
                reference.join(d, memory[1:], memory[0])
        results.append(buffers)
    return results


@given(valid_operator())
def test_raw_memory_byte_for_byte(d):
    for digit in range(3):
        ours, expected = run_both(d, digit)
        assert ours == expected


def test_documented_examples():
    a, b, c = dml.compile(SPLIT)(example())
    assert a.tolist() == [[[[1, 2], [3, 4]]]]
    assert b.tolist() == [[[[5, 6]]]]
    assert c.tolist() == [[[[7, 8], [9, 10], [11, 12]]]]
    left, right = dml.compile(dml.SplitOperatorDesc.from_lengths(X, 3, (1, 1)))(example())
    assert left.ravel().tolist() == [1, 3, 5, 7, 9, 11]
    assert right.ravel().tolist() == [2, 4, 6, 8, 10, 12]
    assert dml.compile(JOIN)([a, b, c]).tolist() == example().tolist()


@pytest.mark.parametrize("data_type", DATA_TYPES, ids=lambda t: t.name)
def test_every_data_type_keeps_its_bits(data_type):
    dtype = np.dtype(data_type.name.lower())
    bits = np.random.default_rng(1).integers(0, 256, (5, 7, dtype.itemsize), np.uint8)  # NaN payloads among them
    array = bits.view(dtype)[..., 0]
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc.from_array(array), 1, (3, 4))
    left, right = dml.compile(d)(array)
    assert left.dtype == right.dtype == dtype
    assert left.tobytes() == array[:, :3].tobytes()
    assert right.tobytes() == array[:, 3:].tobytes()
    joined = dml.compile(dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc.from_array(array), 1, (3, 4)))
    assert joined([left, right]).tobytes() == array.tobytes()


def test_a_single_output_is_a_copy():
    a = example()
    (copy,) = dml.compile(dml.SplitOperatorDesc.from_lengths(X, 1, (1,)))(a)
    assert copy.tolist() == a.tolist()
    assert not np.shares_memory(copy, a)


@pytest.mark.parametrize(
    "relayout",
    [
        lambda a: np.asfortranarray(a),
        lambda a: a[:, :, ::-1, ::-1].copy()[:, :, ::-1, ::-1],
        lambda a: np.repeat(a, 3, axis=2)[:, :, ::3],
        lambda a: np.pad(a, ((0, 0), (0, 2), (1, 1), (3, 0)))[:, :1, 1:-1, 3:],
        lambda a: np.broadcast_to(a[:, :, :1], a.shape),
        lambda a: a.view(np.recarray),
        lambda a: np.frombuffer(a.tobytes(), "f4").reshape(a.shape),
        lambda a: np.frombuffer(b"x" + a.tobytes(), "u1")[1:].view("f4").reshape(a.shape),
    ],
    ids=["fortran", "reversed", "repeated", "padded", "broadcast", "subclass", "read-only", "misaligned"],
)
def test_inputs_of_any_layout(relayout):
    a = relayout(example())
    outputs = dml.compile(SPLIT)(a)
    assert [o.tolist() for o in outputs] == [a[:, :, :2].tolist(), a[:, :, 2:3].tolist(), a[:, :, 3:].tolist()]
    assert dml.compile(JOIN)([a[:, :, :2], a[:, :, 2:3], a[:, :, 3:]]).tolist() == a.tolist()


def test_fresh_outputs_have_the_descriptors_layout():
    y = dml.BufferTensorDesc(F32, (1, 1, 6, 2), strides=(99, 0, 1, 8))
    (out,) = dml.compile(dml.SplitOperatorDesc(X, [y], 2))(example())
    assert out.tolist() == example().tolist()
    assert out.strides[2:] == (4, 32)
    assert out.base.tolist() == [1, 3, 5, 7, 9, 11, 0, 0, 2, 4, 6, 8, 10, 12]


def test_outputs_may_lie_in_one_array():
    columns = np.zeros((1, 1, 6, 2), "f4")
    y = dml.BufferTensorDesc(F32, (1, 1, 6, 1), strides=(12, 12, 2, 1))
    op = dml.compile(dml.SplitOperatorDesc(X, [y, y], 3))
    bound = op.bind(example(), [columns[..., 1:], columns[..., :1]])
    bound.dispatch()
    assert columns.tolist() == example()[..., ::-1].tolist()


def test_bind_keeps_its_buffers_alive():
    outputs = pieces()
    bound = dml.compile(SPLIT).bind(example(), outputs)
    memory = bytearray(48)
    raw = dml.compile(SPLIT).bind(memory, pieces())
    with pytest.raises(BufferError):
        memory.extend(b"x")
    bound.dispatch()
    raw.dispatch()
    assert outputs[0].tolist() == [[[[1, 2], [3, 4]]]]


def test_an_output_needs_its_elements_only():
    """UINT8 of 9 elements has a total of 12 bytes; an array of 9 bytes is the tensor itself."""
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT8, (3, 3)), 0, (3,))
    outputs = [np.zeros((3, 3), "u1")]
    dml.compile(d).dispatch(np.arange(9, dtype="u1").reshape(3, 3), out=outputs)
    assert outputs[0].ravel().tolist() == list(range(9))
    with pytest.raises(dml.BindingError, match=r"OutputTensors\[0\]: 9 bytes .* TotalTensorSizeInBytes is 12"):
        dml.compile(d).dispatch(np.zeros(12, "u1"), out=[bytearray(9)])


def test_owned_inputs_are_taken():
    d = dataclasses.replace(SPLIT, input_tensor=dml.TensorDesc(1, dataclasses.replace(X, flags=1)))
    assert dml.compile(d)(example())[1].ravel().tolist() == [5, 6]


def read_only(a):
    a.flags.writeable = False
    return a


REFUSED = {
    "shape": (lambda a, o: (a[:, :, :5], o), r"^InputTensor: an array of shape \(1, 1, 5, 2\) .* \(1, 1, 6, 2\)"),
    "rank": (lambda a, o: (a[0], o), "^InputTensor: an array of shape"),
    "dtype": (lambda a, o: (a.astype("f8"), o), "^InputTensor: the array has dtype float64, float32 is expected"),
    "same width": (lambda a, o: (a.view("i4"), o), "^InputTensor: the array has dtype int32"),
    "byte-swapped": (lambda a, o: (a.astype(">f4"), o), "^InputTensor: the array is byte-swapped"),
    "masked": (lambda a, o: (np.ma.masked_array(a), o), "^InputTensor: a masked array"),
    "masked memory": (lambda a, o: (np.ma.masked_array(np.zeros(48, "u1")), o), "^InputTensor: a masked array"),
    "objects": (
        lambda a, o: (memoryview(np.zeros(6, object)), o),
        "^InputTensor: the memory has references to Python objects",
    ),
    "objects in records": (
        lambda a, o: (a, [o[0], memoryview(np.zeros(1, [("a", "i8"), ("b", object)])), o[2]]),
        r"^OutputTensors\[1\]: the memory has references to Python objects",
    ),
    "object": (lambda a, o: (a.astype(object), o), "^InputTensor: the array has dtype object"),
    "structured": (lambda a, o: (a.view([("x", "f4")]), o), "^InputTensor: the array has dtype"),
    "datetime": (lambda a, o: (a.astype("M8[s]"), o), "^InputTensor: the array has dtype datetime64"),
    "list": (lambda a, o: (a.tolist(), o), "^InputTensor: list is neither"),
    "None": (lambda a, o: (None, o), "^InputTensor: NoneType is neither"),
    "short memory": (lambda a, o: (bytes(47), o), "^InputTensor: 47 bytes of raw memory .* 48"),
    "strided memory": (lambda a, o: (memoryview(bytes(96))[::2], o), "^InputTensor: raw memory must be contiguous"),
    "output shape": (lambda a, o: (a, [o[1], o[0], o[2]]), r"^OutputTensors\[0\]: an array of shape"),
    "output dtype": (lambda a, o: (a, [o[0], o[1].view("u4"), o[2]]), r"^OutputTensors\[1\]: .* uint32"),
    "output layout": (
        lambda a, o: (a, [o[0], o[1], np.zeros((1, 1, 6, 2), "f4")[:, :, ::2]]),
        r"^OutputTensors\[2\]: the array's strides are \(48, 48, 16, 4\) bytes, the descriptor's \(24, 24, 8, 4\)",
    ),
    "read-only output": (lambda a, o: (a, [o[0], read_only(o[1]), o[2]]), r"^OutputTensors\[1\]: the array is read"),
    "read-only memory": (lambda a, o: (a, [o[0], bytes(8), o[2]]), r"^OutputTensors\[1\]: the memory is read-only"),
    "too few": (lambda a, o: (a, o[:2]), "^OutputTensors: 2 buffers were given, but the operator has 3"),
    "one array": (lambda a, o: (a, o[0]), "^OutputTensors: a list or tuple of 3 buffers"),
    "output twice": (
        lambda a, o: (a, [o[2][:, :, :2], o[1], o[2]]),
        r"OutputTensors\[0\] and OutputTensors\[2\] share bytes",
    ),
    "output on input": (lambda a, o: (a, [o[0], a[:, :, 3:4], o[2]]), "share bytes"),
    "memory on memory": (
        lambda a, o: (a, [o[0], (m := memoryview(bytearray(24)))[:8], m]),
        r"OutputTensors\[\d\] and OutputTensors\[\d\] share bytes",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_come_before_the_first_write(change, message):
    array, outputs = example(), pieces(-1.0)
    given_array, given_outputs = change(array, outputs)
    op = dml.compile(SPLIT)
    for call in (op.dispatch, op.bind):
        with pytest.raises(dml.BindingError, match=message):
            call(given_array, given_outputs)
    assert (array == example()).all()
    assert all((o == -1).all() for o in outputs)


def test_join_inputs_may_share_memory_but_not_with_the_output():
    s = dml.BufferTensorDesc(F32, (1, 1, 2, 2))
    op = dml.compile(dml.JoinOperatorDesc([s, s], dml.BufferTensorDesc(F32, (1, 1, 4, 2)), 2))
    a = example()[:, :, :2].copy()
    assert op([a, a]).ravel().tolist() == [1, 2, 3, 4] * 2
    z = np.zeros((1, 1, 4, 2), "f4")
    with pytest.raises(dml.BindingError, match=r"InputTensors\[1\] and OutputTensor share bytes"):
        op.dispatch([a, z[:, :, 1:3]], out=z)
    with pytest.raises(dml.BindingError, match="a list or tuple of 2 buffers"):
        op(a)


def test_compile_refuses_what_validate_refuses():
    with pytest.raises(dml.ValidationError) as caught:
        dml.compile(dataclasses.replace(SPLIT, axis=4))
    assert not caught.value.report.ok
    rank_3 = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, (1, 6, 2)), 1, (6,))
    assert dml.compile(rank_3).report.ok
    with pytest.raises(dml.ValidationError, match="feature level 2_1"):
        dml.compile(rank_3, feature_level="2_1")


def test_compile_refuses_an_undecided_overlap():
    sizes = (8, 7, 8, 10, 10, 12)
    y = dml.BufferTensorDesc(5, sizes, strides=(71189247, 86866478, 130923340, 126580591, 107794138, 14629924))
    d = dml.SplitOperatorDesc(dml.BufferTensorDesc(5, sizes), [y], 0)
    assert dml.validate(d).ok
    with pytest.raises(dml.NativeError, match=r"OutputTensors\[0\].Strides: may make elements overlap"):
        dml.compile(d)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=4))
def test_the_core_and_validation_agree_on_overlap(dims):
    sizes, strides = zip(*dims, strict=True)
    y = dml.BufferTensorDesc(F32, sizes, strides=strides)
    d = dml.SplitOperatorDesc(dml.BufferTensorDesc(F32, sizes), [y], 0)
    if dml.validate(d).ok:
        dml.compile(d)
    else:
        with pytest.raises(dml.NativeError, match="overlap"):
            core.Plan(core.SPLIT, 4, sizes, None, 0, [sizes[0]], [s * 4 for s in strides])


@pytest.mark.slow
def test_many_outputs():
    n = 100_000
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.UINT16, (n, 3)), 0, (1,) * n)
    array = np.arange(3 * n, dtype="u2").reshape(n, 3)
    outputs = dml.compile(d)(array)
    assert (np.concatenate(outputs) == array).all()


def test_one_operator_in_many_threads():
    op = dml.compile(SPLIT)
    results: list[bool] = []

    def work(k):
        for i in range(200):
            a = example() * (k + i)
            layout = np.asfortranarray(a) if i % 2 else a  # another plan, made on demand
            results.append(all((x == y).all() for x, y in zip(op(layout), np.split(a, [2, 3], axis=2), strict=True)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 800


def test_plan_describes_itself():
    text = dml.compile(SPLIT).plan.describe()
    assert "split" in text
    assert "kernel" in text


@pytest.mark.parametrize("container", [list, tuple], ids=["list", "tuple"])
def test_dispatch_holds_on_to_nothing(container):
    """The short way takes and releases every buffer, whether it copies or leaves the call to the long one."""
    op, a, outputs = dml.compile(SPLIT), example(), pieces()
    counts = [sys.getrefcount(x) for x in (a, *outputs, a.dtype)]
    for _ in range(1000):
        op.dispatch(a, out=container(outputs))
        with pytest.raises(dml.BindingError):
            op.dispatch(a, out=container([*outputs[:2], outputs[1]]))
        with pytest.raises(dml.BindingError):
            op.dispatch(a, out=container(outputs[:2]))
        with pytest.raises(dml.BindingError):
            op.dispatch(a, out=container([*outputs[:2], None]))
    assert [sys.getrefcount(x) for x in (a, *outputs)] == counts[:-1]
    assert abs(sys.getrefcount(a.dtype) - counts[-1]) < 50
    assert outputs[1].ravel().tolist() == [5, 6]


def test_the_short_way_takes_any_number_of_arrays():
    """With many, it needs memory for their buffers; it gives back both, wherever it stops."""
    n = 1000
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, (2, 2 * n)), 1, (1, 3) * (n // 2))
    op = dml.compile(d)
    a = np.arange(4 * n, dtype="f4").reshape(2, 2 * n)
    expected = np.split(a, [i // 2 * 4 + i % 2 for i in range(1, n)], axis=1)
    outputs = [np.zeros(piece.shape, "f4") for piece in expected]
    assert op._dispatcher.run(a, outputs)
    assert all((x == y).all() for x, y in zip(outputs, expected, strict=True))
    outputs = [np.full(piece.shape, -1, "f4") for piece in expected]
    counts = [sys.getrefcount(x) for x in (a, *outputs)]
    for i in (0, 1, 500, n - 1):
        wrong = np.zeros(outputs[i].shape, "i4")
        assert not op._dispatcher.run(a, [*outputs[:i], wrong, *outputs[i + 1 :]])
        assert not op._dispatcher.run(a, [*outputs[:i], outputs[i - 2], *outputs[i + 1 :]])  # twice
        assert not op._dispatcher.run(a, outputs[:i])
    assert not op._dispatcher.run(None, outputs)
    assert [sys.getrefcount(x) for x in (a, *outputs)] == counts
    assert all((output == -1).all() for output in outputs)


def test_the_short_way_is_for_plain_arrays():
    """What it does not take, it leaves alone: the caller's buffers are untouched."""
    op = dml.compile(SPLIT)
    dispatcher = op._dispatcher
    a, outputs = example(), pieces(-1.0)
    assert dispatcher.run(a, outputs)
    assert outputs[1].ravel().tolist() == [5, 6]
    outputs = pieces(-1.0)
    for whole, parts in [
        (a.astype("f8"), outputs),
        (a.view(np.recarray), outputs),
        (np.asfortranarray(a), outputs),
        (a.ravel(), outputs),
        (bytes(48), outputs),
        (a, outputs[0]),
        (a, outputs[:2]),
        (a, [*outputs, outputs[0]]),
        (a, {0: outputs[0]}),
        (a, None),
        (a, [outputs[0], outputs[1], read_only(np.zeros((1, 1, 3, 2), "f4"))]),
        (a, [outputs[0], outputs[1], a[:, :, 3:]]),
    ]:
        assert not dispatcher.run(whole, parts)
    assert all((o == -1).all() for o in outputs)
    assert (a == example()).all()


def test_compiled_operators_can_be_pickled():
    op = pickle.loads(pickle.dumps(dml.compile(SPLIT, num_threads=2)))
    assert (op.desc, op.num_threads) == (SPLIT, 2)
    assert op(example())[1].ravel().tolist() == [5, 6]


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_make_outputs_of_their_own(threads):
    tensor = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (2, 6))
    desc = dml.SplitOperatorDesc.from_lengths(tensor, 1, (1, 2, 3))
    split = dml.compile(desc, num_threads=threads)
    join = dml.compile(dml.JoinOperatorDesc(desc.output_tensors, desc.input_tensor, 1), num_threads=threads)
    array = np.arange(12, dtype="f4").reshape(2, 6)
    for source in (array, array[:, ::-1], np.asfortranarray(array)):
        once, twice = split(source), split(source)
        for part, other, expected in zip(once, twice, np.split(source, (1, 3), 1), strict=True):
            assert part.flags.c_contiguous
            assert part.flags.owndata
            assert (part == expected).all()
            assert (other == expected).all()
            assert not np.shares_memory(part, other)
        assert (join(once) == source).all()
        assert (join(tuple(twice)) == source).all()
    with pytest.raises(dml.BindingError):
        split(array.astype("f8"))
    with pytest.raises(dml.BindingError):
        join(once[:2])
