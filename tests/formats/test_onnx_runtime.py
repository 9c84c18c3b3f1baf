"""What ONNX Runtime makes of a model: the nodes around a Split or Concat, and what is asked wrongly."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlsplit.formats.onnx
from dmlsplit.errors import InputError
from dmlsplit.formats.onnx.runtime import answer_json, on_onnxruntime
from dmlsplit.runtimes import SessionOptions

VERSION = "1.24.4"
FLOAT = TensorProto.FLOAT
node = helper.make_node


def tensor(name, shape, element_type=FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def model(nodes, inputs, outputs, initializers=(), opset=17, ir_version=8, functions=()):
    values = [onnx.ValueInfoProto(name=name) if isinstance(name, str) else name for name in outputs]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(initializers).items()]
    graph = helper.make_graph(nodes, "g", inputs, values, initializer=constants)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=functions)


def ask(*arguments, version=VERSION, given=None, **settings):
    return on_onnxruntime(model(*arguments, **settings), version, **(given or {}))


def outcome(found):
    return [(n.path, str(n.answer.outcome), n.answer.at, n.answer.compile and n.answer.compile.flags) for n in found]


def rules(found):
    return [[d.rule.removeprefix("onnxruntime/") for d in n.answer.diagnostics] for n in found]


X = tensor("x", [2, 6])
SPLIT = node("Split", ["x"], ["a", "b"], axis=1, name="S")


def test_a_node_alone():
    assert outcome(ask([SPLIT], [X], ["a", "b"])) == [("S", "DML", "init", 0)]


def test_relus_around_count_as_nodes_of_the_graph():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    nodes += [node("Relu", ["a"], ["c"]), node("Relu", ["b"], ["d"])]
    assert outcome(ask(nodes, [X], ["c", "d"])) == [("S", "DML", "init", 0)]
    nodes.append(node("Relu", ["d"], ["e"]))
    assert outcome(ask(nodes, [X], ["c", "e"])) == [("S", "DML", "init", 4)]


@pytest.mark.parametrize(("outputs", "flags"), [([], 0), (["sum"], 0), (["n"], 4)])
def test_an_activation_is_part_of_the_sum_in_front_of_it(outputs, flags):
    """Four nodes are left of five: that the sum is an output, too, changes nothing; a second reader does."""
    nodes = [SPLIT, node("Add", ["a", "a"], ["sum"]), node("Relu", ["sum"], ["r"]), node("Tanh", ["r"], ["s"])]
    nodes += [node("Concat", ["s", "b"], ["u"], axis=1)]
    nodes += [node("Sub", ["sum", "b"], ["n"])] if "n" in outputs else []
    assert outcome(ask(nodes, [X], [*outputs, "u"]))[0] == ("S", "DML", "init", flags)


def in_words(words, opset=17, functions=""):
    heading = f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]>'
    return onnx.parser.parse_model(f"{heading} {words} {functions}")


def test_an_empty_second_output_is_the_second_where_the_first_has_no_name():
    made = in_words('g (float[3,2] x) => (float[?,?] b) <int64[2] l = {2,0}> { "", b = Split<axis=1>(x, l) }')
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, rules([found])) == ("session-fails", [["second-output-empty"]])


def test_of_an_output_without_a_name_and_elements_there_is_no_empty_tensor():
    """The descriptor has no tensor for it, which DirectML refuses."""
    made = in_words('g (float[3,2] x) => (float[?,?] b) <int64[2] l = {0,2}> { "", b = Split<axis=1>(x, l) }')
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.hresults) == ("session-fails", (0x80070057,))
    made = in_words('g (float[N,2] x) => (float[?,?] b) { "", b = Split<axis=1, split=[0,2]>(x) }', opset=12)
    (found,) = on_onnxruntime(made, VERSION, run_shapes={"x": (3, 2)})
    assert (found.answer.outcome, found.answer.hresults) == ("run-fails", (0x80070057,))


@pytest.mark.parametrize(("sizes", "outcome"), [("2,7", "session-fails"), ("N,7", "session-fails"), ("2,N", "DML")])
def test_lengths_as_well_as_num_outputs_are_refused_where_the_size_is_known(sizes, outcome):
    words = f"g (float[{sizes}] x) => (float[?,?] a, float[?,?] b) <int64[2] l = {{3,4}}>"
    made = in_words(f"{words} {{ a, b = Split<axis=1, num_outputs=2>(x, l) }}", opset=18)
    (found,) = on_onnxruntime(made, VERSION, run_shapes={"x": (2, 7)})
    assert found.answer.outcome == outcome


def test_a_default_of_an_input_is_handed_over_like_an_initializer():
    made = in_words(
        "g (float[2,3] x, float[1,3] w) => (float[?,?] y) <float[1,3] w = {1,2,3}> { y = Concat<axis=0>(x, w) }"
    )
    (found,) = on_onnxruntime(made, VERSION)
    assert [tensor.flags for tensor in found.answer.operators[-1].input_tensors] == [0, 1]


@pytest.mark.parametrize(
    ("words", "lengths"), [("k = Range(s, e, s)", (1, 2, 3)), ("k = CumSum(t, z)", None), ("k = Range(s, e, z)", None)]
)
def test_lengths_that_are_computed_of_constants_are_known_or_are_not(words, lengths):
    constants = "<int64 s = {1}, int64 e = {4}, int64 z = {0}, int64[3] t = {1,1,1}>"
    made = in_words(f"g (float[2,6] x) => (float[?,?] a) {constants} {{ {words} a, b, c = Split<axis=1>(x, k) }}")
    (found,) = on_onnxruntime(made, VERSION)
    assert found.facts.lengths == lengths
    assert (found.answer.outcome == "unknown") == (lengths is None)


def test_an_output_that_a_call_gives_no_name_has_one():
    function = '<domain: "own", opset_import: ["" : 17]> F (w) => (o, u) { o, u = Split<axis=1>(w) }'
    (found,) = on_onnxruntime(
        in_words('g (float[4,6] x) => (float[?,?] y) { y, "" = own.F(x) }', functions=function), VERSION
    )
    assert found.answer.outcome == "DML"
    with pytest.raises(InputError, match="F leaves out outputs of the function that it calls"):
        on_onnxruntime(in_words("g (float[4,6] x) => (float[?,?] y) { y = own.F(x) }", functions=function), VERSION)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("s = Sigmoid(a) m = Mul(a, s) u = Exp(m) y = Concat<axis=1>(u, b)", 0),
        ("s = Sigmoid(a) m = Mul(s, a) u = Max(m, s) y = Concat<axis=1>(u, b)", 4),
        ("s = Sigmoid(a) m = Mul(s, b) u = Exp(m) y = Concat<axis=1>(u, b)", 4),
        ("s = Neg(a) m = Min(a, s) u = Slice(m, z, o, o) y = Concat<axis=1>(u, b)", 4),
        ("s = Add(a, w) m = Mul(s, s) u = Abs(m) y = Concat<axis=1>(u, b)", 4),
        ("s = Add(a, f) m = Mul(s, s) u = Abs(m) y = Concat<axis=1>(u, b)", None),
        ("s = Add(a, w) m = Mul(s, s) u = Tanh(m) y = Concat<axis=1>(u, b)", None),
    ],
    ids=["gate", "gate that is read", "no gate", "slice", "weights", "neutral weights", "weights in a pattern"],
)
def test_what_optimization_leaves_of_the_nodes_is_counted(words, flags):
    """x * Sigmoid(x) becomes one node where nothing else reads the Sigmoid; of weights little is known."""
    constants = "<int64[1] z = {0}, int64[1] o = {1}, float w = {2}, float f = {0}>"
    made = in_words(f"g (float[2,6] x) => (float[?,?] y) {constants} {{ a, b = Split<axis=1>(x) {words} }}")
    answer = on_onnxruntime(made, VERSION)[0].answer
    assert (answer.compile and answer.compile.flags, answer.outcome) == (flags, "unknown" if flags is None else "DML")


@pytest.mark.parametrize(("inputs", "outcome"), [("x, w", "session-fails"), ("x, w, c", "DML")])
def test_a_gemm_without_c_in_front_of_an_activation_fails_the_session(inputs, outcome):
    constants = "<float[2,2] w = {1,2,3,4}, float[2] c = {1,2}>"
    made = in_words(
        f"g (float[2,2] x) => (float[?,?] a) {constants} {{ m = Gemm({inputs}) r = Relu(m) a, b = Split(r) }}"
    )
    assert on_onnxruntime(made, VERSION)[0].answer.outcome == outcome


def test_a_fused_graph_that_nothing_reads_fails_the_session_for_all():
    made = in_words("g (float[2,6] x) => (float[?,?] a) { a, b = Split<axis=1>(x) c = Exp(x) d = Abs(c) }")
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.operators) == ("session-fails", ())
    assert "nothing reads what the fused graph of c computes" in found.answer.diagnostics[-1].message


def test_a_name_of_the_outer_graph_may_be_computed_in_a_branch():
    """As exporters write it that give an output of the branch the name of the If's own. Other names are refused."""
    inner = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    inner += [node("Concat", ["a", "a"], ["c"], axis=1, name="C"), node("Identity", ["c"], ["c_out"])]
    branch = helper.make_graph(inner, "branch", [], [onnx.ValueInfoProto(name="c_out")])
    nodes = [node("If", ["k"], ["c"], then_branch=branch, else_branch=branch, name="I")]
    made = model(nodes, [X, tensor("k", [], TensorProto.BOOL)], ["c"])
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
    made = model([node("Relu", ["x"], ["r"]), *nodes], [X, tensor("k", [], TensorProto.BOOL)], ["c"])
    found = on_onnxruntime(made, VERSION)
    assert {str(n.answer.outcome) for n in found} == {"session-fails"}
    assert "r is computed in a graph of a node, and known before it" in found[0].answer.diagnostics[-1].message


