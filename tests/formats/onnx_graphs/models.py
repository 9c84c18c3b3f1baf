"""The models of the recorded executions, from the words in which they were recorded.

x and y are FLOAT of 1x4x4x4 unless the words say otherwise. The operators that DirectML was given are recorded, too: a
model that is not the one executed shows there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import onnx

from tests.models import FLOAT, FLOAT16, Sketch

Line: TypeAlias = dict[str, Any]


UNARY: Final = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Neg", "Abs")


def behind(s: Sketch, op: str, x: str, y: str, channels: int = 8) -> str:
    """What the words call an operator behind a tensor; `y` is another of its size where one is needed."""
    if op in UNARY:
        return s(op, x)
    match op:
        case "Clip":
            return s.clip(x)
        case "MulC" | "AddC":
            return s.mul_c(x, op[:3])
        case "MulV" | "AddV":
            shape = (1, channels, 1, 1)
            return s(op[:3], x, s.weights(*shape))
        case "BN":
            return s.bn(x, channels)
        case "Conv":
            return s.conv(x, channels, channels)
        case "Conv3":
            return s.conv(x, channels, channels, 3)
        case "Conv3r" | "Conv3y":
            return s("Add", s.conv(x, channels, channels, 3), y)
        case "Mul":
            return s("Mul", x, y)
        case _:
            raise ValueError(op)


def gate(line: Line) -> onnx.ModelProto:
    """Class A: a * Sigmoid(b) of one Split."""
    words, cure = line["model"], line.get("cure", "")
    s = Sketch(FLOAT16 if "FLOAT16" in words else FLOAT)
    shape: list[int | str] = [1, 8, 4, 4]
    axis, lengths = 1, [4, 4]
    if words == "2-D 4x64":
        shape, axis, lengths = [4, 64], 1, [32, 32]
    elif words.startswith("3-way"):
        lengths = [3, 3, 2]
    elif "1x64x32x32" in words:
        shape, lengths = [1, 64, 32, 32], [32, 32]
    elif "Conformer 1x50x256" in words:
        shape, axis, lengths = [1, 50, 256], 2, [128, 128]
    elif "1x256x50x1" in words:
        shape, lengths = [1, 256, 50, 1], [128, 128]
    if "symbolic" in words:
        shape[0] = "N"
    x = s.input("x", *shape)
    if words == "after Relu":
        x = s("Relu", x)
    elif words.startswith("Conformer 1x50x256"):
        s.inputs.clear()
        x = s("Conv", s.input("x", 1, 50, 256), s.weights(50, 50, 1))
    elif "after Conv" in words:
        x = s.conv(x, int(shape[1]), int(shape[1]))
    a, b = _parts(s, x, axis, lengths, cure)
    a = _changed(s, a, cure, "a")
    gate = s("Sigmoid", _changed(s, b, cure, "b")) if cure not in ("tanhform", "div") else _sigmoid(s, b, cure)
    if cure in ("hardclip", "clip_s"):
        gate = s.clip(gate, 0, 1)
    elif cure in ("ident_s", "mul1_s"):
        gate = _changed(s, gate, cure, "s")
    o = s("Mul", gate, a) if words == "sigmoid(b)*a" else s("Mul", a, gate)
    if words == "then Tanh":
        o = s("Tanh", o)
    s.outputs = [s.named(o, "o")]
    s.outputs += {"a_out": [a], "b_out": [b], "sig_out": [gate]}.get(cure, [])
    return s.inferred()


def _parts(s: Sketch, x: str, axis: int, lengths: list[int], cure: str) -> tuple[str, str]:
    if cure == "slices":
        return s.slice(x, axis, 0, lengths[0]), s.slice(x, axis, lengths[0], sum(lengths[:2]))
    if cure == "twosplits":
        return s.split(x, axis, *lengths)[0], s.split(x, axis, *lengths)[1]
    first, second, *_ = s.split(x, axis, *lengths)
    if cure == "slice_a":
        return s.slice(x, axis, 0, lengths[0]), second
    if cure == "slice_b":
        return first, s.slice(x, axis, lengths[0], sum(lengths[:2]))
    return first, second


def _sigmoid(s: Sketch, x: str, form: str) -> str:
    if form == "tanhform":
        return s.mul_c(s.mul_c(s("Tanh", s.mul_c(x)), factor=0.5), "Add", 0.5)
    return s("Reciprocal", s.mul_c(s("Exp", s("Neg", x)), "Add", 1))


CHANGES: Final[dict[str, Callable[[Sketch, str], str]]] = {
    "ident": lambda s, x: s("Identity", x),
    "mul1": lambda s, x: s.mul_c(x, "Mul", 1),
    "add0": lambda s, x: s.mul_c(x, "Add", 0),
    "reshape": lambda s, x: s.again(x),
    "tperm": lambda s, x: s("Transpose", s("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2]),
    "transpose": lambda s, x: s("Transpose", s("Transpose", x, perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2]),
    "max": lambda s, x: s("Max", x, x),
    "dropout": lambda s, x: s("Dropout", x),
    "padzero": lambda s, x: s("Pad", x, s.integers(*(0,) * 8)),
}


def _changed(s: Sketch, x: str, cure: str, place: str) -> str:
    """The tensor behind what a cure puts at a place."""
    kind, _, where = cure.rpartition("_")
    return CHANGES[kind](s, x) if where == place and kind in CHANGES else x


def repeated(line: Line) -> onnx.ModelProto:
    """Class B: a Concat that takes a tensor twice."""
    words = line["model"]
    s = Sketch()
    v = s("Tanh", s.input("x", 1, 4, 4, 4))
    second = v
    if "Max" in words:
        second = s("Max", v, v)
    elif "Reshape" in words:
        second = s.again(v)
    if "Tile" in words:
        o = s("Tile", v, s.integers(1, 2, 1, 1))
    elif words == "Concat(v,y,v)":
        o = s.concat(v, s.input("y", 1, 4, 4, 4), second)
    else:
        o = s.concat(v, second)
        o = s("Relu", o) if "Relu" in words else o
    s.outputs = [s.named(o, "o")]
    if words.endswith("v a graph output"):
        s.outputs.append(v)
    return s.inferred()


def made(s: Sketch, op: str, x: str, channels: int = 4) -> str:
    """v, by the operator that makes it."""
    return behind(s, op, x, "", channels)


class _Overwritten(NamedTuple):
    """A sample of class C: v = maker(x), g(Concat(v, y)), and another use of v."""

    shape: tuple[int | str, ...] = (1, 4, 4, 4)
    axis: int = 1
    maker: str = "Tanh"
    g: str = "Relu"
    other: str = "out"
    v_first: bool = True
    y_computed: bool = False


_SHAPED: Final = {
    "symbolic": _Overwritten(shape=("N", 4, 4, 4)),
    "axis 2, Mul(v,y)": _Overwritten(axis=2),
    "batch 2, axis 1, out v": _Overwritten(shape=(2, 4, 4, 4)),
    "1x64x32x32": _Overwritten(shape=(1, 64, 32, 32)),
}


def _in_words(words: str) -> _Overwritten:
    """What the words of a line of the sets "versions" and "battery" describe."""
    found = _SHAPED.get(words, _Overwritten())._replace(v_first="Concat(y,v)" not in words)
    if (named := re.search(r"Concat\(v,y\)(?: then |->)(\w+)", words)) is not None:
        found = found._replace(g=named[1])
    if (named := re.match(r"v=(\w+)\(x\)(, y=Tanh\(y\))?; Concat then (\w+); (\w+)", words)) is not None:
        found = found._replace(maker=named[1], g=named[3], other=named[4], y_computed=bool(named[2]))
    elif (named := re.search(r"(?:^|[;,] )(?!out|names|cure|Concat)(\w+)\(v(,y)?\)", words)) is not None:
        found = found._replace(other=named[1])
    if words.startswith("BN, Conv3(v)+y"):
        found = found._replace(g="BN", other="Conv3r")
    return found


def overwritten(line: Line) -> onnx.ModelProto:
    """Class C, in the words of the sets "versions" and "battery": v, a Concat with it, and another use."""
    words, cure = line["model"], line.get("cure", "")
    sample = _in_words(words)
    s = Sketch()
    x, y = s.input("x", *sample.shape), s.input("y", *sample.shape)
    if sample.y_computed:
        return _of_computed(s, x, y, sample.maker, sample.g)
    channels = int(sample.shape[1])
    v = made(s, sample.maker, x, channels)
    used = _changed(s, v, cure, "o")
    join = _joined_apart if cure == "unfuse_each" else _joined
    finish = join(s, sample, cure, *((v, y) if sample.v_first else (y, v)))
    if sample.other in ("out", "cat2"):
        o = used if sample.other == "out" else s.concat(used, y)
    else:
        o = behind(s, sample.other, used, y, channels)
    j, r = finish()
    _name_outputs(s, words, cure, r, o, named_last=sample.other != "out")
    if cure == "j_out":
        s.outputs.append(s.named(j, "zj"))
    elif cure == "j_used":
        s.outputs.append(s("ReduceSum", j, s.integers(1, 2, 3)))
    return s.inferred()


Finish: TypeAlias = Callable[[], tuple[str, str]]
"""Makes the nodes that stand behind the other use; gives the Concat's output, and that of g."""


