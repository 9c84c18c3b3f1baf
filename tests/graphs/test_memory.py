"""Which memory dispatches read and write, where builds of DirectML showed it by what they bind."""

from __future__ import annotations

import itertools
import math

import pytest

import dmlsplit as dml
from dmlsplit.graphs.examples import Sketch
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.operators import Family
from dmlsplit.graphs.program import Refused
from dmlsplit.graphs.traits import traits_of


def dispatches(graph, directml):
    traits = traits_of(dml.find_release(directml))
    assert traits is not None
    return compile_graph(graph, traits).dispatches


def bound(dispatch):
    """Where the bindings of a dispatch begin, its output last."""
    begins = dispatch.writes.offset if dispatch.view_offset is None else dispatch.view_offset
    reads = [(region.buffer, dispatch.binding_of(region)) for _, region in dispatch.reads]
    return [*reads, (dispatch.writes.buffer, begins)]


def in_output(graph, directml):
    """The index of the graph output that the first dispatch writes to."""
    first, *_ = dispatches(graph, directml)
    return int(first.writes.buffer.removeprefix("output "))


def test_a_product_of_three_is_computed_in_place_of_the_last():
    g = Sketch()
    x, y = g.input(1, 4, 1, 16), g.input(1, 4, 1, 16)
    swish = g("ELEMENT_WISE_MULTIPLY", g("ELEMENT_WISE_MULTIPLY", x, x), g("ACTIVATION_SIGMOID", x))
    made = dispatches(g.graph(g("ELEMENT_WISE_MULTIPLY", swish, g("ACTIVATION_RELU", y))), "1.15.4")
    assert [dispatch.writes.buffer for dispatch in made] == ["output 0", "output 0"]


@pytest.mark.parametrize("joined", ["".join(order) for order in itertools.permutations("abp")])
@pytest.mark.parametrize(("operands", "taken"), [("ab", "b"), ("ba", "a")])
def test_in_place_of_the_operand_whose_readers_are_done_last(operands, taken, joined):
    """The other parts of both Splits are joined with the product, before it or behind: that decides nothing."""
    g = Sketch()
    x = g.input(4, 4)
    parts = {name: g.split(x, 0, (2, 2)) for name in "ab"}
    product = g("ELEMENT_WISE_MULTIPLY", *(parts[name][0] for name in operands))
    ends = {"p": product, **{name: parts[name][1] for name in "ab"}}
    *_, last = dispatches(g.graph(g.join([ends[name] for name in joined], 0)), "1.13.1")
    place = last.reads[operands.index(taken)][1]
    assert (place.buffer, place.offset) == (last.writes.buffer, last.writes.offset)


@pytest.mark.parametrize("first", ["product", "part"])
def test_in_place_of_the_operand_whose_node_no_later_output_needs(first):
    """Graph outputs are followed from the last to the first, each to its end."""
    g = Sketch()
    x = g.input(4, 4)
    (a, c), (b, d) = g.split(x, 0, (2, 2)), g.split(x, 0, (2, 2))
    joined = g.join([c, g("ELEMENT_WISE_MULTIPLY", a, b)], 0)
    *_, last = dispatches(g.graph(*((joined, d) if first == "product" else (d, joined))), "1.13.1")
    taken = [place.offset == last.writes.offset and place.buffer == last.writes.buffer for _, place in last.reads]
    assert taken == ([False, True] if first == "product" else [True, False])


@pytest.mark.parametrize(
    ("batch", "others", "compiles"),
    [(2, 1, False), (1, 1, False), (2, 2, True)],
    ids=["in rows alike", "in one block", "in other rows"],
)
def test_in_place_of_a_part_whose_rows_are_as_far_apart(batch, others, compiles):
    """The Split's input then lies where the part is joined, and needs more memory than there is behind that."""
    g = Sketch()
    whole = g("ACTIVATION_TANH", g.input(batch, 2, 4, 2))
    joined = [g("ELEMENT_WISE_NEGATE", g.input(batch, 1, 4, 2)) for _ in range(others)]
    graph = g.graph(g.join([*joined, g("ACTIVATION_RELU", g.split(whole, 1, (1, 1))[0])], 1))
    assert dml.validate(graph, directml="1.15.4").compiles is compiles


