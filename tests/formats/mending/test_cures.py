"""Wrong graphs made right: one model of each fault, and what the cures leave alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from dmlsplit.formats import onnx as front_end
from dmlsplit.formats.onnx.tensors import no_external_data
from dmlsplit.mending import graph_cures
from dmlsplit.mending.cures import CHANGES
from dmlsplit.mending.judged import JudgedModel
from dmlsplit.onnxruntime import find_runtime
from dmlsplit.onnxruntime.cure_places import anywhere
from dmlsplit.onnxruntime.cures import CURES, ways
from dmlsplit.onnxruntime.findings import findings
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.errors import NotLegalizedError
from dmlsplit.targets.target import find_target
from tests.effort import calls
from tests.formats.mending import generator
from tests.formats.mending.wrong import (
    WRONG,
    dead,
    gate,
    made,
    overwritten,
    product,
    refused,
    repeated,
    unwritten,
)
from tests.formats.onnx_families import FAMILIES
from tests.formats.onnx_graphs.recorded import free_dimensions, lines, model_of, session_model
from tests.models import BOOL, graph, ints, model, node, text, value


def arrays(model):
    generator = np.random.default_rng(1)
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def run(model):
    return [array.tobytes() for array in ReferenceEvaluator(model).run(None, arrays(model))]


@pytest.mark.parametrize(("wrong", "cure"), WRONG.values(), ids=WRONG)
def test_a_wrong_graph_is_made_right(wrong, cure):
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    (change,) = written.changes
    assert cure in change.names
    result = onnx.load_from_string(written.model)
    onnx.checker.check_model(result, full_check=True)
    assert run(result) == run(wrong)
    assert front_end.legalize(written.model, onnxruntime="1.24.4") == (written.model, ())
    new = [n for n in result.graph.node if n not in list(wrong.graph.node)]
    assert all("dmlsplit: " in n.doc_string for n in new)


def test_a_model_that_is_not_loaded_is_not_cured():
    """No cure changes that, and of two nodes of one name it is not known which one a fault is about."""
    wrong = FAMILIES["gates of one name"](4).SerializeToString()
    with pytest.raises(NotLegalizedError) as raised:
        front_end.legalize(wrong, onnxruntime="1.24.4")
    assert raised.value.reasons == ("two nodes have the name same: the model is not loaded",)


def test_new_nodes_share_constants():
    written = front_end.legalize(FAMILIES["gates"](4).SerializeToString(), onnxruntime="1.24.4")
    assert len(written.changes) == 4
    result = onnx.load_from_string(written.model)
    constants = [numpy_helper.to_array(n.attribute[0].t).tolist() for n in result.graph.node if n.op_type == "Constant"]
    assert sorted(constants) == [[0], [1], [4], [8]]  # of each Slice its start, end and axis
    assert all(any("= Constant() value=[4]" in line for line in change.after) for change in written.changes)


@pytest.mark.parametrize(
    "step",
    [12, pytest.param(3, marks=pytest.mark.slow), pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough])],
)
def test_what_is_advised_is_what_is_done(step):
    """For each recorded model whose graph is wrong: the cure in the finding is the one that legalize carries out."""
    wrong, runtime = 0, find_runtime("1.24.4")
    asked = {model_of(line).SerializeToString(): None for line in lines() if not free_dimensions(line)}
    for source in [*asked][::step]:
        found = findings(session_model(onnx.load_from_string(source)), runtime)
        advised = {(each.path, each.cure.name) for each in found if each.cure is not None}
        if advised:
            changes = front_end.legalize(source, onnxruntime="1.24.4").changes
            names = {name for _, name in CHANGES}
            assert {(each.path, name) for each in changes for name in each.names if name in names} == advised
            wrong += 1
    assert wrong >= 140 // step


@pytest.mark.parametrize("times", [2, 3])
def test_a_tensor_that_is_joined_with_itself(times):
    """DirectML 1.10.1 only; ONNX Runtime 1.14.1 ships it, and merges nodes that compute the same."""
    wrong = repeated(times)
    written = front_end.legalize(wrong, directml="1.10.1")
    (change,) = written.changes
    assert change.names == ("max-branch",)
    assert run(onnx.load_from_string(written.model)) == run(wrong)
    assert front_end.legalize(written.model, directml="1.10.1") == (written.model, ())
    assert front_end.legalize(wrong, directml="1.15.4").changes == ()


@pytest.mark.parametrize(
    ("right", "target"),
    [
        (gate(), {"directml": "1.12.0"}),  # the release has no such fusion
        (gate("N"), {"onnxruntime": "1.24.4"}),  # with open sizes operators run one by one
    ],
)
def test_what_is_right_stays(right, target):
    assert front_end.legalize(right, **target) == (right.SerializeToString(), ())


def test_an_operator_that_rounds_is_not_moved():
    """Vector and scalar code may round differently, hence where an element stands matters."""
    written = front_end.legalize(overwritten("Sigmoid"), onnxruntime="1.24.4")
    result = onnx.load_from_string(written.model)
    (sigmoid,) = [n for n in result.graph.node if n.op_type == "Sigmoid"]
    assert list(sigmoid.input) == ["j"]


@pytest.mark.parametrize(("wrong", "op"), [(gate(), "Slice"), (refused("Tanh"), "Gather")])
def test_what_takes_the_place_of_a_node_has_its_documentation_and_metadata(wrong, op):
    made = onnx.ModelProto()
    made.CopyFrom(wrong)
    for each in made.graph.node:
        each.doc_string = "mine"
        entry = each.metadata_props.add()
        entry.key, entry.value = "layer", "1"
    result = onnx.load_from_string(front_end.legalize(made, onnxruntime="1.24.4").model)
    new = [n for n in result.graph.node if n.op_type == op]
    assert new
    for each in new:
        assert each.doc_string.startswith("mine\ndmlsplit: ")
        assert [(entry.key, entry.value) for entry in each.metadata_props] == [("layer", "1")]


def refused_with_equal_names(count):
    """Nodes in branches of two Ifs have equal paths: one is called as the other's output is."""
    nodes, inputs, outputs = [], [value("c", [], BOOL)], []
    for i in range(count):
        then = [
            node("Sigmoid", [f"x{i}"], [f"v{i}"], name="sigmoid"),
            node("Split", [f"v{i}"], [f"a{i}", f"b{i}"], axis=1, name="split"),
            node("Tanh", [f"a{i}"], [f"t{i}"], name="tanh"),
        ]
        other = graph([node("Relu", [f"h{i}"], [f"e{i}"])], [], [f"e{i}"])
        branches = {"then_branch": graph(then, [], [f"t{i}"]), "else_branch": other}
        nodes.append(node("If", ["c"], [f"y{i}"], name="y0" if i == 1 else "", **branches))
        inputs += [value(f"x{i}", [1, 8, 4, 4]), value(f"h{i}", [1, 4, 4, 4])]
        outputs.append(value(f"y{i}", [1, 4, 4, 4]))
    return model(nodes, inputs, outputs, opset=17, ir_version=8)


