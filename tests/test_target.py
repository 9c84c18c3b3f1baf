"""A target is a value: equal where it judges by the same, hashable, and the same in another process."""

import pickle

import pytest

import dmlsplit as dml
from dmlsplit.target import Target, find_target, target_of

EVERY = [target_of(by) for by in (*dml.FeatureLevel, *dml.releases())]


def test_every_level_and_release_is_a_target_of_its_own():
    assert len(set(EVERY)) == len(EVERY) == len(dml.FeatureLevel) + len(dml.releases())


@pytest.mark.parametrize("target", EVERY, ids=lambda target: target.short_name)
def test_pickled(target):
    again = pickle.loads(pickle.dumps(target))
    assert again == target
    assert hash(again) == hash(target)
    assert (again.name, again.support, again.builds) == (target.name, target.support, target.builds)


@pytest.mark.parametrize("target", EVERY, ids=lambda target: target.short_name)
def test_found_by_its_short_name(target):
    key = "feature_level" if target.release is None else "directml"
    assert find_target(**{key: target.short_name}) == target


def test_what_a_device_lacks_is_part_of_the_target():
    release = dml.find_release("1.15.4")
    lacking = {dml.TensorDataType.FLOAT64: "double-precision operations"}
    narrow = Target(release, lacking)
    assert narrow != target_of(release)
    assert narrow.name == "directml 1.15.4 without double-precision operations"
    taken = [row.data_types for rows in narrow.support.values() for row in rows]
    assert all(dml.TensorDataType.FLOAT64 not in types and dml.TensorDataType.INT64 in types for types in taken)
    assert pickle.loads(pickle.dumps(narrow)) == narrow
