"""Each rule's examples break it and, cured, do not; on the builds that the rule names."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.graphs.examples import Sketch
from dmlsplit.graphs.traits import FiveDimensions, traits_of
from dmlsplit.graphs.validation import judge
from dmlsplit.rules.graph import GRAPH_RULES
from dmlsplit.targets.target import find_target

DOES = {
    "graph/fused-wrongly": {"1.13.1", "1.14.1", "1.14.2", "1.15.1", "1.15.2", "1.15.4"},
    "graph/place-not-written": {"1.10.1"},
    "graph/fusion-crashes": {"1.14.2", "1.15.1", "1.15.2", "1.15.4"},
    "graph/five-dimensions": {"1.3.0-dev2", "1.4.0", "1.5.0", "1.5.1"},
    "graph/whole-for-part": {
        *("1.0.200610", "1.3.0-dev2", "1.4.0", "1.5.0", "1.5.1"),
        *("1.7.0", "1.8.0", "1.8.2", "1.9.0"),
    },
}
"""The DirectML versions that a rule's example is wrong on; all of them where a rule is not named."""
OBSERVED = [release for release in dml.releases() if traits_of(release)]


@pytest.mark.parametrize("release", OBSERVED, ids=lambda release: release.name)
@pytest.mark.parametrize("rule", [rule for rule in GRAPH_RULES.values() if rule.sound], ids=lambda rule: rule.id)
def test_examples(rule, release):
    does = DOES.get(rule.id)
    if rule.id == "graph/five-dimensions" and traits_of(release).five_dimensions is FiveDimensions.UNKNOWN:
        pytest.skip("its result was not observed")
    broken = dml.validate(graphs.EXAMPLES[rule.id](False), directml=release)
    cured = dml.validate(graphs.EXAMPLES[rule.id](True), directml=release)
    if any("rank" in d.rule or "dimension-count" in d.rule for d in broken.diagnostics):
        pytest.skip("this build takes no tensors of so many dimensions")
    assert cured.ok
    assert set(cured.outputs) == {"right"}
    found = {d.rule for d in broken.diagnostics}
    assert found == ({rule.id} if does is None or release.directml in does else set())


@pytest.mark.parametrize("id", graphs.EXAMPLES)
def test_the_registrys_examples(id):
    """The bad graph breaks this rule only; the good one is sound, compiles, and is right."""
    release = GRAPH_RULES[id].examples_for
    broken = dml.validate(graphs.EXAMPLES[id](False), directml=release)
    cured = dml.validate(graphs.EXAMPLES[id](True), directml=release)
    assert {d.rule for d in broken.diagnostics} == {id}
    assert broken.ok is (GRAPH_RULES[id].severity is not dml.Severity.ERROR)
    assert (broken.compiles is False) is (GRAPH_RULES[id].refuses or id == "graph/fusion-crashes")
    assert not cured.diagnostics
    assert set(cured.outputs) == {"right"}


def test_rules_of_descriptors_have_examples():
    of_onnxruntime = {
        "graph/output-not-written",
        "graph/constant-node",
        "graph/not-loaded",
        "graph/empty-part",
        "graph/empty-output",
        "graph/output-may-be-empty",
    }
    assert set(GRAPH_RULES) - set(graphs.EXAMPLES) == of_onnxruntime


@pytest.mark.parametrize("rule", GRAPH_RULES.values(), ids=lambda rule: rule.id)
def test_every_rule_says_everything(rule):
    assert rule.id.startswith("graph/")
    assert all((rule.releases, rule.cure))


def test_a_glu_says_what_it_computes():
    report = dml.validate(graphs.EXAMPLES["graph/fused-wrongly"](False), directml="1.15.4")
    (fault,) = report.diagnostics
    assert report.hresult == 0
    assert str(fault.location) == "Outputs[0]"
    assert "q * sigmoid(q) with q = output 1 of node 0" in fault.message
    assert report.to_dict()["graph"] == {"compiles": True, "outputs": ["wrong"]}
    assert report.to_dict()["ok"] is False


def test_a_refused_graph_says_so():
    report = dml.validate(graphs.EXAMPLES["graph/memory-too-small"](False), directml="1.15.4")
    assert (report.hresult, report.compiles, report.outputs) == (dml.HResult.E_INVALIDARG, False, ("unknown",))
    elsewhere = dml.validate(
        graphs.EXAMPLES["graph/memory-too-small"](False), directml="tensorflow-directml-1.15.5.dev210422"
    )
    assert elsewhere.hresult == 0x80000003


