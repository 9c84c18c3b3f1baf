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
        ("GatherND", "4,5 1", True),
        ("GatherND", "4,5 2", False),
        ("GatherND", "4 1", False),
        ("GatherND", "4 1,1", True),
        ("GatherND", "4,5 3,2", True),
        ("GatherND<batch_dims = 1>", "4,5 4,1", True),
        ("GatherND<batch_dims = 1>", "4,5 3,1", False),
        ("GatherND<batch_dims = 2>", "2,3,4 2,3,1", True),
        ("GatherND<batch_dims = 2>", "2,3,4 2,1", False),
        ("GatherND<batch_dims = 1>", "N,5 3,1", True),
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


@pytest.mark.parametrize(
    ("first", "second", "created"),
    [
        ("2,3", "2,3", True),
        ("2,3", "2,1", True),
        ("2,3", "3", True),
        ("2,3", "2,4", False),
        ("2,1", "2,3", False),
        ("3", "2,3", False),
        ("2,3", "0,1", False),
        ("2,0", "4,1", False),
        ("N,3", "2,1", True),
        ("N,3", "2,4", True),
    ],
)
def test_sums_below_opset_8(first, second, created):
    """The result is like the first input; DirectML's kernel broadcasts."""
    for operator in ("Max", "Mean", "Min", "Sum"):
        for opset in (6, 7):
            made = models.text(
                f"(float[{first}] x, float[{second}] z) => (float y) {{ [n] y = {operator}(x, z) }}", opset
            )
            made.graph.output[0].type.tensor_type.ClearField("shape")
            assert placed_model(made).created is created


@pytest.mark.parametrize(
    ("operator", "sizes", "block", "created"),
    [
        ("SpaceToDepth", "1,4,8,8", 16, True),
        ("SpaceToDepth", "1,4,8,8", 32767, True),
        ("SpaceToDepth", "1,4,8,8", 32768, False),
        ("DepthToSpace", "1,64,4,4", 46340, True),
        ("DepthToSpace", "1,64,4,4", 65536, False),  # the process ends
        ("DepthToSpace", "1,64,4,4", 2**31 - 1, False),
    ],
)
def test_large_blocks(operator, sizes, block, created):
    made = models.text(f"(float[{sizes}] x) => (float[?,?,?,?] y) {{ [n] y = {operator}<blocksize = {block}>(x) }}", 17)
    for version in ("1.20.1", "1.24.4"):
        assert placed_model(made, version).created is created


@pytest.mark.parametrize(
    ("sizes", "scale", "bias", "opset", "answers"),
    [
        ("1,8,4,4", "8", "8", 21, (True, True)),
        ("1,8,4,4", "1", "1", 21, (True, True)),
        ("1,8,4,4", "2", "2", 21, (True, False)),
        ("1,8,4,4", "2", "K", 21, (True, False)),
        ("1,8,4,4", "1", "2", 21, (True, False)),
        ("1,8,4,4", "K", "8", 21, (True, True)),
        ("N,8,4,4", "2", "2", 21, (True, True)),
        ("1,C,4,4", "2", "2", 21, (True, True)),
        ("N,8,4,4", "2", "8", 21, (False, False)),
        ("1,8,4,4", "8", "8", 18, (True, True)),
        ("1,8,4,4", "2", "8", 18, (False, False)),
    ],
)
def test_the_scale_of_a_group_normalization(sizes, scale, bias, opset, answers):
    """Asked of all versions; from 1.24 on, inference follows the sizes that its nodes compute."""
    inputs = f"float[{sizes}] x, float[{scale}] s, float[{bias}] b"
    node = "GroupNormalization<num_groups = 2>(x, s, b)"
    made = models.text(f"({inputs}) => (float[?,?,?,?] y) {{ [n] y = {node} }}", opset)
    versions = ("1.18.0", "1.20.1", "1.23.2", "1.24.4", "1.30.0")
    created = [placed_model(made, version).created for version in versions]
    assert created == [answers[0]] * 3 + [answers[1]] * 2


@pytest.mark.parametrize(
    ("sizes", "perm", "created"),
    [("2,3,4", "0,2,1", True), ("2,3,4", "0,1", False), ("2,3,4", "1", False), ("N,3,4", "0,1", True)],
)
def test_a_transpose_of_some_dimensions(sizes, perm, created):
    """Asked of 1.20.1, 1.24.4 and 1.30.0: inference takes them."""
    made = models.text(f"(float[{sizes}] x) => (float y) {{ [n] y = Transpose<perm = [{perm}]>(x) }}", 17)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    for version in ("1.20.1", "1.24.4", "1.30.0"):
        assert placed_model(made, version).created is created


@pytest.mark.parametrize(
    ("weights", "opset", "answers"),
    [
        ("[5]", 17, (True, True)),
        ("", 13, (False, False)),
        ("[5,1]", 13, (True, False)),
        ("[5,1]", 17, (False, False)),
        ("[1,5]", 17, (False, False)),
    ],
)
def test_the_weights_of_a_loss(weights, opset, answers):
    """Asked of 1.20.1, 1.24.4 and 1.30.0; those of opset 17 of all versions."""
    inputs = f"float[3,5] x, int64[3] t, float{weights} w"
    made = models.text(f"({inputs}) => (float y) {{ [n] y = SoftmaxCrossEntropyLoss(x, t, w) }}", opset)
    created = [placed_model(made, version).created for version in ("1.20.1", "1.24.4", "1.30.0")]
    assert created == [answers[0], answers[1], answers[1]]


@pytest.mark.parametrize(
    ("sizes", "heads", "created"),
    [
        ("1,4,16", (2, 2), True),
        ("1,4,16", (0, 2), True),
        ("1,4,16", (-1, 2), True),
        ("1,4,16", (2, 0), False),
        ("1,2,4,8", (0, 0), True),
    ],
)
def test_the_heads_of_an_attention(sizes, heads, created):
    """Asked of all versions: without heads the process ends; onnx refuses more."""
    inputs = ", ".join(f"float[{sizes}] {name}" for name in "qkv")
    node = f"Attention<q_num_heads = {heads[0]}, kv_num_heads = {heads[1]}>(q, k, v)"
    made = models.text(f"({inputs}) => (float y) {{ [n] y = {node} }}", 23)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    for version in ("1.23.2", "1.24.4", "1.30.0"):
        assert placed_model(made, version).created is created


@pytest.mark.parametrize(
    ("policy", "axes", "sizes", "created"),
    [
        ("stretch", "[2, 3]", "8, 10", True),
        ("not_larger", "[2, 3]", "8, 10", False),
        ("not_smaller", "[2, 3]", "8, 10", False),
        ("not_larger", "[-1, 2]", "8, 8", True),
        ("not_larger", "[-1, 2]", "10, 8", False),
    ],
)
def test_a_resize_that_keeps_the_ratio_of_sizes(policy, axes, sizes, created):
    """Asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0; in 1.18 a Resize of opset 18 is on the CPU."""
    node = f'Resize<mode="linear", keep_aspect_ratio_policy="{policy}", axes={axes}>(x, , , s)'
    given = f"<int64[2] s = {{{sizes}}}>"
    made = models.text(f"(float[1,1,4,4] x) => (float[?,?,?,?] y) {given} {{ y = {node} }}", 18)
    assert placed_model(made, "1.18.0").created is True
    for version in ("1.20.1", "1.30.0"):
        assert placed_model(made, version).created is created