BRANCHES = (
    "then_branch = t () => (float[?,?] a) { a, b = Split<axis=1>(r) }, "
    "else_branch = e () => (float[?,?] d) { d, e = Split<axis=0>(r) }"
)


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("k = Constant<value = bool {1}>()", "then"),
        ("k = Not(yes)", "else"),
        ("z = Size(x) n = Constant<value = int64 {12}>() k = Equal(z, n)", "then"),
        ("k = Identity(given)", "both"),
        ("k = Identity(default)", "both"),
    ],
)
def test_a_branch_that_is_always_taken_comes_in_the_place_of_the_if(condition, taken):
    """The other one is gone, and what is around the If is fused with what is in it."""
    head = "g (float[2,6] x, bool given, bool default) => (float[?,?] y) <bool yes = {1}, bool default = {1}>"
    around = f"r = Relu(x) {condition} s = If(k)<{BRANCHES}> t = Tanh(s) u = Sigmoid(t) v = Concat<axis=1>(s, u)"
    made = in_words(f"{head} {{ {around} y = Add(v, v) }}")
    found = {n.path: n.on_onnxruntime(VERSION) for n in dmlsplit.formats.onnx.read(made)}
    for branch, path in (("then", "If.then_branch/a"), ("else", "If.else_branch/d")):
        answer = found[path]
        told = str(answer.outcome), answer.compile and answer.compile.flags, [d.rule for d in answer.diagnostics]
        if taken == "both":
            assert told == ("DML", 0, [])
        elif taken == branch:
            assert told == ("DML", 4, [])
        else:
            assert told == ("CPU", None, ["onnxruntime/branch-not-taken"])
    options = SessionOptions(optimization=0)
    assert len(on_onnxruntime(made, VERSION, options=options)) == 3, "only optimization does it"