def test_an_output_listed_first_is_read_before_it_is_overwritten():
    g = Sketch()
    v, y = g("ACTIVATION_TANH", g.input(1, 4, 1, 16)), g.input(1, 4, 1, 16)
    r = g("ACTIVATION_RELU", g.join((v, y), 1))
    assert dml.validate(g.graph(r, v)).outputs == ("right", "wrong")
    assert dml.validate(g.graph(v, r)).outputs == ("right", "right")


def test_overwriting_with_the_same_value_is_not_wrong():
    g = Sketch()
    v, y = g("ACTIVATION_SIGMOID", g.input(1, 4, 1, 16)), g("ELEMENT_WISE_EXP", g.input(1, 4, 1, 16))
    assert set(dml.validate(g.graph(g("ACTIVATION_RELU", g.join((v, y), 1)), v)).outputs) == {"right"}


def test_a_split_that_create_operator_refuses():
    x = dml.BufferTensorDesc(1, (1, 8, 1, 16))
    part = dml.BufferTensorDesc(1, (1, 5, 1, 16))
    node = dml.SplitOperatorDesc(x, [part, part], 1)
    edges = [graphs.OutputGraphEdgeDesc(0, i, i) for i in range(2)]
    report = dml.validate(graphs.GraphDesc([x], [part, part], [node], [graphs.InputGraphEdgeDesc(0, 0, 0)], edges))
    assert report.hresult == dml.HResult.E_INVALIDARG
    assert {d.path.partition(".")[0] for d in report.diagnostics} == {"Nodes[0]"}


def test_unknown_operators_and_builds_are_unknown():
    g = Sketch()
    x = g.input(1, 8, 1, 16)
    known = g.graph(g("ACTIVATION_RELU", x))
    tensor = known.inputs[0]
    other = dml.AnyOperatorDesc.of_tensors(53, [tensor], [tensor])
    desc = graphs.GraphDesc([tensor], [tensor], [other], known.input_edges, known.output_edges)
    report = dml.validate(desc)
    assert (report.hresult, report.compiles, report.outputs) == (None, None, ("unknown",))
    assert report.ok
    assert judge(known, find_target(directml="1.15.4"), [None]).outputs == ("unknown",)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError):
        dml.validate(dml.BufferTensorDesc(1, (1,)))
    with pytest.raises(ValueError, match="unknown DirectML release"):
        dml.validate(graphs.EXAMPLES["graph/fused-wrongly"](True), directml="9.9")


def test_a_copy_within_a_buffer_is_unknown_where_repeats_are_forgotten():
    """The product works in place on the first Join, so that both Joins, and the repeated tensor, are in one buffer."""
    g = Sketch()
    x = g.input(3, 12)
    v = g("ELEMENT_WISE_MAX", x, x)
    first, second = g.join([v, x, v], 0), g.join([v, x, x], 0)
    product = g("ELEMENT_WISE_MULTIPLY", first, second)
    desc = g.graph(g.join([second, product, product], 0))
    assert dml.validate(desc, directml="1.10.1").outputs == ("unknown",)
    assert "unknown" not in dml.validate(desc, directml="1.15.4").outputs


