"""Vectors of scales that a kernel does not take. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from dmlsplit.targets.runtime_versions import find_runtime
from tests.onnxruntime.placements import placed

VERSIONS = ["1.18.0", "1.20.1", "1.24.4", "1.30.0"]


def scaling(name, count):
    """A scale and a zero point, or vectors of so many; 0: scalars."""
    if not count:
        return f"float {name}s = {{0.5}}, uint8 {name}z = {{0}}"
    scales, zeros = (",".join([each] * count) for each in ("0.5", "0"))
    return f"float[{count}] {name}s = {{{scales}}}, uint8[{count}] {name}z = {{{zeros}}}"


@pytest.mark.parametrize(
    ("opset", "sizes", "axis", "failing"),
    [
        (10, "4", None, []),
        (13, "4", None, VERSIONS),
        (13, "4", 0, []),
        (13, "4", -1, []),
        (13, "4", -2, VERSIONS),
        (13, "", 0, VERSIONS),
        (19, "4", None, VERSIONS),
        (19, "1", None, []),
        (19, "1,4", None, []),
        (19, "N", None, []),
        (21, "4", None, ["1.30.0"]),
        (21, "4", 0, []),
    ],
)
@pytest.mark.parametrize("op", ["DequantizeLinear", "QuantizeLinear"])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_axis_that_the_tensor_does_not_have(op, opset, sizes, axis, failing, version):
    """A vector of one scale is along an axis, too; a tensor of its size has no need of one."""
    kinds = ("uint8", "float") if op == "DequantizeLinear" else ("float", "uint8")
    given, result = (f"{kind}[{sizes}]" if sizes else kind for kind in kinds)
    along = "" if axis is None else f"<axis={axis}>"
    found = placed(f"({given} x) => ({result} y) <{scaling('', 1)}> {{ y = {op}{along}(x, s, z) }}", version, opset)
    assert found.created is (version not in failing)
    if not found.created:
        assert "has a vector of scales along axis" in found.failure.message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_quantization_that_is_moved_keeps_its_axis(version):
    """In 1.18 it has the default one, which what is squeezed does not have."""
    text = f"(uint8[1,4] x) => (float[4] y) <{scaling('', 1)}, int64[1] k = {{0}}>"
    found = placed(f"{text} {{ d = DequantizeLinear<axis=0>(x, s, z) t = Squeeze(d, k) y = Relu(t) }}", version)
    assert found.created is (version != "1.18.0")


FIRST_SIGMOID = "1.21.0"
PRODUCTS = [("2,6", 0, True), ("2,6", 1, True), ("2,6", 2, True), ("2,6", 6, False), ("3,2,6", 3, False)]
FACTORS = [(0, True), (1, True), (4, True), (6, False)]


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize("behind", [True, False], ids=["quantized", "of floats"])
@pytest.mark.parametrize(
    ("left", "a", "b", "c", "created"),
    [
        *[(left, count, 0, 0, created) for left, count, created in PRODUCTS],
        *[("2,6", 0, count, 0, created) for count, created in FACTORS],
        *[("2,6", 0, 0, count, created) for count, created in ((1, True), (2, True), (4, False))],
    ],
)
def test_products(left, a, b, c, created, behind, version):
    """They take scales of the rows of the first factor and of the result, and of the columns of the second."""
    last = f"t = MatMul(d, e) y = QuantizeLinear<axis={int(c == 4)}>(t, cs, cz)" if behind else "y = MatMul(d, e)"
    kind, sizes = "uint8" if behind else "float", left.split(",")
    axis = sizes.index(str(a)) if str(a) in sizes else 0
    found = placed(
        f"""(uint8[{left}] x, uint8[6,4] w) => ({kind}[{",".join("?" * len(sizes))}] y)
            <{scaling("a", a)}, {scaling("b", b)}, {scaling("c", c)}> {{ d = DequantizeLinear<axis={axis}>(x, as, az)
            e = DequantizeLinear<axis={int(b == 4)}>(w, bs, bz) {last} }}""",
        version,
    )
    assert found.created is (created or (c > 0 and not behind))
    if not found.created:
        assert "whatever their axis" in found.failure.message


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("x", "w", "y", "created"),
    [(1, 0, 0, True), (3, 0, 0, False), (0, 4, 0, True), (0, 3, 0, False), (0, 0, 1, True), (0, 0, 4, False)],
)
@pytest.mark.parametrize("bias", [True, False])
def test_convolutions(x, w, y, bias, created, version):
    """They take scales of the channels that they compute. 1.30 computes them in floating point where it does not find
    the scale of the bias to be the product of the others."""
    read, more = ("d, e, f", " f = DequantizeLinear(b, ss, sz)") if bias else ("d, e", "")
    found = placed(
        f"""(uint8[1,3,6,6] x) => (uint8[1,4,6,6] y) <{scaling("x", x)}, {scaling("w", w)}, {scaling("y", y)},
            float ss = {{0.25}}, int32 sz = {{0}}, int32[4] b = {{1,2,3,4}},
            uint8[4,3,1,1] k = {{1,2,3,4,5,6,7,8,9,1,2,3}}>
            {{ d = DequantizeLinear(x, xs, xz) e = DequantizeLinear<axis={int(w == 3)}>(k, ws, wz){more}
               t = Conv({read}) y = QuantizeLinear(t, ys, yz) }}""",
        version,
    )
    assert found.created is (created or (bias and x > 1 and version == "1.30.0"))


@pytest.mark.parametrize("version", ["1.20.1", "1.22.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("op", "sizes", "axis", "x", "y", "created"),
    [
        ("Sigmoid", "4", 0, 1, 0, False),
        ("Sigmoid", "4", 0, 0, 1, False),
        ("Sigmoid", "4", 0, 4, 4, True),
        ("Sigmoid", "1,4", 0, 1, 1, True),
        ("Sigmoid", "1,4", 1, 4, 0, False),
        ("Sigmoid", "2,3,4", 0, 2, 0, True),
        ("Sigmoid", "2,3,4", 1, 3, 0, False),
        ("GlobalAveragePool", "2,3,4", 0, 1, 0, True),
        ("GlobalAveragePool", "2,3,4", 1, 3, 0, False),
        ("GlobalAveragePool", "2,3,4", 2, 4, 0, True),
        ("GlobalAveragePool", "2,3,4", 1, 0, 3, True),
    ],
)
def test_others(op, sizes, axis, x, y, created, version):
    result = sizes if op == "Sigmoid" else "2,3,1"
    found = placed(
        f"""(uint8[{sizes}] x) => (uint8[{result}] y) <{scaling("x", x)}, {scaling("y", y)}> {{
            d = DequantizeLinear<axis={axis}>(x, xs, xz) t = {op}(d) y = QuantizeLinear<axis={axis}>(t, ys, yz) }}""",
        version,
    )
    assert found.created is (created or find_runtime(version).key < find_runtime(FIRST_SIGMOID).key)


@pytest.mark.parametrize(
    ("version", "opset", "created"),
    [("1.18.0", 21, True), ("1.20.1", 20, True), ("1.20.1", 21, False), ("1.22.0", 21, True)],
)
def test_a_pair_between_an_input_and_an_output_becomes_an_identity(version, opset, created):
    """It is on the provider of the DequantizeLinear; 1.20.1 has no kernel for it on DirectML. Observed with these."""
    found = placed(
        f"""(uint8[2,3] x) => (uint8[2,3] y) <{scaling("", 0)}> {{
            d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z)
        }}""",
        version,
        opset,
    )
    assert found.created is created
    assert (found.failure is None) is created


WIDENING = ["1.23.2", "1.24.4"]


@pytest.mark.parametrize("dims", ["", "[1]"])
@pytest.mark.parametrize(("second", "merged"), [("0.5", False), ("0.25", True)])
@pytest.mark.parametrize("version", ["1.22.0", *WIDENING, "1.30.0"])
def test_a_scale_that_is_created_for_two_pairs(dims, second, merged, version):
    """It has a dimension more in two versions: a scalar becomes a vector, for which the tensor lacks the axis; a vector
    becomes a matrix, which has none."""
    scales = f"float{dims} s = {{0.5}}, float{dims} t = {{{second}}}, uint8{dims} z = {{0}}"
    found = placed(
        f"""(float[2] x) => (float[2] y) <{scales}> {{
            a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z)
            c = QuantizeLinear(b, t, z) y = DequantizeLinear(c, t, z)
        }}""",
        version,
        13,
    )
    assert found.created is (bool(dims) is (merged and version in WIDENING))


@pytest.mark.parametrize(
    ("body", "created"),
    [
        (
            "d = DequantizeLinear(x, s, z) e = DequantizeLinear(w, s, z) m = MatMul(d, e) y = QuantizeLinear(m, s, z)",
            True,
        ),
        ("d = DequantizeLinear(x, s, z) e = Add(d, d) y = QuantizeLinear(e, s, z)", True),
        ("d = DequantizeLinear(x, s, z) e = Transpose(d) y = QuantizeLinear(e, s, z)", True),
        ("d = DequantizeLinear(x, s, z) e = Relu(d) y = QuantizeLinear(e, s, z)", False),
        ("d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z)", False),
    ],
    ids=["a product", "a sum", "a node that moves elements", "others", "a pair"],
)
@pytest.mark.parametrize("version", ["1.23.2", "1.24.4"])
def test_quantizations_without_a_kernel_that_passes_remove(body, created, version):
    """1.23.2 has no QuantizeLinear of opset 23. Asked of both versions."""
    weights = f"uint8[2,2] w = {{1,1,1,1}}, {scaling('', 0)}"
    found = placed(f"(uint8[2,2] x) => (uint8[?,?] y) <{weights}> {{ {body} }}", version, 23)
    assert found.created is (created or version == "1.24.4")