def test_nodes_of_one_path_are_each_mended():
    wrong = refused_with_equal_names(3)
    written = front_end.legalize(wrong, directml="1.15.4")  # ONNX Runtime itself loads no model with such names
    assert [change.names for change in written.changes] == [("gather",)] * 3
    assert [change.path for change in written.changes] == [f"y{i}.then_branch/split" for i in (0, 0, 2)]
    result = onnx.load_from_string(written.model)
    given = {
        v.name: np.full([d.dim_value for d in v.type.tensor_type.shape.dim], 0.5, np.float32) for v in wrong.graph.input
    }
    given["c"] = np.array(True)
    one, other = (ReferenceEvaluator(each).run(None, given) for each in (wrong, result))
    assert [a.tobytes() for a in one] == [b.tobytes() for b in other]


def test_a_part_that_a_slice_takes():
    """DirectML takes a Slice for a Split with one part; both faults of the graph are mended."""
    nodes = [
        node("Tanh", ["x"], ["v"], name="tanh"),
        node("Concat", ["v", "y"], ["j"], axis=1, name="concat"),
        node("Relu", ["j"], ["r"]),
        node("Slice", ["r", "minus", "end", "one"], ["q"]),
        node("Add", ["v", "q"], ["z"]),
    ]
    shape = [1, 4, 4, 4]
    numbers = [ints("minus", -4), ints("end", 1 << 40), ints("one", 1)]
    wrong = made(nodes, {"x": shape, "y": shape}, {"z": shape}, numbers)
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert {name for change in written.changes for name in change.names} == {"gather", "operator-first"}
    result = onnx.load_from_string(written.model)
    assert run(result) == run(wrong)
    (indices,) = [n for n in result.graph.node if n.output[0] == next(iter(_the(result, "Gather").input[1:]))]
    assert numpy_helper.to_array(indices.attribute[0].t).tolist() == [4, 5, 6, 7]


