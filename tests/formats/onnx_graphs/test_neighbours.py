"""Which operators share the memory of a Concat: measured for 74 of them, executed by ONNX Runtime 1.24.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from dmlsplit.graphs.traits import traits_of
from dmlsplit.onnxruntime import SessionOptions, find_runtime
from dmlsplit.onnxruntime.findings import findings
from dmlsplit.onnxruntime.graph_judging import judged
from dmlsplit.onnxruntime.risks import is_without_risk
from dmlsplit.rules.graph_faults import FaultKind
from tests.formats.onnx_graphs.mixed import mixed
from tests.formats.onnx_graphs.recorded import free_dimensions, lines, model_of, parts_of, session_model
from tests.models import Sketch, text

VERSION = "1.24.4"
RIGHT: frozenset[FaultKind] = frozenset()
WRONG = frozenset({FaultKind.OVERWRITTEN})
REFUSED = frozenset({FaultKind.REFUSED})
MOST_UNKNOWN = 0.02
"""Of random models with a Split or Concat; of those without there are none."""


def _words(text: str) -> list[str]:
    return text.split()


IN_PLACE = _words(
    "Relu Sigmoid Tanh LeakyRelu Elu Selu HardSigmoid Softplus Softsign Abs Neg Exp Erf Sqrt "
    "Reciprocal Floor Sin Atan Sign Clip Add Sub Mul Div Pow Max PRelu CumSum"
)
APART = _words("HardSwish Where Softmax LogSoftmax MatMul Gather Pad Tile Slice ReduceMean Conv BatchNormalization")
ELSEWHERE = _words("Softmax LogSoftmax MatMul MaxPool AveragePool Gather Pad Tile Resize Where LRN LpNormalization")
NORMALIZATIONS = ["BatchNormalization", "InstanceNormalization", "LayerNormalization"]


Make = Callable[[Sketch, str, Sequence[int]], Any]
CONSTANTS = "Add Sub Mul Div Pow Max PRelu"
POOL = {"kernel_shape": [3, 3], "pads": [1] * 4}


def _shorter(s: Sketch, x: str, shape: Sequence[int]) -> str:
    """The first half of the last axis."""
    return s.slice(x, len(shape) - 1, 0, shape[-1] // 2)


MADE: dict[str, Make] = {
    "Clip": lambda s, x, shape: s.clip(x),
    **{op: lambda s, x, shape, op=op: s.mul_c(x, op) for op in CONSTANTS.split()},
    "CumSum": lambda s, x, shape: s("CumSum", x, s.constant_integer(1)),
    "Where": lambda s, x, shape: s("Where", s("Greater", x, s.constant(0.1)), x, s.constant(0.5)),
    "MatMul": lambda s, x, shape: s("MatMul", x, s.weights(shape[-1], shape[-1])),
    "Gather": lambda s, x, shape: s("Gather", x, s.integers(*range(shape[-1])), axis=len(shape) - 1),
    "Pad": lambda s, x, shape: s(
        "Pad", _shorter(s, x, shape), s.integers(*[0] * (2 * len(shape) - 1), shape[-1] - shape[-1] // 2)
    ),
    "Tile": lambda s, x, shape: s("Tile", _shorter(s, x, shape), s.integers(*[1] * (len(shape) - 1), 2)),
    "Slice": lambda s, x, shape: s.slice(x, len(shape) - 1, 0, shape[-1]),
    "ReduceMean": lambda s, x, shape: s("ReduceMean", x, axes=[len(shape) - 1]),
    "MaxPool": lambda s, x, shape: s("MaxPool", x, **POOL),
    "AveragePool": lambda s, x, shape: s("AveragePool", x, **POOL),
    "LRN": lambda s, x, shape: s("LRN", x, size=3),
    "LpNormalization": lambda s, x, shape: s("LpNormalization", x, axis=1),
    "Resize": lambda s, x, shape: s("Resize", _shorter(s, x, shape), "", "", s.integers(*shape), mode="nearest"),
    "Conv": lambda s, x, shape: s("Conv", x, s.weights(shape[1], shape[1], *[1] * (len(shape) - 2))),
    "BatchNormalization": lambda s, x, shape: s.bn(x, shape[1]),
    "InstanceNormalization": lambda s, x, shape: s(
        "InstanceNormalization", x, s.weights(shape[1]), s.weights(shape[1])
    ),
    "LayerNormalization": lambda s, x, shape: s("LayerNormalization", x, s.weights(shape[-1])),
    "Einsum": lambda s, x, shape: s("Einsum", x, s.weights(shape[-1], shape[-1]), equation="abcd,de->abce"),
}


def neighbour(s: Sketch, op: str, x: str, shape: Sequence[int]) -> str:
    """An operator of one tensor."""
    return str(MADE[op](s, x, shape) if op in MADE else s(op, x))


def found(s: Sketch) -> frozenset[FaultKind]:
    """The kinds of faults; that of nothing for an unknown outcome."""
    faults = findings(session_model(s.inferred()), find_runtime(VERSION), SessionOptions())
    return frozenset(None if each.fault is None else each.fault.kind for each in faults)


def writing(op: str, shape: Sequence[int], axis: int = 1) -> frozenset[FaultKind]:
    """v = op(x); a = Sigmoid(Concat(v, y)); b = Neg(v): wrong where v is written into the Concat."""
    s = Sketch()
    v = neighbour(s, op, s.input("x", *shape), shape)
    a = s("Sigmoid", s.concat(v, s.input("y", *shape), axis=axis))
    s.outputs = [s.named(a, "a"), s.named(s("Neg", v), "b")]
    return found(s)


def behind(op: str, shape: Sequence[int]) -> frozenset[FaultKind]:
    """v = Tanh(x); a = op(Concat(v, y)); b = Neg(v): wrong where op works in place."""
    s = Sketch()
    v = s("Tanh", s.input("x", *shape))
    whole = [shape[0], 2 * shape[1], *shape[2:]]
    a = neighbour(s, op, s.concat(v, s.input("y", *shape)), whole)
    s.outputs = [s.named(a, "a"), s.named(s("Neg", v), "b")]
    return found(s)


def of_a_part(op: str, shape: Sequence[int]) -> frozenset[FaultKind]:
    """op of the first half of Tanh(x), whose other half nothing reads: refused where op works in place."""
    s = Sketch()
    part, _ = s.split(s("Tanh", s.input("x", *shape)), 1, shape[1] // 2, shape[1] // 2)
    s.outputs = [neighbour(s, op, part, [shape[0], shape[1] // 2, *shape[2:]])]
    return found(s)


@pytest.mark.parametrize("op", [*IN_PLACE, *ELSEWHERE])
def test_elementwise_operators_and_those_of_whole_tensors_write_into_a_concat(op):
    assert writing(op, (1, 8, 4, 8)) == WRONG
    if op not in ("Pad", "Tile", "Resize"):  # their Slice is beside the measurement
        assert writing(op, (2, 8, 4, 8)) == WRONG


def test_a_convolution_writes_into_a_concat_of_four_dimensions_only():
    assert writing("Conv", (1, 8, 4, 8)) == WRONG
    assert writing("Conv", (2, 8, 4, 8)) == WRONG
    assert writing("Conv", (1, 8, 8)) == RIGHT


@pytest.mark.parametrize("op", NORMALIZATIONS)
def test_a_normalization_writes_a_block_of_four_dimensions_only(op):
    assert writing(op, (1, 8, 4, 8)) == WRONG
    assert writing(op, (2, 8, 4, 8)) == RIGHT
    assert writing(op, (1, 8, 8)) == RIGHT


def test_an_einsum_writes_into_no_concat():
    assert writing("Einsum", (1, 8, 4, 8)) == RIGHT


@pytest.mark.parametrize("op", NORMALIZATIONS)
def test_what_a_normalization_reads_lies_in_no_rows(op):
    for shape, expected in (((1, 8, 4, 8), WRONG), ((2, 8, 4, 8), RIGHT)):
        s = Sketch()
        v = s("Tanh", s.input("x", *shape))
        a = s("Sigmoid", s.concat(v, s.input("y", *shape)))
        s.outputs = [s.named(a, "a"), s.named(neighbour(s, op, v, shape), "b")]
        assert found(s) == expected


@pytest.mark.parametrize("op", IN_PLACE)
def test_operators_in_place(op):
    assert behind(op, (1, 8, 4, 8)) == WRONG
    assert of_a_part(op, (1, 8, 4, 8)) == REFUSED


@pytest.mark.parametrize("op", APART)
def test_operators_that_are_not_in_place(op):
    assert behind(op, (1, 8, 4, 8)) == RIGHT
    assert of_a_part(op, (1, 8, 4, 8)) == RIGHT


def test_where_a_graph_is_wrong_it_is_not_without_risk():
    release = find_runtime(VERSION).release
    wrong = 0
    for line in lines():
        if any(each[4] in ("wrong", "session refused") for each in line["executions"]):
            session = session_model(model_of(line), free_dimensions(line))
            for part in parts_of(session, find_runtime(VERSION), SessionOptions()):
                for graph in part.fused:
                    if judged(graph, traits_of(release)).found:
                        wrong += 1
                        assert not is_without_risk(graph, traits_of(release))
    assert wrong > 100


@pytest.mark.parametrize("joins", [True, False])
def test_little_is_unknown_of_random_models(joins):
    count = 200
    unknown = faults = 0
    for seed in range(count):
        session = session_model(mixed(seed, joins=joins))
        runtime = find_runtime(VERSION)
        outcome = findings(session, runtime, SessionOptions())
        unknown += any(each.fault is None for each in outcome)
        for part in parts_of(session, runtime, SessionOptions()):
            for graph in part.fused:
                if judged(graph, traits_of(runtime.release)).found:
                    faults += 1
                    assert not is_without_risk(graph, traits_of(runtime.release))
    assert faults
    assert unknown <= MOST_UNKNOWN * count * joins


LATER = ("v = Tanh(x)", "c = Conv(v, w)", "n = InstanceNormalization(c, k, k)", "s = Sigmoid(n)", "y2 = Tanh(s)")


@pytest.mark.parametrize(
    ("name", "directml", "known"),
    [
        ("y1", "1.9.1", False),
        ("y1", "1.9.0", False),
        ("z1", "1.9.1", True),
        ("y1", "1.10.1", True),
        ("y1", "1.15.4", True),
    ],
)
def test_what_a_normalization_leads_to_behind_another_output_is_unknown_with_directml_1_9(name, directml, known):
    """Executed: y2 is wrong with 1.9.1, and right with y1 called z1."""
    head = (
        f"(float[1,16,8] x) => (float[1,16,8] y2, float[1,16,8] {name}) <float[16,16,1] w = {{0}}, float[16] k = {{1}}>"
    )
    model = text(f"{head} {{ {' '.join(LATER)} d = Conv(v, w)  {name} = Tanh(d) }}")
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.ones(tensor.dims, np.float32), tensor.name))
    runtime = replace(find_runtime("1.24.4"), directml=directml)
    found_here = findings(session_model(model), runtime, SessionOptions())
    assert [each.fault for each in found_here] == ([] if known else [None])


BESIDE = "(float[1,8,4,8] x, float[1,8,4,8] y, float[8,8,1,1] w) => (float[1,16,4,8] a, float[1,8,4,8] b)"


@pytest.mark.parametrize(("activation", "expected"), [("Relu", RIGHT), ("Tanh", WRONG)])
def test_a_leaky_relu_in_place_keeps_what_a_fused_relu_gives(activation, expected):
    words = f"c = Conv(x, w)  v = {activation}(c)  j = Concat<axis=1>(v, r)  a = LeakyRelu(j)  b = Sigmoid(v)"
    faults = findings(
        session_model(text(f"{BESIDE} {{ r = Relu(y)  {words} }}")), find_runtime(VERSION), SessionOptions()
    )
    assert frozenset(each.fault.kind for each in faults) == expected


@pytest.mark.parametrize(("factor", "expected"), [("Relu", RIGHT), ("Tanh", frozenset({FaultKind.PRODUCT}))])
def test_a_product_of_a_tensor_and_its_relu_is_the_square_of_the_relu(factor, expected):
    """(x * r) * sigmoid(r) is computed as (r * r) * sigmoid(r)."""
    body = f"r = {factor}(x)  p = Mul(x, r)  s = Sigmoid(r)  o = Mul(p, s)"
    faults = findings(
        session_model(text(f"(float[1,8,4,8] x) => (float[1,8,4,8] o) {{ {body} }}")),
        find_runtime(VERSION),
        SessionOptions(),
    )
    assert frozenset(each.fault.kind for each in faults) == expected


def test_a_squeezed_tensor_in_rows_of_a_concat_is_followed():
    """The Squeeze is tried as an operator in place, between tensors of five and of four dimensions."""
    words = "t = Mul(x, y)  r = Relu(z)  s = Squeeze(t, first)  o = Concat<axis=1>(r, s)"
    head = "(float[1,2,1,16,1] x, float[1,2,1,16,1] y, float[2,1,16,1] z) => (float[2,2,16,1] o) <int64[1] first = {0}>"
    assert findings(session_model(text(f"{head} {{ {words} }}")), find_runtime(VERSION), SessionOptions()) == ()


@pytest.mark.parametrize("op", NORMALIZATIONS)
def test_a_part_that_a_normalization_reads_is_copied_into_the_rows_of_a_concat(op):
    """Asked live: the part lies in memory of its own; where a view would do, the Concat got the whole up to 1.12.1."""
    s = Sketch()
    _, part = s.split(s("Tanh", s.input("x", 1, 8, 4, 8)), 1, 4, 4)
    s.outputs = [neighbour(s, op, part, (1, 4, 4, 8)), s.concat(s.input("y", 1, 4, 4, 8), part, axis=3)]
    assert found(s) == RIGHT


EQUAL = "(float[1,4,4,1] x, float[1,4,4,1] y) => (float[1,8,4,1] a, float[1,4,4,1] b)"


@pytest.mark.parametrize(
    ("behind", "other", "expected"),
    [
        ("Neg(j)", "Mul(v, v)", RIGHT),
        ("Neg(j)", "Div(v, v)", RIGHT),
        ("Neg(j)", "Abs(v)", RIGHT),
        ("Abs(j)", "Mul(v, v)", RIGHT),
        ("Neg(j)", "Add(v, v)", WRONG),
        ("Neg(j)", "Mul(v, y)", WRONG),
        ("Neg(j)", "Relu(v)", WRONG),
        ("Relu(j)", "Mul(v, v)", WRONG),
        ("Relu(j)", "Relu(v)", RIGHT),
        ("Neg(j)", "Softmax<axis=3>(v)", RIGHT),
        ("Neg(j)", "Softmax<axis=2>(v)", WRONG),
    ],
)
def test_values_that_are_equal_whatever_has_overwritten_what_they_are_computed_from(behind, other, expected):
    words = f"v = Tanh(x)  j = Concat<axis=1>(v, y)  a = {behind}  b = {other}"
    faults = findings(session_model(text(f"{EQUAL} {{ {words} }}")), find_runtime(VERSION), SessionOptions())
    assert frozenset(each.fault.kind for each in faults) == expected


@pytest.mark.parametrize(("factor", "expected"), [("Relu(x)", RIGHT), ("Tanh(x)", WRONG)])
def test_a_product_of_a_tensor_and_its_relu_is_never_negative(factor, expected):
    words = f"r = {factor}  v = Mul(x, r)  j = Concat<axis=1>(v, y)  a = LeakyRelu(j)  b = Neg(v)"
    faults = findings(session_model(text(f"{EQUAL} {{ {words} }}")), find_runtime(VERSION), SessionOptions())
    assert frozenset(each.fault.kind for each in faults) == expected


@pytest.mark.parametrize(
    ("nodes", "wrong"),
    [
        ("b = Concat<axis=0>(y, v, v)  a = Concat<axis=2>(v)", False),
        ("a = Concat<axis=2>(v)  b = Concat<axis=0>(y, v, v)", True),
        ("a = Concat<axis=0>(v)  b = Concat<axis=0>(v, v)", True),
        ("j = Concat<axis=0>(v)  a = Relu(j)  b = Concat<axis=0>(v, v)", True),
        ("b = Concat<axis=0>(y, v, v)  a = Identity(v)", True),
    ],
)
def test_the_order_of_concats_decides_in_which_one_a_repeated_tensor_lives(nodes, wrong):
    """Where it lives in another Concat, both places get copies, as DirectML 1.10.1 binds them."""
    ends = "(float[4,3,1,4] x, float[4,3,1,4] y) => (float[?,?,?,?] a, float[?,?,?,?] b)"
    session = session_model(text(f"{ends} {{ v = Sigmoid(x)  {nodes} }}"))
    found_here = findings(session, replace(find_runtime(VERSION), directml="1.10.1"))
    assert [each.fault.kind for each in found_here] == [FaultKind.REPEATED] * wrong


@pytest.mark.parametrize(("behind", "expected"), [("MatMul(p, w)", RIGHT), ("Sin(p)", WRONG)])
@pytest.mark.parametrize("outputs", ["", ", float[1,8,4,8] p"])
def test_a_factor_of_a_matmul_is_not_in_place_on_a_concat(behind, outputs, expected):
    """Executed: the number becomes a part of the MatMul, which reads the Concat itself."""
    ends = f"(float[1,4,4,8] x, float[1,4,4,8] y, float[8,8] w) => (float[1,8,4,8] a, float[1,4,4,8] b{outputs})"
    words = f"v = Tanh(x)  j = Concat<axis=1>(v, y)  p = Mul(j, k)  a = {behind}  b = Neg(v)"
    faults = findings(session_model(text(f"{ends} <float[1] k = {{0.5}}> {{ {words} }}")), find_runtime(VERSION))
    assert frozenset(each.fault.kind for each in faults) == expected
