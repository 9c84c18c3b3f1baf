"""What ONNX Runtime makes of a Split or Concat among its neighbours: fused graphs, and sessions that fail."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlsplit.formats.onnx
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from dmlsplit.system.errors import NotLegalizedError
from dmlsplit.targets.session_options import SessionOptions
from tests.formats.answers import SPLIT, VERSION, X, ask, outcome, rules, session
from tests.models import node, text, value
from tests.onnxruntime.placements import placed_model


def test_a_node_alone():
    assert outcome(ask([SPLIT], [X], ["a", "b"])) == [("S", "DML", "init", 0)]


def test_relus_around_count_as_nodes_of_the_graph():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    nodes += [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])]
    assert outcome(ask(nodes, [X], ["c", "d"])) == [("S", "DML", "init", 0)]
    nodes.append(node("Relu", ["d"], ["e"]))
    assert outcome(ask(nodes, [X], ["c", "e"])) == [("S", "DML", "init", 4)]


def test_an_empty_second_output_is_the_second_where_the_first_has_no_name():
    made = text('(float[3,2] x) => (float[?,?] b) <int64[2] l = {2,0}> { "", b = Split<axis=1>(x, l) }')
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, rules([found])) == ("session-fails", [["second-output-empty"]])


def test_of_an_output_without_a_name_and_elements_there_is_no_empty_tensor():
    """The descriptor has no tensor for it, which DirectML refuses."""
    made = text('(float[3,2] x) => (float[?,?] b) <int64[2] l = {0,2}> { "", b = Split<axis=1>(x, l) }')
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.hresults) == ("session-fails", (0x80070057,))
    made = text('(float[N,2] x) => (float[?,?] b) { "", b = Split<axis=1, split=[0,2]>(x) }', opset=12)
    (found,) = on_onnxruntime(made, VERSION, run_shapes={"x": (3, 2)})
    assert (found.answer.outcome, found.answer.hresults) == ("run-fails", (0x80070057,))


@pytest.mark.parametrize(
    ("opset", "read", "outcome"),
    [
        (13, "r, l, l", "session-fails"),
        (13, 'r, l, ""', "session-fails"),
        (13, "r, l", "DML"),
        (11, "r, l", "session-fails"),
    ],
)
def test_a_split_with_more_inputs_than_its_version_has_is_not_loaded(opset, read, outcome):
    words = f"(float[4] x) => (float[?] a, float[?] b) <int64[2] l = {{2,2}}> {{ r = Relu(x) a, b = Split({read}) }}"
    made = text(words, opset=opset)
    (found,) = on_onnxruntime(made, VERSION)
    assert found.answer.outcome == outcome
    if outcome == "session-fails":
        assert rules([found]) == [["inference-fails"]]
        with pytest.raises(NotLegalizedError, match="not valid ONNX"):
            dmlsplit.formats.onnx.legalize(made, onnxruntime=VERSION)


@pytest.mark.parametrize(("sizes", "outcome"), [("2,7", "session-fails"), ("N,7", "session-fails"), ("2,N", "DML")])
def test_lengths_as_well_as_num_outputs_are_refused_where_the_size_is_known(sizes, outcome):
    words = f"(float[{sizes}] x) => (float[?,?] a, float[?,?] b) <int64[2] l = {{3,4}}>"
    made = text(f"{words} {{ a, b = Split<axis=1, num_outputs=2>(x, l) }}", opset=18)
    (found,) = on_onnxruntime(made, VERSION, run_shapes={"x": (2, 7)})
    assert found.answer.outcome == outcome


@pytest.mark.parametrize(
    ("count", "shape", "kind", "fuses", "expected"),
    [
        (3, "8", "float", True, "session-fails init"),
        (1, "8", "float", True, "session-fails init"),
        (3, "8", "float", False, "run-fails run"),
        (3, "N", "float", True, "run-fails run"),
        (-1, "8", "float", True, "session-fails init"),
        (-1, "N", "float", True, "run-fails run"),
        (-1, "8", "string", True, "session-fails init"),
        (3, "8", "string", True, "CPU None"),
        (2, "8", "float", True, "DML init"),
    ],
)
def test_num_outputs_is_the_number_of_outputs_where_the_kernel_is_directmls(count, shape, kind, fuses, expected):
    words = f"({kind}[{shape}] x) => ({kind}[?] a, {kind}[?] b) {{ a, b = Split<num_outputs={count}>(x) }}"
    options = SessionOptions(graph_fusion=fuses)
    (found,) = on_onnxruntime(text(words, 18), VERSION, run_shapes={"x": (8,)}, options=options)
    assert f"{found.answer.outcome} {found.answer.at}" == expected


@pytest.mark.parametrize(("shape", "outcome"), [("2,8", "session-fails"), ("N,8", "session-fails"), ("2,N", "DML")])
def test_lengths_in_another_file_are_refused_where_the_size_is_known(tmp_path, shape, outcome):
    words = f"(float[{shape}] x) => (float[?,?] a, float[?,?] b) {{ r = Relu(x) a, b = Split<axis=1>(r, l) }}"
    made, lengths = text(words, 18), numpy_helper.from_array(np.array([3, 5]), "l")
    (tmp_path / "l.bin").write_bytes(lengths.raw_data)
    lengths.ClearField("raw_data")
    lengths.data_location = TensorProto.EXTERNAL
    lengths.external_data.add(key="location", value="l.bin")
    made.graph.initializer.append(lengths)
    onnx.save(made, tmp_path / "m.onnx")
    (found,) = on_onnxruntime(tmp_path / "m.onnx", VERSION, run_shapes={"x": (2, 8)})
    assert found.answer.outcome == outcome
    if outcome == "session-fails":
        assert rules([found]) == [["lengths-elsewhere"]]
        written = dmlsplit.formats.onnx.legalize(tmp_path / "m.onnx", onnxruntime=VERSION)
        assert [change.names for change in written.changes] == [("explicit-lengths",)]
        (mended,) = on_onnxruntime(written.model, VERSION, run_shapes={"x": (2, 8)})
        assert mended.answer.outcome == "DML"


def _without_type(made):
    made.graph.input[0].ClearField("type")


def _without_operator(made):
    body = [helper.make_node("Relu", ["x"], ["y"])]
    opsets = [helper.make_opsetid("", 17)]
    made.functions.append(helper.make_function("f", "", ["x"], ["y"], body, opsets))
    made.opset_import.append(helper.make_opsetid("f", 1))
    made.graph.node[0].domain, made.graph.node[0].op_type = "f", ""


def _without_value(made):
    made.graph.node.insert(0, helper.make_node("Constant", [], ["k"]))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_without_type, "the input x has no type: the model is not loaded"),
        (_without_operator, "a node has no operator: the model is not loaded"),
        (_without_value, "Constant k has no value; the model is not loaded"),
    ],
)
def test_what_a_model_lacks_is_why_it_is_not_loaded(change, why):
    made = text("(float[4] x) => (float[4] y) { y = Relu(x) }")
    change(made)
    found = placed_model(made, VERSION)
    assert (found.created, found.failure.message) == (False, why)


LENGTHS = "<int64 s = {1}, int64 e = {4}, int64 z = {0}, int64[3] t = {1,1,1}, int64[1] p = {2}, int64[1] q = {3}>"


@pytest.mark.parametrize(
    ("operator", "created"), [("Range(s, e, s)", True), ("CumSum(t, z)", True), ("Tile(p, q)", None)]
)
def test_whether_a_session_is_created_is_not_known_where_constant_lengths_are_not(operator, created):
    words = f"(float[6] x) => (float[?] a, float[?] b, float[?] c) {LENGTHS}"
    made = text(f"{words} {{ k = {operator} r = Relu(x) a, b, c = Split<axis=0>(r, k) }}")
    assert placed_model(made, VERSION).created is created


@pytest.mark.parametrize("node", ["Split<axis=AXIS, num_outputs=2>(x)", "Concat<axis=AXIS>(x, x)"])
@pytest.mark.parametrize(("axis", "outcome"), [(2**63 - 1, "DML"), (2**32 + 1, "DML"), (2**31, "session-fails")])
def test_an_axis_is_read_in_32_bits(node, axis, outcome):
    outputs = "a, b" if "Split" in node else "a"
    declared = ", ".join(f"float[?,?] {name}" for name in outputs.split(", "))
    made = text(f"(float[2,4] x) => ({declared}) {{ {outputs} = {node.replace('AXIS', str(axis))} }}", 18)
    (found,) = on_onnxruntime(made, VERSION)
    assert found.answer.outcome == outcome


def test_a_default_of_an_input_is_handed_over_like_an_initializer():
    made = text("(float[2,3] x, float[1,3] w) => (float[?,?] y) <float[1,3] w = {1,2,3}> { y = Concat<axis=0>(x, w) }")
    (found,) = on_onnxruntime(made, VERSION)
    assert [tensor.flags for tensor in found.answer.operators[-1].input_tensors] == [0, 1]


@pytest.mark.parametrize(
    ("words", "lengths"),
    [
        ("k = Range(s, e, s)", (1, 2, 3)),
        ("k = CumSum(t, z)", (1, 2, 3)),
        ("k = Tile(p, q)", None),
        ("k = Range(s, e, z)", None),
    ],
)
def test_lengths_that_are_computed_of_constants_are_known_or_are_not(words, lengths):
    made = text(f"(float[2,6] x) => (float[?,?] a) {LENGTHS} {{ {words} a, b, c = Split<axis=1>(x, k) }}")
    (found,) = on_onnxruntime(made, VERSION)
    assert found.facts.lengths == lengths
    assert (found.answer.outcome == "unknown") == (lengths is None)


@pytest.mark.parametrize(("inputs", "outcome"), [("x, w", "session-fails"), ("x, w, c", "DML")])
def test_a_gemm_without_c_in_front_of_an_activation_fails_the_session(inputs, outcome):
    constants = "<float[2,2] w = {1,2,3,4}, float[2] c = {1,2}>"
    made = text(f"(float[2,2] x) => (float[?,?] a) {constants} {{ m = Gemm({inputs}) r = Relu(m) a, b = Split(r) }}")
    assert on_onnxruntime(made, VERSION)[0].answer.outcome == outcome


def test_a_fused_graph_that_nothing_reads_fails_the_session_for_all():
    made = text("(float[2,6] x) => (float[?,?] a) { a, b = Split<axis=1>(x) c = Exp(x) d = Abs(c) }")
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.operators) == ("session-fails", ())
    assert "nothing reads the results of the fused graph of c" in found.answer.diagnostics[-1].message


def test_a_name_of_the_outer_graph_may_be_computed_in_a_branch():
    """As exporters write it that give an output of the branch the name of the If's own. Other names are refused."""
    inner = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    inner += [node("Concat", ["a", "a"], ["c"], axis=1, name="C"), node("Identity", ["c"], ["c_out"])]
    branch = helper.make_graph(inner, "branch", [], [onnx.ValueInfoProto(name="c_out")])
    nodes = [node("If", ["k"], ["c"], then_branch=branch, else_branch=branch, name="I")]
    made = session(nodes, [X, value("k", [], TensorProto.BOOL)], ["c"])
    found = on_onnxruntime(made, VERSION)
    assert [(n.path, n.facts.shapes) for n in found][:2] == [
        ("I.else_branch/S", ((2, 6),)),
        ("I.else_branch/C", ((2, 3), (2, 3))),
    ]
    read = dmlsplit.formats.onnx.read(made)
    assert [(n.op, n.whole_shape, n.lengths) for n in read][:2] == [
        ("Split", (2, 6), (3, 3)),
        ("Concat", (2, 6), (3, 3)),
    ]
    assert {str(n.answer.outcome) for n in found} == {"DML"}
    made = session([node("Relu", ["x"], ["r"]), *nodes], [X, value("k", [], TensorProto.BOOL)], ["c"])
    found = on_onnxruntime(made, VERSION)
    assert {str(n.answer.outcome) for n in found} == {"session-fails"}
    assert "r is computed in a subgraph of a node, but exists before it" in found[0].answer.diagnostics[-1].message


