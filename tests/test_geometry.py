"""The geometry of operators: a Split and a Join are one value but for the side that the parts are on.

Plan: roles (sides, order, back); members (null pointers, counts beside the array's length, back to the descriptor);
layouts (what DimensionCount reads, byte strides, extent); geometry (inputs and outputs, one part alone, the plan);
100,000 parts.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlsplit as dml
from dmlsplit.descriptors.geometry import ROLES, Geometry, TensorLayout, descriptor_of, dimensions_read, members_of
from dmlsplit.descriptors.location import DIRECTML_MEMBERS
from dmlsplit.native import core
from dmlsplit.native.plans import plan_of

SPLIT, JOIN = dml.OperatorType.SPLIT, dml.OperatorType.JOIN
F32, UINT4 = dml.TensorDataType.FLOAT32, dml.TensorDataType.UINT4
KINDS = pytest.mark.parametrize("kind", [SPLIT, JOIN], ids=["split", "join"])


def tensor(*sizes, **members):
    return dml.BufferTensorDesc(members.pop("data_type", F32), sizes, **members)


def made(kind, whole, parts, axis=0, count=None):
    return descriptor_of(kind, whole, parts, count, axis)


def layout(*sizes, **members):
    return TensorLayout.of(("InputTensor",), tensor(*sizes, **members), False)


# Roles


def test_the_roles_are_members_of_the_structs():
    for roles in ROLES.values():
        assert {roles.whole, roles.parts, roles.part_count} <= set(DIRECTML_MEMBERS)
        assert roles.whole.startswith(roles.whole_side.capitalize())
        assert roles.parts.startswith(roles.part_side.capitalize())


@pytest.mark.parametrize(
    ("kind", "sides", "order"), [(SPLIT, ("w", "p"), ["w", 1, 2]), (JOIN, ("p", "w"), [1, 2, "w"])]
)
def test_inputs_come_before_outputs(kind, sides, order):
    roles = ROLES[kind]
    assert roles.sides("w", "p") == sides
    assert roles.sides(*sides) == ("w", "p")
    assert roles.in_order("w", [1, 2]) == order
    assert roles.whole_and_parts(order) == ("w", [1, 2])


@KINDS
def test_an_operator_without_parts_has_the_whole_alone(kind):
    assert ROLES[kind].in_order("w", []) == ["w"]
    assert ROLES[kind].whole_and_parts(["w"]) == ("w", [])


# Members


@KINDS
def test_members_are_there_whatever_is_wrong(kind):
    members = members_of(made(kind, None, None, axis=7, count=3))
    assert members == (kind, None, None, 3, 7)
    assert members.parts == ()


@KINDS
@pytest.mark.parametrize(("count", "covered"), [(0, 0), (1, 1), (2, 2), (3, 2)], ids=["none", "less", "all", "more"])
def test_the_count_covers_the_first_parts(kind, count, covered):
    members = members_of(made(kind, tensor(2), [tensor(1), None], count=count))
    assert len(members.array) == 2
    assert members.parts == members.array[:covered]


@KINDS
@pytest.mark.parametrize(
    "array", [None, (), (None,), (tensor(1), tensor(1))], ids=["null", "empty", "null part", "two"]
)
@pytest.mark.parametrize("count", [0, 2])
def test_a_descriptor_is_made_of_its_members(kind, array, count):
    desc = made(kind, tensor(2), array, axis=1, count=count)
    assert descriptor_of(*members_of(desc)) == desc


@KINDS
def test_a_count_left_out_is_the_length_of_the_array(kind):
    assert members_of(made(kind, None, [None, None])).part_count == 2
    assert members_of(made(kind, None, None)).part_count == 0


@pytest.mark.parametrize("value", [None, tensor(1), "split"], ids=["None", "tensor", "text"])
def test_what_is_no_descriptor_has_no_members(value):
    with pytest.raises(TypeError, match="is not a SplitOperatorDesc or JoinOperatorDesc"):
        members_of(value)


# Layouts


@pytest.mark.parametrize(
    ("count", "read"), [(1, ((4,), (9,))), (2, ((4, 5), (9, 1))), (3, ((4, 5), (9, 1)))], ids=["less", "all", "more"]
)
def test_dimension_count_ends_sizes_and_strides(count, read):
    assert dimensions_read(tensor(4, 5, strides=(9, 1), dimension_count=count)) == read


def test_null_pointers_to_sizes_and_strides_are_read_as_such():
    assert dimensions_read(dml.BufferTensorDesc(F32, None)) == (None, None)
    assert layout(4).strides is None


def test_a_layout_has_the_members_of_its_tensor():
    owned = dml.TensorFlags.OWNED_BY_DML
    desc = tensor(
        4, 5, strides=(9, 1), flags=owned, total_tensor_size_in_bytes=999, guaranteed_base_offset_alignment=64
    )
    expected = (("OutputTensors", 3), True, F32, (4, 5), (9, 1), 999, owned, 64)
    assert TensorLayout.of(("OutputTensors", 3), desc, True) == expected
    assert TensorLayout.of(("OutputTensors", 3), desc, True).name == "OutputTensors[3]"


def test_a_total_that_no_uint64_holds_is_0():
    assert layout(2**32 - 1, 2**32 - 1).total == 0


@pytest.mark.parametrize(("sizes", "empty"), [((1, 1), False), ((2, 0), True)])
def test_a_tensor_of_a_size_0_is_empty(sizes, empty):
    assert layout(*sizes).is_empty is empty


@pytest.mark.parametrize(
    ("tensor", "strides", "extent"),
    [
        (layout(2, 3), (12, 4), 6),
        (layout(2, 3, strides=(5, 1)), (20, 4), 8),
        (layout(2, 3, strides=(0, 2)), (0, 8), 5),
        (layout(1, 3, strides=(99, 1)), (12, 4), 3),
        (layout(2, 3, data_type=dml.TensorDataType.UINT8), (3, 1), 6),
        (layout(2, 3, data_type=dml.TensorDataType.INT64), (24, 8), 6),
    ],
    ids=["packed", "padded", "broadcast", "size 1", "1 byte", "8 bytes"],
)
def test_strides_in_bytes_and_extent_in_elements(tensor, strides, extent):
    assert (tensor.byte_strides, tensor.extent) == (strides, extent)


def test_elements_of_half_a_byte_have_bits():
    assert layout(3, data_type=UINT4).bits == 4


# Geometry


@KINDS
def test_inputs_and_outputs(kind):
    geometry = Geometry.of(made(kind, tensor(5, 2), [tensor(2, 2), tensor(3, 2), None], count=2))
    names = [t.name for t in geometry.tensors]
    assert [t.name for t in (*geometry.inputs, *geometry.outputs)] == names
    assert (
        names
        == {
            SPLIT: ["InputTensor", "OutputTensors[0]", "OutputTensors[1]"],
            JOIN: ["InputTensors[0]", "InputTensors[1]", "OutputTensor"],
        }[kind]
    )
    assert [t.is_output for t in geometry.tensors] == [t in geometry.outputs for t in geometry.tensors]
    assert (geometry.kind, geometry.axis, geometry.lengths) == (kind, 0, (2, 3))


@KINDS
@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        (None, [tensor(1)]),
        (tensor(1), [None]),
        (tensor(1), [dml.TensorDesc(1, None)]),
        (tensor(1), [dml.BufferTensorDesc(F32, None)]),
    ],
    ids=["whole", "part", "Desc", "Sizes"],
)
def test_null_pointers_have_no_geometry(kind, whole, parts):
    with pytest.raises(AssertionError):
        Geometry.of(made(kind, whole, parts))


@KINDS
def test_geometries_are_values(kind):
    geometry = Geometry.of(made(kind, tensor(3), [tensor(1), tensor(2)]))
    assert geometry == Geometry.of(made(kind, tensor(3), [tensor(1), tensor(2)]))
    assert hash(geometry) == hash(Geometry.of(made(kind, tensor(3), [tensor(1), tensor(2)])))
    assert geometry != Geometry.of(made(kind, tensor(3), [tensor(2), tensor(1)]))


@KINDS
@pytest.mark.parametrize("strides", [None, (7, 1)], ids=["packed", "padded"])
def test_of_one_part_the_whole_keeps_its_strides(kind, strides):
    geometry = Geometry.of(made(kind, tensor(5, 6, strides=strides), [tensor(5, 2), tensor(5, 4)], axis=1))
    alone = geometry.of_part(1)
    assert (alone.whole.sizes, alone.whole.strides) == ((5, 4), strides or (6, 1))
    assert (alone.kind, alone.axis, alone.parts) == (kind, 1, geometry.parts[1:])


@st.composite
def cuts(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axis = draw(st.integers(0, len(sizes) - 1))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    sizes[axis] = sum(lengths)
    return draw(st.sampled_from([SPLIT, JOIN])), tuple(sizes), axis, lengths


def strided(sizes, gap):
    """Strides with so many elements between the rows."""
    strides, span = [], 1
    for n in reversed(sizes):
        strides.insert(0, span)
        span = span * n + gap
    return strides


@given(cuts(), st.integers(0, 2), st.integers(0, 2))
def test_a_plan_touches_what_the_layouts_reach(cut, whole_gap, part_gap):
    kind, sizes, axis, lengths = cut
    shapes = [(*sizes[:axis], n, *sizes[axis + 1 :]) for n in lengths]
    parts = [tensor(*shape, strides=strided(shape, part_gap)) for shape in shapes]
    geometry = Geometry.of(made(kind, tensor(*sizes, strides=strided(sizes, whole_gap)), parts, axis))
    plan = plan_of(geometry)
    assert plan.direction == (core.SPLIT if kind is SPLIT else core.JOIN)
    assert plan.whole_range == (0, geometry.whole.extent * 4)
    assert [plan.part_range(i) for i in range(len(parts))] == [(0, part.extent * 4) for part in geometry.parts]
    for i, part in enumerate(geometry.parts):
        alone = plan_of(geometry.of_part(i))
        assert (alone.part_count, alone.part_range(0)) == (1, (0, part.extent * 4))


def test_a_plan_of_arrays_takes_their_strides():
    geometry = Geometry.of(made(SPLIT, tensor(3), [tensor(1), tensor(2)]))
    plan = plan_of(geometry, (-8,), ((4,), (12,)))
    assert plan.whole_range == (-16, 4)
    assert plan.part_range(1) == (0, 16)


@KINDS
def test_each_of_many_parts_is_taken_apart_once(kind, monkeypatch):
    taken = []
    of = TensorLayout.of.__func__
    monkeypatch.setattr(TensorLayout, "of", classmethod(lambda cls, *a: (taken.append(a[0]), of(cls, *a))[1]))
    count = 100_000
    geometry = Geometry.of(made(kind, tensor(count), [tensor(1)] * count))
    assert len(taken) == count + 1
    assert len(geometry.tensors) == count + 1
    assert plan_of(geometry).part_count == count
    assert len(taken) == count + 1