def _the(model, operator):
    (found,) = [n for n in model.graph.node if n.op_type == operator]
    return found


def several_dead(count):
    nodes, inputs, outputs = [], {}, {}
    for i in range(count):
        nodes += [
            node("Relu", [f"x{i}"], [f"y{i}"]),
            node("Split", [f"x{i}"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}"),
            node("Concat", [f"b{i}", f"a{i}"], [f"c{i}"], axis=1),
        ]
        inputs[f"x{i}"] = outputs[f"y{i}"] = [1, 8, 4, 4]
    return made(nodes, inputs, outputs)


def test_nodes_that_nothing_reads_are_removed_everywhere():
    written = front_end.legalize(several_dead(3), onnxruntime="1.24.4")
    assert [change.names for change in written.changes] == [("remove-dead",)] * 3
    assert [n.op_type for n in onnx.load_from_string(written.model).graph.node] == ["Relu"] * 3


def test_a_node_of_which_only_sizes_are_read():
    """A session folds the sizes, and removes the node; it keeps one that a dead node uses as well."""
    assert front_end.legalize(measured(dead=False), onnxruntime="1.24.4").changes == ()
    wrong = measured()
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert [change.names for change in written.changes] == [("remove-dead",)]
    result = onnx.load_from_string(written.model)
    assert [n.op_type for n in result.graph.node] == ["Relu", "Split", "Concat", "Shape", "Expand"]
    assert run(result) == run(wrong)


def measured(dead=True):
    """Only the sizes of one part of a Split are used; of the other a dead node is computed."""
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Split", ["x"], ["a", "b"], axis=1, name="split"),
        node("Concat", ["a", "a"], ["c"], axis=1),
        *([node("Abs", ["b"], ["d"])] if dead else []),
        node("Shape", ["c"], ["sizes"]),
        node("Expand", ["one", "sizes"], ["z"]),
    ]
    shape = [1, 8, 4, 4]
    one = numpy_helper.from_array(np.ones(1, np.float32), "one")
    return made(nodes, {"x": shape}, {"y": shape, "z": shape}, [one])


def empty():
    """Nothing as an output."""
    return text("(float[0,4] q, float[1,4] x) => (float[0,4] a, float[1,4] y) { a = Tanh(q)  y = Relu(x) }")


def open_and_empty():
    return text("(float[n,0] q, float[1,4] x) => (float[n,0] a, float[1,4] y) { a = Relu(q)  y = Relu(x) }")


def whole(joined, lengths="4,4"):
    """Rows of a part, which a Relu reads, too, and of y in a Concat: builds before 1.9.1 join the whole."""
    part = "ab"["b" in joined]
    size = lengths.split(",")["b" in joined]
    body = (
        f"t = Tanh(x)  a, b = Split<axis=1, split=[{lengths}]>(t)  c = Concat<axis=1>({', '.join(joined)})  "
        f"r = Relu({part})  s = Sigmoid({'ab'['b' not in joined]})"
    )
    outputs = ", ".join(f"float[?,?,?,?] {name}" for name in "crs")
    return text(f"(float[2,8,4,8] x, float[2,{size},4,8] y) => ({outputs}) {{ {body} }}", opset=12)


def crashing():
    """(r * b) * sigmoid(r), where b is the second output of its node, and r comes from a node of one output."""
    body = "r = Tanh(z)  a, b = Split<axis=1>(x, k)  p = Mul(r, b)  s = Sigmoid(r)  o = Mul(p, s)"
    return text(f"(float[1,4,4,8] z, float[1,8,4,8] x) => (float[1,4,4,8] o) <int64[2] k = {{4,4}}> {{ {body} }}")


