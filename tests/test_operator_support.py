"""Tensor support of every operator: the recorded table, and who is asked for what."""

import json
import lzma
from pathlib import Path
from random import Random

import pytest

import dmlsplit as dml
from dmlsplit.descriptors.any_operator import widened
from dmlsplit.formats import any_operator_json
from dmlsplit.report.operator_support import WEBNN, op_support_limits
from dmlsplit.targets.operator_support import operator_support, recorded_values
from dmlsplit.targets.operator_tables import FILE, table
from dmlsplit.targets.relations import Relation
from dmlsplit.targets.releases import releases

T = dml.TensorDataType
FLOATS = {T.FLOAT32, T.FLOAT16}
OTHERS = [each for each in dml.operators() if each.name not in ("SPLIT", "JOIN")]
BASES = Path(__file__).parent / "data" / "operators" / "base.jsonl.xz"


def rows(operator, by="1.15.4"):
    return {row.tensor: row for row in dml.tensor_support(operator, by)}


def test_the_table_is_small_and_has_all_operators():
    assert FILE.stat().st_size < 300_000
    assert len(table().builds) >= 24
    for schema in OTHERS:
        assert table().facts(schema.name, "onnxruntime-directml-1.24.4"), schema.name


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
def test_a_release_has_the_operators_of_its_level(release):
    for schema in OTHERS:
        there = bool(dml.tensor_support(schema.number, release))
        if schema.since <= release.max_feature_level:
            assert there, schema.name
        elif there:
            assert (release.max_feature_level, schema.since) == (dml.FeatureLevel.FL_5_0, dml.FeatureLevel.FL_5_1)


def test_a_version_has_one_table_on_both_systems():
    """So that a build for Windows that was not asked is known by the one for Linux."""
    indices = {}
    for release in releases():
        if table().was_asked(release.name):
            indices.setdefault(release.directml, []).append(table().builds.index(release.name))
    assert sum(len(each) == 2 for each in indices.values()) == 5
    for pair in indices.values():
        for schema in OTHERS:
            assert table().form(schema.name, pair[0]) == table().form(schema.name, pair[-1])


def test_every_base_is_taken_by_its_table():
    newest = table().builds[-1]
    with lzma.open(BASES, "rt", encoding="utf-8") as lines:
        for line in lines:
            schema, members = widened(any_operator_json.loads(line))
            if schema.name in ("SPLIT", "JOIN"):
                continue
            facts = table().facts(schema.name, newest)
            tensors = {m.name: members[m.name] for m in schema.members if m.type == "tensor" and members[m.name]}
            assert facts.types.has({name: int(tensor.data_type) for name, tensor in tensors.items()}), schema.name
            assert facts.ranks.has({name: tensor.dimension_count for name, tensor in tensors.items()}), schema.name


def test_rows():
    found = rows("GEMM")
    assert list(found) == ["ATensor", "BTensor", "CTensor", "OutputTensor"]
    assert found["CTensor"].optional
    assert not found["ATensor"].optional
    assert found["ATensor"].data_types == FLOATS
    assert found["ATensor"].dimension_counts == (2, 3, 4)
    assert set(found["ATensor"].same_data_type_as) == {"BTensor", "CTensor", "OutputTensor"}
    assert found["ATensor"].source == "recorded: DirectML 1.15.4"
    assert rows("DML_OPERATOR_GEMM") == rows(54) == found


def test_what_documents_do_not_say():
    """The builds decide: each is a difference from the operator's page."""
    assert rows("ADAM_OPTIMIZER")["TrainingStepTensor"].data_types == {T.UINT32}
    assert {T.INT32, T.UINT8} <= rows("GEMM", "2_1")["ATensor"].data_types
    assert T.UINT16 not in rows("CUMULATIVE_SUMMATION")["InputTensor"].data_types
    assert rows("ACTIVATION_RELU_GRAD", "tensorflow-directml-1.15.5.dev210422")["InputTensor"].dimension_counts == (
        4,
        5,
    )


