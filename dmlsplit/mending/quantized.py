"""Removes Relus and Clips that quantization makes redundant, and prevents nodes from becoming operators for quantized
elements that make session creation fail.

onnxruntime/quantized_faults.py decides what fails, and which change helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Final, TypeAlias

import onnx
from onnx import helper

from dmlsplit.formats.onnx.protobuf import Names, add_document, has_graphs, reads, refill, text
from dmlsplit.mending.constants import constant_nodes
from dmlsplit.mending.editing import Original, node_text, outputs_of
from dmlsplit.mending.judged import JudgedModel, Step
from dmlsplit.mending.sites import Body
from dmlsplit.mending.words import CannotMend, Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.operator_traits import QUANTIZED
from dmlsplit.onnxruntime.passes.patterns import CLIPS
from dmlsplit.onnxruntime.quantized_faults import QuantizedCure, QuantizedFault, cure_of, zero_points_of

_NAMES: Final = {
    QuantizedCure.REMOVE_CLIP: "remove-clip",
    QuantizedCure.ZERO_POINTS: "zero-points",
    QuantizedCure.MAX_BEHIND: "max-quantized",
}
_ZERO_POINTS: Final = {"DequantizeLinear": {0: 2}, "MatMulInteger": {0: 2, 1: 3}}
"""Maps each operator to its inputs that are quantized tensors, each with the input that has its zero points."""
_ROUNDS: Final = 3
"""The most rounds of changes: without its Clip, a node may lack a kernel."""

_Edits: TypeAlias = dict[int, Sequence[onnx.NodeProto]]


def without_quantized_faults(step: Step, original: Original) -> None:
    """Removes from `step` the operators for quantized elements that make session creation fail; adds the nodes that no
    change helps, with the reason."""
    for _ in range(_ROUNDS):
        judged = step.judged
        faults: dict[Spot, list[QuantizedFault]] = {}
        for spot, fault in judged.quantized_faults:
            if spot is None or judged.bodies.at(spot[0]) is None or cure_of(fault) is None:
                step.refusals.append(Refusal(fault.path, fault.why))
            else:
                faults.setdefault(spot, []).append(fault)
        if step.refusals or not faults:
            return
        edits: dict[Place, _Edits] = {}
        for spot, found in faults.items():
            try:
                change = _changed(judged, original, spot, found, edits.setdefault(spot[0], {}))
            except CannotMend as refused:
                step.refusals.append(Refusal(found[0].path, str(refused)))
                return
            step.changes += () if change is None else (change,)
        step.judged = judged.with_nodes(edits)


def _changed(
    judged: JudgedModel, original: Original, spot: Spot, faults: Sequence[QuantizedFault], edits: _Edits
) -> Change | None:
    """Adds to `edits`, the new nodes of the graph, those that cure the faults of one node, and returns the change; None
    if they were already added for another fault. Raises CannotMend if nothing helps. In a function, whose nodes have a
    fault for each call, changes that depend on constants are not made: other calls may have other constants."""
    (place, index), fault = spot, faults[0]
    body, cure = judged.bodies.at(place), cure_of(fault)
    assert body is not None
    made: _Edits = {}
    if cure is QuantizedCure.REMOVE_CLIP and place.key is None:
        made = _without_clip(original, body, index)
    elif cure is QuantizedCure.ZERO_POINTS and place.key is None:
        made = _with_zero_points(original, body, fault, judged.names)
    if not made:
        cure = QuantizedCure.MAX_BEHIND
        if fault.node.op_type not in QUANTIZED.values():
            raise CannotMend(fault.why)
        made = {index: _with_max(original(body.node[index]), judged.names)}
    assert cure is not None
    made = {i: nodes for i, nodes in made.items() if i not in edits}
    said = document([_NAMES[cure]], fault.path, judged.target.name, fault.why)
    for node in (node for nodes in made.values() for node in nodes):
        add_document(node, said)
    edits |= made
    before = tuple(node_text(body.node[i]) for i in made)
    after = tuple(node_text(node) for nodes in made.values() for node in nodes)
    return Change(fault.path, (_NAMES[cure],), fault.why, before, after) if made else None


def _without_clip(original: Original, body: Body, index: int) -> _Edits:
    """Returns the nodes that read the Relu or Clip behind the node with this index, changed to read the Clip's input;
    none if the Clip is not the only reader of the node, or if it has readers outside its graph."""
    behind = _readers(body, text(body.node[index].output[0]))
    if behind is None or len(behind) != 1 or body.node[behind[0]].op_type not in CLIPS:
        return {}
    clip = body.node[behind[0]]
    result = text(clip.output[0])
    made: _Edits = {}
    for i in _readers(body, result) or ():
        changed = deepcopy(original(body.node[i]))
        refill(changed.input, [clip.input[0] if text(name) == result else name for name in changed.input])
        made[i] = [changed]
    return made


def _with_zero_points(original: Original, body: Body, fault: QuantizedFault, taken: Names) -> _Edits:
    """Returns the nodes that read the quantized tensors of a fault, with a constant of as many zero points as scales;
    none if one of the tensors is not in the graph. Adds names to `taken`."""
    made: _Edits = {}
    for tensor, array in (zero_points_of(fault) or {}).items():
        before = len(made)
        for i, node in enumerate(body.node):
            for read, at in _ZERO_POINTS.get(node.op_type, {}).items():
                if text(node.input[read]) == tensor:
                    changed = deepcopy(original(node))
                    name = taken.fresh(f"{tensor}/zero_points")
                    inputs = [*map(text, changed.input), *[""] * at][: max(at + 1, len(changed.input))]
                    refill(changed.input, [*inputs[:at], name, *inputs[at + 1 :]])
                    made[i] = [*constant_nodes(name, array, fault.graph.opset, taken), changed]
        if len(made) == before:
            return {}
    return made


def _readers(body: Body, name: str) -> list[int] | None:
    """Returns the indices of the nodes that read a tensor; None if it is an output of the graph, or if a graph in a
    node reads it."""
    found = [i for i, node in enumerate(body.node) if name in reads(node)]
    return None if name in outputs_of(body) or any(has_graphs(body.node[i]) for i in found) else found


def _with_max(original: onnx.NodeProto, taken: Names) -> list[onnx.NodeProto]:
    """Returns a copy of a node, and the Max behind it that computes the node's output. Adds a name to `taken`."""
    changed, output = deepcopy(original), text(original.output[0])
    inner = taken.fresh(f"{output}/computed")
    refill(changed.output, [inner, *map(text, original.output[1:])])
    return [changed, helper.make_node("Max", [inner, inner], [output], name=output)]