def test_a_graph_with_an_if_is_not_fused_but_its_branches_are():
    bodies = [
        helper.make_graph([node("Split", ["x"], [f"{b}0", f"{b}1"], axis=1, name="S")], b, [], [value(f"{b}0", [2, 3])])
        for b in ("t", "e")
    ]
    nodes = [SPLIT, node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1], name="If")]
    found = ask(nodes, [X, value("c", [], TensorProto.BOOL)], ["a", "b", "y"])
    assert outcome(found) == [
        ("If.else_branch/S", "DML", "init", 0),
        ("If.then_branch/S", "DML", "init", 0),
        ("S", "DML", "run", 0),
    ]


def test_a_neighbour_of_rank_9_fails_the_session_for_all():
    nodes = [SPLIT, node("Relu", ["w"], ["v"], name="R")]
    found = ask(nodes, [X, value("w", [1] * 9)], ["a", "b", "v"])
    assert outcome(found) == [("S", "session-fails", "init", None)]
    assert "R has a static tensor of rank 9" in found[0].answer.diagnostics[-1].message


def test_a_neighbour_that_computes_rank_9_fails_the_session_for_all():
    nodes = [SPLIT, node("Unsqueeze", ["w", "axes"], ["v"], name="U")]
    found = ask(nodes, [X, value("w", [1] * 8)], ["a", "b", "v"], initializers={"axes": [0]})
    assert outcome(found) == [("S", "session-fails", "init", None)]


