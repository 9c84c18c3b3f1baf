"""Graphs on the emulated device: what a release computes and what is right, refusals, bindings."""

from __future__ import annotations

import numpy as np
import pytest

import dmlsplit as dml
from dmlsplit import graphs
from dmlsplit.device.arithmetic import FUNCTIONS
from dmlsplit.formats.graph_json import dumps
from dmlsplit.graphs.examples import Sketch
from dmlsplit.graphs.operators import OPERATORS, Family
from dmlsplit.rules.graph import GRAPH_RULES
from tests.directml.graphs import random_graph

GLU = graphs.EXAMPLES["graph/fused-wrongly"](False)
POISON = 171  # what outputs hold before


def inputs_of(graph, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-2, 2, tensor.sizes).astype(np.float32) for tensor in graph.inputs]


def bound(device, op, arrays, outputs):
    """A table with everything that the graph needs."""
    table = device.create_binding_table(op)
    buffers = []
    for array in arrays:
        buffers.append(dml.Buffer(array.nbytes))
        buffers[-1].array[:] = array.reshape(-1).view(np.uint8)
    used = {edge.graph_input_index for edge in op.desc.input_edges}
    table.bind_inputs([buffer if i in used else None for i, buffer in enumerate(buffers)])
    table.bind_outputs(outputs)
    if op.binding_properties.temporary_resource_size:
        table.bind_temporary_resource(dml.Buffer(op.binding_properties.temporary_resource_size))
    return table


def run(graph, results="release", directml="1.15.4", seed=1):
    """The graph outputs, from compilation to the dispatch."""
    device = dml.Device(directml)
    op = device.compile_graph(graph, results=results)
    initializer = device.create_operator_initializer([op])
    device.record_dispatch(initializer, device.create_binding_table(initializer))
    outputs = [dml.Buffer(tensor.total_tensor_size_in_bytes) for tensor in graph.outputs]
    for buffer in outputs:
        buffer.array[:] = POISON
    device.record_dispatch(op, bound(device, op, inputs_of(graph, seed), outputs))
    assert device.removed_reason is None
    return [b.array.view(np.float32).reshape(t.sizes) for b, t in zip(outputs, graph.outputs, strict=True)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def test_a_glu_is_wrong_as_the_release_has_it_and_right():
    (x,) = inputs_of(GLU)
    a, b = x[:, :4], x[:, 4:]
    np.testing.assert_allclose(run(GLU)[0], b * sigmoid(b), rtol=1e-5)
    np.testing.assert_allclose(run(GLU, "right")[0], a * sigmoid(b), rtol=1e-5)
    np.testing.assert_allclose(run(GLU, directml="1.12.1")[0], a * sigmoid(b), rtol=1e-5)


def test_an_input_of_a_join_holds_what_overwrote_it():
    graph = graphs.EXAMPLES["graph/memory-overwritten"](False)
    v = np.tanh(inputs_of(graph)[0])
    np.testing.assert_allclose(run(graph)[1], np.maximum(v, 0), rtol=1e-5)
    np.testing.assert_allclose(run(graph, "right")[1], v, rtol=1e-5)


def test_a_place_that_is_not_written_keeps_its_bytes():
    (output,) = run(graphs.EXAMPLES["graph/place-not-written"](False), directml="1.10.1")
    assert sorted(np.all(half.view(np.uint8) == POISON) for half in np.split(output, 2, axis=1)) == [False, True]


def differs(one, other):
    return not np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)


MOST_RIGHT_BY_CHANCE = 0.2
"""Of what is called wrong, which is little: max(x * x, relu(x)) is max(x * x, x), abs(sigmoid(x)) is sigmoid(x)."""


@pytest.mark.parametrize(
    ("directml", "count"),
    [
        *(("1.10.1", 150), ("1.15.4", 600)),
        *(pytest.param(release, 600, marks=pytest.mark.slow) for release in ("1.8.0", "1.10.1", "1.12.1", "1.13.1")),
    ],
)
def test_what_is_called_wrong_is_wrong_and_nothing_else(directml, count):
    """The model says so without numbers; the dispatches are run with them."""
    wrong = right_by_chance = 0
    for index in range(count):
        graph = random_graph(20241123, index, most_nodes=12, every=False)
        report = dml.validate(graph, directml=directml)
        if report.compiles is not True or "unknown" in report.outputs:
            continue
        if "wrong" not in report.outputs and index % 10:  # most are right
            continue
        found = [False] * len(graph.outputs)
        for seed in (1, 2):
            outputs = zip(run(graph, "release", directml, seed), run(graph, "right", directml, seed), strict=True)
            found = [before or differs(*pair) for before, pair in zip(found, outputs, strict=True)]
        for outcome, differing in zip(report.outputs, found, strict=True):
            assert outcome == "wrong" or not differing, dumps(graph)
            wrong += outcome == "wrong"
            right_by_chance += outcome == "wrong" and not differing
    assert wrong
    assert right_by_chance <= MOST_RIGHT_BY_CHANCE * wrong


@pytest.mark.parametrize("rule", [rule for rule in GRAPH_RULES.values() if rule.sound], ids=lambda rule: rule.id)
def test_right_results_do_not_depend_on_the_release(rule):
    graph = graphs.EXAMPLES[rule.id](False)
    if rule.refuses or rule.id in ("graph/fusion-crashes", "graph/five-dimensions"):
        with pytest.raises(dml.DirectMLError) as error:
            dml.Device(rule.examples_for).compile_graph(graph)
        assert (error.value.hresult is None) is (not rule.refuses)
        assert rule.id in {d.rule for d in error.value.report.diagnostics}
    there = run(graph, "right", rule.examples_for)
    if dml.validate(graph, directml="1.12.0").outputs == ("right",) * len(there):
        assert not any(map(differs, there, run(graph, "release", "1.12.0")))


