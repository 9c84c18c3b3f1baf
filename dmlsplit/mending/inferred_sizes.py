"""Removes allowzero from Reshapes that have a size of -1, which DirectML's kernel does not infer.

A shape with a -1 has no 0, or the model is invalid: the Reshapes compute the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from typing import Final

import onnx

from dmlsplit.formats.onnx.protobuf import add_document, text
from dmlsplit.mending.editing import Original, node_text
from dmlsplit.mending.judged import Step
from dmlsplit.mending.words import Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.inferred_sizes import UninferredSize

_NAME: Final = "drop-allowzero"


def without_allowzero(step: Step, original: Original) -> None:
    """Changes the Reshapes in `step` whose kernel does not infer a size; if one cannot be changed, adds it with the
    reason, and changes nothing."""
    judged = step.judged
    if not judged.uninferred_sizes:
        return
    calls: dict[Spot, list[UninferredSize]] = {}
    refusals: list[Refusal] = []
    for spot, found in judged.uninferred_sizes:
        if spot is None or judged.bodies.at(spot[0]) is None:
            refusals.append(Refusal(found.path, found.why))
        else:
            calls.setdefault(spot, []).append(found)
    counts = Counter(spot for spots in judged.spots.values() for spot in spots)
    edits: dict[Place, dict[int, Sequence[onnx.NodeProto]]] = {}
    changes: list[Change] = []
    for (place, index), (first, *others) in calls.items():
        body = judged.bodies.at(place)
        assert body is not None
        if 1 + len(others) < counts[place, index]:
            why = f"{first.why}, and other calls of its function have another shape, which may have a 0"
            refusals.append(Refusal(first.path, why))
            continue
        before = original(body.node[index])
        made = deepcopy(before)
        kept = [each for each in made.attribute if text(each.name) != "allowzero"]
        del made.attribute[:]
        made.attribute.extend(kept)
        add_document(made, document([_NAME], first.path, judged.target.name, first.why))
        edits.setdefault(place, {})[index] = [made]
        changes.append(Change(first.path, (_NAME,), first.why, (node_text(before),), (node_text(made),)))
    step.take(edits, changes, refusals)