@pytest.mark.parametrize("rank", [8, 9])
def test_an_initializer_is_copied_as_the_session_is_made_with_or_without_elements(rank):
    """Observed of 1.19.2 and 1.24.4; of a tensor that is no initializer the first Run fails."""
    words = f"(float[{','.join('1' * (rank - 1))},0] x) => (float[?] a, float[?] b)"
    split = "{ a, b = Split<axis=0, num_outputs=2>(DATA) }"
    options = SessionOptions(optimization=0)
    (read,) = on_onnxruntime(text(f"{words} {split.replace('DATA', 'x')}", 18), VERSION, options=options)
    made = text(f"{words} {split.replace('DATA', 'w')}", 18)
    made.graph.initializer.append(numpy_helper.from_array(np.zeros([2] * (rank - 1) + [0], np.float32), "w"))
    (stored,) = on_onnxruntime(made, VERSION, options=options)
    expected = {8: ["DML", "DML"], 9: ["run-fails", "session-fails"]}
    assert [str(each.answer.outcome) for each in (read, stored)] == expected[rank]


@pytest.mark.parametrize("shape", ["4,6", "N,6", "4,N", "?,?"])
def test_a_split_without_lengths_fails_where_its_size_becomes_known(shape):
    made = text(f"(float[{shape}] x) => (float[?,?] a, float[?,?] b) {{ a, b = Split<axis=1>(x) }}", 18)
    (found,) = on_onnxruntime(made, VERSION, run_shapes={"x": (4, 6)})
    known = shape.endswith("6")
    expected = ("session-fails", "init") if known else ("run-fails", "run")
    assert (str(found.answer.outcome), found.answer.at) == expected