def test_an_identity_does_not_count():
    nodes = [SPLIT, node("Identity", ["a"], ["i"]), *(node("Relu", [name], [name * 2]) for name in "ib")]
    nodes.append(node("Relu", ["ii"], ["z"]))
    assert outcome(ask(nodes, [X], ["z", "bb"])) == [("S", "DML", "init", 0)]


def test_sizes_of_the_run_reach_nodes_further_down():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=1, name="S")]
    found = ask(nodes, [tensor("x", ["N", 6])], ["a", "b"], given={"run_shapes": {"x": (5, 6)}})
    assert outcome(found) == [("S", "DML", "run", 0)]
    assert found[0].answer.operators[0].input_tensor.sizes == (1, 1, 5, 6)


def test_a_free_dimension_is_static():
    found = ask([SPLIT], [tensor("x", ["N", 6])], ["a", "b"], given={"free_dimensions": {"N": 3}})
    assert outcome(found) == [("S", "DML", "init", 0)]


def test_values_of_the_run_are_lengths():
    nodes = [node("Split", ["x", "lengths"], ["a", "b"], axis=1, name="S")]
    inputs = [X, tensor("lengths", [2], TensorProto.INT64)]
    given = {"run_shapes": {"x": (2, 6)}, "run_values": {"lengths": (1, 5)}}
    found = ask(nodes, inputs, ["a", "b"], given=given)
    assert [part.sizes[-1] for part in found[0].answer.operators[0].output_tensors] == [1, 5]


