"""Takes a model to the older opset at which more of its nodes run on DirectML.

Nodes stay as they are: the number of the opset changes, and attributes go that mean nothing there. Which opset, and
whether every node means the same there, says onnxruntime/older_opset.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

import onnx

from dmlsplit.formats.onnx.protobuf import add_document, all_nodes, domain_of, first_output, refill
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.mending.editing import node_text
from dmlsplit.mending.judged import JudgedModel
from dmlsplit.mending.source import SourceModel
from dmlsplit.mending.words import CannotMend, Change, document
from dmlsplit.models.older_schemas import at_older
from dmlsplit.models.scope import opset_of
from dmlsplit.onnxruntime.model_findings import moved_text
from dmlsplit.system.printable import printable

_NAME: Final = "older-opset"


def at_older_opset(source: SourceModel, judged: JudgedModel) -> tuple[JudgedModel, list[Change]]:
    """Returns the model, judged again, at the opset at which more nodes run on DirectML, and the changes; `judged`
    itself and no changes if there is no such opset. Raises CannotMend if a node means something else there, or if the
    session fails there."""
    older = judged.older_opset
    if older is None:
        return judged, []
    reason = f"{moved_text(older)} on the CPU, and on DirectML at opset {older.opset}"
    if older.why:
        raise CannotMend(f"{reason}: {older.why}")
    model, own = deepcopy(judged.model), opset_of(judged.model)
    changes = [Change("", (_NAME,), reason, (f"opset {own}",), (f"opset {older.opset}",))]
    documentation = document([_NAME], "the model", judged.target.name, reason)
    if different := different_bodies(model, older.opset):
        raise CannotMend(f"{reason}: {different}")
    changes += with_older_opset(source, model, older.opset, documentation)
    found = judged.changed(model)
    if found.failure and not judged.failure:
        raise CannotMend(f"{reason}: the session fails there")
    return found, changes


def different_bodies(model: onnx.ModelProto, opset: int) -> str:
    """Returns the first node of a model and its functions (called or not) that means something else at an older opset,
    and why, as text; "" if there is none."""
    for nodes, entries in _bodies(model):
        for node in nodes if (version := _version(entries)) > opset else ():
            found = at_older(node, None, None, version, opset)
            if found.why:
                return f"{printable(text(node.name) or first_output(node), 60)}: {found.why}"
    return ""


def with_older_opset(source: SourceModel, model: onnx.ModelProto, opset: int, documentation: str) -> list[Change]:
    """Writes an older opset into `model` and its functions, in place. Returns the changes of nodes that lose an
    attribute."""
    changes: list[Change] = []
    for nodes, entries in _bodies(model):
        version = _version(entries)
        if version > opset:
            changes += _without_attributes(source, nodes, version, opset, documentation)
        for entry in entries:
            entry.version = min(entry.version, opset)
    return changes


def _version(entries: list[onnx.OperatorSetIdProto]) -> int:
    return max((entry.version for entry in entries), default=0)


def _bodies(
    model: onnx.ModelProto,
) -> Iterator[tuple[list[onnx.NodeProto], list[onnx.OperatorSetIdProto]]]:
    """Yields, for the model and each function, all its nodes (subgraphs included) and its imports of the default
    domain."""
    for body, imports in (
        (model.graph.node, model.opset_import),
        *((function.node, function.opset_import) for function in model.functions),
    ):
        yield list(all_nodes(body)), [entry for entry in imports if domain_of(entry) == ""]


def _without_attributes(
    source: SourceModel, nodes: list[onnx.NodeProto], own: int, wanted: int, documentation: str
) -> Iterator[Change]:
    """Removes, in place, the attributes that opset `wanted` lacks from nodes of opset `own`, and yields a change for
    each node that had one."""
    for node in nodes:
        found = at_older(node, None, None, own, wanted)
        if not found.dropped:
            continue
        before, whole = node_text(node), source.original(node)
        node.CopyFrom(whole)
        refill(node.attribute, [deepcopy(each) for each in whole.attribute if text(each.name) not in found.dropped])
        add_document(node, documentation)
        reason = f"what opset {wanted} lacks means nothing: {', '.join(sorted(found.dropped))}"
        yield Change(text(node.name) or first_output(node), (_NAME,), reason, (before,), (node_text(node),))