@pytest.mark.parametrize(
    ("words", "outcomes"),
    [
        ("s = Shape(x) t = Gather(s, one) e = Expand(z, t)", {0: "DML run", 99: "DML run"}),
        ("s = Size(w) t = Reshape(s, minus) e = Expand(z, t)", {0: "unknown None", 99: "unknown None"}),
        ("s = Shape(w) t = Gather(s, one) e = Expand(z, t)", {0: "unknown None", 99: "DML init"}),
    ],
    ids=["a part of an open shape", "a size", "a static shape"],
)
def test_sizes_that_a_model_computes_are_known_where_onnx_runtime_folds_them(words, outcomes):
    """onnx's data propagation follows more, but the session does not; at level 0 versions differ."""
    constants = "<int64[1] one = {1}, int64[1] minus = {-1}>"
    made = text(
        f"(float[N,6] x, float[4,6] w, float[1] z) => (float[?] a, float[?] b) {constants} "
        f"{{ {words} a, b = Split<axis=0>(e) }}"
    )
    shapes = {"x": (4, 6), "w": (4, 6), "z": (1,)}
    for level, expected in outcomes.items():
        options = SessionOptions(optimization=level)
        (found,) = on_onnxruntime(made, VERSION, run_shapes=shapes, options=options)
        assert f"{found.answer.outcome} {found.answer.at}" == expected