def test_lengths_of_a_static_shape_are_folded():
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["g"]), node("Div", ["g", "two"], ["d"])]
    nodes += [node("Concat", ["d", "d"], ["lengths"], axis=0, name="C")]
    nodes += [node("Split", ["x", "lengths"], ["a", "b"], axis=1, name="S")]
    constants = {"one": [1], "two": [2]}
    assert outcome(ask(nodes, [X], ["a", "b"], constants)) == [("C", "CPU", "init", None), ("S", "DML", "init", 0)]
    found = ask(nodes, [tensor("x", ["N", 6])], ["a", "b"], constants, given={"run_shapes": {"x": (2, 6)}})
    assert outcome(found) == [("C", "CPU", None, None), ("S", "DML", "run", 0)]
    assert rules(found)[0] == ["prefers-cpu"]


def test_a_graph_with_an_if_is_not_fused_but_its_branches_are():
    bodies = [
        helper.make_graph(
            [node("Split", ["x"], [f"{b}0", f"{b}1"], axis=1, name="S")], b, [], [tensor(f"{b}0", [2, 3])]
        )
        for b in ("t", "e")
    ]
    nodes = [SPLIT, node("If", ["c"], ["y"], then_branch=bodies[0], else_branch=bodies[1], name="If")]
    found = ask(nodes, [X, tensor("c", [], TensorProto.BOOL)], ["a", "b", "y"])
    assert outcome(found) == [
        ("If.else_branch/S", "DML", "init", 0),
        ("If.then_branch/S", "DML", "init", 0),
        ("S", "DML", "run", 0),
    ]


def test_a_function_is_followed():
    body = [
        node("Split", ["v"], ["p", "q"], axis=1, name="cut"),
        node("Concat", ["q", "p"], ["w"], axis=1, name="join"),
    ]
    swap = helper.make_function("own", "Swap", ["v"], ["w"], body, [helper.make_opsetid("", 17)])
    found = ask([node("Swap", ["x"], ["y"], domain="own", name="call")], [X], ["y"], functions=[swap])
    assert outcome(found) == [("call/cut", "DML", "init", 0), ("call/join", "DML", "init", 0)]


def test_a_function_that_calls_itself_is_one_clear_error():
    endless = helper.make_function(
        "own", "F", ["v"], ["w"], [node("F", ["v"], ["w"], domain="own")], [helper.make_opsetid("", 17)]
    )
    with pytest.raises(InputError, match="call themselves"):
        ask([node("F", ["x"], ["y"], domain="own")], [X], ["y"], functions=[endless])


def test_a_neighbour_of_rank_9_fails_the_session_for_all():
    nodes = [SPLIT, node("Relu", ["w"], ["v"], name="R")]
    found = ask(nodes, [X, tensor("w", [1] * 9)], ["a", "b", "v"])
    assert outcome(found) == [("S", "session-fails", "init", None)]
    assert "R has a static tensor of rank 9" in found[0].answer.diagnostics[-1].message


def test_a_block_of_an_intermediate_for_one_elementwise_operator_is_refused():
    nodes = [node("Relu", ["x"], ["r"]), node("Split", ["r"], ["a", "b"], axis=0, name="S"), node("Tanh", ["a"], ["y"])]
    found = ask(nodes, [tensor("x", [8])], ["y"])
    assert (outcome(found), rules(found)) == ([("S", "session-fails", "init", None)], [["graph-refused"]])
    both = [*nodes, node("Tanh", ["b"], ["z"])]
    assert outcome(ask(both, [tensor("x", [8])], ["y", "z"])) == [("S", "DML", "init", 0)]


@pytest.mark.parametrize("version", ["1.18.0", "1.24.4", "1.30.0"])
@pytest.mark.parametrize(
    ("rows", "of", "refused"), [(1, "Mul(c, c)", True), (1, "Identity(c)", True), (2, "Abs(c)", False)]
)
def test_a_block_that_a_slice_takes_behind_a_concat_is_refused_as_well(version, rows, of, refused):
    made = in_words(
        f"g (float[{rows},4] x, float[{rows},4] z) => (float[?,?] o) <int64[1] s = {{0}}, int64[1] e = {{4}}, "
        f"int64[1] a = {{1}}> {{ c = Concat<axis=1>(x, z) m = {of} p = Slice(m, s, e, a) o = Sub(p, z) }}"
    )
    (found,) = on_onnxruntime(made, version)
    assert (rules([found]) == [["graph-refused"]]) is refused
    assert len(found.answer.operators) == 1


