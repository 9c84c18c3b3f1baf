"""dmlsplit.onnxruntime.refused_shapes. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0; the last version also
refuses a ConvTranspose whose weights have another rank."""

from __future__ import annotations

import onnx
import pytest

from tests import models
from tests.onnxruntime.placements import placed_model


@pytest.mark.parametrize(
    ("operator", "shapes", "created"),
    [
        ("GatherElements<axis = 0>", "4,5 3,5", True),
        ("GatherElements<axis = 0>", "4,5 6,5", True),
        ("GatherElements<axis = 0>", "4,5 4,3", False),
        ("GatherElements<axis = -1>", "4,5 4,3", True),
        ("GatherElements", "4,5 4", False),
        ("GatherElements", "4,5 N,3", True),
        ("ScatterElements<axis = 0>", "4,5 3,5 3,5", True),
        ("ScatterElements<axis = 0>", "4,5 6,5 6,5", False),
        ("ScatterElements<axis = 0>", "4,5 4,3 4,3", False),
        ("ScatterElements<axis = 1>", "4,5 4,3 4,3", True),
        ("ScatterElements<axis = 0>", "4,5 3,5 4,5", False),
        ("ScatterElements<axis = 0>", "4,5 3,5 3,5,1", False),
        ("ScatterND", "4,5 2,1 2,5", True),
        ("ScatterND", "4,5 2,2 2", True),
        ("ScatterND", "4,5 2,1,1 2,1,5", True),
        ("ScatterND", "4,5 2,1 2,4", False),
        ("ScatterND", "4,5 2,3 2,5", False),
        ("ScatterND", "4,5 2,1 2,5,1", False),
        ("ScatterND", "4,5 2,1 1,2,5", True),
        ("ScatterND", "4,5 2,1 2,1,5", False),
        ("ScatterND", "4,5 1,1 5", True),
        ("ScatterND", "4,5 1 2,5", False),
        ("ScatterND", "0,5,2 2,1 2,5", True),
        ("Conv", "1,4,8,8 3,4,2,2", True),
        ("Conv<group = 2>", "1,4,8,8 4,2,2,2", True),
        ("Conv<group = 2>", "1,4,8,8 3,2,2,2", False),
        ("Conv<group = 2>", "1,4,8,8 4,4,2,2", False),
        ("Conv<group = 0>", "1,4,8,8 4,4,2,2", False),
        ("ConvTranspose<group = 2>", "1,4,8,8 4,6,3,3", True),
        ("ConvTranspose<group = 0>", "1,4,8,8 4,6,3,3", True),
        ("ConvTranspose<group = 3>", "1,4,8,8 4,6,3,3", False),
        ("ConvTranspose", "1,4,8,8 5,6,3,3", False),
        ("ConvTranspose", "1,4,8 4,6,3,3", True),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_shapes_that_kernels_refuse(operator, shapes, created, version):
    types = ["float", "float" if operator.startswith("Conv") else "int64", "float"]
    inputs = [f"{t}[{shape}] i{i}" for i, (t, shape) in enumerate(zip(types, shapes.split(), strict=False))]
    names = ", ".join(f"i{i}" for i in range(len(inputs)))
    made = models.text(f"({', '.join(inputs)}) => (float y) {{ [n] y = {operator}({names}) }}", 13)
    made.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None))
    assert placed_model(made, version).created is created


@pytest.mark.parametrize(
    ("graph", "created"),
    [
        ("(float x) => (float y) { y = Transpose(x) }", False),
        ("(float x) => (float y) { z = Relu(x) y = Transpose(z) }", False),
        ("(float[4] x) => (float[] y) { y = Transpose(x) }", True),
        ("(float x) => (float[] y) { y = GlobalAveragePool(x) }", False),
        ("(float[2,4] x) => (float[] y) { y = GlobalAveragePool(x) }", False),
        ("(float[N,M] x) => (float[] y) { y = GlobalAveragePool(x) }", True),
        ("(float[1,2,4] x) => (float[] y) { y = GlobalAveragePool(x) }", True),
        ("(float[4] x) => (float[] y) { y = GlobalMaxPool(x) }", False),
        ("(float[2,4] x) => (float[] y) { y = GlobalLpPool(x) }", False),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_too_few_dimensions(graph, created, version):
    assert placed_model(models.text(graph, 13), version).created is created


@pytest.mark.parametrize(
    ("node", "sizes", "count", "created"),
    [
        ("BatchNormalization(x, a, a, a, a)", "1,4,8,8", 4, True),
        ("BatchNormalization(x, a, a, a, a)", "1,4,8,8", 1, True),
        ("BatchNormalization(x, a, a, a, a)", "1,4,8,8", 3, False),
        ("BatchNormalization(x, a, a, a, a)", "N,4,8,8", 3, True),
        ("InstanceNormalization(x, a, a)", "1,4,8", 4, True),
        ("InstanceNormalization(x, a, a)", "1,4,8", 3, False),
        ("Conv(x, w, a)", "1,3,8,8", 4, True),
        ("Conv(x, w, a)", "1,3,8,8", 1, False),
        ("ConvTranspose(x, v, a)", "1,3,8,8", 4, True),
        ("ConvTranspose(x, v, a)", "1,3,8,8", 3, False),
        ("ConvTranspose<group = 4>(z, u, a)", "1,3,8,8", 8, True),
        ("ConvTranspose<group = 4>(z, u, a)", "1,3,8,8", 2, False),
    ],
)
def test_vectors_with_an_element_for_each_channel(node, sizes, count, created):
    """Asked of 1.18.0 and 1.24.4."""
    weights = "float[4,3,3,3] w, float[3,4,3,3] v, float[4,2,3,3] u, float[1,4,8,8] z"
    graph = f"(float[{sizes}] x, {weights}, float[{count}] a) => (float[] y) {{ y = {node} }}"
    assert placed_model(models.text(graph, 13), "1.24.4").created is created