def test_refusals():
    device = dml.Device()
    for id in ("graph/cycle", "graph/edge-size", "graph/unknown", "graph/output-unconnected"):
        for results in ("release", "right"):
            with pytest.raises(dml.DirectMLError) as error:
                device.compile_graph(graphs.EXAMPLES[id](False), results=results)
            assert (error.value.hresult == dml.HResult.E_INVALIDARG) is GRAPH_RULES[id].refuses
            assert id in {d.rule for d in error.value.report.diagnostics}
    with pytest.raises(dml.DirectMLError) as error:
        device.compile_graph(GLU, 8)
    assert error.value.report.diagnostics[0].rule == "device/execution-flags-unknown"
    with pytest.raises(ValueError, match="neither 'release' nor 'right'"):
        device.compile_graph(GLU, results="wrong")


def test_parameters_that_are_missing_are_named():
    tensor = dml.BufferTensorDesc(1, (1, 1, 1, 4))
    node = dml.AnyOperatorDesc.of_tensors("ACTIVATION_ELU", [tensor], [tensor])
    edges = [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(0, 0, 0)]
    with pytest.raises(dml.DirectMLError, match="ACTIVATION_ELU needs Alpha"):
        dml.Device().compile_graph(dml.GraphDesc([tensor], [tensor], [node], *edges))
    found = dml.GraphDesc(
        [tensor],
        [tensor],
        [dml.AnyOperatorDesc.of_tensors("ACTIVATION_ELU", [tensor], [tensor], {"Alpha": 0.5})],
        *edges,
    )
    (x,) = inputs_of(found)
    np.testing.assert_allclose(run(found)[0], np.where(x < 0, 0.5 * np.expm1(x), x), rtol=1e-5)


def test_bindings_are_judged():
    device = dml.Device()
    op = device.compile_graph(GLU)
    table = device.create_binding_table(op)
    table.bind_inputs([dml.Buffer(100)])
    assert {d.rule for d in device.removed_reason.diagnostics} == {"binding/size-too-small"}
    device = dml.Device()
    op = device.compile_graph(GLU)
    table = device.create_binding_table(op)
    table.bind_inputs([dml.Buffer(512)])
    device.record_dispatch(op, table)
    assert {d.rule for d in device.removed_reason.diagnostics} == {"binding/unbound"}


def test_temporary_memory_is_the_programs():
    g = Sketch()
    parts = g.split(g("ACTIVATION_TANH", g.input(1, 8, 1, 16)), 1, (4, 4))
    graph = g.graph(g("ELEMENT_WISE_ADD", *parts))
    device = dml.Device()
    op = device.compile_graph(graph)
    size = op.binding_properties.temporary_resource_size
    assert size >= 512
    table = device.create_binding_table(op)
    table.bind_temporary_resource(dml.Buffer(size - 1))
    assert device.removed_reason is not None


def test_half_precision():
    half = dml.BufferTensorDesc(dml.TensorDataType.FLOAT16, (1, 1, 1, 8))
    node = dml.AnyOperatorDesc.of_tensors("ACTIVATION_TANH", [half], [half])
    edges = [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(0, 0, 0)]
    device = dml.Device()
    op = device.compile_graph(dml.GraphDesc([half], [half], [node], *edges))
    table = device.create_binding_table(op)
    source, target = dml.Buffer(16), dml.Buffer(16)
    source.array.view(np.float16)[:] = np.linspace(-2, 2, 8)
    table.bind_inputs([source])
    table.bind_outputs([target])
    with pytest.warns(dml.DirectMLWarning, match="never initialized"):
        device.record_dispatch(op, table)
    expected = np.tanh(source.array.view(np.float16).astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(target.array.view(np.float16), expected)


def test_every_observed_operator_has_its_arithmetic():
    moving = (Family.IDENTITY, Family.SLICE, Family.SPLIT, Family.JOIN)
    names = {row.name for row in OPERATORS if row.family not in moving}
    # moved; of many types; along an axis
    assert names - set(FUNCTIONS) == {"ACTIVATION_IDENTITY", "ELEMENT_WISE_CLIP1", "CUMULATIVE_SUMMATION"}


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("ACTIVATION_GELU", [1.0], 0.8413447),
        ("ACTIVATION_PARAMETERIZED_RELU", [-2.0, 0.25], -0.5),
        ("ACTIVATION_SCALED_ELU", [-1.0, 2.0, 3.0], -3.7927234),
        ("ELEMENT_WISE_ATAN", [1.0], 0.7853982),
        ("ELEMENT_WISE_ERF", [1.0], 0.8427008),
        ("ELEMENT_WISE_FLOOR", [-1.5], -2.0),
        ("ELEMENT_WISE_POW", [3.0, 2.0], 9.0),
        ("ELEMENT_WISE_SIGN", [-4.0], -1.0),
        ("ELEMENT_WISE_SIN", [1.0], 0.8414710),
        ("ELEMENT_WISE_SQRT", [2.0], 1.4142136),
    ],
)
def test_values_of_functions(name, inputs, expected):
    assert FUNCTIONS[name](*[np.float32(x) for x in inputs]) == pytest.approx(expected, rel=1e-6)