def _joined(s: Sketch, sample: _Overwritten, cure: str, first: str, second: str) -> Finish:
    """g of the Concat."""
    first = _changed(s, first, cure, "j")
    j = s.concat(first, second, axis=sample.axis)
    at = _changed(s, j, cure, "after")
    if cure == "catpad":
        at = s.concat(s.slice(j, 1, 0, 4), s.slice(j, 1, 4, 8))
    channels = int(sample.shape[1])
    r = behind(s, sample.g, at, "", 2 * channels if sample.axis == 1 else channels)
    return lambda: (j, r)


def _joined_apart(s: Sketch, sample: _Overwritten, cure: str, first: str, second: str) -> Finish:
    """The Concat of g of each input."""
    early = behind(s, sample.g, first, "")

    def finish() -> tuple[str, str]:
        r = s.concat(early, behind(s, sample.g, second, ""), axis=sample.axis)
        return r, r

    return finish


def _name_outputs(s: Sketch, words: str, cure: str, r: str, o: str, *, named_last: bool) -> None:
    """Names the outputs; `named_last`: the name of the other use comes behind that of the Concat's."""
    names = ["a", "b", "c"]
    if (found := re.search(r"names \('(.)', '(.)', '(.)'\)", words)) is not None:
        names = list(found.groups())
    if cure == "rename":
        names = ["a", "c", "b"]
    s.outputs = [r, o]
    s.named(r, names[1])
    s.named(o, names[2 if named_last else 0])


