"""Graphs that somebody made to do harm, or that are merely large: one clear answer each, linear in their size."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.graphs.examples import Sketch, chain, unary
from dmlsplit.graphs.execution import MOST_COMPARISONS, Execution
from dmlsplit.graphs.memory import compile_graph
from dmlsplit.graphs.traits import traits_of
from dmlsplit.rules.graph_faults import FaultKind
from tests.effort import calls
from tests.graphs.structure import ONE, RELU, SPLIT, T4, T8, desc

FEW = 200
MANY = 100_000
UINT_MAX = 2**32 - 1


def a_chain(count):
    return chain(*[RELU] * count)


def a_cycle(count):
    return desc([RELU] * count, [], [(0, 0, 0)], [(i, 0, (i + 1) % count, 0) for i in range(count)])


def one_join(count):
    g = Sketch()
    x = g.input(1, 8, 1, 16)
    return g.graph(g.join([g("ACTIVATION_TANH", x) for _ in range(count)], 1))


def one_join_of_rows(count):
    g = Sketch()
    x = g.input(4, 4, 1, 16)
    return g.graph(g.join([g("ACTIVATION_TANH", x) for _ in range(count)], 1))


def one_split(count):
    g = Sketch()
    parts = g.split(g("ACTIVATION_TANH", g.input(1, count, 1, 4)), 1, [1] * count)
    return g.graph(*(g("ACTIVATION_RELU", part) for part in parts))


def a_split_joined(count):
    g = Sketch()
    parts = g.split(g("ACTIVATION_TANH", g.input(4, count, 1, 4)), 1, [1] * count)
    return g.graph(g("ACTIVATION_RELU", g.join([g("ACTIVATION_SIGMOID", part) for part in parts], 1)))


def joins_in_joins(count):
    g = Sketch()
    x, y = g.input(1, 1, 1, 16), g.input(1, 1, 1, 16)
    for _ in range(count):
        x = g.join([x, g("ACTIVATION_TANH", y)], 1)
    return g.graph(x)


def splits_of_splits(count):
    g = Sketch()
    rest, outputs = g("ACTIVATION_TANH", g.input(1, count + 1, 1, 16)), []
    for i in range(count):
        part, rest = g.split(rest, 1, (1, count - i))
        outputs.append(g("ACTIVATION_RELU", part))
    return g.graph(*outputs)


def one_tensor_everywhere(count):
    g = Sketch()
    ends = [g("ACTIVATION_TANH", g.input(1, 4, 1, 16))]
    for _ in range(count):
        ends.append(g("ELEMENT_WISE_ADD", ends[-1], ends[0]))
    return g.graph(*ends)


def identities(count):
    g = Sketch()
    x = g("ACTIVATION_TANH", g.input(1, 4, 1, 16))
    return g.graph(*[g("ELEMENT_WISE_IDENTITY", x) for _ in range(count)])


def gates(count):
    g = Sketch()
    x = g("ACTIVATION_TANH", g.input(1, 4, 1, 16))
    for _ in range(count):
        x = g("ELEMENT_WISE_MULTIPLY", x, g("ACTIVATION_SIGMOID", x))
    return g.graph(x)


def scaled_gates(count):
    g = Sketch()
    x, y = g("ACTIVATION_TANH", g.input(1, 4, 1, 16)), g.input(1, 4, 1, 16)
    for _ in range(count):
        x = g("ELEMENT_WISE_MULTIPLY", g("ELEMENT_WISE_MULTIPLY", y, x), g("ACTIVATION_SIGMOID", x))
    return g.graph(x)


def inputs_joined(count):
    g = Sketch()
    return g.graph(g.join([g.input(4, 4, 1, 16) for _ in range(count)], 1))


def edges_to_nowhere(count):
    return desc([RELU], [(UINT_MAX, UINT_MAX, UINT_MAX)] * count, [(0, 0, 0)])


def edges_to_one_input(count):
    return desc([RELU], [(0, 0, 0)] * count, [(0, 0, 0)])


def nodes_that_are_refused(count):
    return desc([dml.SplitOperatorDesc(T8, [T4, T4], 7)] * count)


LARGE = [
    *(a_chain, a_cycle, one_join, one_join_of_rows, one_split, a_split_joined, joins_in_joins, splits_of_splits),
    *(one_tensor_everywhere, identities, gates, edges_to_nowhere, edges_to_one_input, nodes_that_are_refused),
    *(scaled_gates, inputs_joined),
]


@pytest.mark.parametrize(
    "directml", [*(pytest.param(old, marks=pytest.mark.slow) for old in ("1.8.0", "1.10.1")), "1.15.4"]
)
@pytest.mark.parametrize("made", LARGE, ids=lambda made: made.__name__)
def test_the_work_is_linear(made, directml):
    small, large = made(FEW), made(4 * FEW)
    dml.validate(small, directml=directml)  # what is worked out once
    work = [calls(lambda graph=graph: dml.validate(graph, directml=directml)) for graph in (small, large)]
    assert work[1] <= 5 * work[0]


class Looked(list):
    """A list that counts how many of its items were looked at."""

    seen = 0

    def __iter__(self):
        for item in super().__iter__():
            Looked.seen += 1
            yield item


def test_inputs_of_splits_in_place_of_parts_are_looked_at_by_their_splits():
    """Each of them asks for the others of its own Split."""
    traits = traits_of(dml.find_release("1.9.0"))
    work = []
    for count in (FEW, 2 * FEW):
        g = Sketch()
        ends = []
        for _ in range(count):
            part, later = g.split(g("ACTIVATION_TANH", g.input(2, 8, 4, 8)), 1, (4, 4))
            ends += [g("ACTIVATION_SIGMOID", part), g("ACTIVATION_RELU", later)]
            ends.append(g.join([later, g.input(2, 4, 4, 8)], 1))
        plan = compile_graph(g.graph(*ends), traits)
        plan.stand_ins = Looked(plan.stand_ins)
        Looked.seen = 0
        faults = Execution(plan).faults
        assert sum(each is not None and each.fault.kind is FaultKind.WHOLE_FIRST for each in faults) == count
        work.append(Looked.seen)
    assert work[1] == 2 * work[0] > 0


def test_inputs_of_splits_in_place_of_parts_are_held_against_those_in_one_buffer():
    """Each part of one Split is joined by itself: no Join's memory holds what another one got."""
    count = 2 * FEW
    g = Sketch()
    ends = []
    for part in g.split(g("ACTIVATION_TANH", g.input(2, 4 * count, 4, 8)), 1, (4,) * count):
        ends += [g("ACTIVATION_SIGMOID", part), g.join([part, g.input(2, 4 * count, 4, 8)], 1)]
    plan = compile_graph(g.graph(*ends), traits_of(dml.find_release("1.9.0")))
    execution = Execution(plan)
    kinds = [fault.fault.kind for fault in execution.faults if fault is not None]
    assert (kinds.count(FaultKind.WHOLE_FIRST), kinds.count(FaultKind.WHOLE_OVER_OTHERS)) == (count - 1, 1)
    assert MOST_COMPARISONS * (len(plan.dispatches) + 100) - execution.budget < 20 * count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (a_chain, "right"),
        (a_cycle, "unknown"),
        pytest.param(one_join, "right", marks=pytest.mark.thorough),
        (one_split, "right"),
        (edges_to_nowhere, "unknown"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_hundred_thousand_nodes(made, outcome):
    report = dml.validate(made(MANY))
    assert set(report.outputs) == {outcome}
    assert report.compiles is (outcome == "right")


def test_one_operator_in_several_nodes_is_as_many_operators():
    same = desc([RELU, RELU], [(0, 0, 0)], [(1, 0, 0)], [(0, 0, 1, 0)])
    report = dml.validate(same)
    assert (report.ok, report.outputs) == (True, ("right",))


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        *(((1,), None), ((1,) * 8, None), ((UINT_MAX,), None), ((UINT_MAX, 1, 1, 1), None), ((65536, 65535), None)),
        ((UINT_MAX,) * 8, "tensor/element-count-too-large"),
        ((), "operator/dimension-count-not-supported"),
        ((0, 4), "tensor/size-zero"),
    ],
)
def test_ranks_and_sizes_at_the_limits(sizes, rule):
    """A neighbour that its build refuses is no wrong result: nothing is computed."""
    report = dml.validate(chain(unary("ACTIVATION_RELU", *sizes), unary("ACTIVATION_TANH", *sizes)))
    assert set(report.outputs) == {"unknown" if rule else "right"}
    assert {d.rule for d in report.diagnostics} == ({rule} if rule else set())
    assert report.compiles is (rule is None)


