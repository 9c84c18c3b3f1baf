"""The verdict as a whole: documented examples, all faults at once, order, skipping, exactness."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

import dmlsplit as dml
from dmlsplit.descriptors.location import Location
from tests.strategies import any_operator, valid_operator

F32 = dml.TensorDataType.FLOAT32


def test_documented_examples():
    x = dml.BufferTensorDesc(F32, (1, 1, 6, 2))
    for axis, lengths in [(2, (2, 1, 3)), (3, (1, 1))]:
        assert dml.validate(dml.SplitOperatorDesc.from_lengths(x, axis, lengths), feature_level="1_0").ok
    a, b = dml.BufferTensorDesc(F32, (1, 1, 2, 3)), dml.BufferTensorDesc(F32, (1, 1, 2, 4))
    assert dml.validate(dml.JoinOperatorDesc([a, b], dml.BufferTensorDesc(F32, (1, 1, 2, 7)), 3)).ok
    s = dml.BufferTensorDesc(F32, (1, 1, 2, 2))
    for axis, sizes in [(1, (1, 3, 2, 2)), (2, (1, 1, 6, 2)), (3, (1, 1, 2, 6))]:
        assert dml.validate(dml.JoinOperatorDesc([s] * 3, dml.BufferTensorDesc(F32, sizes), axis)).ok


@pytest.mark.parametrize("lengths", [(1, 1, 1), (1, 2), (2, 1), (3,)], ids=str)
@pytest.mark.parametrize("axis", range(4))
def test_documented_splits_of_an_axis_of_3(lengths, axis):
    sizes = [2, 2, 2, 2]
    sizes[axis] = 3
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, sizes), axis, lengths)
    for level in dml.FeatureLevel:
        assert dml.validate(d, feature_level=level).ok


def faulty_everywhere():
    x = dml.BufferTensorDesc(
        F32, (1, 4, 0, 2), flags=4, total_tensor_size_in_bytes=1, guaranteed_base_offset_alignment=3
    )
    y = dml.BufferTensorDesc(F32, (1, 4, 3, 2), flags=1, strides=(0, 0, 2, 1), total_tensor_size_in_bytes=2**35)
    return dml.SplitOperatorDesc(dml.TensorDesc(5, x), [y, None], 7, output_count=3)


def test_all_faults_at_once_in_descriptor_order():
    report = dml.validate(faulty_everywhere())
    assert [(d.path, d.rule) for d in report.diagnostics] == [
        ("InputTensor.Type", "tensor/type-not-buffer"),
        ("InputTensor.Flags", "tensor/flags-unknown"),
        ("InputTensor.Sizes[2]", "tensor/size-zero"),
        ("InputTensor.GuaranteedBaseOffsetAlignment", "tensor/alignment-not-power-of-two"),
        ("OutputCount", "split/output-count-exceeds-array"),
        ("OutputTensors[0].Flags", "tensor/output-owned-by-dml"),
        ("OutputTensors[0].Strides[1]", "tensor/output-stride-zero"),
        ("OutputTensors[0].TotalTensorSizeInBytes", "tensor/total-size-too-large"),
        ("OutputTensors[1]", "tensor/null"),
        ("Axis", "split/axis-out-of-range"),
    ]
    assert report.judged_by == "directml 1.15.4"
    assert report.hresult == dml.HResult.E_INVALIDARG  # for Axis, before OutputTensors is read past its end
    assert dml.validate(faulty_everywhere(), feature_level="6_4").hresult == 0x80070057


def test_paths_of_many_outputs_sort_by_number():
    x = dml.BufferTensorDesc(F32, (12,))
    parts = [dml.BufferTensorDesc(F32, (1,), flags=2)] * 12
    report = dml.validate(dml.SplitOperatorDesc(x, parts, 0))
    assert [d.path for d in report.diagnostics] == [f"OutputTensors[{i}].Flags" for i in range(12)]


def test_exact_arithmetic():
    big = 2**32 - 1
    x = dml.BufferTensorDesc(F32, (big,) * 8)
    assert x.total_tensor_size_in_bytes is None
    (fault,) = dml.validate(dml.SplitOperatorDesc(x, [x], 0)).diagnostics[:1]
    assert (fault.rule, fault.actual) == ("tensor/element-count-too-large", big**8)
    # The axis sizes sum up to 2^32 + 6, which is 6 in 32 bits.
    parts = [dml.BufferTensorDesc(5, (2**31,)), dml.BufferTensorDesc(5, (2**31 + 6,))]
    (fault,) = dml.validate(dml.SplitOperatorDesc(dml.BufferTensorDesc(5, (6,)), parts, 0)).diagnostics
    assert (fault.rule, fault.expected, fault.actual) == ("split/axis-sizes-sum", 6, 2**32 + 6)


@pytest.mark.slow
def test_many_outputs():
    x = dml.BufferTensorDesc(F32, (100_000, 2))
    d = dml.SplitOperatorDesc.from_lengths(x, 0, (1,) * 100_000)
    assert dml.validate(d).ok
    assert len(dml.validate(replace(d, axis=1)).diagnostics) == 100_001


def test_an_unsafe_descriptor_that_directml_accepts():
    y = dml.BufferTensorDesc(F32, (1, 1, 4, 3), strides=(1, 1, 2, 3))
    report = dml.validate(dml.SplitOperatorDesc(dml.BufferTensorDesc(F32, (1, 1, 4, 3)), [y], 3))
    assert not report.ok
    assert report.hresult == dml.HResult.S_OK
    assert [d.basis for d in report.diagnostics] == [dml.Basis.OURS]


@given(any_operator())
def test_any_descriptor_gets_a_verdict_that_can_be_written_down(d):
    for level in ("1_0", "3_0", "6_4"):
        report = dml.validate(d, feature_level=level)
        refused = [f for f in report.errors if f.basis is not dml.Basis.OURS]
        assert report.hresult == (0x80070057 if refused else 0)
        answer = report.to_dict()
        assert list(answer) == ["schema", "file", "index", "operator", "judged_by", "ok", "hresult", "diagnostics"]
        assert json.loads(json.dumps(answer)) == answer
        assert str(report).count("\n") == len(report.diagnostics)


@given(valid_operator())
def test_valid_descriptors_are_ok(d):
    assert dml.validate(d).diagnostics == ()


def test_raise_if_errors_carries_the_report():
    report = dml.validate(faulty_everywhere())
    with pytest.raises(dml.ValidationError) as caught:
        report.raise_if_errors()
    assert caught.value.report is report
    assert "split/axis-out-of-range" in str(caught.value)
    dml.validate(dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(F32, (4,)), 0, (4,))).raise_if_errors()


def test_validate_takes_operators_only():
    with pytest.raises(TypeError, match="BufferTensorDesc is not"):
        dml.validate(dml.BufferTensorDesc(F32, (4,)))
    with pytest.raises(ValueError, match="unknown feature level '9_9'"):
        dml.validate(faulty_everywhere(), feature_level="9_9")


def test_located():
    report = dml.validate(faulty_everywhere()).located({Location.of("Axis"): (7, 3)}.get)
    assert [(d.line, d.column) for d in report.diagnostics if d.path == "Axis"] == [(7, 3)]
    assert all(d.line is None for d in report.diagnostics if d.path != "Axis")


@pytest.mark.parametrize(
    "d",
    [
        dml.SplitOperatorDesc(dml.BufferTensorDesc(F32, (4,)), [dml.BufferTensorDesc(F32, (4,))], 0, output_count=2),
        dml.SplitOperatorDesc(dml.BufferTensorDesc(F32, (4,), dimension_count=2), [dml.BufferTensorDesc(F32, (4,))], 0),
        dml.JoinOperatorDesc([dml.BufferTensorDesc(F32, (4,))], dml.BufferTensorDesc(F32, (4,)), 0, input_count=2),
    ],
)
def test_a_release_that_reads_past_an_array_has_no_hresult(d):
    assert dml.validate(d, directml="1.15.4").hresult is None
    assert not dml.validate(d, directml="1.15.4").ok
    assert dml.validate(d, feature_level="6_4").hresult == 0x80070057
