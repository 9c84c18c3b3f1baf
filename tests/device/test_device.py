"""Creating a device, asking it, and making what can be dispatched."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dmlsplit as dml
from tests.device.conftest import Program

T = dml.TensorDataType
UNSUPPORTED, REMOVED = dml.HResult.DXGI_ERROR_UNSUPPORTED, dml.HResult.DXGI_ERROR_DEVICE_REMOVED
OLDEST = "tensorflow-directml-1.15.3.dev200619"
OWNED = dml.TensorFlags.OWNED_BY_DML
X = dml.BufferTensorDesc(T.FLOAT32, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 4))


def failure(call, *arguments):
    with pytest.raises(dml.DirectMLError) as caught:
        call(*arguments)
    return caught.value


@pytest.mark.parametrize("release", dml.releases(), ids=lambda release: release.name)
def test_minimum_levels(release):
    highest = int(release.max_feature_level)
    for level in (None, 0, 1, 0x1001, highest, 2**31, 2**32 - 1, "1_0", dml.FeatureLevel.FL_2_1, hex(highest)):
        dml.Device(release, level)
    error = failure(dml.Device, release.name, highest + 1)
    assert error.hresult == UNSUPPORTED
    assert [d.rule for d in error.report.diagnostics] == ["device/minimum-feature-level-too-high"]
    assert str(release.max_feature_level) in str(error)


def test_the_minimum_level_does_not_narrow():
    wide = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.INT64, (6,)), 0, (6,))
    dml.Device("1.15.4", "1_0").create_operator(wide)


@pytest.mark.parametrize("level", ["7_0", "0xZZ", -1, 2**32])
def test_what_is_no_level(level):
    with pytest.raises(ValueError, match="level"):
        dml.Device(minimum_feature_level=level)


def test_unknown_release_and_capabilities():
    with pytest.raises(ValueError, match="nearest"):
        dml.Device("1.14.0")
    for settings, name in (
        ({"capabilities": {"double_precision": False}}, "capabilities: dict"),
        ({"directml": 1.8}, "float"),
        ({"minimum_feature_level": 3.0}, "feature level: 3.0"),
        ({"minimum_feature_level": []}, r"feature level: \[\]"),
        ({"on_warning": "ignore"}, "on_warning: str"),
    ):
        with pytest.raises(TypeError, match=name):
            dml.Device(**settings)
    for value in ("no", 0, None):
        with pytest.raises(TypeError, match="typed_uav_loads"):
            dml.Capabilities(typed_uav_loads=value)


def test_feature_levels():
    ask = dml.Device("1.8.0").check_feature_support_feature_levels
    assert ask(["1_0", "2_0"]) is dml.FeatureLevel.FL_2_0
    assert ask([0x6400, 0x5000, 0x1000]) is dml.FeatureLevel.FL_5_0
    assert ask([0x1001]) == 0x1001
    assert ask([0, 0x1000]) == 0x1000
    for levels in ([], [0], [0x5100], [2**32 - 1], [0x7000, 0]):
        error = failure(ask, levels)
        assert error.hresult == UNSUPPORTED
        assert [d.rule for d in error.report.diagnostics] == ["device/no-feature-level-supported"]
    for levels in (None, 0x1000, "3_0"):
        with pytest.raises(TypeError, match="a sequence of feature levels"):
            ask(levels)


@pytest.mark.parametrize(
    ("directml", "supported"),
    [
        (OLDEST, {*range(1, 9), 10, 11}),
        ("1.5.1", {*range(1, 9), 10, 11}),
        ("1.8.0", set(range(1, 12))),
        ("1.13.1", set(range(1, 12))),
        ("1.15.4", set(range(1, 14))),
    ],
)
def test_data_types(directml, supported):
    ask = dml.Device(directml).check_feature_support_tensor_data_type
    assert {number for number in (*range(100), 2**32 - 1) if ask(number)} == supported
    with pytest.raises(dml.DescriptorError):
        ask(-1)


@pytest.mark.parametrize("release", dml.releases(), ids=lambda release: release.name)
def test_capabilities(release):
    def taken(**capabilities):
        device = dml.Device(release, capabilities=dml.Capabilities(**capabilities))
        found = set()
        for data_type in range(1, 12):
            whole = dml.BufferTensorDesc(data_type, (1, 1, 6, 2))
            desc = dml.SplitOperatorDesc.from_lengths(whole, 2, (2, 4))
            if data_type in release.traits.data_types and device.check_feature_support_tensor_data_type(data_type):
                assert device.create_operator(desc).report.ok
                found.add(data_type)
                continue
            error = failure(device.create_operator, desc)
            assert error.hresult == release.invalid_argument
            assert {d.rule for d in error.report.diagnostics} == {"tensor/data-type-not-supported"}
        return found

    everything = taken()
    assert everything == set(release.traits.data_types)
    assert taken(double_precision=False) == everything - {T.FLOAT64}
    narrow = {T.UINT8, T.INT8} if release.max_feature_level <= dml.FeatureLevel.FL_6_1 else set()
    assert taken(typed_uav_loads=False) == everything - narrow


def test_a_missing_capability_is_named():
    device = dml.Device("1.8.0", capabilities=dml.Capabilities(double_precision=False, typed_uav_loads=False))
    whole = dml.BufferTensorDesc(T.FLOAT64, (6,))
    text = str(failure(device.create_operator, dml.SplitOperatorDesc.from_lengths(whole, 0, (6,))))
    assert "double-precision operations" in text
    assert "directml 1.8.0 without double-precision operations and typed UAV loads" in text


def test_create_operator_follows_the_build():
    wrong = dml.SplitOperatorDesc(X, SPLIT.output_tensors, 9)
    for release in dml.releases():
        error = failure(dml.Device(release).create_operator, wrong)
        assert error.hresult == release.invalid_argument
        assert error.report == dml.validate(wrong, directml=release)
    crashing = dml.SplitOperatorDesc(None, SPLIT.output_tensors, 2)
    assert failure(dml.Device().create_operator, crashing).hresult is None
    with pytest.raises(TypeError):
        dml.Device().create_operator("split")


def test_an_unsafe_operator_is_created():
    part = dml.BufferTensorDesc(T.FLOAT32, (4, 3), strides=(2, 3))
    operator = dml.Device().create_operator(dml.SplitOperatorDesc(dml.BufferTensorDesc(T.FLOAT32, (4, 3)), [part], 0))
    assert not operator.report.ok
    assert operator.report.hresult == dml.HResult.S_OK


def test_execution_flags():
    for release in ("1.15.4", OLDEST):
        device = dml.Device(release)
        operator = device.create_operator(SPLIT)
        for flags in range(8):
            assert device.compile_operator(operator, flags).flags == dml.ExecutionFlags(flags)
        for flags in (8, 9, 2**31):
            error = failure(device.compile_operator, operator, flags)
            assert error.hresult == dml.find_release(release).invalid_argument
            assert [d.rule for d in error.report.diagnostics] == ["device/execution-flags-unknown"]
            assert str(error).startswith("DML_OPERATOR_SPLIT: not ok")
        assert device.removed_reason is None


def join(*inputs):
    """Of one-element FLOAT32 inputs (owned, total, alignment)."""
    tensors = [
        dml.BufferTensorDesc(
            T.FLOAT32,
            (1, 1, 1, 1),
            flags=OWNED if owned else 0,
            total_tensor_size_in_bytes=total,
            guaranteed_base_offset_alignment=alignment,
        )
        for owned, total, alignment in inputs
    ]
    return dml.JoinOperatorDesc(tensors, dml.BufferTensorDesc(T.FLOAT32, (1, 1, len(inputs), 1)), 2)


@pytest.mark.parametrize(
    ("desc", "descriptors", "exact", "rounded"),
    [
        (SPLIT, 4, 0, 0),
        (dml.SplitOperatorDesc.from_lengths(X, 2, (1,) * 6), 12, 0, 0),
        (join((False, 4, 0), (False, 4, 0), (False, 4, 0)), 6, 0, 0),
        (join((True, 4, 0), (True, 8, 0), (True, 12, 0)), 6, 44, 44),
        (join((True, 5, 0), (True, 9, 0), (True, 13, 0)), 6, 45, 48),
        (join((True, 5, 0), (False, 9, 512), (True, 13, 0)), 6, 29, 32),
        (join((True, 4, 0), (True, 6, 64)), 4, 70, 72),
        (join((True, 4, 0), (True, 4, 512)), 4, 260, 260),
        (join((True, 4, 2**31), (True, 4, 2**31)), 4, 260, 260),
    ],
)
def test_binding_properties(desc, descriptors, exact, rounded):
    for release in dml.releases():
        device = dml.Device(release)
        op = device.compile_operator(device.create_operator(desc))
        size = exact if release.max_feature_level <= dml.FeatureLevel.FL_6_1 else rounded
        assert op.binding_properties == (descriptors, 0, size)
        assert device.create_operator_initializer([op, op]).binding_properties == (0, 0, 0)
        table = device.create_binding_table(op, descriptors + 1)
        error = failure(device.create_binding_table, op, descriptors - 1)
        assert error.hresult == release.invalid_argument == failure(table.reset, op, 0).hresult
        assert error.report.diagnostics[0].rule == "binding/table-too-small"


def test_objects_of_another_device(program):
    other = Program()
    op, stranger = program.compile(SPLIT), other.compile(SPLIT)
    table = program.device.create_binding_table(op)
    for call in (
        lambda: program.device.compile_operator(stranger.operator),
        lambda: program.device.create_operator_initializer([op, stranger]),
        lambda: program.device.create_binding_table(stranger),
        lambda: program.device.record_dispatch(stranger, table),
        lambda: other.device.record_dispatch(stranger, table),
        lambda: table.reset(stranger),
    ):
        with pytest.raises(ValueError, match="another device"):
            call()
    for call in (
        lambda: program.device.compile_operator(SPLIT),
        lambda: program.device.create_operator_initializer(op),
        lambda: program.device.create_operator_initializer([SPLIT]),
        lambda: program.device.create_binding_table(None),
        lambda: program.device.record_dispatch(op, op),
        lambda: table.bind_inputs(dml.Buffer(48)),
        lambda: table.bind_inputs([np.zeros(48, np.uint8)]),
        lambda: table.bind_outputs([np.zeros(48, np.uint8)]),  # of the wrong number, too
        lambda: table.bind_outputs(None),
        lambda: table.bind_persistent_resource([dml.Buffer(48)]),
    ):
        with pytest.raises(TypeError):
            call()
    assert program.device.removed_reason is None


def test_a_removed_device_answers_so(program):
    op = program.compile(SPLIT)
    operator, initializer = op.operator, program.device.create_operator_initializer([op])
    table = program.device.create_binding_table(op)
    table.bind_inputs([None])
    reason = program.device.removed_reason
    assert reason.hresult == REMOVED == program.device.get_device_removed_reason()
    for call in (
        lambda: program.device.create_operator(SPLIT),
        lambda: program.device.create_operator(dml.SplitOperatorDesc(X, [], 2)),
        lambda: program.device.compile_operator(operator, 99),
        lambda: program.device.create_operator_initializer([]),
        lambda: program.device.create_binding_table(op, 0),
        lambda: program.device.check_feature_support_feature_levels([]),
        lambda: program.device.check_feature_support_tensor_data_type(1),
        lambda: table.reset(op),
    ):
        error = failure(call)
        assert error.hresult == REMOVED
        assert error.report == reason
    source, a, b = dml.Buffer(48), dml.Buffer(16), dml.Buffer(32)
    source.array[:] = 7
    table.bind_inputs([source])
    table.bind_outputs([a, b])
    table.bind_persistent_resource(source)
    program.device.record_dispatch(op, table)
    program.device.record_dispatch(initializer, table)
    assert not a.array.any()
    assert program.device.removed_reason is reason
    assert op.binding_properties == (4, 0, 0)


def test_errors_can_be_pickled():
    error = failure(dml.Device("1.8.0").check_feature_support_feature_levels, [])
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.hresult, copy.report) == (error.hresult, error.report)
    assert isinstance(error, dml.ValidationError)


def test_threads_share_a_device(program):
    """One device and one compiled operator, a table for each thread; the first reason of a removal stays."""
    length = 4096
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(T.UINT8, (2 * length,)), 0, (length, length))
    op = program.compile(desc)
    program.initialize(op)

    def work(value: int) -> bool:
        source, a, b = dml.Buffer(2 * length), dml.Buffer(length), dml.Buffer(length)
        source.array[:] = value
        table = program.table(op, [source], [a, b])
        for _ in range(50):
            program.device.record_dispatch(op, table)
            program.device.create_operator(desc)
        return bool((a.array == value).all() and (b.array == value).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 33)))
        assert program.warnings == []
        tables = [program.device.create_binding_table(op) for _ in range(64)]
        reasons = set(pool.map(lambda t: (t.bind_inputs([None]), id(program.device.removed_reason))[1], tables))
    assert reasons == {id(program.device.removed_reason)}


def test_warnings_by_default():
    device = dml.Device()
    op = device.compile_operator(device.create_operator(SPLIT))
    table = device.create_binding_table(op)
    table.bind_inputs([dml.Buffer(48)])
    table.bind_outputs([dml.Buffer(16), dml.Buffer(32)])
    with pytest.warns(dml.DirectMLWarning, match="device/not-initialized") as warned:
        device.record_dispatch(op, table)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dml.DirectMLWarning):
            device.record_dispatch(op, table)