def test_levels_without_a_build_say_so():
    assert rows("CONVOLUTION", "1_0")["InputTensor"].source.endswith(
        "convolution_operator_desc (DML_FEATURE_LEVEL_1_0)"
    )
    assert rows("CONVOLUTION", "4_0")["InputTensor"].source.endswith("(DML_FEATURE_LEVEL_4_0)")
    # No row of its page lies between the builds of 3_1 and those of 4_1: what either takes.
    row = rows("CAST", "4_0")["InputTensor"]
    assert row.source == "recorded: DirectML 1.5.0, 1.5.1, 1.7.0"
    assert (
        row.data_types == rows("CAST", "4_1")["InputTensor"].data_types | rows("CAST", "3_1")["InputTensor"].data_types
    )


@pytest.mark.parametrize("level", dml.FeatureLevel, ids=str)
def test_every_level_has_its_operators(level):
    for schema in OTHERS:
        support = operator_support(schema, level)
        assert bool(support.facts) is (schema.since <= level), schema.name
        assert support.source


def test_newer_operators_have_no_rows():
    assert dml.tensor_support("QUANTIZE", "6_2") == ()
    assert dml.tensor_support("QUANTIZE", "6_3")


def test_split_and_join_keep_their_tables():
    assert rows("SPLIT", "2_1")["InputTensor"].dimension_counts == (4,)
    assert rows("JOIN", "1.15.4")["OutputTensor"].dimension_counts == tuple(range(1, 9))


@pytest.mark.parametrize("operator", ["GEMN", 0, 10_000])
def test_unknown_operators(operator):
    with pytest.raises(ValueError, match=str(operator)):
        dml.tensor_support(operator, "6_4")


@pytest.mark.parametrize("by", ["9_9", "1.2.3.4", "no release"])
def test_unknown_targets(by):
    with pytest.raises(ValueError, match=r"known|level|release"):
        dml.tensor_support("GEMM", by)


def test_an_image_may_have_dimensions_behind_the_folded_ones():
    """As DirectML 1.15.4 answered: FOLD and UNFOLD look at the first ones."""
    for operator, image in (("FOLD", "OutputTensor"), ("UNFOLD", "InputTensor")):
        assert rows(operator)[image].dimension_counts == (4, 5, 6, 7, 8)


def test_values_that_some_build_takes():
    assert {0, 1, 2, 3} <= recorded_values(dml.find_operator("PADDING"), "PaddingMode")


OPERANDS = {
    "input output": "abs argMax argMin averagePool2d cast ceil clamp cos cumulativeSum elu erf exp expand floor gelu"
    " hardSigmoid hardSwish identity l2Pool2d leakyRelu linear log maxPool2d neg pad reciprocal reduceL1 reduceL2"
    " reduceLogSum reduceLogSumExp reduceMax reduceMean reduceMin reduceProduct reduceSum reduceSumSquare relu"
    " resample2d reshape reverse roundEven sigmoid sign sin slice softmax softplus softsign sqrt tan tanh tile"
    " transpose triangular",
    "a b output": "add sub mul div max min pow equal notEqual greater greaterOrEqual lesser lesserOrEqual logicalAnd"
    " logicalOr logicalXor matmul",
    "a output": "logicalNot isNaN isInfinite",
    "input mean variance scale bias output": "batchNormalization",
    "inputs output": "concat",
    "input filter bias output": "conv2d convTranspose2d",
    "input scale zeroPoint output": "dequantizeLinear quantizeLinear",
    "input indices output": "gather gatherElements gatherND",
    "a b c output": "gemm",
    "input weight recurrentWeight bias recurrentBias initialHiddenState output0 output1": "gru",
    "input weight recurrentWeight hiddenState bias recurrentBias output": "gruCell",
    "input scale bias output": "instanceNormalization layerNormalization",
    "input weight recurrentWeight bias recurrentBias peepholeWeight initialHiddenState initialCellState output0"
    " output1 output2": "lstm",
    "input weight recurrentWeight hiddenState cellState bias recurrentBias peepholeWeight output0 output1": "lstmCell",
    "input slope output": "prelu",
    "input indices updates output": "scatterElements scatterND",
    "input outputs": "split",
    "condition trueValue falseValue output": "where",
}
"""The members of MLOpSupportLimits that are operations, by those of their dictionaries: Web Neural Network API."""


