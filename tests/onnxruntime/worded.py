"""The recorded models that are described by what they are for, built anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.models import FLOAT, Sketch, array, graph, ints, node, value
from tests.onnxruntime.models import RunInput, Sample


def _sample(
    nodes: Sequence[onnx.NodeProto],
    x: onnx.ValueInfoProto,
    outputs: Sequence[str],
    initializers: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 13,
    inputs: Sequence[onnx.ValueInfoProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> Sample:
    made = Sketch(FLOAT, opset, list(nodes), [x, *inputs], list(outputs), list(initializers), list(functions))
    return Sample("", made.model(), outputs=list(outputs))


def _branches(*bodies: Sequence[onnx.NodeProto]) -> dict[str, onnx.GraphProto]:
    """Two graphs; each gives what its last node writes first."""
    graphs = []
    for name, body in zip(("then", "else"), bodies, strict=True):
        output = value(body[-1].output[0], None)
        graphs.append(graph(body, [], [output], name=name))
    return {"then_branch": graphs[0], "else_branch": graphs[1]}


CONDITION: Final = value("condition", [], TensorProto.BOOL)


def _if() -> Sample:
    """The lengths are an initializer of the outer graph."""
    bodies = [
        [node("Relu", ["x"], [f"{b}r"]), node("Split", [f"{b}r", "lengths"], [f"{b}0", f"{b}1"], axis=1)] for b in "te"
    ]
    nodes = [node("If", ["condition"], ["y"], **_branches(*bodies))]
    return _sample(nodes, value("x", [2, 6]), ["y"], [ints("lengths", 3, 3)], inputs=[CONDITION])


def _if_equal() -> Sample:
    bodies = [[node("Split", ["x"], [f"{b}0", f"{b}1"], axis=1)] for b in "te"]
    nodes = [node("If", ["condition"], ["y"], **_branches(*bodies))]
    return _sample(nodes, value("x", [2, 6]), ["y"], inputs=[CONDITION])


def _main_with_if() -> Sample:
    bodies = [[node("Relu", ["x"], [f"{b}r"])] for b in "te"]
    nodes = [node("Split", ["x"], ["a", "b"], axis=1), node("If", ["condition"], ["y"], **_branches(*bodies))]
    return _sample(nodes, value("x", [2, 6]), ["a", "b", "y"], inputs=[CONDITION])


def _shape_subgraph() -> Sample:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Split", ["s", "lengths"], ["a", "b"], name="S"),
        node("Concat", ["b", "a"], ["t"], axis=0, name="C"),
        node("Reshape", ["x", "t"], ["y"]),
    ]
    return _sample(nodes, value("x", ["A", "B", "C", "D"]), ["y"], [ints("lengths", 2, 2)])


def _int64_compute() -> Sample:
    nodes = [node("Split", ["x", "lengths"], ["a", "b"], axis=0), node("Add", ["a", "b"], ["y"])]
    return _sample(nodes, value("x", [8], TensorProto.INT64), ["y"], [ints("lengths", 4, 4)])


def _qkv() -> Sample:
    weights = array("w", np.zeros((32, 96), np.float32))
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Split", ["m", "lengths"], ["q", "k", "v"], axis=-1),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["s"]),
        node("MatMul", ["s", "v"], ["y"]),
    ]
    return _sample(nodes, value("x", [1, 16, 32]), ["y"], [weights, ints("lengths", *[32] * 3)])


def _after_cpu_node() -> Sample:
    nodes = [node("Det", ["x"], ["d"]), node("Split", ["d", "lengths"], ["a", "b"], axis=0)]
    return _sample(nodes, value("x", [6, 2, 2]), ["a", "b"], [ints("lengths", 2, 4)])


def _after_transpose() -> Sample:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
        node("Split", ["t", "lengths"], ["a", "b"], axis=3),
    ]
    return _sample(nodes, value("x", [1, 4, 6, 4]), ["a", "b"], [ints("lengths", 2, 4)])


def _two_splits() -> Sample:
    nodes = [
        node("Split", ["x", "lengths"], ["a", "b"], axis=0),
        node("Split", ["b", "lengths"], ["c", "d"], axis=1),
    ]
    return _sample(nodes, value("x", [6, 6]), ["a", "c", "d"], [ints("lengths", 2, 4)])


def _of_shape(casts: int | None = None, opset: int = 13) -> Callable[[], Sample]:
    """A Split of what Shape gives, cast to a type."""

    def made() -> Sample:
        nodes = [node("Shape", ["x"], ["s"])]
        if casts is not None:
            nodes.append(node("Cast", ["s"], ["c"], to=casts))
        read = ["s" if casts is None else "c"]
        given: dict[str, Any] = {"num_outputs": 2} if opset >= 18 else {}
        if not given:
            read.append("lengths")
        nodes.append(node("Split", read, ["a", "b"], axis=0, name="S", **given))
        lengths = [] if given else [ints("lengths", 2, 2)]
        return _sample(nodes, value("x", ["A", "B", "C", "D"]), ["a", "b"], lengths, opset=opset)

    return made


def _lengths_from_shape() -> Sample:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "index"], ["g"]),
        node("Div", ["g", "divisor"], ["d"]),
        node("Concat", ["d", "d"], ["lengths"], axis=0, name="Co"),
        node("Split", ["x", "lengths"], ["a", "b"], axis=2, name="S"),
    ]
    constants = [ints("index", 2), ints("divisor", 2)]
    return _sample(nodes, value("x", ["A", "B", "C", "D"]), ["a", "b"], constants)


def _function() -> Sample:
    body = [node("Split", ["whole"], ["a", "b"], axis=1)]
    function = helper.make_function("own", "Halve", ["whole"], ["a", "b"], body, [helper.make_opsetid("", 13)])
    nodes = [node("Halve", ["x"], ["y", "z"], domain="own")]
    return _sample(nodes, value("x", [2, 6]), ["y", "z"], functions=[function])


def _between_transposes() -> Sample:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 2, 0]),
        node("Split", ["t", "lengths"], ["a", "b"], axis=2),
        node("Transpose", ["a"], ["y"], perm=[2, 0, 1]),
        node("Transpose", ["b"], ["z"], perm=[2, 0, 1]),
    ]
    return _sample(nodes, value("x", [6, 5, 7]), ["y", "z"], [ints("lengths", 2, 4)])


def _there_and_back() -> Sample:
    nodes = [
        node("Split", ["x", "lengths"], ["a", "b"], axis=0),
        node("Concat", ["a", "b"], ["y"], axis=0),
    ]
    return _sample(nodes, value("x", [6, 5]), ["y"], [ints("lengths", 2, 4)])


WORDED: Final[Mapping[str, Callable[[], Sample]]] = {
    "if": _if,
    "if-omit": _if_equal,
    "main-with-if": _main_with_if,
    "shape-split": _shape_subgraph,
    "shape-split-i64-big": _int64_compute,
    "qkv": _qkv,
    "cpu-neighbour": _after_cpu_node,
    "transpose-before": _after_transpose,
    "two-splits": _two_splits,
    "pref-shape": _of_shape(),
    "pref-shape-cast-f32": _of_shape(TensorProto.FLOAT),
    "pref-shape-cast-f16": _of_shape(TensorProto.FLOAT16),
    "pref-shape-num18": _of_shape(opset=18),
    "pref-split-from-shape": _lengths_from_shape,
    "function": _function,
    "tr-split-tr": _between_transposes,
    "split-concat": _there_and_back,
}
"""By name, without the optimization level that some end with."""


def worded(name: str, what: Mapping[str, Any]) -> Sample | None:
    """The sample of a recorded name; None where the model holds no Split or Concat, or is a published one."""
    made = WORDED.get(name) or WORDED.get(name.rsplit("-", 1)[0])
    if made is None:
        return None
    sample = made()
    sample.name = name
    sample.optimization = what.get("opt", 99)
    if "run" in what:
        sample.run = [RunInput("x", FLOAT, tuple(what["run"][0]))]
    return sample
