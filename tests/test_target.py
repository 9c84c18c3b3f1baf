"""A target is a value: equal where it judges by the same, hashable, and the same in another process."""

import pickle

import pytest

import dmlsplit as dml
from dmlsplit.targets.runtime_versions import runtimes
from dmlsplit.targets.target import ASSUMPTIONS, Target, find_target, target_of

EVERY = [target_of(by) for by in (*dml.FeatureLevel, *dml.releases(), *runtimes())]
WITH_A_DLL = [windows for windows in dml.windows_versions() if windows.directml]


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


@pytest.mark.parametrize("windows", WITH_A_DLL, ids=lambda windows: windows.name)
def test_a_windows_judges_as_its_dll(windows):
    """As a build of that version, where one was asked; else as its level is documented."""
    target = find_target(windows=windows.name)
    by = windows.release or windows.feature_level
    assert (target.kind, target.short_name, target.windows) == ("windows", windows.name, windows)
    assert (target.support, target.feature_level) == (target_of(by).support, windows.feature_level)
    assert target != target_of(by)
    assert find_target(**{target.kind: target.short_name}) == target == pickle.loads(pickle.dumps(target))
    assert windows.title in target.name
    assert ("documented" in target.name) is (windows.basis == "documented")


def test_the_levels_of_windows():
    found = {windows.name: (windows.directml, str(windows.feature_level)) for windows in dml.windows_versions()}
    assert found == {
        "10-1809": ("", "None"),
        "10-2004": ("1.1.0", "2_0"),
        "10-22H2": ("1.1.0", "2_0"),
        "11-21H2": ("1.6.0", "4_0"),
        "11-22H2": ("1.8.0", "5_0"),
        "11-24H2": ("1.13.1", "6_2"),
    }
    observed = {windows.name for windows in dml.windows_versions() if windows.basis == "observed"}
    assert observed == {"11-22H2", "11-24H2"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"windows": "10-1809"}, "Windows 10 1809 has no DirectML.dll: DirectML was introduced with Windows 10 1903"),
        ({"windows": "12"}, "unknown Windows '12'; known: 10-1809, 10-2004"),
        ({"windows": "10-2004", "directml": "1.8.0"}, "windows and directml exclude each other"),
        ({"windows": "10-2004", "windows_ml": "2.1"}, "Windows ML has its own DirectML.dll"),
        ({"windows_ml": "2.1", "onnxruntime": "1.24.4"}, "windows_ml and onnxruntime exclude each other"),
        ({"windows_ml": "1.8"}, "unknown version of Windows ML '1.8'; known: 2.1.71"),
    ],
)
def test_windows_that_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        find_target(**given)


def test_onnxruntime_over_a_windows():
    """The DLL must have the level that the version creates its device with."""
    for windows in dml.windows_versions():
        for runtime in runtimes():
            over = find_target(onnxruntime=runtime, windows=windows)
            enough = windows.feature_level is not None and windows.feature_level >= runtime.needed_level
            assert over.runtime is not None
            assert bool(over.runtime.no_session) is not enough
            if enough:
                assert over.runtime.directml == windows.directml or not over.runtime.observed
            assert pickle.loads(pickle.dumps(over)) == over
    assert {str(each.needed_level) for each in runtimes() if each.key < (1, 14)} == {"2_0"}
    assert {str(each.needed_level) for each in runtimes() if each.key >= (1, 14)} == {"5_0"}


def test_windows_ml():
    for version in dml.windows_ml_versions():
        runtime = find_target(windows_ml=version.version).runtime
        assert (runtime.version, runtime.directml) == (version.onnxruntime, version.directml)
        assert (runtime.observed, runtime.newest_opset) == (True, version.newest_opset)
        assert f"Windows ML {version.version}" in runtime.judged_by
    assert find_target(windows_ml="2.1") == find_target(windows_ml="2.1.71")


@pytest.mark.parametrize("runtime", [each for each in runtimes() if each.observed], ids=lambda runtime: runtime.version)
def test_graphs_are_those_of_the_version_itself(runtime):
    """Not of an equal one: it is in the keys of caches, which compare members where an equal key is another object."""
    assert find_target(onnxruntime=runtime).graph_runtime is runtime
