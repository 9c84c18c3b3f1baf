"""The table of observed builds, and names that lead to it."""

import pytest

import dmlsplit as dml
from dmlsplit.releases import SizeArithmetic, find_release, release_of_level


def test_the_table():
    rows = [(r.name, r.directml, str(r.max_feature_level)) for r in dml.releases()]
    assert rows == [
        ("tensorflow-directml-1.15.3.dev200619", None, "2_1"),
        ("tensorflow-directml-1.15.4.dev201216", None, "3_0"),
        ("tensorflow-directml-1.15.5.dev210422", None, "3_1"),
        ("onnxruntime-directml-1.9.0", "1.5.1", "3_1"),
        ("tensorflow-directml-1.15.5", None, "4_1"),
        ("onnxruntime-directml-1.10.0", "1.8.0", "5_0"),
        ("tensorflow-directml-1.15.8", None, "5_0"),
        ("onnxruntime-directml-1.14.1", "1.10.1", "5_2"),
        ("torch-directml-0.2.0.dev230426", None, "5_2"),
        ("onnxruntime-directml-1.15.1", "1.12.0", "6_1"),
        ("torch-directml-0.2.5.dev240914", None, "6_2"),
        ("onnxruntime-directml-1.17.3", "1.13.1", "6_2"),
        ("onnxruntime-directml-1.19.2", "1.15.1", "6_4"),
        ("onnxruntime-directml-1.24.4", "1.15.4", "6_4"),
    ]
    assert [r.invalid_argument for r in dml.releases()] == [0x80000003] * 3 + [0x80070057] * 11


@pytest.mark.parametrize("release", dml.releases(), ids=lambda r: r.name)
def test_every_release_is_found_by_its_names(release):
    assert find_release(release.name) is release
    assert find_release(release) is release
    if release.directml:
        assert find_release(f" {release.directml} ") is release


def test_other_spellings():
    same = find_release("torch-directml-0.2.5.dev240914")
    assert find_release("torch-directml-0.2.1.dev240521") is same
    assert find_release("Torch-DirectML 0.2.5.dev240914") is same


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("1.8.1", "1.8.0"),
        ("1.9.0", "1.8.0"),
        ("1.14.0", "1.13.1"),
        ("1.15", "1.15.4"),
        ("2.0", "1.15.4"),
        ("0.9", "1.5.1"),
        ("torch-directml-0.2.4", "torch-directml-0.2.0.dev230426"),
        ("torch-directml-0.2.5", "torch-directml-0.2.5.dev240914"),
        ("tensorflow-directml-1.15.7", "tensorflow-directml-1.15.5"),
        ("banana", "1.15.4"),
    ],
)
def test_the_nearest_release_is_offered(name, nearest):
    with pytest.raises(
        ValueError, match=f"unknown DirectML release '{name}'; the nearest is '{nearest}'; known: .*1.15.4"
    ):
        dml.validate(dml.SplitOperatorDesc(None, None, 0), directml=name)


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


def test_a_null_input_of_no_outputs_is_read_by_the_windows_builds_only():
    d = dml.SplitOperatorDesc(None, [], 0)
    codes = {release.platform: set() for release in dml.releases()}
    for release in dml.releases():
        codes[release.platform].add(dml.validate(d, directml=release).hresult)
    assert codes == {"windows": {None}, "linux": {0x80000003, 0x80070057}}
