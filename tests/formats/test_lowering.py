"""Nodes as DirectML operators: the framework's types and shapes go in and come out, whatever carries them."""

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit.descriptors.diagnostics import ValidationError
from dmlsplit.formats.element_types import ELEMENT_TYPES
from dmlsplit.system.errors import BindingError
from tests.formats.split_nodes import split_node

HELD = [e.name for e in ELEMENT_TYPES.values() if e.data_type is not None]


def random_array(shape, dtype):
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def expected(array, axis, lengths):
    raw = array.copy().view(f"V{array.dtype.itemsize}")
    return [piece.tobytes() for piece in np.split(raw, np.cumsum(lengths)[:-1], axis)]


@pytest.mark.parametrize("element", HELD)
@pytest.mark.parametrize("level", ["1_0", "3_0", "6_4"])
def test_any_type_keeps_its_bits(element, level):
    made = split_node((2, 24), 1, (4, 8, 12), element)
    found = made.legalize(level)
    assert found.ok
    assert all(dml.validate(operator, feature_level=level).ok for operator in found.operators)
    array = random_array((2, 24), made.element.dtype())
    parts = found.execute(array)
    assert [(part.dtype, part.shape) for part in parts] == [(array.dtype, shape) for shape in made.output_shapes]
    assert [part.tobytes() for part in parts] == expected(array, 1, (4, 8, 12))
    out = [np.zeros(shape, array.dtype) for shape in made.output_shapes]
    found.dispatch(array[:, ::-1], out)
    assert [part.tobytes() for part in out] == expected(array[:, ::-1], 1, (4, 8, 12))


def test_nine_dimensions_are_folded():
    made = split_node((2, 1, 3, 1, 2, 1, 2, 1, 6), 8)
    found = made.legalize("1_0")
    array = random_array(made.input_shape, np.dtype(np.float32))
    assert [part.shape for part in found.execute(array)] == list(made.output_shapes)
    assert [part.tobytes() for part in found.execute(array)] == expected(array, 8, (1, 2, 3))


@pytest.mark.parametrize("element", ["complex64", "complex128"])
def test_empty_outputs_of_several_elements_each(element):
    for shape, axis, lengths in (((2, 6), 1, (0, 6, 0)), ((6, 2), 0, (6, 0)), ((0, 2), 0, (0,)), ((3,), 0, (0, 3))):
        made = split_node(shape, axis, lengths, element)
        array = random_array(shape, made.element.dtype())
        for level in ("1_0", "6_4"):
            found = made.legalize(level)
            parts = found.execute(array)
            assert [part.shape for part in parts] == list(made.output_shapes)
            assert [part.tobytes() for part in parts] == expected(array, axis, lengths)
            out = [np.zeros(shape, array.dtype) for shape in made.output_shapes]
            found.dispatch(array, out)
            assert [part.tobytes() for part in out] == expected(array, axis, lengths)


def test_empty_outputs_are_made_and_warned_of():
    found = split_node(lengths=(0, 6, 0)).legalize("1_0")
    assert found.ok
    assert [d.rule for d in found.report.diagnostics if d.severity is dml.Severity.WARNING] == ["node/empty-tensor"]
    assert all(0 not in part.sizes for d in found.operators for part in d.output_tensors)
    array = random_array((2, 6), np.dtype(np.float32))
    assert [part.shape for part in found.execute(array)] == [(2, 0), (2, 6), (2, 0)]
    nothing = split_node((0, 6)).legalize("1_0")
    assert nothing.ok
    assert nothing.operators == ()
    assert [part.shape for part in nothing.execute(np.zeros((0, 6), np.float32))] == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize("element", ["string", "int4"])
def test_what_cannot_be_lowered_says_why(element):
    found = split_node(element=element).legalize("6_4")
    assert not found.ok
    assert [d.rule for d in found.report.diagnostics] == ["node/type-not-lowered"]
    assert found.operators == ()
    with pytest.raises(ValidationError):
        found.execute(np.zeros((2, 6), np.float32))


def test_arrays_of_other_types_are_refused():
    found = split_node(element="bool").legalize("6_4")
    with pytest.raises(BindingError, match="bool is expected"):
        found.execute(np.zeros((2, 6), np.uint8))
    found = split_node(element="complex64").legalize("6_4")
    with pytest.raises(BindingError, match="C-contiguous"):
        found.dispatch(np.zeros((2, 6), np.complex64), [np.zeros((n, 2), np.complex64).T for n in (1, 2, 3)])


def test_targets_are_named_as_everywhere():
    made = split_node(element="int64")
    assert made.legalize(directml="1.8.0").steps == ()
    assert made.legalize("2_1").steps
    with pytest.raises(ValueError, match="exclude"):
        made.legalize("2_1", directml="1.8.0")
