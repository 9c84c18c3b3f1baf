"""dmlsplit.onnxruntime.refused_windows. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from tests import models
from tests.onnxruntime.placements import placed_model

OLDER, NEWER = (True, False), (False, False)
"""Whether 1.24.4 and 1.30.0 create the session."""
BOTH = (True, True)


def created(text, opset=17):
    made = models.text(text, opset)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return tuple([placed_model(made, version).created for version in ("1.24.4", "1.30.0")])


@pytest.mark.parametrize(
    ("attributes", "answers"),
    [
        ("", BOTH),
        ("kernel_shape = [5, 5]", BOTH),
        ("kernel_shape = [8, 8]", BOTH),
        ("kernel_shape = [9, 8]", NEWER),
        ("kernel_shape = [10, 10], pads = [1, 1, 1, 1]", BOTH),
        ("kernel_shape = [11, 11], pads = [1, 1, 1, 1]", NEWER),
        ('kernel_shape = [9, 9], auto_pad = "SAME_LOWER"', BOTH),
        ('kernel_shape = [9, 9], auto_pad = "VALID"', NEWER),
        ('kernel_shape = [-1, -1], auto_pad = "SAME_UPPER"', NEWER),
        ('kernel_shape = [3, -1], auto_pad = "SAME_LOWER"', NEWER),
        ('kernel_shape = [0, 0], auto_pad = "SAME_UPPER"', OLDER),
        ('kernel_shape = [-5, -5], dilations = [2, 2], auto_pad = "SAME_UPPER"', NEWER),
        ('kernel_shape = [3, 3], strides = [0, 0], auto_pad = "SAME_UPPER"', NEWER),
        ('kernel_shape = [3, 3], strides = [-20, -20], auto_pad = "SAME_UPPER"', NEWER),
        ("kernel_shape = [3, 3], strides = [-5, -5]", NEWER),
        ("kernel_shape = [3, 3], strides = [-6, -6]", OLDER),
        ("dilations = [4, 4]", NEWER),
        ("kernel_shape = [0, 0]", OLDER),
        ("kernel_shape = [-1, -1]", NEWER),
        ("dilations = [0, 0]", OLDER),
        ("dilations = [-1, -1]", NEWER),
        ("pads = [-1, -1, -1, -1]", OLDER),
        ("strides = [-1, -1]", NEWER),
    ],
)
def test_the_window_of_a_conv(attributes, answers):
    given = f"<{attributes}>" if attributes else ""
    text = f"(float[1,4,8,8] x, float[6,4,3,3] w) => (float y) {{ [n] y = Conv{given}(x, w) }}"
    assert created(text) == answers
    if attributes.startswith("kernel_shape"):
        pool = f"(float[1,4,8,8] x) => (float y) {{ [n] y = MaxPool{given}(x) }}"
        assert created(pool) == answers
    elif answers == NEWER and "-" not in attributes:
        opened = text.replace("1,4,8,8", "1,4,N,M")  # the kernel is created at the first Run
        assert created(opened) == BOTH


@pytest.mark.parametrize(
    ("sizes", "answers"), [("6,4,9,9", NEWER), ("6,4,8,8", BOTH), ("6,4,3", NEWER), ("6,4,3,3,3", NEWER)]
)
def test_the_weights_of_a_conv(sizes, answers):
    assert created(f"(float[1,4,8,8] x, float[{sizes}] w) => (float y) {{ [n] y = Conv(x, w) }}") == answers


def test_weights_of_another_rank_where_sizes_are_open():
    made = models.text("(float[N,4,8,8] x, float[6,4,3] w) => (float y) { [n] y = Conv(x, w) }", 17)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    answers = [placed_model(made, version).created for version in ("1.18.0", "1.19.2", "1.24.4", "1.30.0")]
    assert answers == [True, False, False, False]


def test_the_weights_of_a_transposed_convolution():
    """Tensors of less than 4 dimensions are described with 4."""
    for read, sizes, answers in (("4,8", "4,6,3,3", OLDER), ("4,8,8", "4,6,3", NEWER), ("4,8,8", "4,6,3,3,3", NEWER)):
        text = f"(float[1,{read}] x, float[{sizes}] w) => (float y) {{ [n] y = ConvTranspose(x, w) }}"
        assert created(text) == answers


def test_quantized_convolutions():
    for node in (
        "ConvInteger<kernel_shape = [9, 9]>(x, w)",
        "QLinearConv<kernel_shape = [9, 9]>(x, s, z, w, s, z, s, z)",
    ):
        kind = "int32" if "Integer" in node else "uint8"
        inputs = "uint8[1,4,8,8] x, uint8[6,4,3,3] w, float s, uint8 z"
        assert created(f"({inputs}) => ({kind} y) {{ [n] y = {node} }}") == NEWER


@pytest.mark.parametrize(
    ("attributes", "answers"),
    [
        ("pads = [5, 5, 5, 5]", BOTH),
        ("pads = [6, 6, 6, 6]", NEWER),
        ("strides = [0, 0]", OLDER),
        ("strides = [-1, -1]", NEWER),
        ("strides = [1, 1, 1]", OLDER),
        ("strides = [1]", NEWER),
        ("kernel_shape = [3, 3, 3]", OLDER),
        ("kernel_shape = [-1, -1]", OLDER),
        ("kernel_shape = [-20, -20]", NEWER),
        ("output_padding = [-1, -1]", OLDER),
        ("output_shape = [8, 8]", BOTH),
        ("output_shape = [10, 7]", NEWER),
        ("output_shape = [1, 4, 10, 10]", OLDER),
        ("group = 0", BOTH),
        ("group = -1", NEWER),
    ],
)
def test_the_window_of_a_transposed_convolution(attributes, answers):
    inputs = "float[1,6,8,8] x, float[6,4,3,3] w"
    assert created(f"({inputs}) => (float y) {{ [n] y = ConvTranspose<{attributes}>(x, w) }}") == answers


def test_the_failure_names_the_node_and_its_window():
    text = "(float[1,4,8,8] x) => (float[1,4,0,0] y) { [n] y = MaxPool<kernel_shape = [9, 9]>(x) }"
    failure = placed_model(models.text(text, 17)).failure
    assert failure.node == "n"
    assert failure.message == (
        "DirectML's kernel for n cannot be created: its window of 9 is larger than its input, 8 with the padding"
    )
    refused = "(float[1,4,8,8] x) => (float y) { [n] y = MaxPool<kernel_shape = [0, 0]>(x) }"
    newer = placed_model(models.text(refused, 17), "1.30.0").failure
    assert (newer.node, newer.message) == (
        "n",
        "MaxPool n: Attribute kernel_shape must only contain positive values; the model is not loaded",
    )


def test_a_stride_backwards_where_sizes_are_rounded_up():
    for mode, answers in ((0, OLDER), (1, NEWER)):
        given = f"kernel_shape = [3, 3], strides = [-6, -6], ceil_mode = {mode}"
        assert created(f"(float[1,3,8,8] x) => (float y) {{ [n] y = MaxPool<{given}>(x) }}") == answers


def test_a_short_kernel_shape_of_a_transposed_convolution():
    """The kernel reads what is in front of it; where the padding follows from the sizes, that makes no difference."""
    for padding, answers in (("SAME_LOWER", OLDER), ("SAME_UPPER", OLDER), ("VALID", NEWER)):
        given = f'kernel_shape = [3], auto_pad = "{padding}"'
        text = f"(float[1,4,8,8] x, float[4,3,3,3] w) => (float y) {{ [n] y = ConvTranspose<{given}>(x, w) }}"
        assert created(text) == answers
