"""Merges the batch dimensions of nodes with more dimensions than their kernels accept, with Reshapes around them.

onnxruntime/ranks.py decides which ranks are too high, and which sizes the Reshapes give.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Final

import numpy as np
import onnx
from onnx import helper

from dmlsplit.formats.onnx.protobuf import Names, add_document, refill, text
from dmlsplit.mending.constants import constant_nodes
from dmlsplit.mending.editing import Original, node_text
from dmlsplit.mending.judged import Step
from dmlsplit.mending.words import Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.ranks import BeyondRank, Sizes, merged_batch

_NAME: Final = "merge-batch"
_SHAPE_IS_INPUT: Final = 5
"""The first opset in which the shape is an input of Reshape."""


def within_ranks(step: Step, original: Original) -> None:
    """Adds to `step` the Reshapes around the nodes whose ranks make session creation fail, and the nodes that Reshapes
    cannot help, with the reason."""
    judged = step.judged
    calls: dict[Spot, list[BeyondRank]] = {}
    for spot, node in judged.beyond_rank:
        if spot is None:
            step.refusals.append(Refusal(node.path, node.why))
        else:
            calls.setdefault(spot, []).append(node)
    bodies, taken = judged.bodies, judged.names
    edits: dict[Place, dict[int, Sequence[onnx.NodeProto]]] = {}
    for (place, index), (node, *others) in calls.items():
        found, body = merged_batch(node), bodies.at(place)
        if any(merged_batch(other) != found for other in others):
            found = "its sizes differ between the calls of its function"
        if body is None or node.graph.opset < _SHAPE_IS_INPUT:
            found = "its graph is an attribute of a function call, or its opset is below 5"
        if isinstance(found, str):
            step.refusals.append(Refusal(node.path, f"{node.why}, and {found}"))
            continue
        assert body is not None
        whole = original(body.node[index])
        said = document([_NAME], node.path, judged.target.name, node.why)
        made = _with_reshapes(whole, node, found[0], taken, said)
        edits.setdefault(place, {})[index] = made
        step.changes.append(Change(node.path, (_NAME,), node.why, (node_text(whole),), tuple(map(node_text, made))))
    if edits:
        step.judged = judged.with_nodes(edits)


def _with_reshapes(
    original: onnx.NodeProto, node: BeyondRank, given: Sequence[Sizes | None], taken: Names, said: str
) -> list[onnx.NodeProto]:
    """Returns a copy of `original`, the Reshapes around it, and the constants with their shapes, in order: its first
    inputs get the sizes `given` (None for an unchanged input), and the output is reshaped to its static sizes in the
    session. Adds new names to `taken`; each
    node gets `said` in its doc_string."""
    made: list[onnx.NodeProto] = []
    changed = deepcopy(original)
    names, output = [text(name) for name in original.input], text(original.output[0])

    def reshape(read: str, written: str, sizes: Sequence[int]) -> None:
        shape = taken.fresh(f"{written}/shape")
        made.extend(constant_nodes(shape, np.array(sizes, np.int64), node.graph.opset, taken))
        made.append(helper.make_node("Reshape", [read, shape], [written], name=written))

    for i, sizes in enumerate(given):
        if sizes is not None:
            merged = taken.fresh(f"{output}/{'ab'[i]}")
            reshape(names[i], merged, sizes)
            names[i] = merged
    inner = taken.fresh(f"{output}/merged")
    refill(changed.input, names)
    refill(changed.output, [inner])
    made.append(changed)
    whole = node.graph.shape(output)
    assert whole is not None
    reshape(inner, output, [int(size) for size in whole if isinstance(size, int)])
    for each in made:
        add_document(each, said)
    return made