def test_a_refused_graph_without_splits_fails_the_session_of_a_concat_elsewhere():
    made = in_words(
        "g (float[1,8] x, float[1,4] y) => (float[?,?] o, float[?,?] c) <int64[1] s = {0}, int64[1] e = {4}, "
        "int64[1] a = {1}> { c = Concat<axis=1>(y, y) m = Tanh(x) p = Slice(m, s, e, a) o = Relu(p) }"
    )
    (found,) = on_onnxruntime(made, VERSION)
    assert rules([found]) == [["session-fails-elsewhere"]]


def submitted(words):
    """How many operators of each node are submitted, and whether it is compiled, in a session that fails."""
    found = on_onnxruntime(in_words(words), VERSION)
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
    ],
)
def test_what_is_behind_the_first_failure_is_not_submitted(nodes, expected):
    assert (
        submitted(f"g (float[6,4] x) => (float[?,?] a, float[?,?] c) <float[6,1] w = {{1,2,3,4,5,6}}> {{ {nodes} }}")
        == expected
    )


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
    words = "g (float[6,4] x, bool q) => (float[?,?] k, float[?,?] z) { z = Concat<axis=0>(x, x) k = If (q) "
    assert [count for _, count, _ in submitted(f"{words} <then_branch = {then}, else_branch = {other}> }}")] == expected


def test_a_split_that_nothing_reads_fails_the_session():
    found = ask([SPLIT, node("Relu", ["x"], ["y"])], [X], ["y"])
    assert (outcome(found), rules(found)) == ([("S", "session-fails", "init", None)], [["graph-without-outputs"]])


def test_a_concat_that_nothing_reads_beside_others_is_not_compiled():
    found = ask([SPLIT, node("Concat", ["a", "a"], ["c"], axis=0, name="C")], [X], ["a", "b"])
    assert (outcome(found)[1], rules(found)[1]) == (("C", "DML", "init", None), ["not-read"])


def computed_length(number):
    """The size of axis 1 as a length, from initializers of its own; a Split by it."""
    nodes = [node("Shape", ["x"], [f"s{number}"]), node("Gather", [f"s{number}", f"i{number}"], [f"g{number}"])]
    nodes.append(node("Concat", [f"g{number}"], [f"c{number}"], axis=0, name=f"C{number}"))
    return [*nodes, node("Split", ["x", f"c{number}"], [f"y{number}"], axis=1 - 2 * number, name=f"S{number}")]


@pytest.mark.parametrize(
    ("second", "once"), [([1], True), ([0], False), (np.array([1], np.int32), False)], ids=["equal", "value", "type"]
)
def test_nodes_behind_equal_initializers_are_computed_once(second, once):
    constants = {"i0": np.array([1]), "i1": np.asarray(second)}
    nodes = [*computed_length(0), *computed_length(1)]
    found = ask(nodes, [tensor("x", ["N", "M"])], ["y0", "y1"], constants)
    assert [n.path for n in found if "onnxruntime/computed-once" in {d.rule for d in n.answer.diagnostics}] == (
        ["C0"] if once else []
    )
    both = ask(nodes, [tensor("x", ["N", "M"])], ["y0", "y1", "c0", "c1"], constants)
    assert not any("computed-once" in names for names in rules(both)), "what the model gives is not taken away"


def test_an_output_that_is_read_keeps_a_node_that_repeats_another():
    """The graph gives b0, and a1 is read: neither Split can stand for the other."""
    same = [node("Split", ["r"], [f"a{i}", f"b{i}"], axis=1, name=f"S{i}") for i in (0, 1)]
    nodes = [node("Relu", ["x"], ["r"]), *same, node("Tanh", ["a1"], ["y"]), node("Tanh", ["b1"], ["z"])]
    found = ask(nodes, [X], ["b0", "y", "z"], opset=13)
    assert [flags for *_, flags in outcome(found)] == [4, 4]
    assert not any("computed-once" in names for names in rules(found))


