"""dmlsplit.onnxruntime.refused_slices. Each model was asked of 1.20.1 and 1.24.4."""

from __future__ import annotations

import pytest

from tests import models
from tests.onnxruntime.placements import placed_model


def sliced(sizes, start, end, axis, step):
    given = f"int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{{axis}}}, int64[1] t = {{{step}}}"
    return models.text(f"(float[{sizes}] x) => (float[?,?] y) <{given}> {{ [n] y = Slice(x, s, e, a, t) }}", 17)


@pytest.mark.parametrize(
    ("given", "created"),
    [
        (("4,8", -4, -100, 0, -1), True),
        (("4,8", -5, -5, 0, -1), False),
        (("4,8", -5, -4, 0, -1), True),
        (("4,8", -100, 0, 0, -2), True),
        (("4,8", -(2**31), -(2**63), 0, -2), False),
        (("4,8", -5, -5, 1, -1), True),
        (("4,8", -9, -9, -1, -1), False),
        (("4,8", -5, -5, 0, 1), True),
        (("4,N", -5, -5, 0, -1), True),
    ],
)
def test_a_slice_from_before_the_first_element_backwards(given, created):
    for version in ("1.20.1", "1.24.4"):
        assert placed_model(sliced(*given), version).created is created


def test_the_failure_names_the_step():
    failure = placed_model(sliced("4,8", -5, -5, 0, -1)).failure
    assert (failure.node, failure.message) == (
        "n",
        "DirectML's kernel for n cannot be created: with the step -1 it begins at -5, before the first of 4 elements",
    )


@pytest.mark.parametrize(("axis", "created"), [(1, True), (-2, True), (2, False), (-3, False)])
def test_the_axes_of_a_slice_up_to_opset_9(axis, created):
    node = f"Slice<starts = [0], ends = [1], axes = [{axis}]>"
    assert placed_model(models.text(f"(float[4,8] x) => (float[?,?] y) {{ y = {node}(x) }}", 9)).created is created


@pytest.mark.parametrize(
    ("sizes", "given", "created"),
    [
        ("4,8", "s, e, , t", False),
        ("4,8", "s, e, s, t", True),
        ("4,8", "s, e", True),
        ("4,N", "s, e, , t", True),  # its kernel is created at the first Run
    ],
)
def test_a_slice_with_steps_and_without_axes(sizes, given, created):
    """Asked of all versions, of opsets 10, 11 and 13."""
    constants = "<int64[1] s = {0}, int64[1] e = {1}, int64[1] t = {1}>"
    found = placed_model(
        models.text(f"(float[{sizes}] x) => (float[?,?] y) {constants} {{ y = Slice(x, {given}) }}", 17)
    )
    assert found.created is created
