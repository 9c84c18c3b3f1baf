"""Blocks of known models, as they were executed: rotary embeddings, gated units, residuals around a Concat, states."""

from __future__ import annotations

import re

import onnx

from tests.formats.onnx_graphs.models import CHANGES, Line, behind
from tests.models import Sketch


def silu(s: Sketch, x: str) -> str:
    return s("Mul", x, s("Sigmoid", x))


def pattern(line: Line) -> onnx.ModelProto:
    """The set "patterns", the blocks of "battery", and those that the set "cures" changes."""
    words = re.sub(r", cure \w+.*$", "", line["model"])
    s = Sketch()
    cure = line.get("cure", "none")
    for start, build in BLOCKS.items():
        if words.startswith(start):
            build(s, words, cure)
            return s.inferred()
    raise ValueError(words)


def rotary(s: Sketch, words: str, cure: str) -> None:
    x = s.input("x", 1, 2, 8, 16)
    q = x
    if "q from Mul" in words:
        q = s.mul_c(x)
    elif "q from MatMul" in words:
        q = s("MatMul", x, s.weights(16, 16))
    cos, sin = s.weights(1, 1, 8, 16), s.weights(1, 1, 8, 16)
    early = words.endswith("names 1") == ("q from input" in words)
    straight = s("Mul", q, cos) if early else ""
    if "by Split" in words:
        first, second = s.split(q, 3, 8, 8)
        turned = s.concat(s("Neg", second), first, axis=3)
    else:
        first, second = s.slice(q, 3, 0, 8), s.slice(q, 3, 8, 16)
        turned = s.concat(s("Neg", second), first, axis=3)
    turned = s("Mul", turned, sin)
    straight = straight or s("Mul", q, cos)
    s.outputs = [s.named(s("Add", straight, turned), "o")]  # which was made first decides which is computed first


def gated(s: Sketch, words: str, cure: str) -> None:
    a, b = s.split(s.input("x", 1, 8, 4, 4), 1, 4, 4)
    if words.startswith("SwiGLU: "):
        o = s("Mul", silu(s, a), b)
    elif words.startswith("SwiGLU reordered"):
        o = s("Mul", s("Mul", b, s("Sigmoid", a)), a)
    elif words.startswith("GEGLU"):
        erf = s("Erf", s("Div", b, s.constant(2**0.5)))
        o = s("Mul", a, s.mul_c(s("Mul", b, s.mul_c(erf, "Add", 1)), factor=0.5))
    else:
        o = s("Mul", s("Tanh", a), s("Sigmoid", b))
    s.outputs = [s.named(o, "o")]


def glu_of_a_symbol(s: Sketch, words: str, cure: str) -> None:
    a, b = s.split(s.input("x", "N", 8, 4, 4), 1, 4, 4)
    s.outputs = [s.named(s("Mul", a, s("Sigmoid", b)), "o")]


def conformer(s: Sketch, words: str, cure: str) -> None:
    x = s.input("x", 1, 8, 16, 1)
    a, b = s.split(s.conv(x, 8, 16), 1, 8, 8)
    whole = s.nodes[-1].input[0]
    if cure == "slice_a":
        a = s.slice(whole, 1, 0, 8)
    elif cure in ("reshape_a", "max_a"):
        a = CHANGES[cure[:-2]](s, a)
    gate = s("Sigmoid", b)
    if cure == "clip_s":
        gate = s.clip(gate, 0, 1)
    g = s("Mul", a, gate)
    h = s("Conv", g, s.weights(8, 1, 3, 1), pads=[1, 0, 1, 0], group=8)
    h = s.conv(silu(s, s.bn(h, 8) if words.startswith("Conformer convolution") else h), 8, 8)
    s.outputs = [s.named(s("Add", x, h), "o")]
    if cure == "sig_out":
        s.outputs.append(gate)


def attention_gate(s: Sketch, words: str, cure: str) -> None:
    q, k, v = s.split(s("MatMul", s.input("x", 1, 1, 8, 16), s.weights(16, 48)), 3, 16, 16, 16)
    s.outputs = [s.named(s("Add", q, s("Mul", s("Sigmoid", k), v)), "o")]


def residual(s: Sketch, words: str, cure: str) -> None:
    x = s.input("x", 1, 4, 4, 4)
    found = re.search(r"Conv\((\w+)\(Concat", words)
    assert found is not None
    g = found[1]
    if "Conv3(v)" in words:
        v = s.conv(x, 4, 4)
        y = s.conv(v, 4, 4, 3)
    else:
        y = s.input("y", 1, 4, 4, 4)
        v = s.conv(x, 4, 4) if words.startswith("residual v+") else s("Tanh", x)
    first = CHANGES[cure[:-2]](s, v) if cure in ("max_j", "reshape_j") else v
    if cure == "unfuse_each":
        j = r = s.concat(s(g, v), s(g, y))
    else:
        j = s.concat(first, y)
        r = behind(s, g, j, "")
    used = CHANGES[cure[:-2]](s, v) if cure in ("max_o", "reshape_o") else v
    h = s.conv(r, 8, 4)
    s.outputs = [s.named(s("Add", used, h), "o")]
    s.outputs += {"j_out": [j], "r_out": [r], "v_out": [v]}.get(cure, [])


