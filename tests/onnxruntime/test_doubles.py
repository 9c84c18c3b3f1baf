"""What passes make of nodes of DOUBLE, which the CPU computes. Each model was asked of 1.18.0, 1.22.0, 1.24.4 and
1.30.0."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed

OLD, NEW = "1.24.4", "1.30.0"
CONSTANTS = "<{t} two = {{2}}, {t} eps = {{0.01}}, {t}[2] g = {{1,1}}, {t}[2,2] k = {{1,1,1,1}}>"


def found(body, version, opset=15, kind="double"):
    head = f"({kind}[1,3,2] x, {kind}[1,3,3] u, float[3] w) => ({kind}[?] y, float[?] z)"
    return placed(f"{head} {CONSTANTS.format(t=kind)} {{ z = Relu(w) {body} }}", version, opset)


@pytest.mark.parametrize("opset", [15, 17])
@pytest.mark.parametrize("version", ["1.18.0", OLD, NEW])
def test_a_layer_normalization(version, opset):
    body = """m = ReduceMean<axes = [-1], keepdims = 1>(x) d = Sub(x, m) p = Pow(d, two)
        v = ReduceMean<axes = [-1], keepdims = 1>(p) e = Add(v, eps) s = Sqrt(e) q = Div(d, s) r = Mul(q, g)
        y = Add(r, g)"""
    assert found(body, version, opset).running == 2


@pytest.mark.parametrize(("version", "nodes"), [("1.18.0", 4), (OLD, 4), (NEW, 3)])
def test_a_factor_of_a_product(version, nodes):
    assert found("a = MatMul(x, k) b = Mul(a, two) y = Exp(b)", version).running == nodes
    assert found("a = MatMul(x, k) b = Mul(a, two) y = Exp(b)", version, kind="float").running == 3


@pytest.mark.parametrize(("version", "created"), [("1.18.0", False), (OLD, False), (NEW, True)])
def test_a_transpose_in_front_of_a_product(version, created):
    """Its FusedMatMul stays on the CPU, which has a kernel for it from 1.30 on."""
    session = found("a = Transpose<perm = [0,2,1]>(x) b = MatMul(a, u) y = Exp(b)", version)
    assert session.created is created
    if created:
        assert (session.running, session.copies) == (3, (0, 0))
    else:
        assert session.failure.message == "b becomes a FusedMatMul of DOUBLE, for which the CPU has no kernel"
