"""Models with Splits and Concats for ONNX Runtime to answer about, and the sizes that they are run with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper

from dmlsplit.library.sessions import Query, RunInput
from tests.models import Sketch, ints, value

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
    made = Sketch(element_type, opset)
    attributes, read = {"axis": what["axis"]}, [_whole(made, what)]
    _add_lengths(made, what, attributes, read)
    named = [*parts[:-1], ""] if context == "emptyname" else parts
    made.node("Split", read, named, name="split", **attributes)
    outputs = [value(part, declared, element_type) for part, declared in zip(parts, _declared(what), strict=True)]
    outputs = _with_readers(made, what, parts, outputs)
    made.outputs = list(outputs)
    sample = Sample(name, made.model())
    if "run" in what:
        sample.run = [RunInput("x", element_type, tuple(what["run"][0]))]
        if what["how"] == "dyn":
            sample.run.append(RunInput("lengths", TensorProto.INT64, (what["n"],), tuple(what["lens"])))
        sample.outputs = [output.name for output in outputs]
    return sample


def _whole(made: Sketch, what: Description) -> str:
    """The name of the tensor that is split, once what it comes from is made."""
    shape, context = what["shape"], what["ctx"]
    if context in ("init", "init+add"):
        sizes = [dim for dim in shape if isinstance(dim, int)]
        dtype = helper.tensor_dtype_to_np_dtype(made.element)
        made.initializer(np.zeros(sizes, dtype), "weights")
    if context == "init":
        return "weights"
    made.input("x", *shape)
    if context not in ("between", "init+add"):
        return "x"
    op, read = ("Relu", ["x"]) if context == "between" else ("Add", ["x", "weights"])
    made.node(op, read, ["before"])
    return "before"


def _add_lengths(made: Sketch, what: Description, attributes: dict[str, Any], read: list[str]) -> None:
    """Gives the Split its lengths: by an attribute, or by an input that is added to what it reads."""
    lengths = what["lens"]
    match what["how"]:
        case "auto" if what["opset"] < 13:
            attributes["split"] = lengths
            return
        case "auto":
            made.integers(*lengths, name="lengths")
        case "constnode":
            made.node("Constant", [], ["lengths"], value=ints("", *lengths))
        case "dyn":
            made.input("lengths", what["n"], element=TensorProto.INT64)
        case "castsp":
            made.input("given", what["n"], element=TensorProto.INT32)
            made.node("Cast", ["given"], ["lengths"], to=TensorProto.INT64)
        case "num":
            attributes["num_outputs"] = what["n"]
            return
        case _:
            return
    read.append("lengths")


def _with_readers(
    made: Sketch, what: Description, parts: Sequence[str], outputs: list[onnx.ValueInfoProto]
) -> list[onnx.ValueInfoProto]:
    """The outputs of the graph, once what reads the parts is made."""
    context = what["ctx"]
    if context == "emptyname":
        return outputs[:-1]
    if context == "between":
        for part in parts:
            made.node("Relu", [part], [f"{part}_after"])
        for output in outputs:
            output.name += "_after"
    elif context == "unused":
        used = what.get("used", 0)
        made.node("Relu", [parts[used]], ["after"])
        outputs = [outputs[used]]
        outputs[0].name = "after"
    elif context == "init+add":
        made.node("Add", parts, ["after"])
        return [value("after", None, made.element)]
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
    made = Sketch(element_type, what["opset"])
    for x, shape in zip(names, what.get("sym") or shapes, strict=True):
        made.input(x, *shape)
    for each in names if between else ():
        made.node("Relu", [each], [f"{each}_before"])
    read = [f"{each}_before" for each in names] if between else names
    made.node("Concat", read, ["whole"], name="concat", axis=what["axis"])
    if between:
        made.node("Relu", ["whole"], ["after"])
    total = [*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]]
    output = value("after" if between else "whole", None if what.get("dyn") else total, element_type)
    made.outputs = [output]
    sample = Sample(name, made.model())
    if "run" in what:
        sample.run = [RunInput(x, element_type, tuple(shape)) for x, shape in zip(names, what["run"], strict=True)]
        sample.outputs = [output.name]
    return sample