def crelu(s: Sketch, words: str, cure: str) -> None:
    v = s.conv(s.input("x", 1, 4, 4, 4), 4, 4)
    r = s("Relu", s.concat(v, s("Neg", v)))
    o = s("Add", v, s.conv(r, 8, 4)) if "residual" in words else r
    s.outputs = [s.named(o, "o")]


def dense(s: Sketch, words: str, cure: str) -> None:
    growing = s.conv(s.input("x", 1, 4, 4, 4), 4, 4) if "without BN" in words else s("Relu", s.input("x", 1, 4, 4, 4))
    channels, parts = 4, [growing]
    for _ in range(3):
        normal = growing if "without BN" in words else s.bn(growing, channels)
        new = s.conv(s("Relu", normal), channels, 4, 3)
        parts.append(new)
        growing = s.concat(*parts) if "flat" in words else s.concat(growing, new)
        channels += 4
    s.outputs = [s.named(s("Relu", growing), "o")]


def unet(s: Sketch, words: str, cure: str) -> None:
    skip = s.conv(s.input("x", 1, 4, 8, 8), 4, 4)
    down = s("Conv", s("LeakyRelu", skip), s.weights(4, 4, 2, 2), strides=[2, 2])
    up = s("ConvTranspose", s("Relu", down), s.weights(4, 4, 2, 2), strides=[2, 2])
    s.outputs = [s.named(s.conv(s("Relu", s.concat(skip, up)), 8, 4), "o")]


def state(s: Sketch, words: str, cure: str) -> None:
    x, h = s.input("x", 1, 4, 4, 4), s.input("h", 1, 4, 4, 4)
    hn = s("Add", s.mul_c(h), x)
    if cure == "unfuse_each":
        early = s("Relu", hn)
        j = r = s.concat(early, s("Relu", x))
    else:
        j = s.concat(s("Max", hn, hn) if cure == "max_j" else hn, x)
        r = s("Relu", j)
    name = "state_out" if words.endswith("state_out") else "hn"
    s.outputs = [s.named(s.conv(r, 8, 4), "output"), s.named(hn, name)]
    if cure == "j_out":
        s.outputs.append(s.named(j, "zj"))


def squeeze(s: Sketch, words: str, cure: str) -> None:
    v = s.conv(s.input("x", 1, 4, 4, 4), 4, 4)
    j = s.concat(v, s.input("y", 1, 4, 4, 4))
    g = s("Mul", j, s("Sigmoid", s("GlobalAveragePool", j)))
    s.outputs = [s.named(s("Add", v, s.conv(g, 8, 4)), "o")]


def shuffle(s: Sketch, words: str, cure: str) -> None:
    a, b = s.split(s("Relu", s.input("x", 1, 8, 4, 4)), 1, 4, 4)
    j = s.concat(a, s("Relu", s.conv(b, 4, 4)))
    h = s("Transpose", s("Reshape", j, s.integers(1, 2, 4, 4, 4)), perm=[0, 2, 1, 3, 4])
    s.outputs = [s.named(s("Reshape", h, s.integers(1, 8, 4, 4)), "o")]


def res2net(s: Sketch, words: str, cure: str) -> None:
    def conv(x: str, channels: int, size: int) -> str:
        return s("Relu", s.conv(x, channels, channels, size))

    a, b, c, d = s.split(conv(s.input("x", 1, 16, 4, 4), 16, 1), 1, 4, 4, 4, 4)
    second = conv(b, 4, 3)
    third = conv(s("Add", c, second), 4, 3)
    fourth = conv(s("Add", d, third), 4, 3)
    h = s("Tanh", s.concat(a, second, third, fourth))
    s.outputs = [s.named(s.conv(h, 16, 16), "o")]


def ghost(s: Sketch, words: str, cure: str) -> None:
    x = s.input("x", 1, 8, 4, 4)
    first = s("Relu", s.conv(x, 8, 4))
    second = s("Relu", s("Conv", first, s.weights(4, 1, 3, 3), pads=[1] * 4, group=4))
    s.outputs = [s.named(s("Add", s.concat(first, second), x), "o")]


