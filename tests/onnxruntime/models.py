"""Models with Splits and Concats for ONNX Runtime to answer about, and the sizes that they are run with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dmlsplit.library.sessions import Query, RunInput

Description: TypeAlias = Mapping[str, Any]
"""A model with one Split or Concat in words; the keys are those of the recorded answers (tests/data/onnxruntime)."""

DEFAULT = "1.24.4"
"""The version that a run asks which is not about ONNX Runtime alone."""

NO_RUN = frozenset({"STRING", "BFLOAT16"})
"""Types of which no tensors are made for a run."""


@dataclass
class Sample:
    """A model, and how it is asked about."""

    name: str
    model: onnx.ModelProto
    run: list[RunInput] | None = None
    outputs: list[str] = field(default_factory=list)
    free_dimensions: dict[str, int] = field(default_factory=dict)
    computed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes that depend on what is computed in the run."""
    optimization: int = 99
    config: dict[str, str] = field(default_factory=dict)

    @property
    def query(self) -> Query:
        """What is asked."""
        model = self.model.SerializeToString()
        return Query(model, self.optimization, self.config, self.free_dimensions, self.run, self.outputs)


def ir_version(opset: int) -> int:
    """The IR version that was current with an opset."""
    table = {1: 3, 9: 4, 10: 5, 11: 6, 12: 7, 15: 8, 19: 9, 21: 10, 23: 11}
    return table[max(first for first in table if first <= opset)]