def test_what_is_computed_as_an_output_is_has_the_sizes_that_are_declared_of_that():
    same = [node("Split", ["r", f"l{i}"], [f"a{i}", f"b{i}"], axis=0, name=f"S{i}") for i in (0, 1)]
    joined = node("Concat", ["a0", "b0"], ["c"], axis=1, name="C")
    inputs, outputs = [tensor("x", ["N", 3])], ["c", tensor("a1", [1, 3]), tensor("b1", [1, 3])]
    relu, lengths = node("Relu", ["x"], ["r"]), {"l0": np.array([1, 1]), "l1": np.array([1, 1])}

    def concat(*nodes):
        return next(
            answer for answer in outcome(ask([relu, *nodes], inputs, outputs, lengths, opset=13)) if "C" in answer
        )

    assert concat(same[0], joined, same[1]) == ("C", "DML", "init", 0)
    assert concat(*same, joined)[2] == "run", "ONNX Runtime comes to the Split in front of the Concat first"
    lengths["l1"] = np.array([1, 2])
    assert concat(same[0], joined, same[1])[2] == "run"


def test_splits_that_differ_in_their_outputs_only_are_not_predicted():
    nodes = [SPLIT, node("Split", ["x"], ["c", "d", "e"], axis=1, name="T")]
    found = ask(nodes, [X], list("abcde"), opset=13)
    assert {n.answer.outcome for n in found} == {"unknown"}
    assert rules(found) == [["twins-differ"]] * 2


def test_a_split_between_transposes_is_not_predicted():
    nodes = [node("Transpose", ["x"], ["t"]), node("Split", ["t"], ["a", "b"], axis=0, name="S")]
    nodes.append(node("Transpose", ["a"], ["y"]))
    assert rules(ask(nodes, [X], ["y", "b"])) == [["context-unknown"]]
    assert outcome(ask(nodes[:2], [X], ["a", "b"])) == [("S", "DML", "init", 0)]


def test_two_transposes_in_front_of_a_concat_may_become_one_behind_it():
    nodes = [node("Transpose", ["x"], ["t"]), node("Concat", ["t", "t"], ["y"], axis=0, name="C")]
    assert rules(ask(nodes, [X], ["y"])) == [["context-unknown"]]
    nodes[1] = node("Concat", ["t", "z"], ["y"], axis=0, name="C")
    assert outcome(ask(nodes, [X, tensor("z", [6, 2])], ["y"])) == [("C", "DML", "init", 0)]


def test_an_operator_whose_opset_has_no_kernel_parts_the_graph():
    """Transpose 23 runs on the CPU: what is in front of it is compiled without what is behind."""
    nodes = [node("Relu", ["x"], ["r"]), node("Transpose", ["r"], ["t"])]
    nodes += [node("Split", ["t"], ["a", "b"], axis=0, name="S", num_outputs=2)]
    nodes += [node("Relu", [name], [name * 2]) for name in "ab"] + [node("Relu", ["aa"], ["z"])]
    assert outcome(ask(nodes, [X], ["z", "bb"], opset=23, ir_version=10)) == [("S", "DML", "init", 0)]
    assert rules(ask(nodes, [X], ["z", "bb"], opset=21, ir_version=10)) == [["context-unknown"]]


def test_the_json_of_an_answer():
    (found,) = ask([SPLIT], [X], ["a", "b"])
    written = json.loads(json.dumps(answer_json(found.answer)))
    assert list(written) == ["version", "outcome", "at", "operators", "hresults", "compile"]
    assert written["operators"][0]["Type"] == "DML_OPERATOR_SPLIT"
    assert (written["hresults"], written["compile"]) == (["0x00000000"], {"call": "CompileGraph", "flags": 0})


def test_a_path_and_bytes_are_read_alike(tmp_path):
    made = model([SPLIT], [X], ["a", "b"])
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    assert on_onnxruntime(path, VERSION) == on_onnxruntime(made.SerializeToString(), VERSION)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run_shapes": {"z": (1,)}}, "there is no tensor 'z'"),
        ({"run_shapes": {"x": (3, 6)}}, "the model has"),
        ({"free_dimensions": {"N": 1}}, "there is no symbolic dimension 'N'"),
        ({"run_values": {"z": (1,)}}, "there is no tensor 'z'"),
    ],
)
def test_what_the_model_does_not_have(given, message):
    with pytest.raises(InputError, match=message):
        ask([SPLIT], [X], ["a", "b"], given=given)


def test_what_is_no_model():
    with pytest.raises(InputError, match="not an ONNX model"):
        on_onnxruntime(b"\xff\xff", VERSION)
    with pytest.raises(ValueError, match="unknown version"):
        on_onnxruntime(model([SPLIT], [X], ["a", "b"]), "0.1")


def weights(*shape):
    return np.ones(shape, np.float32)