def c2f(s: Sketch, words: str, cure: str) -> None:
    def conv(x: str, before: int, after: int, size: int = 1) -> str:
        return silu(s, s.conv(x, before, after, size))

    a, b = s.split(conv(s.input("x", 1, 8, 4, 4), 8, 8), 1, 4, 4)
    parts = [a, b]
    for _ in range(2):
        parts.append(s("Add", parts[-1], conv(conv(parts[-1], 4, 4, 3), 4, 4, 3)))
    j = s.concat(*parts)
    s.outputs = [s.named(silu(s, j) if "without" in words else conv(j, 16, 8), "o")]


def sppf(s: Sketch, words: str, cure: str) -> None:
    parts = [s("Relu", s.input("x", 1, 4, 4, 4))]
    for _ in range(3):
        parts.append(s("MaxPool", parts[-1], kernel_shape=[3, 3], pads=[1] * 4))
    s.outputs = [s.named(s("Tanh", s.concat(*parts)), "o")]


def lstm(s: Sketch, words: str, cure: str) -> None:
    x, c = s.input("x", 1, 16), s.input("c", 1, 4)
    i, f, g, o = s.split(x, 1, 4, 4, 4, 4)
    keep = s("Mul", c, s("Sigmoid", f))
    new = s("Mul", s("Sigmoid", i), s("Tanh", g))
    h = s("Mul", s("Sigmoid", o), s("Tanh", s("Add", keep, new)))
    r = s("Tanh", s.concat(h, x))
    s.outputs = [s.named(r, "r"), s.named(h, "h")]


def split_and_join(s: Sketch, words: str, cure: str) -> None:
    axis = 2 if words.startswith("same") else 1
    a, _ = s.split(s("Relu", s.input("x", 2, 8, 4, 4)), axis, *((2, 2) if axis == 2 else (4, 4)))
    j = s.concat(a, s.input("y", 2, 8, 2, 4) if axis == 2 else s.input("y", 2, 4, 4, 4), axis=axis)
    s.outputs = [s.named(s.mul_c(j), "b"), s.named(s("Tanh", a), "c")]


def halves(s: Sketch, words: str, cure: str) -> None:
    """Conv or Sigmoid, a Split, an operator on the first half, Conv."""
    x = s.input("x", 1, 8, 4, 4)
    v, end = (s.conv(x, 8, 8), "Relu") if words.startswith("Conv") else (s("Sigmoid", x), "Tanh")
    rest = ""
    match cure:
        case "gather":
            part = s("Gather", v, s.integers(0, 1, 2, 3), axis=1)
        case "padneg":
            part = s("Pad", v, s.integers(0, 0, 0, 0, 0, -4, 0, 0))
        case "slice_step":
            part = s.slice(s.slice(v, 1, 3, -9, -1), 1, 3, -9, -1)
        case _:
            part, rest = s.split(v, 1, 4, 4)
    if cure == "max":
        part = s("Max", part, part)
    s.outputs = [s.named(s.conv(s(end, part), 4, 4), "o")]
    s.outputs += {"other_out": [rest], "v_out": [v]}.get(cure, [])


def product(s: Sketch, words: str, cure: str) -> None:
    x, y = s.input("x", 1, 8, 4, 4), s.input("y", 1, 8, 4, 4)
    p = s("Mul", y, x)
    if cure == "max_x":
        x = s("Max", x, x)
    if cure in ("max_p", "reshape_p"):
        p = CHANGES[cure[:-2]](s, p)
    elif cure == "ident":
        p = s("Identity", p)
    gate = s("Sigmoid", x)
    if cure == "clip_s":
        gate = s.clip(gate, 0, 1)
    s.outputs = [s.named(s("Mul", p, gate) if cure != "reassoc" else s("Mul", y, s("Mul", x, gate)), "o")]
    s.outputs += [p] if cure == "p_out" else []


BLOCKS = {
    "rotary": rotary,
    "SwiGLU": gated,
    "GEGLU": gated,
    "WaveNet": gated,
    "Conformer convolution": conformer,
    "Conformer block": conformer,
    "attention gate": attention_gate,
    "GLU with symbolic batch": glu_of_a_symbol,
    "residual": residual,
    "CReLU": crelu,
    "DenseNet": dense,
    "U-Net": unet,
    "streaming state": state,
    "SE gate": squeeze,
    "channel shuffle": shuffle,
    "Res2Net": res2net,
    "GhostNet": ghost,
    "YOLO C2f": c2f,
    "SPPF": sppf,
    "LSTM-like": lstm,
    "Split output into Concat": split_and_join,
    "same, axis 2": split_and_join,
    "Conv, Split, Relu(first)": halves,
    "Sigmoid, Split, Tanh(first)": halves,
    "(y*x)*sigmoid(x)": product,
}
"""By how the words begin."""