ADVISED = {
    (FaultKind.GATE, "two-slices"): (gate(), "1.24.4"),
    (FaultKind.PRODUCT, "reshape-factor"): (product(), "1.24.4"),
    (FaultKind.REPEATED, "max-branch"): (repeated(), "1.14.1"),
    (FaultKind.OVERWRITTEN, "operator-first"): (overwritten("Relu"), "1.24.4"),
    (FaultKind.OVERWRITTEN, "max-input"): (overwritten("Sigmoid"), "1.24.4"),
    (FaultKind.REFUSED, "operator-first"): (refused("Relu"), "1.24.4"),
    (FaultKind.REFUSED, "gather"): (refused("Tanh"), "1.24.4"),
    (FaultKind.PRODUCT_CRASHES, "reshape-factor"): (crashing(), "1.24.4"),
    (FaultKind.WHOLE_TOO_LARGE, "max-part"): (whole("yb"), "1.10.0"),
    (FaultKind.WHOLE_TOO_NARROW, "max-part"): (whole("ya", "1,7"), "1.10.0"),
    (FaultKind.WHOLE_OVER_OTHERS, "max-part"): (whole("ay"), "1.10.0"),
    (FaultKind.WHOLE_FIRST, "max-part"): (whole("by"), "1.10.0"),
    (FaultKind.UNWRITTEN, "max-between"): (unwritten(), "1.24.4"),
    (FaultKind.EMPTY_OUTPUT, "empty-constant"): (empty(), "1.24.4"),
    (FaultKind.EMPTY_OUTPUT, "compress"): (open_and_empty(), "1.24.4"),
    (FaultKind.DEAD, "remove-dead"): (dead(), "1.24.4"),
}
"""For each cure that may be the first that applies a model that it is advised for, and the ONNX Runtime."""


def test_every_cure_that_may_be_advised_is_tried():
    first, settled = set(), set()
    for cure in (cure for cure in CURES if cure.places is not None and cure.fault not in settled):
        first.add((cure.fault, cure.name))
        if cure.applies is anywhere:
            settled.add(cure.fault)
    first.remove((FaultKind.REPEATED, "tile"))  # it applies only where max-branch does
    assert ADVISED.keys() == first - BY_HAND.keys()


@pytest.mark.parametrize(("key", "case"), ADVISED.items(), ids=map("-".join, ADVISED))
def test_the_advised_cure_mends_the_model(key, case):
    wrong, version = case
    directml = find_runtime(version).directml
    session = session_model(wrong)
    (finding,) = findings(session, replace(find_runtime(version), observed=True))
    assert (finding.fault.kind, finding.cure.name) == key
    assert finding.diagnostic.message.split("; ")[-1].startswith(
        finding.cure.sentence("a", "b")  # the gate's operands have these names
    )
    written = front_end.legalize(wrong, directml=directml)
    assert [change.names for change in written.changes] == [(finding.cure.name,)]
    mended = onnx.load_from_string(written.model)
    assert run(mended) == run(wrong)
    assert findings(session_model(mended), replace(find_runtime(version), observed=True)) == ()


def _in_words(body, ends, opset):
    return text(f"{ends} {{ {body} }}", opset=opset)


GATED = "a, b = Split<axis=1>(x)  s = Sigmoid(b)  y = Mul(a, s)", "(float[2,8,4] x) => (float[2,4,4] y)"
CUT = "v = Sigmoid(x)  a, b = Split<axis=1>(v)  y = Tanh(a)", "(float[1,8,4,4] x) => (float[1,4,4,4] y)"
TWICE = "v = Relu(x)  y = Concat<axis=1>(v, v, v)", "(float[1,4,4,4] x) => (float[1,12,4,4] y)"
FURTHER = {
    (FaultKind.GATE, "one-slice"): [(gate(), "1.24.4")],
    (FaultKind.GATE, "max-part"): [(gate(), "1.24.4")],
    (FaultKind.GATE, "clip-sigmoid"): [(gate(), "1.24.4"), (_in_words(*GATED, 9), "1.24.4")],
    (FaultKind.PRODUCT, "max-factor"): [(product(), "1.24.4")],
    (FaultKind.PRODUCT, "clip-sigmoid"): [(product(), "1.24.4")],
    (FaultKind.PRODUCT_CRASHES, "max-factor"): [(crashing(), "1.24.4")],
    (FaultKind.PRODUCT_CRASHES, "clip-sigmoid"): [(crashing(), "1.24.4")],
    (FaultKind.REPEATED, "tile"): [(repeated(), "1.14.1"), (_in_words(*TWICE, 12), "1.14.1")],
    (FaultKind.OVERWRITTEN, "max-input"): [(overwritten("Relu"), "1.24.4")],
    (FaultKind.OVERWRITTEN, "cut-and-join"): [(overwritten("Relu"), "1.24.4")],
    (FaultKind.REFUSED, "max-part"): [(refused("Relu"), "1.24.4")],
    (FaultKind.REFUSED, "split-first"): [(_in_words(CUT[0].replace("Sigmoid", "Relu"), CUT[1], 13), "1.24.4")],
    (FaultKind.REFUSED, "slice"): [(refused("Relu"), "1.14.1")],
    (FaultKind.REFUSED, "negative-pad"): [
        (refused("Relu"), "1.24.4"),
        (_in_words(CUT[0].replace("Tanh(a)", "Tanh(b)"), CUT[1], 10), "1.24.4"),
    ],
}
"""For each of the other cures models that it mends where it is the only one."""