def integers(name: str, values: Sequence[int]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def tensor(name: str, element_type: int, shape: Sequence[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def assembled(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    opset: int,
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=initializers)
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in dict.fromkeys(function.domain for function in functions)]
    version = max(ir_version(opset), 8) if functions else ir_version(opset)
    return helper.make_model(graph, opset_imports=imports, ir_version=version, functions=functions)


def described(name: str, description: Description) -> Sample:
    """The sample that a description stands for."""
    sample = _concat(name, description) if "shapes" in description else _split(name, description)
    sample.optimization = description.get("opt", 99)
    sample.config = dict(description.get("config", {}))
    sample.free_dimensions = dict(description.get("free", {}))
    return sample


def _split(name: str, what: Description) -> Sample:
    element_type = TensorProto.DataType.Value(what["type"])
    opset, context = what["opset"], what["ctx"]
    parts = [f"part{i}" for i in range(what["n"])]
    made = _Made(element_type)
    attributes, read = {"axis": what["axis"]}, [_whole(made, what)]
    _add_lengths(made, what, attributes, read)
    named = [*parts[:-1], ""] if context == "emptyname" else parts
    made.nodes.append(helper.make_node("Split", read, named, name="split", **attributes))
    outputs = [tensor(part, element_type, declared) for part, declared in zip(parts, _declared(what), strict=True)]
    outputs = _with_readers(made, what, parts, outputs)
    sample = Sample(name, assembled(made.nodes, made.inputs, outputs, opset, made.initializers))
    if "run" in what:
        sample.run = [RunInput("x", element_type, tuple(what["run"][0]))]
        if what["how"] == "dyn":
            sample.run.append(RunInput("lengths", TensorProto.INT64, (what["n"],), tuple(what["lens"])))
        sample.outputs = [output.name for output in outputs]
    return sample


@dataclass
class _Made:
    """The parts of a graph in the making."""

    element_type: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)


def _whole(made: _Made, what: Description) -> str:
    """The name of the tensor that is split, once what it comes from is made."""
    shape, context = what["shape"], what["ctx"]
    if context in ("init", "init+add"):
        sizes = [dim for dim in shape if isinstance(dim, int)]
        dtype = helper.tensor_dtype_to_np_dtype(made.element_type)
        made.initializers.append(numpy_helper.from_array(np.zeros(sizes, dtype), "weights"))
    if context == "init":
        return "weights"
    made.inputs.append(tensor("x", made.element_type, shape))
    if context not in ("between", "init+add"):
        return "x"
    op, read = ("Relu", ["x"]) if context == "between" else ("Add", ["x", "weights"])
    made.nodes.append(helper.make_node(op, read, ["before"]))
    return "before"


def _add_lengths(made: _Made, what: Description, attributes: dict[str, Any], read: list[str]) -> None:
    """Gives the Split its lengths: by an attribute, or by an input that is added to what it reads."""
    lengths = what["lens"]
    match what["how"]:
        case "auto" if what["opset"] < 13:
            attributes["split"] = lengths
            return
        case "auto":
            made.initializers.append(integers("lengths", lengths))
        case "constnode":
            made.nodes.append(helper.make_node("Constant", [], ["lengths"], value=integers("", lengths)))
        case "dyn":
            made.inputs.append(tensor("lengths", TensorProto.INT64, [what["n"]]))
        case "castsp":
            made.inputs.append(tensor("given", TensorProto.INT32, [what["n"]]))
            made.nodes.append(helper.make_node("Cast", ["given"], ["lengths"], to=TensorProto.INT64))
        case "num":
            attributes["num_outputs"] = what["n"]
            return
        case _:
            return
    read.append("lengths")


def _with_readers(
    made: _Made, what: Description, parts: Sequence[str], outputs: list[onnx.ValueInfoProto]
) -> list[onnx.ValueInfoProto]:
    """The outputs of the graph, once what reads the parts is made."""
    context = what["ctx"]
    if context == "emptyname":
        return outputs[:-1]
    if context == "between":
        made.nodes += [helper.make_node("Relu", [part], [f"{part}_after"]) for part in parts]
        for output in outputs:
            output.name += "_after"
    elif context == "unused":
        used = what.get("used", 0)
        made.nodes.append(helper.make_node("Relu", [parts[used]], ["after"]))
        outputs = [outputs[used]]
        outputs[0].name = "after"
    elif context == "init+add":
        made.nodes.append(helper.make_node("Add", parts, ["after"]))
        return [tensor("after", made.element_type, None)]
    return outputs


def _declared(what: Description) -> list[list[int] | None]:
    """The shapes that the model declares for the parts."""
    shape, lengths = what["shape"], what["lens"]
    static = what["how"] not in ("dyn", "castsp") and all(isinstance(dim, int) for dim in shape)
    if not static or not lengths:
        return [None] * what["n"]
    axis = what["axis"] % len(shape)
    if what.get("declared") == "clipped":
        edges = [min(shape[axis], lengths[0] * i) for i in range(what["n"] + 1)]
        lengths = [end - start for start, end in itertools.pairwise(edges)]
    if min(lengths) < 0:
        return [None] * what["n"]
    return [[*shape[:axis], length, *shape[axis + 1 :]] for length in lengths]


def _concat(name: str, what: Description) -> Sample:
    element_type = TensorProto.DataType.Value(what["type"])
    shapes, axis = what["shapes"], what["axis"] % len(what["shapes"][0])
    between = what.get("ctx") == "between"
    names = [f"x{i}" for i in range(len(shapes))]
    inputs = [tensor(name, element_type, shape) for name, shape in zip(names, what.get("sym") or shapes, strict=True)]
    nodes = [helper.make_node("Relu", [name], [f"{name}_before"]) for name in names] if between else []
    read = [f"{name}_before" for name in names] if between else names
    nodes.append(helper.make_node("Concat", read, ["whole"], name="concat", axis=what["axis"]))
    if between:
        nodes.append(helper.make_node("Relu", ["whole"], ["after"]))
    total = [*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]]
    output = tensor("after" if between else "whole", element_type, None if what.get("dyn") else total)
    sample = Sample(name, assembled(nodes, inputs, [output], what["opset"]))
    if "run" in what:
        sample.run = [RunInput(x, element_type, tuple(shape)) for x, shape in zip(names, what["run"], strict=True)]
        sample.outputs = [output.name]
    return sample
