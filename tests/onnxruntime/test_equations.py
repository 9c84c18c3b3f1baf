"""Einsums: their equation decides whether DirectML or the CPU computes them. Observed with five versions."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed, where

BOTH, NEWER, CPU = ("DML", "DML"), ("CPU", "DML"), ("CPU", "CPU")
EQUATIONS = {
    "ij,jk->ik": BOTH,
    "ij , kj -> ik": BOTH,
    "ji,jk->ik": BOTH,
    "bhid,bhjd->bhij": BOTH,
    "bind,bjnd->binj": BOTH,
    "aibj,ajbk->aibk": BOTH,
    "bind,bjnd->bnij": NEWER,
    "bsd,de->bse": NEWER,
    "i,j->ij": BOTH,
    "i,i->": BOTH,
    "ij,ij->ij": BOTH,
    "ij,ij->i": NEWER,
    "ij,j->i": NEWER,
    "ij->ji": BOTH,
    "ij": BOTH,
    "ji": BOTH,
    "ij,jk": BOTH,
    "ijk->": BOTH,
    "ij->j": BOTH,
    "bij->bi": NEWER,
    "ii->i": NEWER,
    "ij,jk,kl->il": CPU,
    "...ij,...jk->...ik": CPU,
    "i,i,i->i": CPU,
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_where_an_einsum_runs(equation):
    terms = equation.replace(" ", "").partition("->")[0].replace("...", "z").split(",")
    read = [f"float[{','.join('3' * len(term))}] x{i}" for i, term in enumerate(terms)]
    node = f'Einsum<equation = "{equation}">({", ".join(f"x{i}" for i in range(len(terms)))})'
    text = f"({', '.join(read)}) => (float y) {{ y = {node} }}"
    found = [where(placed(text, version, opset=12))["y"] for version in ("1.18.0", "1.24.4")]
    assert tuple(found) == EQUATIONS[equation]
