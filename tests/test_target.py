"""A target is a value: equal where it judges by the same, hashable, and the same in another process."""

import pickle

import pytest

import dmlsplit as dml
from dmlsplit.targets.runtime_versions import runtimes
from dmlsplit.targets.target import ASSUMPTIONS, Target, find_target, target_of

EVERY = [target_of(by) for by in (*dml.FeatureLevel, *dml.releases(), *runtimes())]


def test_every_level_release_and_runtime_is_a_target_of_its_own():
    assert len(set(EVERY)) == len(EVERY) == len(dml.FeatureLevel) + len(dml.releases()) + len(runtimes())


@pytest.mark.parametrize("target", EVERY, ids=lambda target: target.short_name)
def test_pickled(target):
    again = pickle.loads(pickle.dumps(target))
    assert again == target
    assert hash(again) == hash(target)
    assert (again.name, again.support, again.builds) == (target.name, target.support, target.builds)


@pytest.mark.parametrize("target", EVERY, ids=lambda target: target.short_name)
def test_found_by_its_short_name(target):
    assert find_target(**{target.kind: target.short_name}) == target


def test_what_a_device_lacks_is_part_of_the_target():
    release = dml.find_release("1.15.4")
    lacking = {dml.TensorDataType.FLOAT64: "double-precision operations"}
    narrow = Target(release, lacking)
    assert narrow != target_of(release)
    assert narrow.name == "directml 1.15.4 without double-precision operations"
    taken = [row.data_types for rows in narrow.support.values() for row in rows]
    assert all(dml.TensorDataType.FLOAT64 not in types and dml.TensorDataType.INT64 in types for types in taken)
    assert pickle.loads(pickle.dumps(narrow)) == narrow


def test_a_runtime_judges_a_descriptor_by_the_release_inside():
    target = find_target(onnxruntime="1.24.4")
    assert (target.name, target.release) == ("onnxruntime 1.24.4", dml.find_release("1.15.4"))
    wrong = dml.SplitOperatorDesc(None, None, 0)
    report = dml.validate(wrong, onnxruntime="1.24.4")
    assert report.judged_by == "onnxruntime 1.24.4"
    assert report.diagnostics == dml.validate(wrong, directml="1.15.4").diagnostics
    assert dml.legalize(wrong, onnxruntime="1.24.4").report.judged_by == "onnxruntime 1.24.4"


@pytest.mark.parametrize("given", [{"feature_level": "3_0"}, {"directml": "1.8.0"}], ids=str)
def test_targets_exclude_each_other(given):
    with pytest.raises(ValueError, match="exclude each other"):
        find_target(**given, onnxruntime="1.24.4")


def test_what_is_assumed_of_the_device():
    doubles = dml.TensorDataType.FLOAT64
    assert doubles in find_target("3_0", assume=["no-float64"]).lacking
    assert doubles in find_target(directml="1.15.4", assume=["no-float64"]).lacking
    narrow = find_target(onnxruntime="1.24.4", assume=["no-float64", "compute-only"])
    assert narrow.name == "onnxruntime 1.24.4 without double-precision operations on a compute-only device"
    assert pickle.loads(pickle.dumps(narrow)) == narrow
    assert dml.TensorDataType.UINT8 in find_target(directml="1.8.0", assume=["no-typed-uav-loads"]).lacking
    for name in ("no-typed-uav-loads", "compute-only"):
        assert find_target(directml="1.15.4", assume=[name]) == find_target(directml="1.15.4"), "it changes nothing"
    with pytest.raises(ValueError, match=f"unknown assumption 'x'; known: {', '.join(ASSUMPTIONS)}"):
        find_target(assume=["x"])