@pytest.mark.parametrize(
    ("key", "case"),
    [
        pytest.param(key, case, id="-".join((*key, str(i))))
        for key, cases in FURTHER.items()
        for i, case in enumerate(cases)
    ],
)
def test_each_further_cure_mends_the_model(key, case, monkeypatch):
    wrong, version = case
    (cure,) = (cure for cure in CURES if (cure.fault, cure.name) == key)
    monkeypatch.setattr(graph_cures, "ways", lambda fault, directml: [(cure, range(1))])
    written = front_end.legalize(wrong, directml=find_runtime(version).directml)
    assert [change.names for change in written.changes] == [(cure.name,)]
    mended = onnx.load_from_string(written.model)
    onnx.checker.check_model(mended, full_check=True)
    assert findings(session_model(mended), replace(find_runtime(version), observed=True)) == ()
    if cure.name == "negative-pad":  # which the reference does not compute
        (pad,) = (each for each in mended.graph.node if each.op_type == "Pad")
        pads = [list(a.ints) for a in pad.attribute if a.name == "pads"] or [constants(mended)[pad.input[1]].tolist()]
        assert pads in ([[0, 0, 0, 0, 0, -4, 0, 0]], [[0, -4, 0, 0, 0, 0, 0, 0]])
        assert list(pad.output) == [next(n for n in wrong.graph.node if n.op_type == "Split").output[pads[0][1] != 0]]
    else:
        assert run(mended) == run(wrong)


def overwritten_by_name(first, second):
    """The Concat's reader is an output, which comes before or behind that of the other reader."""
    ends = f"(float[1,4,4,8] x, float[1,4,4,8] y) => (float[1,8,4,8] {first}, float[1,4,4,8] {second})"
    return text(f"{ends} {{ v = Tanh(x) j = Concat<axis=1>(v, y) {first} = Relu(j) {second} = Neg(v) }}")


def by_hand():
    """For each cure that legalize does not make, or makes otherwise, a model that it mends."""
    empty = "u, v, w = Split<axis=1>(x, k)  a = Relu(u)  b = Tanh(v)"
    second = "u, v = Split<axis=1>(x, k)  a = Relu(u)"
    ends = "(float[2,4] x) => (float[?,?] a{}) <int64[{}] k = {{{}}}>"
    return {
        (FaultKind.GATE, "sigmoid-output"): gate(),
        (FaultKind.GATE, "tanh-form"): gate(),
        (FaultKind.PRODUCT, "regroup"): product(),
        (FaultKind.PRODUCT, "factor-output"): product(),
        (FaultKind.PRODUCT_CRASHES, "regroup"): crashing(),
        (FaultKind.PRODUCT_CRASHES, "factor-output"): crashing(),
        (FaultKind.OVERWRITTEN, "concat-output"): overwritten("Relu"),
        (FaultKind.OVERWRITTEN, "second-reader"): overwritten("Relu"),
        (FaultKind.OVERWRITTEN, "rename"): overwritten_by_name("a", "b"),
        (FaultKind.REFUSED, "part-output"): refused("Relu"),
        (FaultKind.EMPTY_PART, "leave-out"): text(f"{ends.format(', float[?,?] b', 3, '2,2,0')} {{ {empty} }}"),
        (FaultKind.EMPTY_SECOND_PART, "leave-out"): text(f"{ends.format('', 2, '4,0')} {{ {second} }}"),
    }


BY_HAND = by_hand()


