"""The table of observed builds, and names that lead to it."""

import re
from collections import defaultdict
from dataclasses import fields

import pytest

import dmlsplit as dml
from dmlsplit.targets.releases import SizeArithmetic, directml_versions, observed_levels, release_of_level
from tests.oracle import header


def test_every_row_has_recorded_verdicts():
    for name in ("random", "boundary", "systematic"):
        assert header(name)["builds"] == [release.name for release in dml.releases()]


def test_the_rows_are_in_order():
    rows = [([int(n) for n in re.findall(r"\d+", r.directml)], r.max_feature_level, r.platform) for r in dml.releases()]
    assert rows == sorted(rows)
    assert len({r.name for r in dml.releases()}) == len({r.judged_by for r in dml.releases()}) == len(dml.releases())


def test_builds_of_one_version_take_the_same():
    assert [build for builds in directml_versions().values() for build in builds] == list(dml.releases())
    for version, builds in directml_versions().items():
        assert dml.find_release(version) is builds[-1]
        assert len({build.platform for build in builds}) == len(builds)
        assert len({(build.max_feature_level, str(build.support)) for build in builds}) == 1
        assert len({(build.traits.arithmetic, build.traits.total_counts_whole_elements) for build in builds}) == 1


def test_the_levels_without_a_build():
    unseen = set(dml.FeatureLevel) - set(observed_levels())
    assert sorted(map(str, unseen)) == ["1_0", "2_0", "4_0", "5_1", "6_0"]


def test_codes_of_refusals():
    codes = defaultdict(set)
    for release in dml.releases():
        codes[release.platform, release.max_feature_level <= dml.FeatureLevel.FL_3_1].add(release.invalid_argument)
    assert codes == {
        ("linux", True): {0x80000003},
        ("linux", False): {0x80070057},
        ("windows", True): {0x80070057},
        ("windows", False): {0x80070057},
    }


@pytest.mark.parametrize("release", dml.releases(), ids=lambda r: r.name)
def test_every_release_is_found_by_its_names(release):
    for name in (release, release.name, release.label, f" {release.directml}-{release.platform} "):
        assert dml.find_release(name) is release
    for package, versions in release.shipped:
        for version in (end for span in versions for end in span.split("..")):
            assert dml.find_release(f"{package} {version}-{release.platform}") is release


@pytest.mark.parametrize(
    ("name", "directml", "platform"),
    [
        ("Torch-DirectML 0.2.5.dev240914", "1.13.1", "linux"),
        ("torch-directml-0.2.1.dev240521", "1.13.1", "linux"),
        ("torch-directml-0.2.5.dev240914-windows", "1.13.1", "windows"),
        ("tensorflow-directml-1.15.7", "1.8.2", "linux"),
        ("tensorflow-directml-1.15.8-windows", "1.9.1", "windows"),
        ("1.4.0", "1.4.0", "windows"),
        ("1.4.0-linux", "1.4.0", "linux"),
        ("1.3.0-dev2", "1.3.0-dev2", "windows"),
        # Of the Windows package alone this version is known.
        ("torch-directml-0.1.13.dev221216", "1.9.0", "windows"),
        ("onnxruntime-node-1.27.0", "1.15.4", "windows"),
    ],
)
def test_other_names(name, directml, platform):
    found = dml.find_release(name)
    assert (found.directml, found.platform, found.agreeing) == (directml, platform, ())


@pytest.mark.parametrize(
    ("name", "judged_by", "level"),
    [
        ("1.8.1", "directml 1.8.1 (as 1.8.0, 1.8.2)", "5_0"),
        ("1.10.0", "directml 1.10.0 (as 1.9.1, 1.10.1)", "5_0"),
        ("1.15.3", "directml 1.15.3 (as 1.15.2, 1.15.4)", "6_4"),
        ("1.15", "directml 1.15 (as 1.14.2, 1.15.1, 1.15.2, 1.15.4)", "6_4"),
        ("1.8.1-linux", "directml 1.8.1-linux (as tensorflow-directml-1.15.5, tensorflow-directml-1.15.7)", "4_1"),
        ("onnxruntime-directml 1.20.5", "onnxruntime-directml-1.20.5 (as 1.15.2, 1.15.4)", "6_4"),
        ("onnxruntime-directml-1.17.1", "onnxruntime-directml-1.17.1 (as 1.13.1)", "6_2"),
        ("torch-directml-0.2.5", "torch-directml-0.2.5 (as torch-directml-0.2.5.dev240914)", "6_2"),
    ],
)
def test_a_version_between_builds_that_judge_alike(name, judged_by, level):
    found = dml.find_release(name)
    assert (found.judged_by, str(found.max_feature_level)) == (judged_by, level)
    assert dml.find_release(found.label) == found
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (4,)), 0, (4,))
    assert dml.validate(d, directml=name).judged_by == judged_by
    neighbours = [dml.find_release(build) for build in found.agreeing]
    assert {(n.traits, n.invalid_argument) for n in neighbours} == {(found.traits, found.invalid_argument)}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("1.14.0", "are '1.13.1' and '1.14.1', which differ in the computation of sizes (bytes wrap at 2^64 / bits wr"),
        ("1.13", "are '1.12.1' and '1.13.1', which differ in the computation of sizes (the last element's index wra"),
        ("1.6.0", "are '1.5.1' and '1.7.0', which differ in data types (without / FLOAT64 UINT64 INT64); data types "),
        ("1.2-linux", "are '1.0.200610-linux' and '1.3.0-dev2-linux', which differ in numbers of dimensions of Split "),
        (
            "torch-directml-0.2.0.1",
            "are 'torch-directml-0.2.0.dev230426' and 'torch-directml-0.2.1.dev240521', which d",
        ),
        ("2.0", "is '1.15.4'; known: "),
        ("0.9", "is '1.0.200610'; known: "),
        ("1.15.4-linux", "is '1.13.1-linux'; known: "),
        ("onnxruntime-directml-1.25.0", "is 'onnxruntime-directml-1.24.4'; known: "),
        ("another-directml-1.15.3", "are '1.15.2' and '1.15.4'; known: "),
        ("onnxruntime-directml", "is '1.15.4'; known: "),
        ("banana", "is '1.15.4'; known: "),
    ],
)
def test_the_nearest_releases_are_offered(name, nearest):
    expected = re.escape(f"unknown DirectML release '{name}'; the nearest {nearest}") + ".*1.15.2, 1.15.4$"
    with pytest.raises(ValueError, match=expected):
        dml.validate(dml.SplitOperatorDesc(None, None, 0), directml=name)


