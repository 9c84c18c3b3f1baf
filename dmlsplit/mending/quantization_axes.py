"""Replaces DequantizeLinears with Cast, Sub and Mul if their kernel assumes another axis for the scales.

onnxruntime/quantization_axes.py decides which these are, and whether the replacement computes the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper

from dmlsplit.formats.onnx.protobuf import Names, add_document, text
from dmlsplit.mending.constants import cast_node, constant_nodes
from dmlsplit.mending.editing import Original, node_text
from dmlsplit.mending.judged import Step
from dmlsplit.mending.words import Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.quantization_axes import OffAxis

_NAME: Final = "dequantize-by-axis"


def along_axes(step: Step, original: Original) -> None:
    """Replaces the DequantizeLinears in `step` that are not computed along their axis; if no change helps a
    quantization, adds it with the reason, and changes nothing."""
    judged = step.judged
    calls: dict[Spot, list[OffAxis]] = {}
    refusals: list[Refusal] = []
    for spot, node in judged.off_axis:
        if spot is None or node.no_cure or judged.bodies.at(spot[0]) is None:
            refusals.append(Refusal(node.path, f"{node.why}{f', and {node.no_cure}' if node.no_cure else ''}"))
        else:
            calls.setdefault(spot, []).append(node)
    edits: dict[Place, dict[int, Sequence[onnx.NodeProto]]] = {}
    changes: list[Change] = []
    for (place, index), (node, *others) in calls.items():
        body = judged.bodies.at(place)
        assert body is not None
        if any(other.rank - other.axis != node.rank - node.axis for other in others):
            refusals.append(Refusal(node.path, f"{node.why}, and its ranks differ between the calls of its function"))
            continue
        whole = original(body.node[index])
        made = _computed(whole, node, judged.names)
        said = document([_NAME], node.path, judged.target.name, node.why)
        for each in made:
            add_document(each, said)
        edits.setdefault(place, {})[index] = made
        changes.append(Change(node.path, (_NAME,), node.why, (node_text(whole),), tuple(map(node_text, made))))
    step.take(edits, changes, refusals)


def _computed(original: onnx.NodeProto, node: OffAxis, taken: Names) -> list[onnx.NodeProto]:
    """Returns the nodes that compute the result of a DequantizeLinear: (x - zero point) * scale, in FLOAT. Adds new
    names to `taken`."""
    quantized, scale, *zero_point = filter(None, map(text, original.input))
    output, opset = text(original.output[0]), node.graph.opset
    axes = taken.fresh(f"{output}/axes")
    made = constant_nodes(axes, np.arange(1, node.rank - node.axis), opset, taken)

    def write(op: str, read: Sequence[str], name: str) -> str:
        written = name if name == output else taken.fresh(f"{output}/{name}")
        if op == "Cast":
            made.append(cast_node(read[0], written, TensorProto.FLOAT, opset))
        else:
            made.append(helper.make_node(op, read, [written], name=written))
        return written

    value = write("Cast", [quantized], "float")
    if zero_point:
        value = write(
            "Sub", [value, write("Unsqueeze", [write("Cast", zero_point, "zeros"), axes], "zero_points")], "shifted"
        )
    write("Mul", [value, write("Unsqueeze", [scale, axes], "scales")], output)
    return made