def test_a_split_whose_parts_are_only_measured_is_taken_out():
    nodes = [SPLIT, *(node("Shape", [name], [f"{name}s"], name=f"{name}S") for name in "ab")]
    found = ask(nodes, [X], ["as", "bs"])
    assert (outcome(found), rules(found)) == ([("S", "CPU", "init", None)], [["folded"]])
    counted = [SPLIT, *(node("Size", [name], [f"{name}s"], name=f"{name}S") for name in "ab")]
    assert outcome(ask(counted, [X], ["as", "bs"])) == [("S", "DML", "init", 0)]


def test_a_block_of_an_intermediate_for_one_elementwise_operator_is_refused():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=0, name="S"), node("Tanh", ["a"], ["y"])]
    found = ask(nodes, [value("x", [8])], ["y"])
    assert (outcome(found), rules(found)) == ([("S", "session-fails", "init", None)], [["graph-refused"]])
    both = [*nodes, node("Tanh", ["b"], ["z"])]
    assert outcome(ask(both, [value("x", [8])], ["y", "z"])) == [("S", "DML", "init", 0)]


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("rows", "of", "refused"), [(1, "Mul(c, c)", True), (1, "Identity(c)", True), (2, "Abs(c)", False)]
)
def test_a_block_that_a_slice_takes_behind_a_concat_is_refused_as_well(version, rows, of, refused):
    made = text(
        f"(float[{rows},4] x, float[{rows},4] z) => (float[?,?] o) <int64[1] s = {{0}}, int64[1] e = {{4}}, "
        f"int64[1] a = {{1}}> {{ c = Concat<axis=1>(x, z) m = {of} p = Slice(m, s, e, a) o = Sub(p, z) }}"
    )
    (found,) = on_onnxruntime(made, version)
    assert (rules([found]) == [["graph-refused"]]) is refused
    assert len(found.answer.operators) == 1


def test_a_refused_graph_without_splits_fails_the_session_of_a_concat_elsewhere():
    made = text(
        "(float[1,8] x, float[1,4] y) => (float[?,?] o, float[?,?] c) <int64[1] s = {0}, int64[1] e = {4}, "
        "int64[1] a = {1}> { c = Concat<axis=1>(y, y) m = Tanh(x) p = Slice(m, s, e, a) o = Relu(p) }"
    )
    (found,) = on_onnxruntime(made, VERSION)
    assert rules([found]) == [["session-fails-elsewhere"]]


