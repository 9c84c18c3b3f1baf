"""dmlsplit.onnxruntime.attribute_words. Each model was asked of 1.18.0, 1.20.1, 1.24.4 and 1.30.0."""

from __future__ import annotations

import pytest

from tests.onnxruntime.placements import placed

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
