"""Models made by hand, with what random ones rarely have: nested bodies, functions of functions, computed shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import onnx.parser
import pytest

from tests.onnxruntime.compare import compare, predicted
from tests.onnxruntime.models import RunInput, Sample

pytestmark = pytest.mark.onnxruntime

DATA: Final = Path(__file__).parents[1] / "data" / "onnxruntime" / "handmade.jsonl"
"""One object a line: `name`; `model`, as onnx's parser reads it; `run`, where it is run, the shapes of inputs that are
not those that the model declares; `values`, the elements of an input of lengths."""
MOST_UNKNOWN: Final = 0.06


def samples() -> Iterator[Sample]:
    for line in DATA.read_text("utf-8").splitlines():
        row = json.loads(line)
        model = onnx.parser.parse_model(row["model"])
        run = list(_inputs(model, row["run"], row.get("values", {}))) if "run" in row else None
        yield Sample(row["name"], model, run, [value.name for value in model.graph.output])


def _inputs(model: onnx.ModelProto, shapes: dict[str, list[int]], values: dict[str, list[int]]) -> Iterator[RunInput]:
    defaults = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in defaults:
            continue
        kind = value.type.tensor_type
        declared = [dim.dim_value for dim in kind.shape.dim]
        given = values.get(value.name)
        elements = None if given is None else tuple(given)
        yield RunInput(value.name, kind.elem_type, tuple(shapes.get(value.name, declared)), elements)


def test_the_prediction_is_what_the_version_does(made, runtime, compared):
    nodes = unknown = 0
    wrong = {}
    for asked in samples():
        verdict = compare(runtime.ask(asked.query), predicted(asked, made.version))
        nodes += verdict.nodes
        unknown += verdict.unknown
        if verdict.disagreements:
            wrong[asked.name] = verdict.disagreements
    compared(f"onnxruntime {made.version}: {nodes} nodes of models made by hand, {unknown} unknown, {len(wrong)} wrong")
    assert wrong == {}
    assert unknown <= MOST_UNKNOWN * nodes