@pytest.mark.parametrize("rank", [0, 9, UINT_MAX])
def test_a_split_of_too_many_dimensions_is_refused_by_its_rule(rank):
    tensor = dml.BufferTensorDesc(1, (1, 1, 1, 4), dimension_count=rank)
    report = dml.validate(desc([dml.SplitOperatorDesc(tensor, [tensor], 0)], [(0, 0, 0)], [(0, 0, 0)]))
    assert report.compiles is False
    assert all(str(d.location).startswith("Nodes[0].") for d in report.diagnostics)


def test_an_edge_from_a_part_beyond_the_count():
    split = dml.SplitOperatorDesc(T8, [T4, T4], 1, output_count=UINT_MAX)
    report = dml.validate(desc([split], [(0, 0, 0)], [(0, 2, 0)], results=[T4]))
    assert not report.ok


def test_empty_and_single():
    assert dml.validate(desc(**ONE)).ok
    assert not dml.validate(desc([SPLIT])).ok


@pytest.mark.parametrize("member", ["inputs", "outputs"])
@pytest.mark.parametrize("strides", [(), (1,), (128, 16, 16), (128, 16, 16, 1, 1)])
def test_strides_of_another_number_than_dimensions(member, strides):
    """Fewer are read past their end by a build; what is beyond them is not read: said of a node's tensor, as of a
    Split's. Of a tensor of the graph itself nothing is read."""
    tensor = dml.BufferTensorDesc(
        dml.TensorDataType.FLOAT32, (1, 8, 1, 16), strides=strides, total_tensor_size_in_bytes=512
    )
    whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 8, 1, 16))
    at_node = dml.AnyOperatorDesc.of_tensors(
        "ACTIVATION_RELU", **{"inputs": [whole], "outputs": [whole], member: [tensor]}
    )
    edges = {
        "input_edges": [dml.InputGraphEdgeDesc(0, 0, 0)],
        "output_edges": [dml.OutputGraphEdgeDesc(0, 0, 0)],
    }
    relu = dml.AnyOperatorDesc.of_tensors("ACTIVATION_RELU", [whole], [whole])
    ends = {"inputs": [whole], "outputs": [whole]}
    few = len(strides) < 4
    of_node = "tensor/strides-too-few" if few else "tensor/strides-too-many"
    place = f"Nodes[0].{'InputTensor' if member == 'inputs' else 'OutputTensor'}.Strides"
    for graph, said in (
        (dml.GraphDesc(**ends, nodes=[at_node], **edges), [(of_node, place)]),
        (
            dml.GraphDesc(**{**ends, member: [tensor]}, nodes=[relu], **edges),
            [("graph/tensor-short", f"{member.capitalize()}[0]")] * few,
        ),
    ):
        for target in ({"directml": "1.15.4"}, {"directml": "1.0.200610"}, {"feature_level": "5_0"}):
            found = dml.validate(graph, **target)
            assert [(d.rule, d.path) for d in found.diagnostics] == said
            assert found.outputs == ("unknown" if few else "right",)
            if "directml" in target:
                assert found.compiles is (None if few else True)