def submitted(words):
    """How many operators of each node are submitted, and whether it is compiled, in a session that fails."""
    found = on_onnxruntime(text(words), VERSION)
    assert {node.answer.outcome for node in found} == {"session-fails"}
    return [(n.path, len(n.answer.operators), n.answer.compile is not None) for n in found]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # The walk begins at the last node that nothing reads. Of an output without a name there is no descriptor.
        ("a, , b = Split<axis=0>(x) c = Concat<axis=1>(x, w)", [("a", 1, False), ("c", 2, True)]),
        ("c = Concat<axis=1>(x, w) a, , b = Split<axis=0>(x)", [("c", 0, False), ("a", 1, False)]),
        ("a, , b = Split<axis=0>(x) r = Relu(x) c, , d = Split<axis=0>(r)", [("a", 0, False), ("c", 1, False)]),
        # All kernels of a fused graph are made before the operators that are handed weights.
        ("c = Concat<axis=1>(x, w) k = Relu(c) a, , b = Split<axis=0>(k)", [("c", 1, False), ("a", 1, False)]),
        ("a, b = Split<axis=0>(x, n) c = Concat<axis=1>(a, w)", [("a", 0, False), ("c", 1, False)]),
    ],
)
def test_what_is_behind_the_first_failure_is_not_submitted(nodes, expected):
    constants = "<float[6,1] w = {1,2,3,4,5,6}, int64[2] n = {6,0}>"
    assert submitted(f"(float[6,4] x) => (float[?,?] a, float[?,?] c) {constants} {{ {nodes} }}") == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("f, , b = Split<axis=0>(x)", "g = Concat<axis=1>(x, x)", [1, 0, 0]),
        ("f = Concat<axis=0>(x, x)", "g, , b = Split<axis=0>(x)", [1, 1, 0]),
    ],
)
def test_graphs_in_nodes_are_made_first_and_kernels_outside_of_fused_graphs_last(first, second, expected):
    """The If keeps the nodes of the main graph out of any fused graph."""
    then, other = f"t () => (float[?,?] f) {{ {first} }}", f"e () => (float[?,?] g) {{ {second} }}"
    words = "(float[6,4] x, bool q) => (float[?,?] k, float[?,?] z) { z = Concat<axis=0>(x, x) k = If (q) "
    assert [count for _, count, _ in submitted(f"{words} <then_branch = {then}, else_branch = {other}> }}")] == expected


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("c = Concat<axis=0>(a, y) d = Concat<axis=0>(a, a)", [0, 0, 1]),
        ("d = Concat<axis=0>(a, a) c = Concat<axis=0>(a, y)", [0, 0, 1]),
        ("c = Concat<axis=0>(a, y) d = Concat<axis=0>(y, y)", [0, 1, 1]),
    ],
    ids=["of two", "of two, swapped", "of one"],
)
def test_behind_an_empty_second_output_the_first_reader_is_the_last_that_is_made(nodes, expected):
    words = "(float[8,3] x, float[8,3] y) => (float[8,0] b, float[?,?] c, float[?,?] d) <int64[2] l = {3,0}>"
    found = submitted(f"{words} {{ a, b = Split<axis=1>(x, l) {nodes} }}")
    assert [count for _, count, _ in found] == expected


def test_a_split_that_nothing_reads_fails_the_session():
    found = ask([SPLIT, node("Relu", ["x"], ["y"])], [X], ["y"])
    assert (outcome(found), rules(found)) == ([("S", "session-fails", "init", None)], [["graph-without-outputs"]])


@pytest.mark.parametrize("read", [["a", "a"], ["a", "w"]])
def test_a_concat_that_nothing_reads_beside_others_is_not_compiled(read):
    """Its kernel is made, but no operator that the weights would be handed to."""
    nodes = [SPLIT, node("Concat", read, ["c"], axis=0, name="C")]
    found = ask(nodes, [X], ["a", "b"], {"w": np.zeros((2, 3), np.float32)})
    assert (outcome(found)[1], rules(found)[1]) == (("C", "DML", "init", None), ["not-read"])
    assert len(found[1].answer.operators) == 1


def test_what_a_run_alone_gives_the_sizes_of_is_joined_as_the_model_runs():
    nodes = [node("NonZero", ["x"], ["n"]), node("Concat", ["n", "n"], ["c"], axis=0, name="C")]
    assert outcome(ask(nodes, [X], ["c"])) == [("C", "unknown", "run", None)]
    assert outcome(ask(nodes, [X], ["c"], given={"run_shapes": {"n": (2, 3)}})) == [("C", "DML", "run", 0)]


def test_a_constant_is_not_dequantized_before_the_session_is_made():
    words = "<int8[2,4] w = {1,2,3,4,5,6,7,8}, float s = {0.5}> { d = DequantizeLinear(w, s) y = Concat<axis=0>(d, x) }"
    (found,) = on_onnxruntime(text(f"(float[6,4] x) => (float[?,?] y) {words}"), VERSION)
    assert [tensor.flags for tensor in found.answer.operators[-1].input_tensors] == [0, 0]