def test_a_copy_to_where_the_tensor_lies_already_is_none():
    """The product works in place on the first Join, so that the sigmoid lies at its place in the second."""
    g = Sketch()
    v = g("ACTIVATION_SIGMOID", g.input(4, 12))
    part = g.split(g.join([g.input(4, 12), v], 0), 0, (4, 4))[1]
    graph = g.graph(g.join([v, g("ELEMENT_WISE_MULTIPLY", part, v), v], 0))
    assert dml.validate(graph, directml="1.13.1").outputs == ("right",)
    made = dispatches(graph, "1.13.1")
    assert [bound(dispatch)[-1] for dispatch in made] == [("output 0", place) for place in (384, 192, 192, 0)]


@pytest.mark.parametrize("directml", ["1.0.200610", "1.5.0", "1.8.0", "1.9.0", "1.9.1", "1.10.1"])
def test_a_join_in_rows_that_are_not_aligned_copies_its_inputs_itself(directml):
    """Rows of 44 bytes: what is bound is the whole, and the place in it is a constant of the shader."""
    g = Sketch()
    x, y = g.input(1, 1, 1, 8), g.input(1, 1, 4, 3)
    graph = g.graph(g.join([g.join([x] * 4, 2), y], 3))
    assert [bound(dispatch)[-1][1] for dispatch in dispatches(graph, directml)] == [32, 0, 0, 0, 0]
    assert [bound(dispatch)[-1][1] for dispatch in dispatches(graph, "1.13.1")][-4:] != [0, 0, 0, 0]


def test_a_graph_output_that_is_joined_in_the_place_of_a_part_stays_in_its_buffer():
    g = Sketch()
    x = g.input(4, 4)
    whole = g.join([x, x], 1)
    part = g.split(whole, 1, (4, 4))[0]
    graph = g.graph(g.join([part, x], 1), whole, g.split(part, 0, (1, 3))[0])
    made = dispatches(graph, "1.5.0")
    assert [bound(dispatch)[-1] for dispatch in made[:4]] == [
        *(("output 1", place) for place in (16, 0)),
        *(("output 0", place) for place in (16, 0)),
    ]
    assert bound(made[3])[0] == ("output 1", 0)