@pytest.mark.parametrize(("key", "wrong"), BY_HAND.items(), ids=map("-".join, BY_HAND))
def test_what_is_left_to_the_reader_helps(key, wrong):
    (cure,) = (cure for cure in CURES if (cure.fault, cure.name) == key)
    judged = JudgedModel.of(wrong, find_target(onnxruntime="1.24.4"), no_external_data)
    ((fault, finding),) = graph_cures.keyed(graph_cures.errors(judged)).items()
    work = graph_cures.Work(judged, lambda node: node, lambda kind, directml: [(cure, range(1))])
    trial = work.tried({fault: 0}, {fault: finding})
    assert trial.refusals == []
    assert [change.names for change in trial.changes] == [(cure.name,)]
    assert trial.judged.findings == ()
    before, after = (ReferenceEvaluator(each).run(None, arrays(wrong)) for each in (wrong, trial.judged.model))
    assert len(after) == len(before) + cure.adds_output
    for was, is_now in zip(before, after, strict=False):
        assert was.tobytes() == is_now.tobytes() if cure.bit_exact else np.allclose(was, is_now, rtol=1e-5)


def constants(model):
    nodes = [each for each in model.graph.node if each.op_type == "Constant"]
    return {each.output[0]: numpy_helper.to_array(each.attribute[0].t) for each in nodes}


def test_every_cure_that_can_be_made_is_shown():
    assert CHANGES.keys() == ADVISED.keys() | FURTHER.keys() | BY_HAND.keys() | {(FaultKind.GATE, "reshape-part")}


IN_BOTH = (
    # Floor would be in place on the inner Concat, too
    "v = Tanh(x)  i = Concat<axis=1>(y, v)  j = Concat<axis=2>(i, i)  o = Floor(j)  p = Neg(v)",
    # what is lost is read by the first Concat; the second one has another input that is shared
    "v = Tanh(x)  w = Abs(y)  i = Concat<axis=1>(v, y)  j = Concat<axis=1>(i, w)  o = Sqrt(j)  p = Sub(v, w)",
    # the second input is a copy of the first
    "v = Tanh(x)  t = Transpose<perm=[1,0,2]>(v)  j = Concat<axis=0>(t, v)  o = Sqrt(j)  p = Neg(v)",
)


@pytest.mark.parametrize("body", IN_BOTH)
def test_the_advised_cure_is_made_where_the_lost_tensor_is_joined(body):
    wrong = text(f"(float[1,1,16] x, float[1,1,16] y) => (float[?,?,?] o, float[1,1,16] p) {{ {body} }}")
    (finding,) = findings(session_model(wrong), find_runtime("1.24.4"))
    assert finding.cure.name == "max-input"
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert {change.names for change in written.changes} == {("max-input",)}
    mended = onnx.load_from_string(written.model)
    assert run(mended) == run(wrong)
    assert findings(session_model(mended), find_runtime("1.24.4")) == ()


JOINED = "v = Abs(x)  w = Sigmoid(x)  i = Concat<axis=0>(x, v)  j = Concat<axis=0>(i, w)"
NESTED = f"{JOINED}  o = Sqrt(j)  p = Neg(v)  q = Neg(w)"


def test_what_lies_in_a_concat_in_a_concat_is_taken_out_of_both(monkeypatch):
    (cure,) = (cure for cure in CURES if (cure.fault, cure.name) == (FaultKind.OVERWRITTEN, "max-input"))
    every = ways(FaultKind.OVERWRITTEN, "1.15.4")
    monkeypatch.setattr(graph_cures, "ways", lambda fault, directml: [each for each in every if each[0] is cure])
    ends = ", ".join(f"float[{size},4,8,8] {name}" for name, size in (("o", 3), ("p", 1), ("q", 1)))
    wrong = text(f"(float[1,4,8,8] x) => ({ends}) {{ {NESTED} }}")
    assert findings(session_model(wrong), find_runtime("1.24.4")) != ()
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    mended = onnx.load_from_string(written.model)
    assert sum(node.op_type == "Max" for node in mended.graph.node) >= 2
    assert run(mended) == run(wrong)
    assert findings(session_model(mended), find_runtime("1.24.4")) == ()


