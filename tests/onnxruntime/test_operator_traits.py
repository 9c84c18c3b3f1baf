"""The table of operator traits: its rows name operators that exist, and say what a model with them shows."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from onnx import defs

from dmlsplit.descriptors.schema import operators
from dmlsplit.graphs.operators import BY_NAME, BY_NUMBER
from dmlsplit.onnxruntime.operator_traits import (
    BIAS_GELU,
    FAST_GELU,
    FUSED_ADD,
    FUSED_MATMUL,
    FUSED_MATMUL_SOFTMAX,
    GELU,
    MATMUL_INTEGER_TO_FLOAT,
    MEMCPY_FROM_HOST,
    MEMCPY_TO_HOST,
    OPERATORS,
    PACKED_PRODUCT,
    QUANTIZED,
    QUICK_GELU,
    RESHAPED_GEMM,
    SKIP_LAYER_NORMALIZATION,
    UNKNOWN,
    Kind,
    row_of,
)
from tests.onnxruntime import kernels

MADE = {
    *(BIAS_GELU, FAST_GELU, FUSED_ADD, FUSED_MATMUL, FUSED_MATMUL_SOFTMAX, GELU, QUICK_GELU, RESHAPED_GEMM),
    MATMUL_INTEGER_TO_FLOAT,
    SKIP_LAYER_NORMALIZATION,
    PACKED_PRODUCT,
    MEMCPY_FROM_HOST,
    MEMCPY_TO_HOST,
    *QUANTIZED.values(),
} - {"QLinearConv", "QLinearMatMul"}
"""Operators that are not ONNX's, most of which only optimization makes."""
SCHEMAS = {schema.name: schema for schema in defs.get_all_schemas_with_history() if schema.domain == ""}


def test_rows_are_operators_of_onnx_in_the_order_of_names():
    names = [name for name in OPERATORS if name not in MADE]
    assert names == sorted(names)
    assert set(names) <= set(SCHEMAS)
    assert not MADE & set(SCHEMAS)


def test_every_row_says_something():
    assert [name for name, row in OPERATORS.items() if row == type(row)(name)] == []


def test_directml_operators_exist():
    numbers = {None, *(operator.number for operator in operators())}
    assert {name: row.dml for name, row in OPERATORS.items() if row.dml not in numbers} == {}


def test_directml_operators_are_the_recorded_ones():
    """Where a node of an operator became one DirectML operator, always the same, in every version."""
    content, made = kernels.read(), defaultdict(set)
    for text, _, answers, _ in content["rows"]:
        name = re.search(r" y = (\w+)", text)[1]
        made[name] |= {tuple(each["Type"] for each in answer) for answer in answers if answer is not None}
    numbers = {f"DML_OPERATOR_{operator.name}": operator.number for operator in operators()}
    single = {
        name: numbers[next(iter(types))[0]] for name, types in made.items() if [len(each) for each in types] == [1]
    }
    assert len(single) > 60
    assert {name: OPERATORS[name].dml for name in single} == single


@pytest.mark.parametrize(
    "name", [name for name, row in OPERATORS.items() if (row.cpu_inputs or row.shaping) and name not in MADE]
)
def test_inputs_exist(name):
    row, most = OPERATORS[name], max(s.max_input for s in defs.get_all_schemas_with_history() if s.name == name)
    assert [place for place in (*row.cpu_inputs, *row.shaping) if place >= most] == [], f"{name} has {most} inputs"
    assert list(row.cpu_inputs) == sorted(set(row.cpu_inputs))


def test_memory_is_observed_where_graphs_have_the_operator():
    """DirectML's identity stands for operators that move elements, too, which are no identities in a graph."""
    identity = BY_NAME["ELEMENT_WISE_IDENTITY"].number
    for row in OPERATORS.values():
        if row.dml == identity:
            assert row.kind in (Kind.COPIES, Kind.NOT_IN_PLACE), row
        else:
            assert (row.kind is Kind.OBSERVED) == (row.dml in BY_NUMBER), row
            assert row.kind is not Kind.COPIES, row


def test_only_activations_are_absorbed():
    for row in OPERATORS.values():
        assert all(row_of(name).broadcasts for name in row.absorbs), row


def test_an_operator_without_a_row_is_unknown():
    assert {row_of(name) for name in SCHEMAS if name not in OPERATORS} == {UNKNOWN}
    assert (UNKNOWN.dml, UNKNOWN.kind, UNKNOWN.followed) == (None, Kind.UNKNOWN, False)
