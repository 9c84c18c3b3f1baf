"""Models of 50 to 500 nodes with a fault: a few nodes that have it, between chains of nodes that have none."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, shape_inference

from dmlsplit.rules import RULES, NodeRule
from dmlsplit.rules.onnx.concat_facts import OnnxConcat
from dmlsplit.rules.onnx.split_facts import OnnxSplit
from dmlsplit.targets.runtime_versions import Runtime, find_runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.targets.windows import find_windows, over_windows
from tests import models
from tests.reducing.node_models import model_of

LEAST, MOST = 50, 500
MOST_FED: Final = 1 << 20
"""The elements up to which a chain of nodes computes an input of a fault."""
BESIDE: Final = (1, 4, 8, 8)


@dataclass(frozen=True)
class Fault:
    """A model that has the fault: its graph in onnx's text form, or the facts of its node. `rule` is the class,
    `version` one that has it, over the DirectML.dll of `windows` if not over its own.

    `goes_on`: its first output is no output of the planted model; a chain of nodes reads it. `chosen`: something
    else is more serious in the model, or nothing is more than a note: --rule names the class. `given`: what `reduce` is
    told. `is_open`: the nodes around it have an open size.
    """

    rule: str
    body: str | OnnxSplit | OnnxConcat
    version: str = "1.24.4"
    opset: int = 17
    goes_on: bool = False
    functions: str = ""
    chosen: bool = False
    given: Mapping[str, Any] = field(default_factory=dict)
    windows: str = ""
    ir_version: int = 0
    is_open: bool = False

    @property
    def runtime(self) -> Runtime:
        runtime = find_runtime(self.version)
        return over_windows(runtime, find_windows(self.windows)) if self.windows else runtime

    def model(self) -> onnx.ModelProto:
        if not isinstance(self.body, str):
            return model_of(self.body)
        own = ["own"] if "own." in self.body and not self.functions else []
        made = models.text(self.body, self.opset, functions=self.functions, domains=own)
        made.ir_version = self.ir_version or made.ir_version
        return made


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
    "quantized Relu": Fault(
        "model/quantized",
        """(uint8[1,4,8,8] x) => (float[1,4,8,8] y) <float s = {0.05}, uint8 z = {0}> {
        d = DequantizeLinear(x, s, z)  a = Add(d, d)  r = Relu(a)  q = QuantizeLinear(r, s, z)  y = Cast<to=1>(q) }""",
        goes_on=True,
    ),
    "scales by row": Fault(
        "model/quantization-axis",
        """(float[3,5] x) => (float[?,?] y) <int8[5,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2},
        float[5] s = {1,2,3,4,5}> { d = DequantizeLinear<axis=0>(w, s)  y = MatMul(x, d) }""",
        opset=21,
        goes_on=True,
    ),
    "allowzero and -1": Fault(
        "model/inferred-size",
        "(float[2,3,4] x) => (float[6,4] y) <int64[2] s = {-1,4}> { y = Reshape<allowzero=1>(x, s) }",
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
    "rank within": Fault(
        "model/rank",
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
"""What is wrong with models for several nodes together, or in a session; what one node breaks follows."""


_HALVES: Final = "(TYPE[2,6] x) => (TYPE[2,3] a, TYPE[2,3] b) { a, b = Split<axis=1>(x) }"
_OPEN_HALVES: Final = "(float[N,6] x) => (float[N,3] a, float[N,3] b) { a, b = Split<axis=1>(x) }"
_NO_DOUBLES: Final = SessionOptions(float64=False)
SESSIONS: Final = {
    "new opset of a Split": Fault(
        "onnxruntime/opset-too-new",
        _HALVES.replace("axis=1", "axis=1, num_outputs=2").replace("TYPE", "float"),
        "1.18.0",
        opset=23,
    ),
    "new IR version": Fault(
        "onnxruntime/ir-version-too-new", _HALVES.replace("TYPE", "float"), "1.18.0", ir_version=12
    ),
    "complex numbers": Fault("onnxruntime/type-not-loaded", _HALVES.replace("TYPE", "complex64"), "1.30.0"),
    "Split 1": Fault(
        "onnxruntime/no-kernel",
        _HALVES.replace("axis=1", "axis=1, split=[3,3]").replace("TYPE", "float"),
        opset=1,
    ),
    "a Split that onnx does not evaluate": Fault(
        "node/runtime-differs",
        _HALVES.replace("axis=1", "axis=1, split=[3,3]").replace("TYPE", "float"),
        opset=1,
        chosen=True,
    ),
    "length beyond 31 bits": Fault(
        "onnxruntime/inference-fails",
        "(float[2147483648,4] x) => (float[?,?] a, float[?,?] b) <int64[2] l = {1,2147483647}> "
        "{ a, b = Split<axis=0>(x, l) }",
        "1.18.0",
        opset=13,
    ),
    "size beyond 32 bits": Fault(
        "onnxruntime/size-beyond-32-bits",
        "(float[4294967296,6] x) => (float[4294967296,3] a, float[4294967296,3] b) { a, b = Split<axis=1>(x) }",
        "1.20.1",
        opset=13,
    ),
    "folded": Fault(
        "onnxruntime/folded",
        "(float[2,6] y) => (float[2,6] o) <float[4] k = {1,2,3,4}> "
        "{ a, b = Split<axis=0>(k)  s = ReduceSum(a)  o = Mul(y, s) }",
        opset=13,
        chosen=True,
    ),
    "branch not taken": Fault(
        "onnxruntime/branch-not-taken",
        """(float[2,6] x) => (float[?,?] y) <bool c = {1}> { y = If(c) <
            then_branch = t () => (float[?,?] a) { a = Abs(x) },
            else_branch = e () => (float[?,?] b) { b, d = Split<axis=1>(x) }
        > }""",
        chosen=True,
    ),
    "BFLOAT16": Fault("onnxruntime/type-on-cpu", _HALVES.replace("TYPE", "bfloat16"), "1.30.0", opset=13),
    "doubles": Fault(
        "onnxruntime/double-on-cpu", _HALVES.replace("TYPE", "double"), opset=13, given={"options": _NO_DOUBLES}
    ),
    "doubles without the CPU": Fault(
        "onnxruntime/cpu-fallback-disabled",
        _HALVES.replace("TYPE", "double"),
        "1.19.2",
        opset=13,
        given={"options": replace(_NO_DOUBLES, cpu_fallback=False)},
    ),
    "a Split of sizes": Fault(
        "onnxruntime/prefers-cpu",
        "(float[N,6] x) => (float[?,?] y) "
        "{ s = Shape(x)  a, b = Split<axis=0>(s)  c = Concat<axis=0>(b, a)  t = Transpose(x)  y = Reshape(t, c) }",
        opset=13,
        chosen=True,
    ),
    "no elements": Fault(
        "onnxruntime/empty-tensor",
        "(float[0,6] x) => (float[0,3] a, float[0,3] b) { a, b = Split<axis=1>(x) }",
        opset=13,
        chosen=True,
    ),
    "an input without elements": Fault(
        "onnxruntime/empty-inputs-left-out",
        "(float[N,6] x, float[M,6] y) => (float[K,6] c) { c = Concat<axis=0>(x, y) }",
        opset=13,
        chosen=True,
        given={"run_shapes": {"x": (0, 6), "y": (2, 6)}},
    ),
    "negative rest": Fault(
        "onnxruntime/negative-length",
        "(float[5,2] x) => (float[2,2] a, float[2,2] b, float[1,2] c, float[0,2] d) "
        "{ a, b, c, d = Split<axis=0, num_outputs=4>(x) }",
        opset=18,
        chosen=True,
    ),
    "lengths of another size": Fault(
        "onnxruntime/lengths-do-not-fit",
        "(float[2,N] x) => (float[2,3] a, float[2,3] b) <int64[2] l = {3,3}> { a, b = Split<axis=1>(x, l) }",
        "1.22.0",
        opset=13,
        chosen=True,
        given={"run_shapes": {"x": (2, 7)}},
    ),
    "too many elements": Fault(
        "onnxruntime/refused-by-directml",
        "(float[65536,6,65536] x) => (float[65536,3,65536] a, float[65536,3,65536] b) { a, b = Split<axis=1>(x) }",
        opset=13,
    ),
    "at the first Run": Fault(
        "onnxruntime/made-at-run", _OPEN_HALVES, opset=13, chosen=True, given={"run_shapes": {"x": (2, 6)}}
    ),
    "alone": Fault(
        "onnxruntime/outside-graph",
        _HALVES.replace("TYPE", "float").replace("{", "<int64[2] l = {3,3}> {").replace("(x) }", "(x, l) }"),
        opset=13,
        chosen=True,
        given={"options": SessionOptions(graph_fusion=False)},
    ),
    "not read": Fault(
        "onnxruntime/not-read",
        "(float[1,8,4,4] x) => (float[1,8,4,4] o) { o = Relu(x)  a, b = Split<axis=1>(o) }",
        chosen=True,
    ),
    "twice": Fault(
        "onnxruntime/computed-once",
        "(float[2,6] x) => (float[2,3] o) { a, b = Split<axis=1>(x)  c, d = Split<axis=1>(x)  o = Add(a, d) }",
        chosen=True,
    ),
    "twins": Fault(
        "onnxruntime/twins-differ",
        "(float[2,6] x) => (float[2,3] a, float[2,3] b, float[2,2] c, float[2,2] d, float[2,2] e) "
        "{ a, b = Split<axis=1>(x)  c, d, e = Split<axis=1>(x) }",
        opset=13,
    ),
    "open sizes": Fault(
        "model/open-sizes",
        "(float[N,4] x) => (float[N,4] y) { a = Relu(x)  y = Sigmoid(a) }",
        chosen=True,
        is_open=True,
    ),
    "opset of one operator": Fault(
        "placement/opset", "(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Sin(x) }", opset=22, chosen=True
    ),
    "operator without a kernel": Fault("placement/operator", "(float[6,6] x) => (float o) { o = Det(x) }", chosen=True),
    "type without a kernel": Fault(
        "placement/types", "(double[2,6] x) => (double[2,6] o) { o = Softmax(x) }", chosen=True
    ),
    "cubic": Fault(
        "placement/attributes",
        """(float[1,1,4,4] x) => (float[?,?,?,?] y) <float[4] k = {1,1,2,2}>
        { y = Resize<mode="cubic">(x, , k) }""",
        "1.20.0",
        chosen=True,
    ),
    "sizes": Fault("placement/sizes", "(float[N,6] x) => (int64[2] y) { s = Shape(x)  y = Abs(s) }", chosen=True),
    "no kernel anywhere": Fault(
        "placement/no-kernel",
        _HALVES.replace("axis=1", "axis=1, split=[3,3]").replace("TYPE", "float"),
        opset=1,
        chosen=True,
    ),
    "unknown operator": Fault("placement/unasked", "(float[2,6] x) => (float[2,6] o) { o = own.What(x) }", chosen=True),
    "unknown operator in a product": Fault(
        "graph/unknown",
        "(float[2,6] x) => (float[2,3] o) { a, b = Split<axis=1>(x)  q = own.Relu(b)  o = Mul(a, q) }",
        chosen=True,
    ),
    "an output that may be empty": Fault(
        "graph/output-may-be-empty",
        "(float[N,6] x, float[2,6] y) => (float[N,6] o, float[2,6] p) { o = Relu(x)  p = Abs(y) }",
        chosen=True,
    ),
    "a Windows that is too old": Fault(
        "onnxruntime/no-device", _HALVES.replace("TYPE", "float"), "1.18.0", opset=13, windows="10-22H2"
    ),
    "a version that was not asked": Fault(
        "onnxruntime/version-not-observed", _HALVES.replace("TYPE", "float"), "1.18.1", opset=13, chosen=True
    ),
    "function that calls itself": Fault(
        "onnx/function-recursive",
        "(float[2,6] x) => (float[?,?] o) { o = own.halved(x) }",
        functions="""<domain: "own", opset_import: ["" : 17, "own" : 1]>
        halved (u) => (w) { a, b = Split<axis=1>(u)  w = own.halved(a) }""",
    ),
    "a constant of 4 bytes": Fault(
        "graph/constant-node",
        "(float[1,4,4,4] x) => (float[1,4,4,4] o) <float k = {2}> { y = Abs(x)  o = Mul(y, k) }",
        "1.24.4",
        windows="11-22H2",
        goes_on=True,
    ),
}
"""What becomes of one node, or of the session."""

_MORE_SERIOUS: Final = {
    *("onnx/opset-unknown", "onnx/concat-opset-unknown", "onnx/type-not-run", "onnx/axis-missing"),
    *("onnx/output-omitted", "onnx/split-given-twice", "onnx/split-zero", "onnx/last-chunk-empty"),
    "onnx/outputs-fewer-than-num-outputs",  # the session fails
}
"""Rules of nodes beside which there is something more serious."""
_VERSIONS: Final = ("1.24.4", "1.18.0", "1.20.1", "1.30.0")


def _of_nodes() -> Iterator[tuple[str, Fault]]:
    """The bad examples of the rules of ONNX nodes, in several versions."""
    rules = [rule for rule in RULES.values() if isinstance(rule, NodeRule) and rule.id.startswith("onnx/")]
    for rule, version in zip(rules, itertools.cycle(_VERSIONS)):
        facts = rule.bad
        assert isinstance(facts, OnnxSplit | OnnxConcat)
        yield rule.id, Fault(rule.id, facts, version, facts.version, chosen=rule.id in _MORE_SERIOUS)


NODES: Final = dict(_of_nodes())
"""What is wrong with one Split or Concat as the model states it."""
ALL: Final = {**FAULTS, **SESSIONS, **NODES}


def planted(fault: Fault, seed: int, least: int = LEAST, most: int = MOST) -> onnx.ModelProto:
    """A model with the fault, of `least` to `most` nodes."""
    rng = random.Random(f"{fault.body} {seed}")
    inferred = shape_inference.infer_shapes(fault.model()) if fault.goes_on else fault.model()
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
    beside = ("N", *BESIDE[1:]) if fault.is_open else BESIDE
    rest = count - len(host.nodes)
    outputs.append(host.output(host.chain(host.input(beside), BESIDE, max(rest, 1)), beside))
    after = host.nodes[len(before) :]
    nodes = [*before, *graph.node, *after]
    del made.graph.node[:], made.graph.output[:], made.graph.value_info[:]
    made.graph.node.extend(nodes)
    made.graph.input.extend(host.inputs)
    made.graph.output.extend(outputs)
    made.graph.initializer.extend(host.weights)
    return made


def _is_fed(value: onnx.ValueInfoProto) -> bool:
    """True for what a chain can compute: floats of known sizes, some of them and not too many."""
    shape = _shape(value)
    return (
        value.type.tensor_type.elem_type == TensorProto.FLOAT
        and len(shape) in (2, 4, 5)
        and 0 < math.prod(shape) <= MOST_FED
    )


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The sizes of a value; 0 for an open one."""
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)


class _Host:
    """Chains of nodes without faults, each of which ends in a node that works in no memory but its own."""

    def __init__(self, rng: random.Random, opset: int) -> None:
        self.rng = rng
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.weights: list[onnx.TensorProto] = []

    def input(self, shape: models.Shape) -> str:
        name = f"input{len(self.inputs)}"
        self.inputs.append(models.value(name, shape))
        return name

    def output(self, name: str, shape: models.Shape) -> onnx.ValueInfoProto:
        return models.value(name, shape)

    def chain(self, x: str, shape: tuple[int, ...], count: int, last: str = "") -> str:
        """`count` nodes or a few more, one behind the other; the output of the last one is `last`."""
        end = len(self.nodes) + max(count, 1) - 1
        while len(self.nodes) < end:
            kind = self.rng.choice(("residual", "scaled", "norm", "softmax") if self.opset >= 7 else ("softmax",))
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