@pytest.mark.parametrize(
    ("whole", "axis", "elided"),
    [
        pytest.param((2, 1, 4, 3, 1), 2, False, id="a gap behind the second"),
        pytest.param((4, 2, 4, 1, 1), 1, True, id="two sizes, the first of them first"),
        pytest.param((1, 4, 4, 2, 1), 2, False, id="three sizes"),
        pytest.param((2, 2, 4, 2, 2), 1, True, id="four sizes, the innermost as large as the gap"),
        pytest.param((2, 2, 4, 2, 4), 1, False, id="four sizes, the innermost larger than the gap"),
        pytest.param((2, 1, 1, 4, 4), 3, True, id="the second and third are 1"),
        pytest.param((2, 3, 3, 3, 8), 4, True, id="rows at one distance"),
        pytest.param((2, 2, 2, 2, 4), 0, False, id="four sizes without a gap"),
        pytest.param((2, 2, 2, 2, 1), 0, True, id="three sizes without a gap"),
    ],
)
def test_which_parts_of_five_dimensions_an_activation_reads_in_place(whole, axis, elided):
    """As DirectML 1.7.0 compiled 6,000 such graphs."""
    g = Sketch()
    parts = g.split(g.input(*whole), axis, [whole[axis] // 2] * 2)
    made = dispatches(g.graph(*(g("ACTIVATION_SIGMOID", part) for part in parts)), "1.7.0")
    assert len(made) == (2 if elided else 4)


@pytest.mark.parametrize(
    ("axis", "sizes", "folds"),
    [
        pytest.param(2, (1, 1, 5, 2, 1), False, id="two sizes"),
        pytest.param(2, (1, 1, 6, 2, 1), True, id="two sizes, whole vectors"),
        pytest.param(0, (2, 1, 5, 1, 1), True, id="two sizes, the first of them first"),
        pytest.param(0, (5, 2, 5, 1, 1), False, id="three sizes"),
        pytest.param(0, (4, 2, 5, 1, 1), True, id="three sizes, whole vectors"),
        pytest.param(0, (5, 1, 1, 3, 5), True, id="the second and third are 1"),
        pytest.param(2, (1, 1, 5, 1, 1), True, id="one size"),
    ],
)
@pytest.mark.parametrize(("data_type", "bytes_"), [(dml.TensorDataType.FLOAT32, 4), (dml.TensorDataType.FLOAT16, 2)])
@pytest.mark.parametrize("directml", ["1.7.0", "1.8.2", "1.9.1"])
def test_which_packed_tensors_of_five_dimensions_an_activation_takes(directml, data_type, bytes_, axis, sizes, folds):
    """Parts of Splits are read, and outputs computed into Joins. Answered so by 9 Linux builds for 1,000 shapes each:
    the bytes decide, not the elements."""

    def with_length(length):
        return (*sizes[:axis], length * 4 // bytes_, *sizes[axis + 1 :])

    g = Sketch(data_type)
    part = g.split(g.input(*with_length(8 + sizes[axis])), axis, (32 // bytes_, sizes[axis] * 4 // bytes_))[1]
    assert len(dispatches(g.graph(g("ACTIVATION_TANH", part)), directml)) == (1 if folds else 3)
    g = Sketch(data_type)
    x, y = g.input(*with_length(8)), g("ACTIVATION_TANH", g.input(*with_length(sizes[axis])))
    joined = g.join([x, y], axis)
    assert len(dispatches(g.graph(joined), directml)) == (2 if folds else 3)
    tanh, *_ = dispatches(g.graph(joined, y), directml)
    vectors = math.prod(sizes) % 4 == 0
    assert tanh.writes.buffer == ("output 0" if vectors else "output 1")


@pytest.mark.parametrize(("rank", "dispatched"), [(4, 1), (5, 3), (6, 1), (7, 1), (8, 1)])
@pytest.mark.parametrize("directml", ["1.7.0", "1.8.0", "1.9.1"])
def test_only_of_five_dimensions_an_activation_takes_no_views(directml, rank, dispatched):
    """Those of more have a shader of their own, of eight: 600 graphs of each rank and build were compiled so."""
    g = Sketch()
    part = g.split(g.input(4, *(1,) * (rank - 4), 3, 3, 4), 0, (2, 2))[1]
    made = dispatches(g.graph(g("ACTIVATION_SIGMOID", part)), directml)
    assert len(made) == dispatched


@pytest.mark.parametrize(
    ("whole", "axis", "outcome"),
    [
        pytest.param((2, 2, 1, 1, 4, 4), 0, "refused", id="along the first"),
        pytest.param((1, 2, 1, 1, 4, 4), 1, "refused", id="along the second"),
        pytest.param((1, 1, 2, 1, 4, 4), 2, "right", id="along one of the last four"),
        pytest.param((1, 2, 2, 1, 4, 4), 2, "unknown", id="behind the second"),
    ],
)
def test_splits_of_six_dimensions_where_those_of_five_are_broken(whole, axis, outcome):
    g = Sketch()
    report = dml.validate(g.graph(*g.split(g.input(*whole), axis, (1, 1))), directml="1.5.0")
    assert report.compiles is {"refused": False, "right": True, "unknown": None}[outcome]
    assert set(report.outputs) == {"unknown" if outcome == "refused" else outcome}


@pytest.mark.parametrize(
    ("reader", "compiles"), [("ACTIVATION_SIGMOID", False), ("ELEMENT_WISE_ABS", True)], ids=["narrow", "wide"]
)
def test_the_whole_is_joined_for_a_part_whose_reader_takes_no_rows(reader, compiles):
    """The part does not come to lie in the Join's rows, where the activation could not read it: it is elided."""
    g = Sketch()
    part = g.split(g.input(3, 4, 3, 4, 4), 1, (1, 3))[0]
    graph = g.graph(g.join([part] * 2, 3), g(reader, part))
    assert dml.validate(graph, directml="1.9.1").compiles is compiles


WITHOUT_ROWS = ("1.0.200610", "1.5.0", "1.8.0", "1.9.0")
"""Builds that compute a tensor into rows of a Join only if nothing else reads it."""


def joined_wholes(directml, order, outputs):
    """The letter of the outputs in whose buffer tanh(x) is computed. d is a Join of it; j and k are Joins that get it
    whole for parts of the Splits s and t, whose other readers take views."""
    g = Sketch()
    x, half = g.input(2, 4, 2, 4), g.input(2, 2, 2, 4)
    whole = g("ACTIVATION_TANH", x)
    made, beside = {}, []
    for each in order:
        if each in "st":
            made[each] = g.split(whole, 1, (2, 2))[1]
            beside.append(made[each])
        else:
            part = whole if each == "d" else g.join([half, made["s" if each == "j" else "t"]], 1)
            made[each] = g.join([part, x], 0)
    ends = [made[each] for each in outputs] + [g("ELEMENT_WISE_ABS", part) for part in beside]
    return outputs[in_output(g.graph(*ends), directml)]


@pytest.mark.parametrize("order", ["sjd", "sdj", "dsj"])
@pytest.mark.parametrize("directml", WITHOUT_ROWS)
def test_a_tensor_lives_in_a_join_of_itself_before_those_that_get_it_for_a_part(directml, order):
    """The Join of the part comes first in the edges, or not."""
    assert joined_wholes(directml, order, "jd") == joined_wholes(directml, order, "dj") == "d"


@pytest.mark.parametrize("order", ["stjk", "stkj", "sjtk", "tsjk", "tskj", "tksj"])
@pytest.mark.parametrize("directml", WITHOUT_ROWS)
def test_of_joins_that_get_a_tensor_for_parts_of_several_splits_it_lives_in_that_of_the_last_output(directml, order):
    """Graph outputs are followed from the last to the first; the order of edges decides nothing."""
    assert [joined_wholes(directml, order, outputs) for outputs in ("jk", "kj")] == ["k", "j"]


@pytest.mark.parametrize("nodes", ["abj", "baj", "jab", "ajk", "jka", "kja"])
@pytest.mark.parametrize("directml", ["1.9.0", "1.10.1", "1.13.1"])
def test_a_tensor_behind_several_identities_lives_where_the_first_graph_output_wants_it(directml, nodes):
    """Each identity is a graph output itself, or is joined (j, k); the order of nodes and edges decides nothing."""
    for outputs in itertools.permutations(nodes):
        g = Sketch()
        x = g.input(4, 4)
        v = g("ACTIVATION_TANH", x)
        ends = {}
        for each in nodes:
            same = g("ELEMENT_WISE_IDENTITY", v)
            ends[each] = g.join([same, x], 0) if each in "jk" else same
        assert in_output(g.graph(*(ends[each] for each in outputs)), directml) == 0


@pytest.mark.parametrize("joined", [False, True], ids=["outputs", "joined"])
@pytest.mark.parametrize("directml", ["1.9.0", "1.10.1", "1.13.1"])
def test_a_tensor_lives_where_the_first_of_a_chain_of_identities_does(directml, joined):
    for order in itertools.permutations(range(3)):
        g = Sketch()
        x = g.input(4, 4)
        first = g("ELEMENT_WISE_IDENTITY", g("ACTIVATION_TANH", x))
        ends = [first, g("ELEMENT_WISE_IDENTITY", first), g("ELEMENT_WISE_IDENTITY", first)]
        if joined:
            ends = [g.join([end, x], 0) for end in ends]
        assert in_output(g.graph(*(ends[i] for i in order)), directml) == order.index(0)


def test_a_whole_that_is_joined_for_a_part_does_not_make_the_join_copy():
    g = Sketch()
    x, y = g.input(1, 1, 3, 4, 8), g.input(1, 1, 3, 2, 8)
    part = g.split(g("ACTIVATION_SIGMOID", x), 3, (2, 2))[0]
    made = dispatches(g.graph(g("ELEMENT_WISE_MULTIPLY", y, part), g.join([part, y, y], 3)), "1.7.0")
    places = [place for buffer, place in (bound(dispatch)[-1] for dispatch in made) if buffer == "output 1"]
    assert sorted(places) == [0, 64, 128]


def test_a_slice_of_five_dimensions_that_is_joined_is_unknown_where_activations_are_narrow():
    g = Sketch()
    x = g.input(1, 6, 1, 2, 12)
    part = g.slice(x, 1, 5, 1)
    graph = g.graph(g.join([part] * 2, 4))
    assert dml.validate(graph, directml="1.9.1").compiles is None
    assert dml.validate(graph, directml="1.10.1").compiles is True


def test_a_join_of_five_dimensions_that_would_copy_its_inputs_only_if_it_were_packed_is_unknown():
    g = Sketch()
    x = g.input(2, 3, 8, 4, 1)
    inner = g.join([x, g("ACTIVATION_TANH", x)], 1)
    graph = g.graph(g.join([inner, inner], 1))
    assert dml.validate(graph, directml="1.9.1").compiles is None
    assert dml.validate(graph, directml="1.10.1").compiles is True


def test_rows_are_at_one_distance_whatever_stands_for_sizes_of_one():
    """The strides of sizes of 1 are those of the outer Join."""
    g = Sketch()
    x = g.input(1, 1, 3, 2, 12)
    inner = g.join([x, g("ACTIVATION_TANH", x)], 4)
    made = dispatches(g.graph(g.join([inner, inner], 2)), "1.8.0")
    assert [bound(dispatch)[-1] for dispatch in made] == [("output 0", place) for place in (48, 0, 576)]


def test_a_join_of_five_dimensions_that_copies_single_inputs_is_refused_where_such_splits_are_broken():
    g = Sketch()
    x = g.input(1, 2, 1, 1, 3)
    desc = g.graph(g.join([x, x], 0))
    assert dml.validate(desc, directml="1.5.0").compiles is False
    assert dml.validate(desc, directml="1.8.0").outputs == ("right",)


@pytest.mark.parametrize("lengths", [(2, 1), (2, 1, 1)])
def test_a_join_of_five_dimensions_is_refused_for_its_first_input_alone(lengths):
    """As 1.5.0 answered for 3,000 such Joins; what they compute was not observed."""

    def joined(lengths):
        g = Sketch()
        return g.graph(g.join([g("ACTIVATION_TANH", g.input(length, 3, 1, 1, 1)) for length in lengths], 0))

    assert len(dispatches(joined(lengths), "1.5.0")) == 2 * len(lengths)
    assert dml.validate(joined(lengths), directml="1.5.0").compiles is None
    assert dml.validate(joined(lengths[::-1]), directml="1.5.0").compiles is False


def copies_a_part(directml, batch, axis=None):
    """Whether a part that a batch normalization reads is copied to memory of its own; a Join along the axis reads it,
    too."""
    g = Sketch()
    other, part = g.split(g.input(batch, 8, 2, 4), 1, (4, 4))
    weights = [g.input(1, 4, 1, 1) for _ in range(4)]
    outputs = [g("BATCH_NORMALIZATION", part, *weights, Spatial=1, Epsilon=1e-5), g("ACTIVATION_SIGMOID", other)]
    if axis is not None:
        outputs.append(g.join((g.input(batch, 4, 2, 4), part), axis))
    traits = traits_of(dml.find_release(directml))
    found = compile_graph(g.graph(*outputs), traits, {1: Family.BLOCK}).dispatches
    return any(dispatch.writes.buffer.startswith("temporary") for dispatch in found)


@pytest.mark.parametrize(
    ("sizes", "axis", "elided"),
    [((2, 1, 1, 1), 0, False), ((1, 3, 1, 2), 1, False), ((2, 2, 1, 2), 0, True)],
)
@pytest.mark.parametrize("family", [Family.WHOLE, Family.BLOCK, Family.PACKED, Family.APART])
def test_operators_of_whole_tensors_read_views_of_whole_vectors_in_1_10(family, sizes, axis, elided):
    """As 15 operators did in DirectML 1.10.1, for 150 shapes each; those of 1.13.1 read any packed part."""
    g = Sketch()
    part = g.split(g.input(*(size + 8 * (d == axis) for d, size in enumerate(sizes))), axis, (8, sizes[axis]))[1]
    graph = g.graph(g("TILE", part, sizes=(2 * sizes[0], *sizes[1:]), Repeats=(2, 1, 1, 1)))
    counts = [
        len(compile_graph(graph, traits_of(dml.find_release(directml)), {1: family}).dispatches)
        for directml in ("1.10.1", "1.13.1")
    ]
    assert counts == [1 if elided else 3, 1]


def test_a_join_reads_views_of_single_elements_in_1_10():
    g = Sketch()
    part = g.split(g.input(6, 1, 1, 1), 0, (4, 2))[1]
    made = dispatches(g.graph(g.join([part, g.input(2, 1, 1, 1)], 0)), "1.10.1")
    assert bound(made[0])[0] == ("input 0", 16)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("sizes", "axis", "in_the_join"),
    [((16, 2, 2, 1), 3, True), ((2, 4, 1, 1), 2, True), ((16, 2, 2, 1), 2, False), ((16, 2, 2, 2), 3, False)],
)
def test_a_normalization_reads_a_part_in_the_rows_of_a_join_where_no_elements_are_neighbours(
    sizes, axis, in_the_join, order
):
    """The part is computed into the Join, and not copied there. Answered so by 8 Linux builds, for 2,592 shapes."""
    g = Sketch()
    part = g.split(g.input(sizes[0], 2 * sizes[1], *sizes[2:]), 1, (sizes[1], sizes[1]))[1]
    joined = g.join((part, g.input(*sizes)), axis)
    weights = [g.input(1, sizes[1], 1, 1) for _ in range(4)]
    outputs = [g("BATCH_NORMALIZATION", part, *weights, Spatial=1, Epsilon=1e-5), joined][::order]
    made = compile_graph(g.graph(*outputs), traits_of(dml.find_release("1.15.4")), {2: Family.BLOCK}).dispatches
    (normalized,) = (each for each in made if each.node == 2)
    assert (normalized.reads[0][1].buffer == f"output {outputs.index(joined)}") is in_the_join


@pytest.mark.parametrize(
    ("directml", "batch", "copied"),
    [("1.9.1", 2, False), ("1.10.1", 1, False), ("1.10.1", 2, True), ("1.15.4", 1, False), ("1.15.4", 2, True)],
)
def test_a_normalization_reads_no_rows_of_a_split(directml, batch, copied):
    assert copies_a_part(directml, batch) is copied


@pytest.mark.parametrize(
    ("directml", "batch", "copied"),
    [("1.9.1", 1, False), ("1.12.1", 2, True), ("1.13.1", 1, True), ("1.15.4", 1, True)],
)
def test_a_part_beside_a_normalization_is_copied_into_rows_of_a_join(directml, batch, copied):
    assert copies_a_part(directml, batch, 3) is copied


def test_the_whole_is_joined_for_a_part_that_a_normalization_reads_up_to_1_12():
    with pytest.raises(Refused):
        copies_a_part("1.12.1", 1, 3)


@pytest.mark.parametrize(
    ("axes", "compiles"),
    [
        pytest.param((1,), False, id="rows"),
        pytest.param((0,), True, id="a block"),
        pytest.param((0, 1), True, id="both"),
    ],
)
@pytest.mark.parametrize("directml", ["1.10.1", "1.12.1"])
def test_the_whole_is_joined_for_a_part_in_a_join_that_lies_in_rows(directml, axes, compiles):
    """The part is no block of that Join then; where a Join takes it as a block, it is, whatever else reads it."""
    g = Sketch()
    part = g.split(g.input(3, 12, 1, 4), 0, (1, 2))[1]
    inner = g.join([part] * 3, 0)
    weights = [g.input(1, 12, 1, 1) for _ in range(4)]
    normalized = g("BATCH_NORMALIZATION", part, *weights, Spatial=1, Epsilon=1e-5)
    graph = g.graph(*(g.join([inner] * 3, axis) for axis in axes), normalized)
    (number,) = (n for n, node in enumerate(graph.nodes) if isinstance(node, dml.AnyOperatorDesc))

    def compile():
        return compile_graph(graph, traits_of(dml.find_release(directml)), {number: Family.BLOCK})

    if compiles:
        assert compile().dispatches
    else:
        with pytest.raises(Refused):
            compile()


@pytest.mark.parametrize(
    ("directml", "count"), [("1.8.0", 2), ("1.9.0", 1), ("1.10.1", 1), ("1.12.1", 2), ("1.15.4", 2)]
)
def test_some_builds_take_an_activation_out_that_is_an_identity(directml, count):
    g = Sketch()
    x = g.input(12, 1)
    made = dispatches(g.graph(g("ELEMENT_WISE_MULTIPLY", g("ACTIVATION_IDENTITY", x), x)), directml)
    assert len(made) == count


@pytest.mark.parametrize(("directml", "in_place"), [("1.7.0", False), ("1.8.0", True), ("1.15.4", True)])
def test_a_sign_works_in_place_from_some_build_on(directml, in_place):
    g = Sketch()
    *_, last = dispatches(g.graph(g("ELEMENT_WISE_SIGN", g("ACTIVATION_TANH", g.input(12, 1)))), directml)
    assert (last.reads[0][1].buffer == last.writes.buffer) is in_place


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("directml", ["1.3.0-dev2", "1.5.0"])
def test_a_first_part_of_five_dimensions_is_refused_where_such_splits_are_broken(directml, length):
    g = Sketch()
    first, _ = g.split(g.input(4, 2, 1, 1, 4), 0, (length, 4 - length))
    assert dml.validate(g.graph(first), directml=directml).compiles is False


@pytest.mark.parametrize(
    ("directml", "sizes", "axes", "compiles"),
    [
        ("1.5.0", (4, 1, 1, 1, 4), (4, 0), True),
        ("1.5.0", (1, 4, 1, 1, 4), (4, 1), False),  # of four dimensions in fact
        ("1.5.0", (4, 1, 1, 4, 4), (4, 3), True),  # rows of the whole
        ("1.8.0", (4, 1, 1, 1, 4), (4, 0), False),
    ],
)
def test_a_broken_split_fits_the_memory_of_the_first_index(directml, sizes, axes, compiles):
    """Its shader is compiled for four dimensions, and so is the check of its memory."""
    g = Sketch()
    (first, second), size = axes, [length // 2 for length in sizes]
    _, part = g.split(g.input(*sizes), first, (size[first],) * 2)
    half, _ = g.split(part, second, (size[second],) * 2)
    answer = dml.validate(g.graph(g("ELEMENT_WISE_IDENTITY", half)), directml=directml)
    assert answer.compiles is compiles
    if compiles:
        assert "right" not in answer.outputs
