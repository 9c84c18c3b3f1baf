"""Models of 50 to 500 nodes with a fault: a few nodes that have it, between chains of nodes that have none."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, shape_inference

from tests import models

LEAST, MOST = 50, 500


@dataclass(frozen=True)
class Fault:
    """A model that has the fault: its graph in onnx's text form. `rule` is the class, `version` one that has it.

    `goes_on`: its first output is no output of the planted model; a chain of nodes reads it.
    """

    rule: str
    body: str
    version: str = "1.24.4"
    opset: int = 17
    goes_on: bool = False
    functions: str = ""

    def model(self) -> onnx.ModelProto:
        return models.text(self.body, self.opset, functions=self.functions)


_NINE: Final = "1,1,1,1,1,1,2,2,2"
FAULTS: Final = {
    "gate": Fault(
        "graph/fused-wrongly",
        "(float[1,8,4,4] x) => (float[1,4,4,4] o) { a, b = Split<axis=1>(x)  s = Sigmoid(b)  o = Mul(a, s) }",
        goes_on=True,
    ),
    "gate in a branch": Fault(
        "graph/fused-wrongly",
        """(bool c, float[1,8,4,4] x) => (float[?,?,?,?] o) {
        o = If(c) <
            then_branch = t () => (float[?,?,?,?] p) {
                x0 = Abs(x) a, b = Split<axis=1>(x0)  s = Sigmoid(b) p0 = Mul(a, s) p = Softmax(p0) },
            else_branch = e () => (float[?,?,?,?] q) { q0 = Neg(x)  q, r = Split<axis=1>(q0) }
        > }""",
    ),
    "gate in a function": Fault(
        "graph/fused-wrongly",
        "(float[1,8,4,4] x) => (float[?,?,?,?] o) { o = own.gated(x) }",
        functions="""<domain: "own", opset_import: ["" : 17]>
        gated (u) => (w) { a, b = Split<axis=1>(u)  s = Sigmoid(b)  w = Mul(a, s) }""",
    ),
    "product": Fault(
        "graph/fused-wrongly",
        """(float[1,8,4,4] x, float[1,4,4,4] y) => (float[1,4,4,4] o, float[1,4,4,4] b)
        { a, b = Split<axis=1>(x)  p = Mul(y, a)  s = Sigmoid(a)  o = Mul(p, s) }""",
        "1.21.0",
    ),
    "product without a Split": Fault(
        "graph/fused-wrongly",
        "(float[1,8,4,4] x, float[1,8,4,4] y) => (float[1,8,4,4] o) { p = Mul(y, x)  s = Sigmoid(x)  o = Mul(p, s) }",
        "1.30.0",
        goes_on=True,
    ),
    "product that ends the process": Fault(
        "graph/fusion-crashes",
        """(float[1,8,4,4] x, float[1,4,4,4] y) => (float[1,4,4,4] o)
        { v = Tanh(y)  a, b = Split<axis=1>(x)  p = Mul(b, v)  s = Sigmoid(v)  o = Mul(p, s) }""",
    ),
    "omitted output": Fault(
        "onnxruntime/output-omitted",
        "(float[2,6] x) => (float[2,3] b) { , b = Split<axis=1>(x) }",
    ),
    "overwritten": Fault(
        "graph/memory-overwritten",
        """(float[1,4,4,4] x, float[1,4,4,4] y) => (float[1,8,4,4] r, float[1,4,4,4] z)
        { z = Tanh(x)  j = Concat<axis=1>(z, y)  r = Relu(j) }""",
    ),
    "overwritten residual": Fault(
        "graph/memory-overwritten",
        """(float[1,4,4,4] x, float[1,4,4,4] y, float[4,8,1,1] w) => (float[1,4,4,4] o)
        { v = Tanh(x)  j = Concat<axis=1>(v, y)  r = Relu(j)  c = Conv(r, w)  o = Add(v, c) }""",
        "1.18.0",
        goes_on=True,
    ),
    "repeated": Fault(
        "graph/place-not-written",
        "(float[1,4,4,4] x) => (float[1,8,4,4] o) { v = Tanh(x)  o = Concat<axis=1>(v, v) }",
        "1.14.1",
    ),
    "refused": Fault(
        "graph/memory-too-small",
        "(float[1,8,4,4] x) => (float[1,4,4,4] o) { v = Sigmoid(x)  a, b = Split<axis=1>(v)  o = Tanh(a) }",
        "1.20.1",
        goes_on=True,
    ),
    "unwritten": Fault(
        "graph/output-not-written",
        "(float[1,4,4,4] x, float[1,4,4,4] y) => (float[1,4,4,4] h, float[1,8,4,4] o) "
        "{ h = Add(x, y)  r = Relu(h)  o = Concat<axis=1>(r, y) }",
    ),
    "dead": Fault(
        "graph/empty",
        "(float[1,8,4,4] x, float[1,8,4,4] y) => (float[1,8,4,4] o) { o = Relu(x)  a, b = Split<axis=1>(y) }",
        "1.19.2",
    ),
    "empty part": Fault(
        "graph/empty-part",
        "(float[3,2] x) => (float[3,2] b, float[3,0] a) <int64[2] l = {0,2}> { a, b = Split<axis=1>(x, l) }",
        "1.22.0",
    ),
    "empty second part": Fault(
        "graph/empty-part",
        "(float[3,2] x) => (float[3,2] a) <int64[2] l = {2,0}> { a, b = Split<axis=1>(x, l) }",
        "1.24.4",
    ),
    "empty output": Fault(
        "graph/empty-output",
        """(float[2,6] x) => (float[2,6] y, float[2,0] z) <int64[1] o = {0}, int64[1] k = {1}>
        { y = Relu(x)  z = Slice(x, o, o, k) }""",
        "1.23.2",
    ),
    "whole for part": Fault(
        "graph/whole-for-part",
        """(float[4,8] x, float[4,4] y) => (float[4,8] o, float[4,4] p)
        { a, b = Split<axis=1>(x)  o = Concat<axis=1>(a, y)  p = Tanh(a) }""",
        "1.10.0",
        opset=13,
    ),
    "rank of a MatMul": Fault(
        "model/rank",
        "(float[1,2,3,4,5] x, float[1,2,3,5,5] z) => (float[1,2,3,4,5] y) { y = MatMul(x, z) }",
        goes_on=True,
    ),
    "rank of a Split": Fault(
        "onnxruntime/rank",
        f"(float[{_NINE}] x) => (float[1,1,1,1,1,1,2,2,1] a, float[1,1,1,1,1,1,2,2,1] b) {{ a, b = Split<axis=8>(x) }}",
    ),
    "opset": Fault(
        "model/opset-without-kernels",
        "(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x)  y = Sin(a) }",
        opset=22,
        goes_on=True,
    ),
    "island": Fault(
        "model/cpu-island",
        """(float[1,1,4,4] x) => (float[?,?,?,?] y) {
        k = Constant<value_floats=[1.0,1.0,2.0,2.0]>()  a = Relu(x)
        r = Resize<mode="cubic">(a, , k)  y = Sigmoid(r) }""",
        "1.20.0",
    ),
    "dead in a Loop": Fault(
        "graph/empty",
        """(int64 m, bool d, float[2,3] x) => (float[?,?] y) {
        y = Loop(m, d, x) <body = b (int64 i, bool e, float[2,3] p) => (bool g, float[?,?] a) {
            h = Neg(p)  f = Exp(h)  a0 = Tanh(p)  a = Abs(a0)  g = Identity(e) }> }""",
    ),
    "lengths": Fault(
        "onnx/split-sum",
        "(float[2,6] x) => (float[?,?] a, float[?,?] b) <int64[2] l = {2,3}> { a, b = Split<axis=1>(x, l) }",
    ),
    "halves of 7": Fault(
        "onnx/not-divisible", "(float[2,7] x) => (float[?,?] a, float[?,?] b) { a, b = Split<axis=1>(x) }", opset=13
    ),
    "sizes of a Concat": Fault(
        "onnx/concat-shape-differs",
        "(float[2,6] x, float[3,6] y) => (float[?,?] o) { o = Concat<axis=1>(x, y) }",
    ),
    "a Concat's axis": Fault(
        "onnx/concat-axis-out-of-range",
        "(float[2,6] x, float[2,6] y) => (float[?,?] o) { o = Concat<axis=2>(x, y) }",
    ),
    "refused operator": Fault(
        "operator/dimension-count-not-supported",
        """(float[1,2,3,4,5] x, float[1,2,3,5,5] z) => (float[1,2,3,4,5] y)
        { u = Abs(x)  w = Abs(z)  m = MatMul(u, w)  y = Abs(m) }""",
    ),
    "failing kernel": Fault(
        "operator/data-type-not-supported",
        "(float[2,6] x) => (float[1,1] o) { k = Cast<to=6>(x)  r = ReduceMean(k)  o = Cast<to=1>(r) }",
        opset=18,
    ),
    "lost constant": Fault(
        "session-fails",
        """(double[16] x) => (double[16] y) <bool c = {1}> { y = If(c) <
            then_branch = t () => (double[16] a) {
                n = Constant<value_ints = [16]>()
                k = ConstantOfShape<value = double[1] {1}>(n)
                a = Add(x, k)
            },
            else_branch = e () => (double[16] b) { b = Abs(x) }
        > }""",
    ),
    "new opset": Fault(
        "session-fails", "(float[2,6] x) => (float[2,6] o) { o = Relu(x) }", "1.18.0", opset=23, goes_on=True
    ),
}
"""Of each class at least one fault."""


def planted(fault: Fault, seed: int, least: int = LEAST, most: int = MOST) -> onnx.ModelProto:
    """A model with the fault, of `least` to `most` nodes."""
    rng = random.Random(f"{fault.body} {seed}")
    inferred = shape_inference.infer_shapes(fault.model())
    graph = inferred.graph
    made = onnx.ModelProto()
    made.CopyFrom(inferred)
    host = _Host(rng, fault.opset)
    count = rng.randint(least, most) - len(graph.node)
    taken = {tensor.name for tensor in graph.initializer}
    feeding = [v for v in graph.input if v.name not in taken and _is_fed(v)]
    chains = len(feeding) + fault.goes_on + 1
    del made.graph.input[:]
    made.graph.input.extend(v for v in graph.input if v not in feeding)
    for value in feeding:
        start = host.input(_shape(value))
        host.chain(start, _shape(value), count // chains, last=value.name)
    before = list(host.nodes)
    outputs = list(graph.output)
    if fault.goes_on:
        first = outputs.pop(0)
        outputs.append(host.output(host.chain(first.name, _shape(first), count // chains), _shape(first)))
    beside = (1, 4, 8, 8)
    rest = count - len(host.nodes)
    outputs.append(host.output(host.chain(host.input(beside), beside, max(rest, 1)), beside))
    after = host.nodes[len(before) :]
    nodes = [*before, *graph.node, *after]
    del made.graph.node[:], made.graph.output[:], made.graph.value_info[:]
    made.graph.node.extend(nodes)
    made.graph.input.extend(host.inputs)
    made.graph.output.extend(outputs)
    made.graph.initializer.extend(host.weights)
    return made


def _is_fed(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type == TensorProto.FLOAT and len(_shape(value)) in (2, 4, 5)


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)


class _Host:
    """Chains of nodes without faults, each of which ends in a node that works in no memory but its own."""

    def __init__(self, rng: random.Random, opset: int) -> None:
        self.rng = rng
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []

    def input(self, shape: tuple[int, ...]) -> str:
        name = f"input{len(self.inputs)}"
        self.inputs.append(models.value(name, shape))
        return name

    def output(self, name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        return models.value(name, shape)

    def chain(self, x: str, shape: tuple[int, ...], count: int, last: str = "") -> str:
        """`count` nodes or a few more, one behind the other; the output of the last one is `last`."""
        end = len(self.nodes) + max(count, 1) - 1
        while len(self.nodes) < end:
            kind = self.rng.choice(("residual", "scaled", "norm", "softmax"))
            if kind == "residual":
                x = self.add("Add", x, self.add("Relu", self.mixed(x, shape)))
            elif kind == "scaled":
                x = self.mixed(self.add("Mul", x, self.weight(1)), shape)
            elif kind == "norm" and len(shape) == 4:
                x = self.add("BatchNormalization", x, *(self.weight(shape[1]) for _ in range(4)))
            else:
                x = self.add("Softmax", x, axis=len(shape) - 1)
        return self.mixed(x, shape, last)

    def mixed(self, x: str, shape: tuple[int, ...], out: str = "") -> str:
        """A convolution, or a MatMul of other ranks; of five dimensions a Softmax."""
        if len(shape) == 4:
            return self.add("Conv", x, self.weight(shape[1], shape[1], 1, 1), out=out)
        if len(shape) == 2:
            return self.add("MatMul", x, self.weight(shape[1], shape[1]), out=out)
        return self.add("Softmax", x, out=out, axis=len(shape) - 1)

    def weight(self, *shape: int) -> str:
        name = f"weight{len(self.weights)}"
        numbers = np.random.default_rng(len(self.weights)).uniform(0.1, 1, shape).astype(np.float32)
        self.weights.append(models.array(name, numbers))
        return name

    def add(self, op: str, *inputs: str, out: str = "", **attributes: int) -> str:
        out = out or f"host{len(self.nodes)}"
        self.nodes.append(models.node(op, list(inputs), [out], **attributes))
        return out
