"""Splits and Concats over which Transposes are moved: what is submitted, and the graph that it is part of. All observed
with 1.24.4, where the calls to DirectML are the same."""

from __future__ import annotations

import numpy as np
import pytest

from dmlsplit.descriptors.descs import SplitOperatorDesc
from dmlsplit.onnxruntime import SessionOptions, find_runtime, on_onnxruntime
from dmlsplit.verdicts.runtime_answers import Outcome
from tests import models
from tests.formats.onnx_graphs.recorded import parts_of, session_model
from tests.models import model, node, value
from tests.onnxruntime.placements import placed_model

TURNED = "Transpose<perm=[1,0]>"
BOTH = f"(float[{{}},6] x) => (float[?,?] y, float[?,?] z) <int64[2] n = {{{{2,4}}}}> {{{{ t = {TURNED}(x) {{}} }}}}"


def answered(text, opset=17, **run):
    (node,) = on_onnxruntime(models.text(text, opset), "1.24.4", **run)
    return node.answer


@pytest.mark.parametrize(
    ("body", "axis", "sizes"),
    [
        (f"a, b = Split(t, n) y = {TURNED}(a) c = Relu(b) z = {TURNED}(c)", 3, [(1, 1, 4, 2), (1, 1, 4, 4)]),
        ("a, b = Split(t, n) y = Relu(a) z = Relu(b)", 2, [(1, 1, 2, 4), (1, 1, 4, 4)]),
        (f"s = Sqrt(t) a, b = Split<axis=-2>(s, n) y = {TURNED}(a) z = {TURNED}(b)", 3, [(1, 1, 4, 2), (1, 1, 4, 4)]),
    ],
    ids=["two for one", "one for two", "behind another"],
)
@pytest.mark.parametrize("rows", [4, "N"], ids=["fixed", "open"])
def test_a_split_has_the_axis_and_the_sizes_that_remain(body, axis, sizes, rows):
    found = answered(BOTH.format(rows, body), run_shapes={"x": (4, 6)})
    (operator,) = found.operators
    assert isinstance(operator, SplitOperatorDesc)
    assert (found.outcome, found.at) == (Outcome.DML, "init" if rows == 4 else "run")
    assert (operator.axis, [each.sizes for each in operator.output_tensors]) == (axis, sizes)


def graph_of(text, opset=17):
    (session,) = parts_of(session_model(models.text(text, opset)), find_runtime("1.24.4"), SessionOptions())
    return max(session.fused, key=lambda graph: "Split" in graph.ops)


def test_what_is_inserted_is_in_the_graph():
    body = f"a, b = Split(t, n) u = Exp(a) y = {TURNED}(u) w = Abs(b) z = Neg(w)"
    assert graph_of(BOTH.format(4, body)).ops == ("Split", "Transpose", "Abs", "Neg", "Exp")


def test_outputs_are_sorted_by_the_names_that_are_made():
    """The part that is read transposed is named after the Split, "zero", and is the last. In opset 23 Transposes are on
    the CPU."""
    graph = graph_of(
        """(float[1,2] x) => (float[?,?] o, float[?,?] p, float[?,?] q) <int64[2] n = {2,2}> {
            whole = Concat<axis=-1>(x, x) t = Transpose<perm=[1,0]>(whole) o = Relu(t)
            [zero] a, b = Split<axis=0>(t, n) p = Transpose<perm=[1,0]>(a) c = Relu(b) q = Softmax(c)
        }""",
        23,
    )
    ends = sorted((e.graph_output_index, e.from_node_index, e.from_node_output_index) for e in graph.desc.output_edges)
    assert ends == [(0, 1, 0), (1, 0, 0), (2, 1, 1)]


@pytest.mark.parametrize(
    ("sizes", "axis", "perm", "ends"),
    [
        ((3, 0), 1, (1, 0), True),
        ((0, 2), 0, (1, 0), False),  # only the sizes around the axis that moves are divisors
        ((1, 0), 1, (1, 0), False),  # a Reshape
        ((2, 0, 2), 1, (1, 0, 2), True),
        ((2, 2, 0), 2, (0, 2, 1), True),
        ((2, 0, 2), 1, (2, 1, 0), False),  # more than one axis moves
        ((2, 3), 1, (1, 0), False),
    ],
)
def test_a_transpose_moved_to_a_constant_without_elements(sizes, axis, perm, ends):
    """Asked of all versions with the first model, of 1.20.1 and 1.23.2 with these and 200 more."""
    shape = [*sizes[:axis], 3, *sizes[axis + 1 :]]
    given = [shape[perm.index(i)] for i in range(len(perm))]
    inverse = [perm.index(i) for i in range(len(perm))]
    nodes = [
        node("Transpose", ["x"], ["t"], perm=perm, name="n"),
        node("Concat", ["t", "c"], ["k"], axis=axis),
        node("Transpose", ["k"], ["y"], perm=inverse),
    ]
    made = model(nodes, [value("x", given)], [value("y", None)], 17, {"c": np.zeros(sizes, np.float32)}, ir_version=8)
    versions = ("1.18.0", "1.20.1", "1.23.2", "1.24.4", "1.30.0")
    assert [placed_model(made, version).created for version in versions] == [not ends] * 3 + [True] * 2
