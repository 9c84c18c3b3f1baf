"""dmlsplit.onnxruntime.attribute_values. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import onnx
import pytest

from tests import models
from tests.onnxruntime.placements import placed, placed_model

IMAGE = "(float[1,4,8,8] x, int32[1,4,8,8] i, uint8[2] u, float[N,4,8,8] n) => (float[?,?,?,?] y, uint8[?] z)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('[p] y = MaxPool<kernel_shape = [2, 2], auto_pad = "same">(x) z = Abs(u)', "DirectML's kernel for p"),
        ('[d] y = DepthToSpace<blocksize = 2, mode = "crd">(x) z = Abs(u)', "DirectML's kernel for d"),
        ('[b] z = BitShift<direction = "left">(u, u) y = Relu(x)', "DirectML's kernel for b"),
        ('[d] c = DepthToSpace<blocksize = 2, mode = "crd">(x) y = Relu(x) z = Abs(u)', "DirectML's kernel for d"),
        ('[p] y = MaxPool<kernel_shape = [2, 2], auto_pad = "SAME_LOWER">(x) z = Abs(u)', None),
        ('[d] y = DepthToSpace<blocksize = 2, mode = "">(x) z = Abs(u)', None),
        ('[p] y = MaxPool<kernel_shape = [2, 2], auto_pad = "same">(n) z = Abs(u)', None),
    ],
    ids=["padding", "mode", "direction", "not read", "known padding", "empty mode", "open sizes"],
)
def test_a_word_that_a_kernel_does_not_know_fails_the_session(body, message):
    answer = placed(f"{IMAGE} {{ {body} }}", "1.24.4")
    assert answer.created is (message is None)
    if message is not None:
        assert answer.failure.message.startswith(message)
        assert answer.failure.node == body[1]


@pytest.mark.parametrize(
    ("node", "opset", "created"),
    [
        ('Pad<mode = "reflect">(x, pads)', 17, True),
        ('Pad<mode = "con">(x, pads)', 17, False),
        ('Pad<mode = "Edge">(i, pads)', 17, False),
        ('Resize<mode = "near">(x, , scales)', 17, True),
        ('Resize<mode = "near">(i, , scales)', 17, False),
        ('Resize<mode = "xyz">(x, , scales)', 17, False),
        ('Resize<coordinate_transformation_mode = "half">(x, , scales)', 17, True),
        ('Resize<coordinate_transformation_mode = "half">(i, , scales)', 17, False),
        ('Resize<nearest_mode = "simple">(x, , scales)', 17, True),
        ('Resize<nearest_mode = "simple">(i, , scales)', 17, False),
        ("Resize<exclude_outside = 1>(x, , scales)", 17, False),
        ("Resize<exclude_outside = 1>(i, , scales)", 17, False),
        ('Resize<exclude_outside = 1, mode = "cubic">(x, , scales)', 17, True),
        ('GridSample<mode = "bicubic">(x, grid)', 17, True),
        ('GridSample<mode = "cubic">(x, grid)', 17, False),
        ('GridSample<mode = "cubic">(x, grid)', 20, True),
        ('GridSample<mode = "bilinear">(x, grid)', 20, False),
        ("ArgMax<select_last_index = 1>(x)", 17, True),
        ("ArgMax<select_last_index = 2>(x)", 17, False),
        ("ArgMax<select_last_index = 1099511627776>(x)", 17, True),
        ("GatherND<batch_dims = -1>(x, n)", 17, False),
        ("GatherND<batch_dims = 1>(x, n)", 17, True),
        ("ReverseSequence<time_axis = 4>(x, lengths)", 17, False),
        ("ReverseSequence<time_axis = 2>(x, lengths)", 17, True),
        ("LpNormalization<p = 2>(x)", 17, True),
        ("LpNormalization<p = 3>(x)", 17, False),
        ("LRN<size = 0>(x)", 17, False),
        ("LpPool<kernel_shape = [2, 2], p = 0>(x)", 17, False),
        ("GlobalLpPool<p = -1>(x)", 17, True),
        ("RandomNormalLike<dtype = 0>(x)", 17, False),
        ("RandomUniform<dtype = 0, shape = [2]>()", 17, False),
        ("ReduceMax<axes = [-4]>(x)", 17, True),
        ("ReduceMax<axes = [-5]>(x)", 17, False),
        ("ReduceMax<axes = [4]>(i)", 17, False),
        ("ArgMax<axis = 4>(x)", 10, False),
        ("Unsqueeze<axes = [4]>(x)", 11, True),
        ("Unsqueeze<axes = [5]>(x)", 11, False),
        ("MeanVarianceNormalization<axes = [4]>(x)", 17, False),
        ("ReduceMax<keepdims = 2>(x)", 17, False),
        ("ReduceMax<keepdims = 4294967296>(x)", 17, True),
        ("ArgMax<keepdims = -1>(x)", 17, False),
        ("LayerNormalization<axis = 4>(x, one)", 17, False),
    ],
)
@pytest.mark.parametrize("version", ["1.18.0", "1.24.4"])
def test_values_that_kernels_refuse(node, opset, created, version):
    assert _created(node, opset, version) is created


def _created(node, opset, version):
    inputs = "float[1,4,8,8] x, int32[1,4,8,8] i, float[1,2,2,2] grid, float[8] one, int64[1,2,1] n, int64[4] lengths"
    constants = "int64[8] pads = {0, 0, 0, 0, 1, 1, 1, 1}, float[4] scales = {1.0, 1.0, 2.0, 2.0}"
    made = models.text(f"({inputs}) => (float y) <{constants}> {{ [n] y = {node} }}", opset)
    made.graph.output[0].ClearField("type")
    made.graph.output[0].CopyFrom(onnx.shape_inference.infer_shapes(made).graph.output[0])
    kind = made.graph.output[0].type.tensor_type
    kind.elem_type = kind.elem_type or onnx.TensorProto.FLOAT
    return placed_model(made, version).created


@pytest.mark.parametrize(
    ("operator", "given", "created"),
    [
        ("LSTM", "layout = 0, hidden_size = 2", True),
        ("LSTM", "layout = 1, hidden_size = 2", False),
        ("LSTM", "hidden_size = 3", False),
        ("GRU", "hidden_size = 2", False),
    ],
)
def test_recurrent_networks(operator, given, created):
    """The weights are those of an LSTM of 2: a GRU of 2 has fewer."""
    inputs = "float[3,1,5] x, float[1,8,5] w, float[1,8,2] r"
    if operator == "GRU":
        inputs, given = inputs.replace("8", "6"), given.replace("2", "1")
    made = models.text(f"({inputs}) => (float[3,1,1,?] y) {{ [n] y = {operator}<{given}>(x, w, r) }}", 14)
    assert placed_model(made).created is created


def test_a_kernel_of_the_cpu_needs_a_hidden_size():
    inputs = "double[3,1,5] x, double[1,8,5] w, double[1,8,2] r"
    for given, created in (("hidden_size = 2", True), ("hidden_size = 0", False)):
        made = models.text(f"({inputs}) => (double[3,1,1,?] y) {{ [n] y = LSTM<{given}>(x, w, r) }}", 14)
        assert placed_model(made).created is created


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("scan_input_directions", [1], ""),
        ("scan_input_directions", [2**32], ""),
        ("scan_input_directions", [0, 0], "its scan_input_directions are 2, not 1"),
        ("scan_output_directions", [2], "its scan_output_directions are not all 0 or 1"),
        ("scan_output_directions", [], "its scan_output_directions are 0, not 1"),
    ],
)
def test_the_directions_of_a_scan(name, numbers, message):
    body = "g (float[3] s, float[3] e) => (float[3] t, float[3] o) { t = Add(s, e) o = Identity(t) }"
    made = models.text(
        "(float[3] s0, float[4,3] x) => (float[3] sf, float[4,3] y) "
        f"{{ [n] sf, y = Scan<num_scan_inputs = 1, body = {body}>(s0, x) }}",
        17,
    )
    given = made.graph.node[0].attribute.add()
    given.name, given.type = name, onnx.AttributeProto.INTS
    given.ints.extend(numbers)
    for version in ("1.18.0", "1.24.4"):
        found = placed_model(made, version)
        assert found.created is (not message)
        assert not message or found.failure.message.endswith(message)


def test_attributes_that_the_cpu_needs():
    inputs = "double[3,1,5] x, double[1,8,5] w, double[1,8,2] r"
    text = f"({inputs}) => (double[3,1,1,2] y) {{ [n] y = LSTM(x, w, r) }}"
    assert placed_model(models.text(text, 14)).failure.message.endswith("it has no hidden_size")
    on_dml = text.replace("double", "float")  # as if it were 1
    assert placed_model(models.text(on_dml, 14)).created is False
    on_dml = on_dml.replace("8", "4").replace(",2]", ",1]")
    assert placed_model(models.text(on_dml, 14)).created is True
    matched = "(string[2] x) => (bool[2] y) { [n] y = RegexFullMatch(x) }"
    assert placed_model(models.text(matched, 20)).failure.message.endswith("it has no pattern")


@pytest.mark.parametrize(
    ("mode", "data_type", "created"), [("", "float", True), ("av", "float", True), ("", "double", False)]
)
def test_a_directml_kernel_takes_the_beginning_of_a_word(mode, data_type, created):
    inputs = f"{data_type}[1,4,8,8] x, {data_type}[2,4] r, int64[2] b"
    made = models.text(f'({inputs}) => ({data_type}[2,4,1,1] y) {{ y = RoiAlign<mode = "{mode}">(x, r, b) }}', 16)
    assert placed_model(made).created is created


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", ""),
        ('activation = "Relu"', ""),
        ('activation = "Tanh", activation_params = [0.1]', ""),
        ('activation = "LeakyRelu", activation_params = [0.1]', ""),
        ('activation = "Clip", activation_params = [0.1, 0.5]', ""),
        ('activation = "HardSigmoid", activation_params = [0.1, 0.5]', ""),
        ('activation = "LeakyRelu"', "its activation LeakyRelu has 0 parameters, not 1"),
        ('activation = "Clip", activation_params = [0.1]', "its activation Clip has 1 parameters, not 2"),
        ('activation = "HardSigmoid", activation_params = [1.0, 2.0, 3.0]', "has 3 parameters, not 2"),
        ('activation = "Elu", activation_params = [1.0]', "its activation is 'Elu'"),
        ('activation = "relu"', "its activation is 'relu'"),
        ('activation = ""', "its activation is ''"),
    ],
)
def test_the_activation_of_a_fused_conv(given, message):
    node = f"com.microsoft.FusedConv{f'<{given}>' if given else ''}"
    text = f"(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) {{ [n] y = {node}(x, w) }}"
    for version in ("1.18.0", "1.30.0"):
        found = placed(text, version)
        assert found.created is (not message)
        assert not message or found.failure.message.endswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('activation = "Relu"', ""),
        ('activation = "Softsign"', ""),
        ('activation = "Elu", activation_alpha = 0.1', ""),
        ('activation = "Selu", activation_alpha = 0.1, activation_gamma = 0.1', ""),
        ('activation = "ScaledTanh", activation_alpha = 0.1, activation_beta = 0.1', ""),
        ('activation = "Elu"', "its activation Elu lacks activation_alpha"),
        ('activation = "HardSigmoid", activation_alpha = 0.1', "its activation HardSigmoid lacks activation_beta"),
        ('activation = "Selu", activation_alpha = 0.1, activation_beta = 0.1', "lacks activation_gamma"),
        ('activation = "Clip", activation_alpha = 0.1, activation_beta = 0.1', "its activation is 'Clip'"),
        ('activation = "relu"', "its activation is 'relu'"),
        ("transA = 0", "its activation is ''"),
        ("", "its activation is ''"),
    ],
)
def test_the_activation_of_a_fused_gemm(given, message):
    node = f"com.microsoft.FusedGemm{f'<{given}>' if given else ''}"
    for data_type in ("float", "float16"):
        text = f"({data_type}[2,3] a, {data_type}[3,4] b) => ({data_type}[2,4] y) {{ [n] y = {node}(a, b) }}"
        for version in ("1.18.0", "1.30.0"):
            found = placed(text, version)
            assert found.created is (not message)
            assert not message or found.failure.message.endswith(message)


def test_a_hard_swish_is_an_activation_of_new_versions():
    text = (
        "(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) "
        '{ y = com.microsoft.FusedConv<activation = "HardSwish">(x, w) }'
    )
    assert [placed(text, version).created for version in ("1.24.4", "1.30.0")] == [False, True]


@pytest.mark.parametrize(
    ("body", "opset", "created"),
    [
        ("(float[4] x) => (float[] y) { y = Softmax(x) }", 9, False),
        ("(float[2,4] x) => (float[] y) { y = Softmax(x) }", 9, True),
        ("(float[N] x) => (float[] y) { y = LogSoftmax(x) }", 9, True),
        ("(float x) => (float[] y) { y = Hardmax(x) }", 9, False),
        ("(float x) => (float[] y) { y = LpNormalization(x) }", 13, False),
        ("(float[4] x) => (float[] y) { y = LpNormalization(x) }", 13, True),
        ("(float x) => (int64[] y) { y = ArgMax(x) }", 13, False),
        ("(float[1,4,4] x) => (float[] y) { y = MeanVarianceNormalization(x) }", 13, False),
        ("(float[1,4,4,4] x) => (float[] y) { y = MeanVarianceNormalization(x) }", 13, True),
        ("(float[1,4,4] x) => (float[] y) { y = MeanVarianceNormalization<axes = [0, 1]>(x) }", 13, True),
    ],
)
def test_axes_that_are_not_given_are_the_default_ones(body, opset, created):
    assert placed_model(models.text(body, opset), "1.24.4").created is created


@pytest.mark.parametrize(
    ("given", "created"),
    [
        ('activation = "Softmax"', True),
        ('activation = "Softmax", activation_axis = -2', True),
        ('activation = "Softmax", activation_axis = 2', False),
        ('activation = "Softmax", activation_axis = -3', False),
        ('activation = "Relu"', False),
        ('activation = "softmax"', False),
        ('activation = ""', False),
    ],
)
def test_the_activation_of_a_product(given, created):
    """Asked of 1.20.1 and 1.24.4."""
    node = f"com.microsoft.FusedMatMulActivation<{given}>(x, z)"
    for rows, answer in (("2", created), ("N", True)):
        text = f"(float[{rows},3] x, float[3,4] z) => (float[?,?] y) {{ [n] y = {node} }}"
        found = placed_model(models.text(text, 17, domains=["com.microsoft"]))
        assert (found.created, str(found.nodes["n"].provider)) == (answer, "DML")


@pytest.mark.parametrize(
    ("given", "created"),
    [
        ("kernel_shape = [2, 2]", True),
        ("kernel_shape = [0, 2]", False),
        ("kernel_shape = [2, -1]", False),
        ("kernel_shape = [2, 2], pads = [1, 1, 1, 1]", True),
        ("kernel_shape = [2, 2], pads = [2, 2, 2, 2]", False),
        ("kernel_shape = [2, 2], strides = [0, 1]", False),  # the process ends
    ],
)
def test_a_pool_of_the_cpu(given, created):
    """Asked of 1.20.1 and 1.24.4."""
    made = models.text(f"(double[1,3,8,8] x) => (double y) {{ [n] y = MaxPool<{given}>(x) }}", 18)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    for version in ("1.20.1", "1.24.4"):
        assert placed_model(made, version).created is created