def _of_computed(s: Sketch, x: str, y: str, maker: str, g: str) -> onnx.ModelProto:
    """The other input of the Concat is computed, too, and read by the other use."""
    v = made(s, maker, x)
    wide = s.conv(v, 4, 4, 3)
    y = s("Tanh", y)
    r = behind(s, g, s.concat(v, y), "")
    s.outputs = [s.named(r, "b"), s.named(s("Add", wide, y), "c")]
    return s.inferred()


def named(line: Line) -> onnx.ModelProto:
    """The set "names": which of two outputs comes first."""
    found = re.match(r"v=(\w+)\(x\); r=(\w+)\(Concat\(v,y\)\); other use (\w+)\(v\)", line["model"])
    assert found is not None
    maker, g, other = found.groups()
    s = Sketch()
    x, y = s.input("x", 1, 4, 4, 4), s.input("y", 1, 4, 4, 4)
    v = made(s, maker, x)
    r = behind(s, g, s.concat(v, y), "")
    o = "" if other == "out" else behind(s, other, v, y, 4)
    first, second, third = line["names"]
    listed = [s.named(r, second)]
    if other == "out":
        listed.append(s.named(v, first))
    else:
        listed.append(s.named(o, third))
    s.outputs = list(reversed(listed)) if line["v_listed_first"] else listed
    return s.inferred()


def cut(line: Line) -> onnx.ModelProto:
    """Class D: one part of a Split of an intermediate."""
    words, cure = line["model"], line.get("cure", "")
    s = Sketch(FLOAT16 if "FLOAT16" in words else FLOAT)
    shape: list[int | str] = [1, 8, 4, 4]
    if words == "batch 2":
        shape[0] = 2
    elif words == "symbolic":
        shape[0] = "N"
    elif words == "1x64x32x32":
        shape = [1, 64, 32, 32]
    elif words == "2-D 1x64":
        shape = [1, 64]
    x = s.input("x", *shape)
    size = int(shape[1])
    makers = {
        "Conv before": "Conv",
        "BN before, Relu": "BN",
        "BN,Split,Relu(first)": "BN",
        "Conv,Split,Sigmoid(first)": "Conv",
    }
    ends = {"Relu(first)": "Relu", "MulC": "MulC", "BN before, Relu": "Relu", "BN,Split,Relu(first)": "Relu"}
    ends["Conv,Split,Sigmoid(first)"] = "Sigmoid"
    maker, end = makers.get(words, "Sigmoid"), ends.get(words, "Tanh")
    if cure in ("split_first", "slice_first"):
        part = s.split(x, 1, 4, 4)[0] if cure == "split_first" else s.slice(x, 1, 0, 4)
        s.outputs = [s.named(s(end, s(maker, part)), "o")]
        return s.inferred()
    v = x if words == "of a graph input" else made(s, maker, x, size)
    if cure in ("dead_split", "dead_relu"):
        return _moved(s, v, end, cure)
    before = _changed(s, v, cure, "before")
    if cure == "transpose":
        before = CHANGES["transpose"](s, v)
    part, rest = _part(s, before, words, cure, size)
    part = _changed(s, part, cure, "after")
    if cure == "expand":
        part = s("Expand", part, s.integers(2, 4, 4, 4))
    elif cure == "max":
        part = s("Max", part, part)
    s.outputs = [s.named(behind(s, end, part, ""), "o")]
    if cure == "v_out":
        s.outputs.append(s.named(v, "v"))
    elif cure == "a_out":
        s.outputs.append(s.named(part, "p"))
    elif cure == "other_out":
        s.outputs.append(rest)
    elif cure == "used_reduce":
        s.outputs.append(s("ReduceSum", rest, s.integers(1, 2, 3)))
    return s.inferred()