def test_a_transpose_is_not_moved_over_a_convolution():
    nodes = [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]), node("Conv", ["t", "w"], ["c"])]
    nodes += [node("Split", ["c"], ["a", "b"], axis=1, name="S"), node("Conv", ["a", "v"], ["d"])]
    nodes += [node("Transpose", ["d"], ["y"], perm=[0, 2, 3, 1]), node("Conv", ["b", "u"], ["e"])]
    nodes.append(node("Conv", ["e", "v"], ["f"]))
    constants = {"w": weights(4, 4, 1, 1), "v": weights(2, 2, 1, 1), "u": 2 * weights(2, 2, 1, 1)}
    image = [tensor("x", [1, 8, 8, 4])]
    assert outcome(ask(nodes, image, ["y", "f"], constants)) == [("S", "DML", "init", 4)]
    nodes[3:4] = [node("Relu", ["a"], ["d"]), node("MaxPool", ["c"], ["p"], kernel_shape=[1, 1])]
    assert outcome(ask(nodes, image, ["y", "f", "p"], constants)) == [("S", "DML", "init", 4)], "one side is enough"
    nodes[1] = node("Relu", ["t"], ["c"])
    assert rules(ask(nodes, image, ["y", "f", "p"], constants)) == [["context-unknown"]]


def test_convolutions_are_nodes_whatever_joins_them():
    nodes = [node("Conv", [f"c{i}" if i else "x", f"w{i}"], [f"c{i + 1}"]) for i in range(4)]
    nodes.append(node("Split", ["c4"], ["a", "b"], axis=1, name="S"))
    kernels = {f"w{i}": weights(4, 4, 1, 1) * (i + 1) for i in range(4)}
    assert outcome(ask(nodes, [tensor("x", [1, 4, 8, 8])], ["a", "b"], kernels)) == [("S", "DML", "init", 4)]


