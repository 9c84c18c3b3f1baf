"""Removes Relus and Clips that quantization makes useless, and keeps nodes from becoming operators for quantized
elements with which ONNX Runtime creates no session.

What fails, and which change helps, says onnxruntime/quantized_faults.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Final, TypeAlias

import onnx
from onnx import helper

from dmlsplit.formats.onnx.protobuf import Names, add_document, has_graphs, reads, refill
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.mending.editing import node_text, outputs_of, replace_nodes
from dmlsplit.mending.judged import JudgedModel
from dmlsplit.mending.sites import Body
from dmlsplit.mending.source import SourceModel
from dmlsplit.mending.words import Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.passes.qdq_selector_action_transformer import CLIPS
from dmlsplit.onnxruntime.quantized_faults import QuantizedCure, QuantizedFault, cure_of

_NAMES: Final = {QuantizedCure.REMOVE_CLIP: "remove-clip", QuantizedCure.MAX_BEHIND: "max-quantized"}
_ROUNDS: Final = 3
"""The most rounds of changes: without its Clip, a node may lack a kernel."""

_Edits: TypeAlias = dict[int, Sequence[onnx.NodeProto]]


def without_quantized_faults(
    source: SourceModel, judged: JudgedModel
) -> tuple[JudgedModel, list[Change], list[Refusal]]:
    """Returns the model, judged again, without operators for quantized elements that fail the session; the changes; and
    the nodes that no change helps, with the reason. The given model is not changed."""
    changes: list[Change] = []
    for _ in range(_ROUNDS):
        faults: dict[Spot, list[QuantizedFault]] = {}
        refusals: list[Refusal] = []
        for spot, fault in judged.quantized_faults:
            if spot is None or judged.bodies.at(spot[0]) is None or cure_of(fault) is None:
                refusals.append(Refusal(fault.path, fault.why))
            else:
                faults.setdefault(spot, []).append(fault)
        if refusals or not faults:
            return judged, changes, refusals
        edits: dict[Place, _Edits] = {}
        for spot, found in faults.items():
            changes.append(_changed(source, judged, spot, found, edits.setdefault(spot[0], {})))
        model = deepcopy(judged.model)
        replace_nodes(model, edits)
        judged = judged.changed(model)
    return judged, changes, []


def _changed(
    source: SourceModel, judged: JudgedModel, spot: Spot, faults: Sequence[QuantizedFault], edits: _Edits
) -> Change:
    """Adds to `edits`, the new nodes of the graph, those that help against the faults of one node, and returns the
    change. A function has one fault for each call, and keeps its Clips: other calls may need them."""
    (place, index), fault = spot, faults[0]
    body = judged.bodies.at(place)
    assert body is not None
    cure = cure_of(fault)
    removed = _without_clip(source, body, index) if cure is QuantizedCure.REMOVE_CLIP and place.key is None else None
    if removed is None:
        cure = QuantizedCure.MAX_BEHIND
        made: _Edits = {index: _with_max(source.original(body.node[index]), judged.names)}
    else:
        made = removed
    assert cure is not None
    said = document([_NAMES[cure]], fault.path, judged.target.name, fault.why)
    for node in (node for nodes in made.values() for node in nodes):
        add_document(node, said)
    edits |= made
    before = tuple(node_text(body.node[i]) for i in made)
    after = tuple(node_text(node) for nodes in made.values() for node in nodes)
    return Change(fault.path, (_NAMES[cure],), fault.why, before, after)


def _without_clip(source: SourceModel, body: Body, index: int) -> _Edits | None:
    """Returns the nodes that read the Relu or Clip behind the node with this index, changed to read what the Clip
    reads; None if the Clip is not the only reader of the node, or if it is read by others than nodes of its graph."""
    behind = _readers(body, text(body.node[index].output[0]))
    if behind is None or len(behind) != 1 or body.node[behind[0]].op_type not in CLIPS:
        return None
    clip = body.node[behind[0]]
    result = text(clip.output[0])
    made: _Edits = {}
    for i in (readers := _readers(body, result) or ()):
        changed = deepcopy(source.original(body.node[i]))
        refill(changed.input, [clip.input[0] if text(name) == result else name for name in changed.input])
        made[i] = [changed]
    return made if readers else None


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