def _moved(s: Sketch, v: str, end: str, cure: str) -> onnx.ModelProto:
    """Nothing is split any more; what was is dead and left out."""
    s.outputs = [s.named(s(end, v), "o")]
    return s.inferred()


def _part(s: Sketch, v: str, words: str, cure: str, size: int) -> tuple[str, str]:
    half = size // 2
    match cure:
        case "slice":
            return s.slice(v, 1, 0, half), ""
        case "slice_step":
            return s.slice(s.slice(v, 1, half - 1, -size - 1, -1), 1, half - 1, -size - 1, -1), ""
        case "gather":
            return s("Gather", v, s.integers(*range(half)), axis=1), ""
        case "padneg":
            return s("Pad", v, s.integers(0, 0, 0, 0, 0, -half, 0, 0)), ""
    if words == "3-way, middle":
        parts = s.split(v, 1, 2, 4, 2)
        return parts[1], parts[0]
    parts = s.split(v, 1, half, half)
    return (parts[1], parts[0]) if words == "Tanh(second)" else (parts[0], parts[1])


def five(line: Line) -> onnx.ModelProto:
    """Class E: five dimensions."""
    found = re.search(r"\[(.*?)\] axis (\d)", line["model"])
    assert found is not None
    shape, axis = [int(size) for size in found[1].split(",")], int(found[2])
    s = Sketch()
    x = s.input("x", *shape)
    half = shape[axis] // 2
    if "alone" in line["model"]:
        s.outputs = s.split(x, axis, half, shape[axis] - half)
    else:
        first, second = s.split(s("Relu", x), axis, half, shape[axis] - half)
        s.outputs = [s.named(s("Tanh", first), "o"), second]
    return s.inferred()


def sigmoid_product(line: Line) -> onnx.ModelProto:
    """The set "sigmoid products": nested calls in words."""
    words = line["model"]
    s = Sketch()
    known = {"x": s.input("x", 1, 8, 4, 4), "y": s.input("y", 1, 8, 4, 4)}
    if words.startswith("v=Tanh(x): "):
        known["v"] = s("Tanh", "x")
        words = words.removeprefix("v=Tanh(x): ")
    while (call := re.search(r"(\w+)\(([^()]*)\)", words)) is not None:
        name = f"t{len(known)}"
        known[name] = s(call[1], *(known[each.strip()] for each in call[2].split(",")))
        words = words.replace(call[0], name)
    s.outputs = [s.named(known[words], "o")]
    return s.inferred()


def dead(line: Line) -> onnx.ModelProto:
    """Class H: nodes that nothing reads."""
    s = Sketch()
    x, y = s.input("x", 1, 8, 4, 4), s.input("y", 1, 8, 4, 4)
    s.outputs = [s.named(s("Relu", x), "o")]
    match line["model"]:
        case "dead Tanh of another input":
            s("Tanh", y)
        case "dead Split of the input":
            s.split(x, 1, 4, 4)
        case "dead Tanh+Split of the input":
            s.split(s("Tanh", x), 1, 4, 4)
        case "dead Concat of the input":
            s.concat(x, x)
    return s.inferred()


def unwritten(line: Line) -> onnx.ModelProto:
    """Class G: a graph output whose node takes an activation."""
    s = Sketch()
    x, y = s.input("x", 1, 4, 4, 4), s.input("y", 1, 4, 4, 4)
    h = s.named(s("Add" if "Add" in line["model"] else "MatMul", x, y), "h")
    s.outputs = [s.named(s("Relu", h), "o"), h]
    return s.inferred()