def test_sizes_that_are_computed_are_known_at_the_first_run():
    """As of the anchors of a detector: Range, ConstantOfShape and Expand of sizes."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Squeeze", ["n"], ["m"])]
    nodes += [node("Range", ["zero", "m", "step"], ["r"]), node("ConstantOfShape", ["n"], ["f"])]
    nodes += [node("Cast", ["r"], ["rf"], to=FLOAT), node("Add", ["f", "rf"], ["g"]), node("Expand", ["g", "n"], ["e"])]
    nodes.append(node("Concat", ["e", "g"], ["y"], axis=0, name="C"))
    constants = {"one": [1], "zero": np.int64(0), "step": np.int64(1)}
    (found,) = ask(nodes, [tensor("x", ["N", "M"])], ["y"], constants, given={"run_shapes": {"x": (2, 6)}})
    assert (found.answer.outcome, found.answer.at) == ("DML", "run"), "what the CPU reads does not keep it there"
    assert [part.sizes for part in found.answer.operators[0].input_tensors] == [(1, 1, 1, 6)] * 2


KEPT, CONSTANT, UNKNOWN = ("CPU", None), ("CPU", "init"), ("unknown", None)


@pytest.mark.parametrize(
    ("words", "fate"),
    [
        ("n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape(r, c)", CONSTANT),
        ("n = Gather(s, one) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c4, c2) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape(r, c)", CONSTANT),
        ("z = Size(r) u = Unsqueeze(z, u0) c = Concat<axis=0>(u, c1, c1) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, m1, c4) y = Reshape(r, c)", KEPT),
        ("n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, m1, c4) y = Reshape(r, c)", CONSTANT),
        ("u = Gather(s, u0) v = Gather(s, c1) c = Concat<axis=0>(u, v, c4) y = Reshape(r, c)", KEPT),
        ("u = Slice(s, u0, c2, u0) c = Concat<axis=0>(u, c4) y = Reshape(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Reshape<allowzero=1>(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) y = Expand(r, c)", KEPT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) i = Identity(c) y = Reshape(r, i)", CONSTANT),
        ("u = Gather(s, u0) c = Concat<axis=0>(u, c6, c4) i = Cast<to=7>(c) y = Reshape(r, i)", UNKNOWN),
        ("u = Gather(s, u0) v = Mul(u, c1) c = Concat<axis=0>(u, v, c4) y = Reshape(r, c)", UNKNOWN),
        (
            "n = Gather(s, one) u = Unsqueeze(n, u0) m = Gather(s, two) v = Unsqueeze(m, u0) "
            "c = Concat<axis=0>(u, c21, v) y = Reshape(r, c)",
            KEPT,
        ),
    ],
)
def test_the_shape_for_a_reshape_becomes_a_constant(words, fate):
    """With 0 for a size that stays where it is, and -1 for one other at most. Observed: what each of these does."""
    constants = "int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] u0 = {0}, int64[1] c1 = {1}, "
    constants += "int64[1] c2 = {2}, int64[1] c4 = {4}, int64[1] c6 = {6}, int64[1] m1 = {-1}, int64[2] c21 = {2,1}"
    made = in_words(f"g (float[N,6,4] x) => (float[?,?,?] y) <{constants}> {{ r = Relu(x) s = Shape(r) {words} }}")
    (found,) = on_onnxruntime(made, VERSION)
    assert (found.answer.outcome, found.answer.at) == fate


def test_a_size_of_another_tensor_is_one_that_the_reshape_keeps_since_1_25():
    words = "s = Shape(w) n = Gather(s, zero) u = Unsqueeze(n, u0) m = Gather(s, one) v = Unsqueeze(m, u0)"
    constants = "int64 zero = {0}, int64 one = {1}, int64[1] u0 = {0}, int64[1] c4 = {4}"
    head = f"g (float[N,6,4] x, float[N,6,4] w) => (float[?,?,?] y) <{constants}>"
    made = in_words(f"{head} {{ {words} c = Concat<axis=0>(u, v, c4) y = Reshape(x, c) }}")
    answers = {version: on_onnxruntime(made, version)[0].answer.outcome for version in ("1.24.4", "1.30.0")}
    assert answers == {"1.24.4": "CPU", "1.30.0": "unknown"}


def test_a_reshape_to_a_constant_may_be_of_a_static_shape():
    words = "s = Shape(w) n = Gather(s, zero) u = Unsqueeze(n, u0) c = Concat<axis=0>(u, c2) y = Reshape(x, c)"
    head = "g (float[2,6] x, float[N] w) => (float[?,?] a, float[?,?] b)"
    head += "<int64 zero = {0}, int64[1] u0 = {0}, int64[1] c2 = {2}>"
    found = on_onnxruntime(in_words(f"{head} {{ {words} a, b = Split<axis=1>(y) }}"), VERSION, run_shapes={"w": (6,)})
    assert [node.answer.outcome for node in found] == ["CPU", "unknown"]


@pytest.mark.parametrize(
    ("other", "opset", "named"),
    [
        (node("Identity", ["a"], []), 17, "Identity writes 0 tensors: 1"),
        (node("Identity", [], ["y"]), 17, "Identity y reads 0 tensors"),
        (node("Where", ["a"], ["y"]), 17, "Where y reads 1 tensors: 3"),
        (node("Where", ["a"], ["y"]), 1, "Where y has an operator that opset 1 does not have"),
        (node("Slice", ["a", "", ""], ["y"]), 17, "Slice y lacks an input"),
    ],
    ids=["output", "input", "two inputs", "operator", "unnamed input"],
)
def test_a_node_that_contradicts_its_operator_is_one_clear_error(other, opset, named):
    with pytest.raises(InputError) as error:
        ask([SPLIT, other], [X], ["a", "b"], opset=opset)
    assert str(error.value).startswith(named)


def test_an_opset_that_no_int_holds_is_too_new():
    found = ask([SPLIT, node("Relu", ["a"], ["y"])], [X], ["b", "y"], opset=2**62)
    assert rules(found) == [["opset-too-new"]]


def test_what_keeps_a_model_from_being_predicted_is_found_once(monkeypatch):
    from dmlsplit.formats.onnx.runtime import session
    from dmlsplit.formats.sessions import graph_diagnostics, judged_in_session
    from dmlsplit.target import find_target

    tried = []

    def refuse(proto):
        tried.append(proto)
        raise InputError("it contradicts itself")

    monkeypatch.setattr(session, "check_arity", refuse)
    nodes = [node("Split", ["x"], [f"a{i}", f"b{i}"], axis=1, name=f"S{i}") for i in range(5)]
    for each in dmlsplit.formats.onnx.read(model(nodes, [X], ["a0"], opset=13)):
        assert graph_diagnostics(each, find_target()) == ()
        _, answer = judged_in_session(each, find_target(onnxruntime=VERSION))
        assert [d.message for d in answer.diagnostics] == ["it contradicts itself"]
    assert len(tried) == 1
