"""Making a model smaller while it stays interesting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import onnx
from onnx import shape_inference

from dmlsplit.library.sessions import OnnxRuntime
from tests.onnxruntime.compare import compare, predicted
from tests.onnxruntime.models import RunInput, Sample

MOST_ROUNDS: Final = 40


def shrunk(
    runtime: OnnxRuntime, version: str, sample: Sample, interesting: Callable[[Sample], bool] | None = None
) -> str:
    """The smallest model found that ONNX Runtime and the prediction disagree about, in words, with what they say."""

    def disagrees(candidate: Sample) -> bool:
        try:
            onnx.checker.check_model(candidate.model)
            return bool(compare(runtime.ask(candidate.query), predicted(candidate, version)).disagreements)
        except Exception:
            return False  # not a model that the question is about

    wanted = interesting or disagrees
    for _ in range(MOST_ROUNDS):
        smaller = next((candidate for candidate in _simpler(sample) if wanted(candidate)), None)
        if smaller is None:
            break
        sample = smaller
    verdict = compare(runtime.ask(sample.query), predicted(sample, version))
    run = (
        "" if sample.run is None else f"run with {[(entry.name, entry.shape, entry.values) for entry in sample.run]}\n"
    )
    opset = sample.model.opset_import[0].version
    text = onnx.printer.to_text(sample.model.graph)
    return "\n".join([f"{sample.name}, opset {opset}, {run}{text}", *verdict.disagreements])


def _simpler(sample: Sample) -> Iterator[Sample]:
    graph = sample.model.graph
    for i in range(len(graph.output) if len(graph.output) > 1 else 0):
        yield _changed(sample, lambda copy, i=i: copy.output.pop(i))
    for i, node in enumerate(graph.node):
        if len(graph.node) > 1:
            yield _cut(sample, i, node)
    if sample.config:
        yield replace(sample, config={})


def _cut(sample: Sample, index: int, node: onnx.NodeProto) -> Sample:
    """Without a node: what it writes becomes an input of the model."""
    shapes = _shapes(sample)

    def cut(graph: onnx.GraphProto) -> None:
        del graph.node[index]
        for name in node.output:
            if name in shapes and not any(value.name == name for value in graph.output):
                graph.input.append(shapes[name])

    return _changed(sample, cut)


def _shapes(sample: Sample) -> dict[str, onnx.ValueInfoProto]:
    inferred = shape_inference.infer_shapes(sample.model, data_prop=True).graph
    return {value.name: value for value in (*inferred.value_info, *inferred.output)}


def _changed(sample: Sample, change: Callable[[onnx.GraphProto], object]) -> Sample:
    """A copy, changed, without what nothing reads any more."""
    model = onnx.ModelProto()
    model.CopyFrom(sample.model)
    graph = model.graph
    change(graph)
    read = {value.name for value in graph.output}
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if read.intersection(node.output):
            kept.insert(0, node)
            read.update(_reads(node))
    del graph.node[:]
    graph.node.extend(kept)
    for values in (graph.input, graph.initializer):
        left = [value for value in values if value.name in read]
        del values[:]
        values.extend(left)
    run = None if sample.run is None else [_run(sample, value) for value in graph.input]
    return replace(sample, model=model, run=run, outputs=[value.name for value in graph.output])


def _reads(node: onnx.NodeProto) -> set[str]:
    found = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.update(*(_reads(inner) for inner in attribute.g.node))
    return found


def _run(sample: Sample, value: onnx.ValueInfoProto) -> RunInput:
    for entry in sample.run or ():
        if entry.name == value.name:
            return entry
    tensor = value.type.tensor_type
    return RunInput(value.name, tensor.elem_type, tuple(max(dim.dim_value, 1) for dim in tensor.shape.dim))