@pytest.mark.parametrize(
    ("whole", "axis", "first", "after", "outputs"),
    [
        pytest.param((2, 8, 1, 16), 1, True, 4, ("wrong", "right"), id="over what follows the part"),
        pytest.param((2, 8, 1, 16), 1, False, 4, ("wrong", "right"), id="from the whole's beginning"),
        pytest.param((2, 8, 1, 16), 1, True, 2, None, id="beyond the end"),
        pytest.param((2, 8, 1, 16), 3, True, 4, None, id="more than its rows hold"),
        pytest.param((2, 2, 1, 16), 1, True, 4, None, id="part of size 1"),
        pytest.param((1, 8, 1, 16), 1, False, 4, ("right", "right"), id="no rows"),
    ],
)
def test_the_whole_in_the_place_of_a_part(whole, axis, first, after, outputs):
    """As DirectML 1.7.0 and 1.9.0 compiled it, and the views that they bound."""
    g = Sketch()
    part = g.split(g.input(*whole), axis, [whole[axis] // 2] * 2)[0 if first else 1]
    sizes = g.tensors[part].sizes
    desc = g.graph(g.join([part, g.input(sizes[0], after, *sizes[2:])], 1), g("ACTIVATION_RELU", part))
    report = dml.validate(desc, directml="1.8.0")
    assert (report.compiles, report.outputs) == (outputs is not None, outputs or ("unknown", "unknown"))
    assert {d.rule for d in report.diagnostics} == (set() if report.ok else {"graph/whole-for-part"})
    assert set(dml.validate(desc, directml="1.12.0").outputs) == {"right"}


@pytest.mark.parametrize(("rows", "size", "compiles"), [(3, 1, False), (4, 2, True)])
def test_a_whole_that_is_computed_in_the_place_of_a_part(rows, size, compiles):
    """It is one block of the Join's output, and fits; in the place of a part of size 1 it is refused nevertheless."""
    g = Sketch()
    part = g.split(g("ACTIVATION_TANH", g.input(3, 1, rows, 16)), 2, (rows - size, size))[1]
    joined = g.join([part, g.input(3, rows // size - 1, size, 16)], 1)
    report = dml.validate(g.graph(joined, g("ACTIVATION_RELU", part)), directml="1.8.0")
    assert report.compiles is compiles
    assert {d.rule for d in report.diagnostics} == {"graph/whole-for-part"}


def test_a_part_joined_twice_with_what_follows_it_may_be_right():
    """The first copy of the whole brings the second part, too."""
    g = Sketch()
    a, b = g.split(g.input(2, 8, 1, 16), 1, (4, 4))
    desc = g.graph(g.join([a, b, g.input(2, 8, 1, 16)], 1), g("ACTIVATION_RELU", a), g("ACTIVATION_TANH", b))
    assert dml.validate(desc, directml="1.8.0").outputs == ("unknown",) * 3


def test_another_operand_of_the_same_value_is_not_wrong():
    g = Sketch()
    p = g("ACTIVATION_RELU", g.input(1, 4, 1, 16))
    for operator, outcome in (
        ("ACTIVATION_LEAKY_RELU", "right"),
        ("ELEMENT_WISE_IDENTITY", "right"),
        ("ACTIVATION_TANH", "wrong"),
    ):
        q = g(operator, p)
        product = g("ELEMENT_WISE_MULTIPLY", g("ELEMENT_WISE_MULTIPLY", q, p), g("ACTIVATION_SIGMOID", q))
        assert dml.validate(g.graph(product, p), directml="1.15.4").outputs[0] == outcome
        g = Sketch()
        p = g("ACTIVATION_RELU", g.input(1, 4, 1, 16))


def test_what_a_fusion_does_not_read_any_more_is_not_computed():
    """r * e * sigmoid(r) of a graph input r: e is lost, and what e is computed of is a graph output all the same."""
    g = Sketch()
    r = g.input(1, 4, 1, 16)
    h = g("ELEMENT_WISE_ABS", g.input(1, 4, 1, 16))
    e = g("ELEMENT_WISE_ADD", h, r)
    product = g("ELEMENT_WISE_MULTIPLY", g("ELEMENT_WISE_MULTIPLY", r, e), g("ACTIVATION_SIGMOID", r))
    assert dml.validate(g.graph(h, product), directml="1.15.4").outputs == ("right", "wrong")
    assert set(dml.validate(g.graph(h, product), directml="1.14.1").outputs) == {"right"}


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(
    ("axis", "start", "length", "outcome"),
    [
        pytest.param(0, 0, 1, "right", id="the first index"),
        pytest.param(0, 1, 3, "wrong", id="what lies behind it"),
        pytest.param(0, 3, 1, "wrong", id="the last index"),
        pytest.param(4, 0, 2, "wrong", id="some of every index"),
    ],
)
def test_what_is_cut_out_of_a_broken_part(axis, start, length, outcome, joined):
    """As executed: the elements of the first index are those that they should be."""
    g = Sketch()
    part = g("ACTIVATION_RELU", g.split(g.input(4, 1, 4, 2, 3), 3, (1, 1))[0])
    if joined:
        part = g.join([g.input(4, 1, 4, 1, 3), part], 1)
    cut = g.slice(part, axis, start, length)
    assert dml.validate(g.graph(g("ACTIVATION_SIGMOID", cut)), directml="1.5.0").outputs == (outcome,)


def test_what_is_cut_twice_out_of_a_join_with_a_broken_part_may_be_right():
    g = Sketch()
    part = g.split(g.input(4, 1, 4, 2, 3), 3, (1, 1))[0]
    cut = g.slice(g.join([g.input(4, 1, 4, 1, 3), part], 1), 0, 0, 2)
    desc = g.graph(g("ACTIVATION_SIGMOID", g.slice(cut, 0, 0, 1)))
    assert dml.validate(desc, directml="1.5.0").outputs == ("unknown",)


def test_a_second_broken_split_is_refused():
    g = Sketch()
    part = g.split(g.input(4, 4, 4, 2, 3), 3, (1, 1))[0]
    assert dml.validate(g.graph(*g.split(part, 0, (1, 3))), directml="1.5.0").compiles is False