def test_the_fault_of_a_gate_is_a_gates_where_its_product_is_fused_further():
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1, name="split"),
        node("Sigmoid", ["b"], ["s"]),
        node("Mul", ["a", "s"], ["g"], name="gate"),
        node("Mul", ["g", "y"], ["p"]),
        node("Mul", ["p", "z"], ["r"], name="outer"),
    ]
    shape = [2, 4, 4]
    wrong = made(nodes, {"x": [2, 8, 4], "y": shape, "z": shape}, {"r": shape})
    (finding,) = findings(session_model(wrong), find_runtime("1.24.4"))
    assert (finding.fault.kind, finding.cure.name) == (FaultKind.GATE, "two-slices")
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert [change.names for change in written.changes] == [("two-slices",)]
    assert run(onnx.load_from_string(written.model)) == run(wrong)


def test_each_cure_that_says_where_it_applies_has_its_change():
    made = [cure for cure in CURES if cure.places is not None]
    assert CHANGES.keys() == {(cure.fault, cure.name) for cure in made}
    assert {(cure.fault, cure.name) for cure in made if not cure.is_kept} <= BY_HAND.keys()


def _gates_apart(count):
    nodes, inputs, outputs = [], {}, {}
    for i in range(count):
        nodes += [
            node("Split", [f"x{i}"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}"),
            node("Sigmoid", [f"b{i}"], [f"s{i}"]),
            node("Mul", [f"a{i}", f"s{i}"], [f"y{i}"]),
        ]
        inputs[f"x{i}"], outputs[f"y{i}"] = [2, 8, 4], [2, 4, 4]
    return made(nodes, inputs, outputs)


def _gates_in_a_row(count):
    nodes = []
    for i in range(count):
        nodes += [
            node("Split", [f"x{i}"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}"),
            node("Sigmoid", [f"b{i}"], [f"s{i}"]),
            node("Mul", [f"a{i}", f"s{i}"], [f"y{i}"]),
            node("Concat", [f"y{i}", "z"], [f"x{i + 1}"], axis=1),
        ]
    return made(nodes, {"x0": [1, 8, 4], "z": [1, 4, 4]}, {f"x{count}": [1, 8, 4]})


def _refused_in_a_row(count):
    nodes, outputs = [], {f"x{count}": [1, 8, 4]}
    for i in range(count):
        nodes += [
            node("Sigmoid", [f"x{i}"], [f"v{i}"]),
            node("Split", [f"v{i}"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}"),
            node("Tanh", [f"a{i}"], [f"y{i}"]),
            node("Neg", [f"x{i}"], [f"x{i + 1}"]),
        ]
        outputs[f"y{i}"] = [1, 4, 4]
    return made(nodes, {"x0": [1, 8, 4]}, outputs)


def _dead_beside_what_is_not_fused(count):
    nodes = []
    for i in range(count):
        nodes += [
            node("Split", [f"x{i}"], [f"a{i}", f"b{i}"], axis=1, name=f"split{i}"),
            node("Concat", [f"b{i}", f"a{i}"], [f"y{i}"], axis=1),
            node("Acos", [f"x{i}"], [f"x{i + 1}"]),
        ]
    return made(nodes, {"x0": [1, 4, 2, 2]}, {f"x{count}": [1, 4, 2, 2]})


FAULTY = [_gates_apart, _gates_in_a_row, _refused_in_a_row, several_dead, _dead_beside_what_is_not_fused]


@pytest.mark.parametrize("faulty", FAULTY)
def test_work_is_linear_in_the_faults(faulty):
    def work(count):
        data = faulty(count).SerializeToString()
        return calls(lambda: front_end.legalize(data, onnxruntime="1.24.4"))

    work(2)
    assert work(16) < 2.6 * work(8)


@pytest.mark.parametrize("faulty", [_gates_in_a_row, _refused_in_a_row])
def test_faults_behind_one_another_are_mended_once_each(faulty):
    wrong = faulty(5)
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert len(written.changes) == 5
    assert run(onnx.load_from_string(written.model)) == run(wrong)


UNMADE = "(float[1,1,1,1,1,1,1,1,4] x) => (float[1,1,1,1,1,1,1,1,4] z) { z = Relu(x) }"


@pytest.mark.parametrize("count", [3, 8])
def test_equal_nodes_are_mended_together(count, monkeypatch):
    """A session makes one node of them, so that each is at fault only once the one before it is cured."""
    rounds, tried = [], graph_cures.Work.tried
    monkeypatch.setattr(graph_cures.Work, "tried", lambda self, *asked: rounds.append(asked) or tried(self, *asked))
    wrong = FAMILIES["gates of one tensor"](count)
    written = front_end.legalize(wrong.SerializeToString(), onnxruntime="1.24.4")
    assert (len(written.changes), len(rounds)) == (count, 2)
    assert {change.before for change in written.changes} == {(f"v{i}, g{i} = Split(x) axis=1",) for i in range(count)}
    assert run(onnx.load_from_string(written.model)) == run(wrong)
    assert front_end.legalize(written.model, onnxruntime="1.24.4").changes == ()


def test_a_model_whose_session_fails_is_not_written():
    with pytest.raises(NotLegalizedError, match="z has a static tensor of rank 9"):
        front_end.legalize(text(UNMADE), onnxruntime="1.24.4")


def test_a_release_is_not_refused_a_model_for_a_graph_that_the_version_in_its_place_refuses():
    """ONNX Runtime 1.18.0 stands for DirectML 1.12.0, but has 1.14.1."""
    nodes = "p = Mul(x, m)  a, b = Split<axis=1>(p, l)  e = Exp(a)  f = ReduceSum<keepdims=1>(e)  h = Mul(e, f)"
    graph_of = "(float[1,2,11] x, float[1,1,11] m) => (float[1,1,11] y) <int64[2] l = {1,1}>"
    right = text(f"{graph_of} {{ {nodes}  i = Neg(h)  y = Abs(i) }}", opset=15)
    assert front_end.legalize(right, onnxruntime="1.18.0").changes
    assert front_end.legalize(right, directml="1.12.0").changes == ()


def test_two_outputs_of_a_function_that_stay_empty_are_each_mended():
    function = """<domain: "own", opset_import: ["" : 17]> F (x) => (t, r, u, s)
        { t = Add(x, x)  r = Relu(t)  u = Add(r, r)  s = Relu(u) }"""
    outputs = ", ".join(f"float[1,4] {name}" for name in ("a", "b", "c", "d"))
    wrong = text(f"(float[1,4] x) => ({outputs}) {{ a, b, c, d = own.F(x) }}", functions=function)
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert [change.names for change in written.changes] == [("max-between",)] * 2
    assert findings(session_model(onnx.load_from_string(written.model)), find_runtime("1.24.4")) == ()


def test_a_cure_that_makes_another_fault_gives_way_to_the_next():
    """With a Gather in place of the first Split the second one is refused, whose input then is the Gather's."""
    nodes = (
        "t = Abs(x)  a, b = Split<axis=0>(t, k)  l = Neg(a)  m = LeakyRelu(l)  p, q = Split<axis=0>(m, h)  y = Neg(p)"
    )
    wrong = text(f"(float[8] x) => (float[?] y) <int64[2] k = {{4,4}}, int64[2] h = {{2,2}}> {{ {nodes} }}")
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert run(onnx.load_from_string(written.model)) == run(wrong)
    assert findings(session_model(onnx.load_from_string(written.model)), find_runtime("1.24.4")) == ()


def test_the_empty_part_of_a_tensor_of_unknown_sizes_is_cut():
    computed = "i = Shape(x)  g = Gather(i, o)  d = Div(g, o)  l = Concat<axis=0>(d, d)  t, u = Split<axis=2>(x, l)"
    wrong = text(
        f"(float[3,4,4,4] x) => (float[?,?,?,?] u, float[?,?,?,?] w) <int64[1] o = {{2}}, int64[2] k = {{0,3}}>"
        f" {{ {computed}  v, w = Split<axis=0>(t, k) }}"
    )
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert [change.names for change in written.changes] == [("cut-empty",)]
    assert run(onnx.load_from_string(written.model)) == run(wrong)


@pytest.mark.parametrize(
    ("seed", "cures"),
    [
        (81000576, ["cut-empty", "max-between", "gather"]),  # the Split is six edges behind the node at fault
        (81000765, ["cut-empty", "gather", "gather"]),  # in a function, where a cure's own node is refused first
    ],
)
def test_cures_far_away_and_in_functions(seed, cures):
    wrong, arrays = generator.model(seed)
    written = front_end.legalize(wrong, onnxruntime="1.24.4")
    assert [name for change in written.changes for name in change.names] == cures
    mended = onnx.load_from_string(written.model)
    assert findings(session_model(mended), find_runtime("1.24.4")) == ()
    before, after = (ReferenceEvaluator(each).run(None, arrays) for each in (wrong, mended))
    assert [each.tobytes() for each in after] == [each.tobytes() for each in before]
