"""Takes the inputs without elements that mending made from Concats.

cut-empty and leave-out put a constant in the place of a Split's part without elements. A runtime skips such an input of
a Concat, but before 1.24 it ends the process where it moves a Transpose across the Concat, and to the constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

import onnx

from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.onnx.protobuf import add_document, refill, text
from dmlsplit.mending.editing import Original, node_text
from dmlsplit.mending.judged import Step
from dmlsplit.mending.sites import Body, Site
from dmlsplit.mending.source import origin
from dmlsplit.mending.words import Change, document
from dmlsplit.models.places import Place, Spot

_NAME: Final = "cut-empty"
_MAKING: Final = frozenset({_NAME, "leave-out"})
"""The changes that may make tensors without elements."""


def without_empty_inputs(step: Step, original: Original) -> None:
    """Takes, from the Concats in `step`, the inputs without elements that a node made by its changes computes, if they
    read anything else."""
    if _MAKING.isdisjoint(name for change in step.changes for name in change.names):
        return
    judged = step.judged
    calls: dict[Spot, list[Site]] = {}
    for site in judged.sites:
        if isinstance(site.node, JoinNode):
            calls.setdefault((site.place, site.index), []).append(site)
    new: dict[Place, set[str]] = {}
    edits: dict[Place, dict[int, Sequence[onnx.NodeProto]]] = {}
    made: list[Change] = []
    for (place, index), sites in calls.items():
        body = judged.bodies.at(place)
        if body is None:
            continue
        if place not in new:
            new[place] = set(_new_tensors(body))
        before = original(body.node[index])
        names = [text(name) for name in before.input]
        kept = [name for k, name in enumerate(names) if name not in new[place] or not _is_empty_at_all(sites, k)]
        if not kept or len(kept) == len(names):
            continue
        count = len(names) - len(kept)
        why = f"{count} of its inputs {'have' if count > 1 else 'has'} no elements"
        after = deepcopy(before)
        refill(after.input, kept)
        add_document(after, document([_NAME], sites[0].path, judged.target.name, why))
        edits.setdefault(place, {})[index] = [after]
        made.append(Change(sites[0].path, (_NAME,), why, (node_text(before),), (node_text(after),)))
    step.take(edits, made)


def _new_tensors(body: Body) -> Iterator[str]:
    """Yields the names of the tensors that new nodes of a graph or function compute."""
    for node in body.node:
        if origin(node) is None:
            yield from map(text, node.output)


def _is_empty_at_all(sites: Sequence[Site], index: int) -> bool:
    """True if, at each call of its function, input `index` of a Concat has the length 0 along the Concat's axis."""
    lengths = [site.node.lengths for site in sites]
    return all(known is not None and index < len(known) and known[index] == 0 for known in lengths)
