"""The pass dmlsplit.onnxruntime.passes.matmul_bn_fusion."""

from __future__ import annotations

import pytest

from dmlsplit.onnxruntime.passes.matmul_bn_fusion import matmul_bn_fusion
from dmlsplit.targets.runtime_versions import find_runtime
from tests.models import text
from tests.onnxruntime.passes import after
from tests.onnxruntime.whole_models import predicted

HEAD = (
    "(float[n,2] x, float[n,2,2] x3, float[2] r) => (float[?,?] o) <float[2,2] w = {1,2,3,4}, float[2] s = {1,2}, "
    "float[1] one = {1}, int64[3] k = {2,2,1}, int64[3] j = {-1,1,2}>"
)
NORMALIZED = "BatchNormalization(m, s, s, s, s)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"m = MatMul(x, w) o = {NORMALIZED}", ["o = Gemm(x,w,s)"]),
        (
            "m = MatMul(x, w) a = Reshape(m, k) b = Transpose<perm=[0,1,2]>(a) o = BatchNormalization(b, s, s, s, s)",
            ["m = Gemm(x,w,s)", "a = Reshape(m,k)", "o = Transpose(a)"],
        ),
        (f"m = MatMul(x3, w) o = {NORMALIZED}", ["m = MatMul(x3,w)", "o = BatchNormalization(m,s,s,s,s)"]),
        (f"m = MatMul(x, x) o = {NORMALIZED}", ["m = MatMul(x,x)", "o = BatchNormalization(m,s,s,s,s)"]),
        (
            "m = MatMul(x, w) o = BatchNormalization(m, r, s, s, s)",
            ["m = MatMul(x,w)", "o = BatchNormalization(m,r,s,s,s)"],
        ),
        (
            "m = MatMul(x, w) a = Reshape(m, j) o = BatchNormalization(a, one, one, one, one)",
            ["m = MatMul(x,w)", "a = Reshape(m,j)", "o = BatchNormalization(a,one,one,one,one)"],
        ),
        (
            "m = MatMul(x, w) a = Relu(m) o = BatchNormalization(a, s, s, s, s)",
            ["m = MatMul(x,w)", "a = Relu(m)", "o = BatchNormalization(a,s,s,s,s)"],
        ),
        (
            f"m = MatMul(x, w) a = {NORMALIZED} o = Add(a, m)",
            ["m = MatMul(x,w)", "a = BatchNormalization(m,s,s,s,s)", "o = Add(a,m)"],
        ),
    ],
    ids=[
        "alone",
        "moved between",
        "no matrix",
        "no weights",
        "no constant",
        "other columns",
        "a Relu",
        "another reader",
    ],
)
def test_a_gemm_is_made(body, expected):
    assert after(matmul_bn_fusion, f"{HEAD} {{ {body} }}") == expected


@pytest.mark.parametrize(("version", "operator"), [("1.24.4", "MatMul"), ("1.30.0", "Gemm")])
def test_new_operators_between(version, operator):
    body = "m = MatMul(x, w) a = Reshape(m, k) o = BatchNormalization(a, s, s, s, s)"
    assert after(matmul_bn_fusion, f"{HEAD} {{ {body} }}", 21, version)[0].startswith(f"m = {operator}(")


@pytest.mark.parametrize(
    ("version", "product", "fault"),
    [
        ("1.20.1", "MatMul(x3, w)", "the first factor has 3 dimensions"),
        ("1.22.0", "MatMul(x3, w)", None),
        ("1.20.1", "MatMul(x, w)", None),
    ],
)
def test_a_factor_that_is_no_matrix(version, product, fault):
    """As ONNX Runtime fails, asked live."""
    sizes = "n,?,?" if "x3" in product else "n,2"
    model = text(f"{HEAD.replace('?,?', sizes)} {{ m = {product} o = {NORMALIZED} }}")
    found = predicted(model, find_runtime(version))
    assert found.created is (fault is None)
    assert fault is None or fault in found.failure.message


def test_weights_of_another_type():
    body = (
        "(float16[n,2] x) => (float16[n,2] o) <float16[2,2] w = {1,2,3,4}, float[2] s = {1,2}> "
        f"{{ m = MatMul(x, w) o = {NORMALIZED} }}"
    )
    found = predicted(text(body), find_runtime("1.30.0"))
    assert (found.created, "the weights are FLOAT16, and the vectors FLOAT" in found.failure.message) == (False, True)