def test_every_trait_has_words_for_the_error():
    assert all(field.metadata["words"] for field in fields(dml.releases()[0].traits))


def test_one_judge_only():
    d = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (4,)), 0, (4,))
    with pytest.raises(ValueError, match="exclude each other"):
        dml.validate(d, feature_level="3_0", directml="1.8.0")
    with pytest.raises(TypeError, match="int"):
        dml.validate(d, directml=3)
    assert dml.validate(d).judged_by == "directml 1.15.4"
    assert dml.validate(d, directml="torch-directml-0.2.5.dev240914").judged_by == "torch-directml-0.2.5.dev240914"


def test_predictions_differ_as_the_builds_do():
    x = dml.BufferTensorDesc(dml.TensorDataType.INT64, (1, 1, 6, 2))
    d = dml.SplitOperatorDesc.from_lengths(x, 2, (2, 1, 3))
    codes = {r.name: dml.validate(d, directml=r).hresult for r in dml.releases()}
    assert codes["tensorflow-directml-1.15.5.dev210422"] == 0x80000003
    assert codes["onnxruntime-directml-1.9.0"] == 0x80070057
    assert codes["onnxruntime-directml-1.10.0"] == 0
    assert [r.name for r in dml.supported_releases(d)] == [name for name, code in codes.items() if code == 0]


@pytest.mark.parametrize(
    ("arithmetic", "sizes", "strides", "bits", "places", "implied"),
    [
        (SizeArithmetic.EXACT, (3,), (2**31,), 32, 2**32 + 1, 2**34 + 4),
        (SizeArithmetic.BYTES_32, (3,), (2**31,), 32, 1, 4),
        (SizeArithmetic.INDEX_32, (3,), (2**31,), 32, 1, 4),
        (SizeArithmetic.BYTES_64, (3,), (2**31,), 32, 2**32 + 1, 2**34 + 4),
        (SizeArithmetic.BITS_64, (3,), (2**31,), 32, 2**32 + 1, 2**34 + 4),
        # Exactly 2^32 places: 32 bits of bytes see none, 32 bits of the last index see all.
        (SizeArithmetic.BYTES_32, (4,), (0x55555555,), 8, 0, 0),
        (SizeArithmetic.INDEX_32, (4,), (0x55555555,), 8, 2**32, 2**32),
        # 2^32 - 1 bytes: rounding up does not wrap.
        (SizeArithmetic.BYTES_32, (2,), (2**32 - 2,), 8, 2**32 - 1, 2**32),
        # 2^61 + 1 elements of 8 bytes
        (SizeArithmetic.BYTES_64, (2**31 + 1,), (2**30,), 64, 1, 8),
        (SizeArithmetic.BITS_64, (2**29 + 1,), (2**29,), 64, 1, 8),
        # Without strides nothing wraps.
        (SizeArithmetic.BYTES_32, (2**31,), None, 64, 2**31, 2**34),
    ],
)
def test_size_arithmetic(arithmetic, sizes, strides, bits, places, implied):
    assert arithmetic.extent(bits, sizes, strides) == places
    assert arithmetic.implied_size(bits, sizes, strides) == implied


def test_release_of_level():
    def name(level):
        release = release_of_level(dml.FeatureLevel.parse(level))
        return release and release.name

    assert name("1_0") is None
    assert name("2_1") == "tensorflow-directml-1.15.3.dev200619"
    assert name("4_0") == "tensorflow-directml-1.15.5.dev210422"
    assert name("6_4") == "onnxruntime-directml-1.19.2"


def test_a_null_input_of_no_outputs_is_read_by_all_windows_builds_but_the_oldest():
    d = dml.SplitOperatorDesc(None, [], 0)
    crashing = [release for release in dml.releases() if dml.validate(d, directml=release).hresult is None]
    windows = [release for release in dml.releases() if release.platform == "windows"]
    assert [release.directml for release in windows if release not in crashing] == ["1.0.200610"]
    assert len(crashing) == len(windows) - 1
