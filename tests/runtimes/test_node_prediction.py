"""What a version of ONNX Runtime does with one node: each habit by an example."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.onnxruntime import FirstRun, LengthsFrom, RuntimeFacts, SessionOptions, find_runtime
from dmlsplit.onnxruntime.node_prediction import predict
from dmlsplit.rules import RULES

SPLIT = RuntimeFacts(
    OperatorType.SPLIT, 13, "FLOAT", ((1, 2, 6, 4),), axis=2, outputs=2, given=LengthsFrom.CONSTANT, lengths=(2, 4)
)
COUNTED = replace(SPLIT, opset=18, given=LengthsFrom.NUM_OUTPUTS, lengths=None)
CONCAT = RuntimeFacts(OperatorType.JOIN, 13, "FLOAT", ((1, 2, 2, 4), (1, 2, 4, 4)), axis=2)
OPEN = replace(SPLIT, shapes=(("N", 2, 6, 4),))


def ask(facts, version="1.24.4", **given):
    return predict(facts, find_runtime(version), path="node", **given)


def rules(answer):
    return [diagnostic.rule.removeprefix("onnxruntime/") for diagnostic in answer.diagnostics]


def call(answer):
    return None if answer.compile is None else (answer.compile.call, answer.compile.flags)


def sizes(answer):
    (split,) = answer.operators
    return [split.input_tensor.sizes, *(tensor.sizes for tensor in split.output_tensors)], split.axis


def test_a_static_node_is_part_of_a_fused_graph():
    answer = ask(SPLIT)
    assert (answer.outcome, answer.at, call(answer)) == ("DML", "init", ("CompileGraph", 0))
    assert answer.operators == (
        dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 2, 6, 4)), 2, (2, 4)),
    )
    assert answer.hresults == (0,)


@pytest.mark.parametrize(("nodes", "flags"), [(4, 0), (5, 4), (6, 4)])
def test_a_graph_of_five_nodes_is_compiled_with_volatile_descriptors(nodes, flags):
    assert call(ask(SPLIT, graph_nodes=nodes)) == ("CompileGraph", flags)
    assert call(ask(SPLIT, graph_nodes=1, options=SessionOptions(compute_only=True))) == ("CompileGraph", 4)


def test_a_graph_of_which_the_size_is_not_known():
    answer = ask(SPLIT, graph_nodes=None)
    assert (answer.outcome, answer.at, call(answer), rules(answer)) == ("DML", "init", ("CompileGraph", None), [])


def test_a_join_is_the_other_way_round():
    answer = ask(CONCAT)
    (join,) = answer.operators
    assert [tensor.sizes for tensor in join.input_tensors] == [(1, 2, 2, 4), (1, 2, 4, 4)]
    assert (join.output_tensor.sizes, join.axis, call(answer)) == ((1, 2, 6, 4), 2, ("CompileGraph", 0))


@pytest.mark.parametrize(
    ("shape", "axis", "found"),
    [
        ((6,), 0, ([(1, 1, 1, 6), (1, 1, 1, 2), (1, 1, 1, 4)], 3)),
        ((6, 2), -2, ([(1, 1, 6, 2), (1, 1, 2, 2), (1, 1, 4, 2)], 2)),
        ((2, 1, 1, 1, 6), 4, ([(2, 1, 1, 1, 6), (2, 1, 1, 1, 2), (2, 1, 1, 1, 4)], 4)),
    ],
)
def test_shapes_get_leading_ones_up_to_rank_4(shape, axis, found):
    assert sizes(ask(replace(SPLIT, shapes=(shape,), axis=axis))) == found


def test_totals_are_rounded_up_to_4_bytes():
    (split,) = ask(replace(SPLIT, data_type="BOOL", shapes=((1, 1, 6, 1),))).operators
    assert split.input_tensor.data_type is dml.TensorDataType.UINT8
    assert [tensor.total_tensor_size_in_bytes for tensor in split.output_tensors] == [4, 4]


def test_open_sizes_are_those_of_the_first_run():
    answer = ask(OPEN, first_run=FirstRun(((3, 2, 6, 4),)))
    assert (answer.outcome, answer.at, call(answer)) == ("DML", "run", ("CompileOperator", 0))
    assert sizes(answer)[0][0] == (3, 2, 6, 4)
    assert rules(answer) == ["made-at-run"]


def test_open_sizes_without_a_run_are_unknown():
    answer = ask(OPEN)
    assert (answer.outcome, answer.at, rules(answer)) == ("unknown", "run", ["sizes-unknown"])
    assert "--shape" in answer.diagnostics[0].message


def test_half_precision_is_allowed_outside_of_a_graph_only():
    half = replace(OPEN, data_type="FLOAT16")
    assert call(ask(half, first_run=FirstRun(((3, 2, 6, 4),)))) == ("CompileOperator", 1)
    assert call(ask(replace(SPLIT, data_type="FLOAT16"))) == ("CompileGraph", 0)


def test_lengths_that_a_run_gives():
    facts = replace(SPLIT, given=LengthsFrom.COMPUTED, lengths=None)
    assert call(ask(facts, first_run=FirstRun(((1, 2, 6, 4),), (2, 4)))) == ("CompileOperator", 0)
    assert ask(facts).outcome == "unknown"
    wrong = ask(facts, first_run=FirstRun(((1, 2, 6, 4),), (2, 2)))
    assert (wrong.outcome, rules(wrong)[-1], wrong.operators) == ("run-fails", "lengths-do-not-fit", ())


def test_without_fusion_a_node_is_compiled_alone():
    answer = ask(SPLIT, options=SessionOptions(graph_fusion=False))
    assert (answer.at, call(answer), rules(answer)) == ("init", ("CompileOperator", 0), ["outside-graph"])
    equal = replace(SPLIT, given=LengthsFrom.EQUAL, lengths=None)
    assert ask(equal, options=SessionOptions(graph_fusion=False)).at == "run"


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"opset": 26}, "opset-too-new"),
        ({"ir_version": 14}, "ir-version-too-new"),
        ({"data_type": "COMPLEX64"}, "type-not-loaded"),
        ({"data_type": "BFLOAT16", "opset": 12, "given": LengthsFrom.ATTRIBUTE}, "type-not-loaded"),
        ({"opset": 1, "given": LengthsFrom.ATTRIBUTE}, "no-kernel"),
        ({"lengths": (2, 3)}, "inference-fails"),
        ({"lengths": (2, 2, 2)}, "inference-fails"),
        ({"axis": 4}, "inference-fails"),
        ({"axis": 0, "shapes": ((),), "given": LengthsFrom.EQUAL, "lengths": None}, "inference-fails"),
        ({"outputs": 4, "given": LengthsFrom.EQUAL, "lengths": None}, "inference-fails"),
        ({"outputs": 0, "given": LengthsFrom.EQUAL, "lengths": None}, "inference-fails"),
        ({"opset": 18, "given": LengthsFrom.EQUAL, "lengths": None}, "inference-fails"),
        ({"shapes": ((1, 1, 2**31, 1),), "lengths": (1, 2**31 - 1)}, "inference-fails"),
        ({"shapes": ((2,) * 8 + (6,),), "axis": 8}, "rank"),
        ({"lengths": (6, 0)}, "second-output-empty"),
        ({"lengths": (7, -1)}, "negative-length"),
        ({"shapes": ((2**32, 1, 6, 1),)}, "size-beyond-32-bits"),
        ({"omitted": (1,)}, "output-omitted"),
        ({"shapes": ((1, 65536, 6, 65536),)}, "refused-by-directml"),
    ],
)
def test_what_fails_the_session(changes, rule):
    answer = ask(replace(SPLIT, **changes))
    assert (answer.outcome, answer.at, rules(answer)[-1]) == ("session-fails", "init", rule)
    assert bool(answer.operators) is (rule in ("output-omitted", "refused-by-directml"))
    assert [hresult for hresult in answer.hresults if hresult == 0] == []


def test_an_omitted_output_is_submitted_as_an_invalid_tensor():
    answer = ask(replace(SPLIT, omitted=(1,)))
    assert answer.operators[0].output_tensors[1] == dml.TensorDesc(dml.TensorType.INVALID, None)
    assert answer.hresults == (0x80070057,)


def test_rank_9_fails_the_run_where_sizes_are_open():
    facts = replace(SPLIT, shapes=(("N", *(1,) * 7, 6),), axis=8)
    answer = ask(facts, first_run=FirstRun(((1,) * 8 + (6,),)))
    assert (answer.outcome, answer.at, rules(answer)[-1]) == ("run-fails", "run", "rank")


@pytest.mark.parametrize("rank", [8, 9])
@pytest.mark.parametrize("given", [LengthsFrom.CONSTANT, LengthsFrom.COMPUTED])
@pytest.mark.parametrize("first", ["N", 1])
def test_rank_9_fails_the_run_whatever_its_sizes_and_lengths_are(rank, given, first):
    lengths = (2, 4) if given is LengthsFrom.CONSTANT else None
    facts = replace(SPLIT, shapes=((first, *(1,) * (rank - 2), 6),), axis=rank - 1, given=given, lengths=lengths)
    answer = ask(facts)
    known = first == 1 and lengths is not None
    expected = {8: ("DML", "init") if known else ("unknown", "run")}
    expected[9] = ("session-fails", "init") if known else ("run-fails", "run")
    assert (answer.outcome, answer.at) == expected[rank]
    assert (rules(answer)[-1:] == ["rank"]) is (rank == 9)


def test_rank_9_fails_the_run_of_a_split_without_elements():
    """Observed in seven versions: the session is made, and Run ends with 80070057."""
    answer = ask(replace(SPLIT, shapes=((*(1,) * 7, 2, 0),), axis=7, given=LengthsFrom.EQUAL, lengths=None))
    assert (answer.outcome, answer.at, rules(answer)[-1]) == ("run-fails", "run", "rank")


@pytest.mark.parametrize("lengths", [(0, 6), (2, 4, 0), (0, 6, 0)])
def test_a_part_without_elements_keeps_all_parts_from_being_written(lengths):
    answer = ask(replace(SPLIT, outputs=len(lengths), lengths=lengths))
    assert (answer.outcome, answer.at, answer.operators, call(answer)) == ("DML", None, (), None)
    assert rules(answer)[-1] == "empty-part"


def test_where_no_tensor_has_elements_nothing_is_submitted_and_nothing_lost():
    answer = ask(replace(SPLIT, shapes=((0, 2, 6, 4),), outputs=2, lengths=(2, 4)))
    assert (answer.outcome, answer.at, answer.operators, call(answer)) == ("DML", None, (), None)
    assert rules(answer)[-1] == "empty-tensor"


def test_the_second_output_may_be_empty_before_opset_13():
    assert ask(replace(SPLIT, opset=11, given=LengthsFrom.ATTRIBUTE, lengths=(6, 0))).outcome == "DML"


def test_a_size_beyond_31_bits_is_no_negative_length():
    answer = ask(replace(COUNTED, shapes=((1, 2**31, 6, 4),)))
    assert (answer.outcome, rules(answer)[-1]) == ("session-fails", "refused-by-directml")


def test_a_negative_rest_of_num_outputs():
    facts = replace(COUNTED, shapes=((5,),), axis=0, outputs=4)
    assert ask(facts).outcome == "session-fails"
    declared = replace(facts, declared=((2,), (2,), (1,), (0,)))
    answer = ask(declared)
    assert (answer.outcome, answer.at, rules(answer)[-1]) == ("run-fails", "run", "negative-length")
    assert answer.operators[0].output_tensors[3].sizes == (1, 1, 1, 2**32 - 1)


@pytest.mark.parametrize(
    ("changes", "options", "rule"),
    [
        ({"data_type": "STRING"}, SessionOptions(), "type-on-cpu"),
        ({"data_type": "BFLOAT16"}, SessionOptions(), "type-on-cpu"),
        ({"data_type": "DOUBLE"}, SessionOptions(float64=False), "double-on-cpu"),
        ({"prefers_cpu": True}, SessionOptions(), "prefers-cpu"),
        ({"folded": True}, SessionOptions(), "folded"),
    ],
)
def test_what_runs_on_the_cpu(changes, options, rule):
    answer = ask(replace(SPLIT, **changes), options=options)
    assert (answer.outcome, rules(answer), answer.operators) == ("CPU", [rule], ())


def test_the_fallback_to_the_cpu_can_be_forbidden():
    answer = ask(replace(SPLIT, data_type="STRING"), options=SessionOptions(cpu_fallback=False))
    assert (answer.outcome, rules(answer)) == ("session-fails", ["cpu-fallback-disabled"])


def test_an_initializer_is_owned_by_directml_in_the_graph_only():
    kernel, graph = ask(replace(SPLIT, owned=(True,))).operators
    assert kernel.input_tensor.flags == dml.TensorFlags.NONE
    assert graph.input_tensor.flags == dml.TensorFlags.OWNED_BY_DML
    first, second = ask(replace(CONCAT, owned=(False, True))).operators[1].input_tensors
    assert (first.flags, second.flags) == (0, 1)


def test_lengths_that_are_a_default_need_declared_outputs_for_a_graph():
    facts = replace(SPLIT, given=LengthsFrom.DEFAULT)
    declared = replace(facts, declared=((1, 2, 2, 4), (1, 2, 4, 4)))
    assert call(ask(declared)) == ("CompileGraph", 0)
    assert call(ask(facts, first_run=FirstRun(((1, 2, 6, 4),), (3, 3)))) == ("CompileOperator", 0)


@pytest.mark.parametrize(("version", "at"), [("1.24.4", "run"), ("1.30.0", "init")])
def test_lengths_of_an_outer_graph(version, at):
    answer = ask(replace(SPLIT, given=LengthsFrom.OUTER), version)
    assert (answer.at, call(answer)) == (at, ("CompileOperator", 0))


def test_empty_inputs_are_left_out_of_a_join():
    answer = ask(replace(CONCAT, shapes=((1, 2, 0, 4), (1, 2, 4, 4))))
    assert (answer.operators[0].input_count, call(answer)) == (1, ("CompileOperator", 0))
    assert rules(answer) == ["outside-graph", "empty-inputs-left-out"]
    nothing = ask(replace(CONCAT, shapes=((1, 2, 0, 4), (1, 2, 0, 4))))
    assert (nothing.outcome, nothing.operators) == ("DML", ())


@pytest.mark.parametrize(
    "changes",
    [
        {"shapes": ((1, 2, 2, 4), (2, 4, 4))},
        {"shapes": ((1, 3, 2, 4), (1, 2, 4, 4))},
        {"shapes": ((), ()), "axis": 0},
        {"axis_given": False},
        {"outputs": 0},
        {"outputs": 2},
        {"outputs": 2, "omitted": (1,)},
        {"omitted": (0,)},
    ],
)
def test_a_concat_that_inference_refuses(changes):
    assert rules(ask(replace(CONCAT, **changes))) == ["inference-fails"]


def test_a_version_that_was_not_observed():
    answer = ask(SPLIT, "1.17.3")
    assert (answer.outcome, rules(answer)) == ("unknown", ["version-not-observed"])
    answer = ask(SPLIT, "1.18.1")
    assert (answer.outcome, rules(answer)) == ("DML", ["version-not-observed"])


def test_every_error_says_what_helps_or_where_to_look():
    for rule in RULES.values():
        if rule.scope == "onnxruntime" and rule.severity == "error":
            assert rule.cure or rule.id == "onnxruntime/session-fails-elsewhere"