def test_webnn_has_the_names_of_the_specification():
    expected = {name: set(operands.split()) for operands, names in OPERANDS.items() for name in names.split()}
    assert {name: set(operation.operands) for name, operation in WEBNN.items()} == expected
    for name, operation in WEBNN.items():
        schema = dml.find_operator(operation.operator)
        for operand, tensor in operation.operands.items():
            member = schema.member(tensor)
            assert member is not None, name
            assert (member.role == "output") is operand.startswith("output"), name


def test_webnn_limits():
    limits = op_support_limits(dml.find_release("1.15.4"))
    ends = {"input", "constant", "output"}
    assert set(limits) == set(WEBNN) | ends | {"preferredInputLayout"}
    assert all(limits[end] == limits["identity"]["input"] for end in ends)
    assert limits["gemm"]["a"] == {"dataTypes": ["float32", "float16"], "rankRange": {"min": 2, "max": 4}}
    assert limits["reduceL2"]["input"]["dataTypes"] == ["float32", "float16"]
    assert "int32" in limits["reduceSum"]["input"]["dataTypes"]
    assert set(op_support_limits(dml.FeatureLevel.FL_2_1)) < set(limits)
    assert set(op_support_limits(dml.find_release("1.15.4"), "GEMM")) == {"gemm", "matmul"}
    assert json.loads(json.dumps(limits)) == limits


def test_a_relation_has_what_it_was_made_of():
    """Products, equal members and rows, found again from their combinations."""
    names = ("a", "b", "c", "d")
    combinations = [(x, x, y, z) for x in (1, 2, 3) for y, z in ((1, 1), (2, 5), (3, 5))]
    relation = Relation.of(names, combinations)
    assert {group for part in relation.parts for group in part.groups} == {("a", "b"), ("c",), ("d",)}
    every = [(a, b, c, d) for a in range(6) for b in range(6) for c in range(6) for d in range(6)]
    assert [each for each in every if relation.has(dict(zip(names, each, strict=True)))] == sorted(combinations)
    assert relation.values_of("d") == (1, 5)
    assert relation.alike("a") == ("b",)
    assert relation.has({"a": 2, "c": 3})  # the others are left out
    assert not relation.has({"b": 4})
    assert Relation.from_json(json.loads(json.dumps(relation.to_json()))) == relation


def test_an_empty_relation_has_nothing():
    relation = Relation.of(("a", "b"), [])
    assert relation.is_empty
    assert not relation.has({"a": 1, "b": 1})


def test_relations_by_chance():
    """Any set of combinations is within its relation, and a set that is a relation's is the whole of it."""
    source = Random(3)
    names = ("a", "b", "c")
    for _ in range(200):
        some = [tuple(source.randrange(1, 5) for _ in names) for _ in range(source.randrange(1, 12))]
        relation = Relation.of(names, some)
        taken = [
            (a, b, c)
            for a in range(1, 5)
            for b in range(1, 5)
            for c in range(1, 5)
            if relation.has({"a": a, "b": b, "c": c})
        ]
        assert set(some) <= set(taken)
        assert Relation.of(names, taken).parts == Relation.of(names, sorted(taken)).parts
        assert relation.drawn(names, source) in taken


@pytest.mark.parametrize("value", [-1, 0, 32, 2**31, 2**32 - 1])
def test_values_of_no_mask(value):
    assert not Relation.independent({"a": [1, 2]}).has({"a": value})