def test_a_domain_that_onnx_runtime_does_not_have_may_fail_the_session():
    made = text("(float[6,4] x) => (float[?,?] y, float[?,?] a) { y = my.Op(x) a, b = Split<axis=0>(x) }")
    made.opset_import.add(domain="my", version=1)
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, rules([found])) == ("unknown", [["context-unknown"]])


def test_the_default_domain_may_be_spelled_out():
    nodes = [node("Split", ["x"], ["a", "b"], axis=1, domain="ai.onnx"), node("Concat", ["b", "a"], ["c"], axis=0)]
    assert outcome(ask(nodes, [X], ["c"])) == [("a", "DML", "init", 0), ("c", "DML", "init", 0)]


@pytest.mark.parametrize(("version", "axes"), [("1.24.4", [3, 3]), ("1.30.0", [2, 3])])
def test_functions_of_one_name_are_told_apart_from_1_30_on(version, axes):
    functions, calls = [], []
    for overload, axis, read, written in (("one", 0, "x", "y"), ("two", 1, "y", "z")):
        body = [node("Concat", ["v", "v"], ["w"], axis=axis)]
        functions.append(helper.make_function("own", "F", ["v"], ["w"], body, [helper.make_opsetid("", 21)]))
        calls.append(node("F", [read], [written], domain="own"))
        functions[-1].overload = calls[-1].overload = overload
    made = session(calls, [X], ["y", "z"], opset=21, ir_version=10, functions=functions)
    assert [found.answer.operators[0].axis for found in on_onnxruntime(made, version)] == axes


def with_functions(names, imports, own=True):
    """A Concat of x beside a call of the first function; each but the last calls the next, "F one" by its overload."""
    functions = []
    for name, read in zip(names, [*names[1:], ""], strict=True):
        inner, _, overload = read.partition(" ")
        body = [node(inner, ["v"], ["w"], domain="own")] if read else [node("Concat", ["v", "v"], ["w"], axis=0)]
        if overload:
            body[0].overload = overload
        entries = [helper.make_opsetid(domain, 21) for domain in imports]
        functions.append(helper.make_function("own", name.split(" ")[0], ["v"], ["w"], body, entries))
        functions[-1].overload = name.partition(" ")[2]
    calls = [node(names[0], ["x"], ["y"], domain="own"), node("Concat", ["x", "x"], ["z"], axis=1)]
    made = session(calls, [X], ["y", "z"], opset=21, ir_version=10, functions=functions)
    if not own:
        del made.opset_import[1]
    return made


@pytest.mark.parametrize(("version", "expected"), [("1.18.0", "DML"), ("1.24.4", "DML"), ("1.30.0", "unknown")])
def test_the_overload_of_a_call_in_a_body_is_not_read(version, expected):
    """1.30.0 looks for a function without one: there is none of the model, and may be an operator of the domain."""
    found = on_onnxruntime(with_functions(["G", "F one"], ["", "own"]), version)
    assert {each.answer.outcome for each in found} == {expected}
    both = with_functions(["G", "F one"], ["", "own"])
    both.functions.append(both.functions[1])
    both.functions[2].overload = ""
    both.functions[2].node[0].attribute[0].i = 1
    found = on_onnxruntime(both, version)
    assert {each.path: each.answer.operators[0].axis for each in found} == {"y/w/w": 3, "z": 3}


@pytest.mark.parametrize(
    ("names", "imports", "own", "why"),
    [
        (["G", "F"], ["", "own"], True, None),
        (["G", "F"], [""], True, "the function G does not import the domain 'own'"),
        (["F"], [], True, "the function F does not import the domain ''"),
        (["F"], ["ai.onnx"], True, "the function F does not import the domain ''"),
        (["F"], [""], False, "the model does not import the domain 'own'"),
    ],
)
def test_functions_whose_domains_are_not_imported_fail_the_session(names, imports, own, why):
    made = with_functions(names, imports, own)
    for version in ("1.18.0", "1.30.0"):
        found = on_onnxruntime(made, version)
        assert {each.answer.outcome for each in found} == {"session-fails" if why else "DML"}
        assert all(why in each.answer.diagnostics[-1].message for each in found if why)
    del made.graph.node[0], made.graph.output[0]
    (found,) = on_onnxruntime(made, VERSION)
    uncalled = "session-fails" if why and own else "DML"
    assert found.answer.outcome == uncalled, "functions that are not called have to import theirs as well"


