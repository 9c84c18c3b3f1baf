"""The boundary to the C core."""

import subprocess
import sys

import pytest

import dmlsplit as dml
from dmlsplit import _native


def test_versions_agree():
    assert _native.version() == dml.__version__


def test_kernels():
    kernels = _native.kernels()
    assert kernels[-1].name == "scalar"
    assert kernels[-1].available
    assert all(kernel.isa for kernel in kernels)


# Sizes, strides, axis and lengths of bytes that one family of kernels was made for.
FORMS = {
    "rows": ([4, 4096], None, 1, [2048, 2048]),
    "runs": ([4, 1000], [1200, 1], 0, [2, 2]),
    "channels": ([4096, 3], None, 1, [1, 1, 1]),
    "shuffle": ([4096, 3], None, 1, [1, 2]),
    "columns": ([64, 80], None, 1, [1] * 80),
    "transpose": ([64, 64], [1, 64], 0, [32, 32]),
    "planes": ([400, 3], [1, 400], 0, [200, 200]),
    "fill": ([64, 64], [1, 0], 0, [32, 32]),
    "memcpy": ([4096], None, 0, [2048, 2048]),
    "scalar": ([4096], None, 0, [2048, 2048]),
}


@pytest.mark.parametrize("kernel", _native.kernels(), ids=lambda k: k.name)
def test_a_kernel_can_be_forced(kernel):
    if not kernel.available:
        pytest.skip(f"this CPU lacks {kernel.isa}")
    sizes, strides, axis, lengths = FORMS[kernel.name.partition("_")[0]]
    plan = _native.Plan(_native.SPLIT, 1, sizes, strides, axis, lengths, None, kernel=kernel.name)
    assert f"kernel {kernel.name}\n" in plan.describe()


def test_refusals_name_the_part():
    with pytest.raises(dml.NativeError, match=r"parts\[1\]") as caught:
        _native.Plan(_native.SPLIT, 4, [4], None, 0, [2, 2], [4, 0])
    assert caught.value.status
    with pytest.raises(dml.NativeError, match="kernel"):
        _native.Plan(_native.SPLIT, 4, [4], None, 0, [4], None, kernel="none such")


def test_ranges():
    plan = _native.Plan(_native.SPLIT, 4, [2, 3], [-12, 4], 1, [1, 2], None)
    assert plan.whole_range == (-12, 12)
    assert [plan.part_range(i) for i in range(2)] == [(0, 8), (0, 16)]
    with pytest.raises(dml.NativeError):
        plan.part_range(2)


def test_validation_works_without_the_extension():
    code = """
import sys
sys.modules["dmlsplit._ffi"] = None
import dmlsplit as dml
x = dml.BufferTensorDesc(1, (1, 1, 6, 2))
d = dml.SplitOperatorDesc.from_lengths(x, 2, (2, 1, 3))
assert dml.validate(d).ok
try:
    dml.compile(d)
except dml.NativeError as error:
    assert "extension" in str(error)
else:
    sys.exit("compiled without the extension")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_stays_light():
    """Neither numpy nor the extension is loaded until something is executed."""
    code = """
import sys
import dmlsplit
heavy = {"numpy", "dmlsplit._ffi", "click", "rich", "onnx"} & set(sys.modules)
assert not heavy, heavy
assert {"split", "compile", "loads", "__version__"} <= set(dir(dmlsplit))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dml.nothing
