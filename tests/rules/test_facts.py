"""What rules take for a fact, value by value: their examples in the registry have one each."""

from dataclasses import replace

import pytest

from dmlsplit.descriptors.dims import interval
from dmlsplit.rules import RULES, judge_node
from dmlsplit.rules.onnx.form import GIVEN
from tests.rules.judging import node_ids

onnx = pytest.importorskip("onnx")

SPLIT = RULES["openvino/axis-out-of-range"].bad
LENGTHS = RULES["openvino/lengths-misread"].good
ONNX_SPLIT = RULES["onnx/not-divisible"].good


@pytest.mark.parametrize("op", ["Split", "Concat"])
def test_the_versions_of_an_operator_are_those_of_the_specification(op):
    from dmlsplit.rules.onnx import VERSIONS, concat_facts

    versions = VERSIONS if op == "Split" else concat_facts.VERSIONS
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""]
    assert sorted(s.since_version for s in schemas if s.since_version <= versions[-1]) == list(versions)


def test_the_element_types_of_a_concat_are_those_of_the_specification():
    from dmlsplit.rules.onnx.concat_facts import DATA_TYPES

    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.name == "Concat" and schema.domain == "" and schema.since_version in DATA_TYPES:
            [types] = [each.allowed_type_strs for each in schema.type_constraints if each.type_param_str == "T"]
            named = {each.removeprefix("tensor(").removesuffix(")").upper() for each in types}
            assert named == set(DATA_TYPES[schema.since_version]), schema.since_version
    assert sorted(DATA_TYPES) == [1, 4, 11, 13]


def test_the_sizes_of_parts_follow_from_those_of_the_whole():
    split = replace(ONNX_SPLIT, input_shape=(4, 6), axis=1, outputs=3)
    assert split.parts_shapes == ((4, 2),) * 3
    assert [len(replace(split, input_shape=shape).parts_shapes) for shape in (("N", "M"), None)] == [3, 0]
    assert replace(split, axis=99).parts_shapes == ()
    assert replace(split, version=18, num_outputs=0).parts_shapes == ()
    counted = RULES["openvino/num-splits-missing"].good
    for size, part in ((12, 4), (13, None), ("6..11", "2..3"), ("6..", "2.."), ("..11", "..3"), (None, None)):
        low, _, high = size.partition("..") if isinstance(size, str) else ("", "", "")
        dim = interval(int(low or 0), int(high) if high else None) if isinstance(size, str) else size
        assert replace(counted, data_shape=(6, dim, 10, 24)).lengths == (part,) * 3, size


def test_given_lengths_that_are_not_numbers_are_open():
    """By their names where each output has one; lengths that are known, or none at all, are not."""
    known = GIVEN
    open_ = replace(known, split_values=None)
    for dims, names in (
        (None, ["split[0]", "split[1]"]),
        (("a", 4), ["a", 4]),
        (("a", 4, 5), ["split[0]", "split[1]"]),
    ):
        lengths = replace(open_, split_dims=dims).open_lengths
        assert [getattr(length, "name", length) for length in lengths] == names
        assert replace(open_, split_dims=dims).parts == lengths
    for node in (known, replace(open_, split_malformed="text"), replace(open_, split_input=False)):
        assert node.open_lengths is None


@pytest.mark.parametrize(
    "of", ["u1", "u2", "u3", "i4", "u4", "u6", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
)
def test_lengths_below_8_bits_are_misread(of):
    expected = {"openvino/lengths-misread"} if int(of[1:]) < 8 else set()
    assert node_ids(replace(LENGTHS, axis_type=of, split_lengths_type=of)) == expected


def test_an_axis_that_is_wrong_by_itself_is_not_held_against_the_data():
    assert node_ids(replace(SPLIT, axis_type="f32")) == {"openvino/axis-type"}
    declared = ((6, 4, 10),) * 3
    assert node_ids(replace(SPLIT, declared_shapes=declared)) == {"openvino/axis-out-of-range"}
    assert node_ids(replace(SPLIT, axis=1, declared_shapes=declared)) == {"openvino/output-shape"}


def test_an_axis_counts_from_0_where_the_rank_is_unknown():
    unknown = replace(ONNX_SPLIT, input_shape=None)
    assert [replace(unknown, axis=axis).axis_index for axis in (None, 0, 1, -1)] == [0, 0, 1, None]
    assert [replace(ONNX_SPLIT, axis=axis).axis_index for axis in (None, 0, -1, 99)] == [
        0,
        0,
        len(ONNX_SPLIT.input_shape) - 1,
        None,
    ]


def test_num_outputs_counts_the_parts_from_version_18_on():
    split = RULES["onnx/last-chunk-negative"].good
    assert [replace(split, outputs=3, version=version).count for version in (13, 18)] == [3, 4]
    for version, lengths in ((13, 3), (18, 4)):
        assert len(replace(split, outputs=3, version=version, input_shape=("N", "M")).parts) == lengths


def test_of_a_concat_without_a_version_nothing_else_is_judged():
    concat = RULES["onnx/concat-types-differ"].bad
    assert node_ids(concat) == {"onnx/concat-types-differ"}
    assert node_ids(replace(concat, version=0)) == {"onnx/concat-opset-missing"}


def test_what_runtimes_do_otherwise_is_said_of_a_node_without_a_fault():
    counted = replace(RULES["onnx/last-chunk-negative"].good, input_shape=(4, 7), num_outputs=4, axis=1)
    first = replace(ONNX_SPLIT, version=1)
    concat = RULES["onnx/concat-types-differ"].good
    for node, members in (
        (counted, []),
        (replace(counted, axis=-1), ["n.num_outputs"]),
        (replace(counted, axis=-1, input_shape=(4, 8)), []),
        (replace(counted, axis=0, input_shape=(7, 4)), []),
        (first, ["n"]),
        (replace(first, version=2), []),
        (replace(first, inputs=2, split_input=True, split_type="FLOAT"), ["n", "n.split"]),
        (replace(concat, version=1), ["n"]),
        (replace(concat, version=4), []),
    ):
        assert [d.path for d in judge_node(node, "n") if d.rule == "node/runtime-differs"] == members, node