@pytest.mark.parametrize(("version", "at"), [("1.18.0", "run"), ("1.19.2", "run"), ("1.20.1", "init")])
@pytest.mark.parametrize("behind", ["a, b = Split<axis=1>(e)", "r = Relu(e) a, b = Split<axis=1>(r)"])
def test_the_sizes_of_an_einsum_are_inferred_from_1_20_on(behind, version, at):
    words = f'{{ e = Einsum<equation="ij,jk->ik">(x, y) {behind} }}'
    made = text(f"(float[2,6] x, float[6,4] y) => (float[?,?] a, float[?,?] b) {words}")
    (found,) = on_onnxruntime(made, version, run_shapes={"x": (2, 6)})
    assert (found.answer.outcome, found.answer.at) == ("DML", at)
    assert found.answer.operators[-1].input_tensor.sizes == (1, 1, 2, 4)


def test_operators_of_onnx_runtime_beside_a_concat():
    words = "(float[6,4] x) => (float[?,?] y) { q = com.microsoft.QuickGelu(x) y = Concat<axis=1>(q, x) }"
    made = text(words)
    made.opset_import.add(domain="com.microsoft", version=1)
    assert outcome(on_onnxruntime(made, VERSION)) == [("y", "DML", "init", 0)]


def test_the_sizes_of_a_quantized_lstm_are_inferred():
    made = text(
        """(float[6,1,4] x, int8[1,4,8] w, int8[1,2,8] r, float[1] s, int8[1] z) => (float[?,?,?,?] y) {
        a, h, c = com.microsoft.DynamicQuantizeLSTM<hidden_size=2>(x, w, r, , , , , , s, z, s, z)
        y = Concat<axis=3>(a, a) }"""
    )
    made.opset_import.add(domain="com.microsoft", version=1)
    assert outcome(on_onnxruntime(made, VERSION)) == [("y", "DML", "init", 0)]


def test_what_is_computed_as_an_output_is_has_the_sizes_that_are_declared_of_that():
    same = [node("Split", ["r", f"l{i}"], [f"a{i}", f"b{i}"], axis=0, name=f"S{i}") for i in (0, 1)]
    joined = node("Concat", ["a0", "b0"], ["c"], axis=1, name="C")
    inputs, outputs = [value("x", ["N", 3])], ["c", value("a1", [1, 3]), value("b1", [1, 3])]
    relu, lengths = node("Relu", ["x"], ["r"]), {"l0": np.array([1, 1]), "l1": np.array([1, 1])}

    def concat(*nodes):
        return next(
            answer for answer in outcome(ask([relu, *nodes], inputs, outputs, lengths, opset=13)) if "C" in answer
        )

    assert concat(same[0], joined, same[1]) == ("C", "DML", "init", 0)
    assert concat(*same, joined)[2] == "run", "ONNX Runtime comes to the Split in front of the Concat first"
    lengths["l1"] = np.array([1, 2])
    assert concat(same[0], joined, same[1])[2] == "run"


def test_an_operator_whose_opset_has_no_kernel_parts_the_graph():
    """Transpose 23 runs on the CPU: what is in front of it is compiled without what is behind."""
    nodes = [node("Relu", ["x"], ["r"]), node("Transpose", ["r"], ["t"])]
    nodes += [node("Split", ["t"], ["a", "b"], axis=0, name="S", num_outputs=2)]
    nodes += [node("Relu", [name], [name * 2]) for name in "ab"] + [node("Relu", ["aa"], ["z"])]
    assert outcome(ask(nodes, [X], ["z", "bb"], opset=23, ir_version=10)) == [("S", "DML", "init", 0)]
    assert outcome(ask(nodes, [X], ["z", "bb"], opset=21, ir_version=10)) == [("S", "DML", "init", 4)]
