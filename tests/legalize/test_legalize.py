"""Legalised operators: taken by their target, in the caller's buffers, and the same bytes as the original gives."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.verdicts.validation import faults
from tests.legalize.proof import prove
from tests.strategies import any_operator, faultless_operator, valid_operator

T = dml.TensorDataType
LEVELS = [str(level) for level in dml.FeatureLevel]


def packed_split(data_type, sizes, axis, lengths, **members):
    return dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(data_type, sizes, **members), axis, lengths)


@pytest.mark.slow
@settings(max_examples=400)
@given(faultless_operator(), st.sampled_from(LEVELS))
def test_every_result_is_proved(d, level):
    assert not faults(d)
    prove(d, feature_level=level)


@settings(max_examples=100)
@given(faultless_operator(), st.sampled_from([release.name for release in dml.releases()]))
def test_every_result_is_proved_for_releases(d, release):
    prove(d, directml=release)


@given(any_operator(), st.sampled_from(LEVELS))
def test_it_never_raises(d, level):
    found = dml.legalize(d, feature_level=level)
    assert found.ok == found.report.ok
    if dml.validate(d, feature_level=level).ok:
        assert found.operators == (d,)
        assert found.steps == ()
        assert found.report == dml.validate(d, feature_level=level)
    elif not found.ok:
        assert found.operators == found.bindings == found.output_map == ()
        with pytest.raises(dml.ValidationError):
            found.execute(np.zeros(1))


def test_the_target_is_named_as_in_validate():
    d = packed_split(T.INT64, (2, 2), 0, (1, 1))
    assert dml.legalize(d).operators == (d,)
    with pytest.raises(ValueError, match="exclude"):
        dml.legalize(d, feature_level="1_0", directml="1.8.0")
    with pytest.raises(TypeError):
        dml.legalize(None)
    assert dml.legalize(d, directml="1.5.1").operators[0].input_tensor.data_type == T.UINT32


@pytest.mark.parametrize(
    ("d", "level", "data_type", "sizes", "axis"),
    [
        (packed_split(T.INT64, (2, 3, 4, 5, 6, 7), 2, (1, 3)), "3_0", T.UINT32, (2, 3, 4, 5, 6, 14), 2),
        (packed_split(T.INT64, (2, 3, 4, 5, 6, 7), 2, (1, 3)), "2_1", T.UINT32, (1, 1, 6, 1680), 3),
        (packed_split(T.FLOAT64, (1, 1, 6), 2, (4, 2)), "3_0", T.UINT32, (1, 1, 12), 2),
        (packed_split(T.FLOAT32, (6, 2), 0, (4, 2)), "1_0", T.FLOAT32, (1, 1, 6, 2), 2),
        (packed_split(T.UINT8, (1, 3, 8, 8), 1, (1, 2)), "1_0", T.UINT32, (1, 3, 8, 2), 1),
        (packed_split(T.INT8, (1, 3, 3, 2), 1, (1, 2)), "1_0", T.UINT16, (1, 3, 3, 1), 1),
        (packed_split(T.INT64, (2, 1, 6, 1), 2, (4, 2), strides=(99, 9, 5, 7)), "3_0", T.UINT32, (2, 1, 6, 1, 2), 2),
        (packed_split(T.UINT4, (2, 4), 0, (1, 1)), "3_0", T.UINT16, (2, 1), 0),
    ],
    ids=str,
)
def test_rewritings(d, level, data_type, sizes, axis):
    (made,) = dml.legalize(d, feature_level=level).operators
    whole = made.input_tensor
    assert (whole.data_type, whole.sizes[: whole.dimension_count], made.axis) == (data_type, sizes, axis)


def test_pieces_without_elements():
    d = packed_split(T.INT32, (2, 6), 1, (0, 4, 0, 2))
    found = dml.legalize(d, feature_level="3_0")
    assert found.output_map == ((1, 3),)
    assert [region.index for region in found.bindings[0]] == [0, 1, 3]
    a = np.arange(12, dtype=np.int32).reshape(2, 6)
    pieces = found.execute(a)
    assert [p.shape for p in pieces] == [(2, 0), (2, 4), (2, 0), (2, 2)]
    assert (np.concatenate(pieces, 1) == a).all()
    nothing = dml.legalize(packed_split(T.INT32, (0, 6), 1, (4, 2)), feature_level="3_0")
    assert nothing.ok
    assert nothing.operators == ()
    assert [p.shape for p in nothing.execute(np.zeros((0, 6), np.int32))] == [(0, 4), (0, 2)]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"axis": 9}, "split/axis-out-of-range"),
        ({"output_count": 3}, "split/output-count-exceeds-array"),
        ({"input_tensor": None}, "tensor/null"),
        ({"output_tensors": [dml.BufferTensorDesc(T.INT64, (2, 0, 3))] * 2}, "split/axis-sizes-sum"),
        (
            {"input_tensor": dml.BufferTensorDesc(T.INT64, (2, 4, 3), total_tensor_size_in_bytes=8)},
            "tensor/total-size-too-small",
        ),
    ],
)
def test_what_is_wrong_in_itself_has_no_rewriting(change, rule):
    d = replace(packed_split(T.INT64, (2, 4, 3), 1, (1, 3)), **change)
    found = dml.legalize(d, feature_level="2_1")
    assert not found.ok
    assert rule in {diagnostic.rule for diagnostic in found.report.errors}
    assert "legalize/no-rewriting" not in {diagnostic.rule for diagnostic in found.report.errors}


def test_bytes_that_no_type_moves():
    found = dml.legalize(packed_split(T.UINT8, (1, 1, 1, 6), 3, (3, 3)), feature_level="1_0")
    assert not found.ok
    assert found.report.diagnostics[-1].rule == "legalize/no-rewriting"
    assert "UINT8" in found.report.diagnostics[-1].message


def test_buffers_follow_the_rules_of_dispatch():
    d = packed_split(T.INT64, (1, 2, 3, 2, 2, 4), 2, (1, 2))
    found = dml.legalize(d, feature_level="2_1")
    a = np.arange(96).reshape(1, 2, 3, 2, 2, 4)
    expected = np.split(a, [1], 2)
    out = [np.zeros_like(e) for e in expected]
    for given_array in (a, np.asfortranarray(a), a[:, :, ::-1][:, :, ::-1]):
        found.dispatch(given_array, out)
        assert all((o == e).all() for o, e in zip(out, expected, strict=True))
    raw = [bytearray(256), memoryview(bytearray(512))]
    found.dispatch(a.tobytes(), out=raw)
    assert [bytes(r) for r in raw] == [e.tobytes() for e in expected]
    with pytest.raises(dml.BindingError, match=r"OutputTensors\[1\]"):
        found.dispatch(a, out=[out[0], out[0]])
    with pytest.raises(dml.BindingError, match="InputTensor"):
        found.dispatch(a.astype(np.int32), out=out)
    block = memoryview(bytearray(1024))
    with pytest.raises(dml.BindingError, match="share"):
        found.dispatch(a, out=[block, block[128:]])


def test_a_join():
    d = dml.JoinOperatorDesc.from_lengths(dml.BufferTensorDesc(T.FLOAT64, (3, 4)), 0, (1, 0, 2))
    found = dml.legalize(d, feature_level="3_0")
    assert found.output_map == ((0, 2),)
    assert [(region.buffer, region.index) for region in found.bindings[0]] == [
        ("input", 0),
        ("input", 2),
        ("output", 0),
    ]
    parts = [np.ones((1, 4)), np.ones((0, 4)), np.full((2, 4), 2.5)]
    assert (found.execute(parts) == np.concatenate(parts)).all()


def runs(d):
    """What the plan folds to: how many bytes at a time, how often, from where to where, and by which kernel."""
    return re.findall(r"runs of \d+ bytes.*kernel \w+", dml.compile(d).plan.describe())


@given(valid_operator(), st.sampled_from(["1_0", "2_1", "3_0"]))
def test_the_plan_of_a_rewriting_is_the_same(d, level):
    found = dml.legalize(d, feature_level=level)
    assume(len(found.operators) == 1)
    assert runs(found.operators[0]) == runs(d) != []


def test_the_plan_is_the_same_at_every_level():
    d = packed_split(T.INT64, (2, 3, 4, 5, 6, 7), 2, (1, 3))
    for level in ("2_1", "3_0"):
        (made,) = dml.legalize(d, feature_level=level).operators
        assert runs(made) == runs(d) != []


def test_a_legalization_can_be_pickled():
    found = dml.legalize(packed_split(T.INT64, (2, 4), 1, (1, 3)), feature_level="1_0")
    found.execute(np.zeros((2, 4), np.int64))
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(pickle.loads(pickle.dumps(found)))


def test_4_bit_elements_are_rewritten_but_no_arrays():
    d = packed_split(T.INT4, (2, 8), 1, (4, 4))
    found = dml.legalize(d)
    assert found.operators[0].input_tensor.data_type == T.UINT16
    with pytest.raises(dml.BindingError, match="4-bit"):
        found.dispatch(bytes(8), [bytearray(4), bytearray(4)])
    odd = dml.legalize(packed_split(T.INT4, (2, 3), 0, (1, 1)))
    assert "within 8 bits" in odd.report.diagnostics[-1].message


def test_outputs_that_may_overlap_are_rewritten_but_not_executed():
    sizes, strides = (8, 7, 8, 10, 10, 12), (71189247, 86866478, 130923340, 126580591, 107794138, 14629924)
    x = dml.BufferTensorDesc(T.UINT8, sizes, guaranteed_base_offset_alignment=8)
    found = dml.legalize(dml.SplitOperatorDesc(x, [dml.BufferTensorDesc(T.UINT8, sizes, strides=strides)], 0))
    assert [diagnostic.rule for diagnostic in found.report.diagnostics] == ["tensor/output-overlap-undecided"]
    with pytest.raises(dml.NativeError, match="overlap"):
        found.execute(np.zeros(sizes, np.uint8))


@pytest.mark.parametrize("rank", [64, 30_000])
def test_more_dimensions_than_anyone_has(rank):
    sizes = [1] * rank
    sizes[rank // 2], sizes[-1] = 3, 4
    d = packed_split(T.INT64, sizes, rank // 2, (1, 0, 2))
    found = prove(d, feature_level="1_0") if rank == 64 else dml.legalize(d, feature_level="1_0")
    assert found.operators[0].input_tensor.sizes == (1, 1, 1, 24)


def test_very_many_pieces():
    d = packed_split(T.UINT16, (10_000, 2), 0, (1,) * 10_000)
    found = prove(d, feature_level="2_1")
    assert found.operators[0].output_count == 10_000
