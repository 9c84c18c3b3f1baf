"""Opsets and IR versions that a runtime does not load, and versions of Split and Concat that it has no kernel for.

Where no operator of the model changed between two opsets, the number is all that is written. Otherwise onnx's own
converter makes the new nodes; it knows nothing of Split 1 and 18, which are written here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import onnx
from onnx import defs

from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.functions import all_nodes, domain_of
from dmlsplit.formats.onnx.given import subgraphs
from dmlsplit.formats.onnx.mending.editing import names_of, replace_nodes
from dmlsplit.formats.onnx.mending.forms import LENGTHS_ARE_INPUT, CannotMend, Form
from dmlsplit.formats.onnx.mending.sites import Place, Site, nodes_at
from dmlsplit.formats.onnx.mending.source import SourceModel
from dmlsplit.formats.onnx.mending.words import Change, document
from dmlsplit.formats.onnx.scope import opset_of
from dmlsplit.formats.onnx.tensors import text
from dmlsplit.printable import printable
from dmlsplit.runtimes import Runtime

OLDEST: Final = 7
"""The first opset that ONNX Runtime promises to run."""
_FIRST_WITH_KERNEL: Final = {"Split": 2, "Concat": 4}
_PARTS_ARE_COUNTED: Final = 18
"""The first opset whose Split says how many parts there are."""
_HIDDEN: Final = "dmlsplit.hidden"
"""A domain in which the converter leaves nodes alone."""
_NAME: Final = "convert-opset"
_OVERLOADS: Final = 10
"""The first IR version whose functions have overloads."""


def converted(
    source: SourceModel, model: onnx.ModelProto, sites: Sequence[Site], runtime: Runtime, target: str
) -> list[Change]:
    """Changes a model such that a runtime loads it; what was changed. CannotMend where that is not possible."""
    changes = _with_ir_version(model, runtime)
    own = opset_of(model)
    wanted = min(own, runtime.newest_opset)
    reason = f"opset {own} is newer than {runtime.newest_opset}, the newest of ONNX Runtime {runtime.version}"
    old = next((site for site in sites if 0 < site.node.version < _FIRST_WITH_KERNEL[site.node.op]), None)
    if wanted == own and old is not None and old.scope.origin.opset == own:
        wanted = OLDEST
        reason = f"ONNX Runtime has no kernel for {old.node.op} {old.node.version}"
    if own == 0 or wanted == own:
        return changes
    text_of_change = document([_NAME], "the model", target, reason)
    _rewrite_judged(source, model, sites, wanted, text_of_change)
    for function in model.functions:
        for entry in function.opset_import:
            if domain_of(entry) != "" or min(entry.version, wanted) == entry.version:
                continue
            if not _is_unchanged(function.node, entry.version, wanted):
                raise CannotMend(f"{reason}, and so is that of its function {printable(text(function.name))}")
            entry.version = wanted
    (entry,) = (entry for entry in model.opset_import if domain_of(entry) == "")
    if not _is_unchanged(model.graph.node, own, wanted):
        _convert(source, model, wanted, reason, text_of_change)
    entry.version = wanted
    return [*changes, Change("", (_NAME,), reason, (f"opset {own}",), (f"opset {wanted}",))]


def _with_ir_version(model: onnx.ModelProto, runtime: Runtime) -> list[Change]:
    own, newest = model.ir_version, runtime.newest_ir_version
    if own <= newest:
        return []
    reason = f"IR version {own} is newer than {newest}, the newest of ONNX Runtime {runtime.version}"
    if newest < _OVERLOADS and any(text(function.overload) for function in model.functions):
        raise CannotMend(f"{reason}, and its functions have overloads")
    model.ir_version = newest
    return [Change("", ("older-ir-version",), reason, (f"IR version {own}",), (f"IR version {newest}",))]


def _rewrite_judged(
    source: SourceModel, model: onnx.ModelProto, sites: Sequence[Site], wanted: int, text_of_change: str
) -> None:
    """The Splits and Concats as they are at another opset."""
    taken = names_of(model)
    calls: dict[tuple[Place, int], list[Site]] = {}
    for site in sites:
        calls.setdefault((site.place, site.index), []).append(site)
    replaced: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
    for (place, index), group in calls.items():
        own = group[0].scope.origin.opset
        if own == wanted or _since(group[0].node.op, own) == _since(group[0].node.op, wanted):
            continue
        graph = nodes_at(model, place)
        if graph is None:
            raise CannotMend(f"{group[0].path}: its graph is handed to a function")
        form = Form.of(group, taken)
        form.opset = wanted
        if form.is_split:
            given = len(form.proto.input) > 1 or any(a.name == "split" for a in form.proto.attribute)
            moved = (own < LENGTHS_ARE_INPUT) != (wanted < LENGTHS_ARE_INPUT)
            counted = (own < _PARTS_ARE_COUNTED) != (wanted < _PARTS_ARE_COUNTED)
            form.explicit = moved if given else counted
        try:
            replaced.setdefault(place, {})[index] = form.nodes(source.original(graph.node[index]), text_of_change)
        except CannotMend as refused:
            raise CannotMend(f"{group[0].path}: {refused}") from None
    replace_nodes(model, replaced)


def _since(operator: str, opset: int) -> int | None:
    """The version of an operator that an opset has; None where there is no such operator."""
    try:
        return int(defs.get_schema(operator, opset, "").since_version)
    except defs.SchemaError:
        return None


def _is_unchanged(nodes: Iterable[onnx.NodeProto], own: int, wanted: int) -> bool:
    """Whether all operators but Split and Concat are the same at two opsets."""
    names = {text(node.op_type) for node in all_nodes(nodes) if domain_of(node) == ""} - set(_FIRST_WITH_KERNEL)
    return all((since := _since(name, own)) is not None and since == _since(name, wanted) for name in names)


def _convert(source: SourceModel, model: onnx.ModelProto, wanted: int, reason: str, text_of_change: str) -> None:
    """Puts the nodes that onnx's converter makes for those of the graph."""
    if model.functions or any(True for node in model.graph.node for _ in subgraphs(node)):
        raise CannotMend(f"{reason}; onnx's converter takes no functions and no graphs in nodes")
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    for node in asked.graph.node:
        if node.op_type in _FIRST_WITH_KERNEL and domain_of(node) == "":
            node.domain = _HIDDEN
    asked.opset_import.add(domain=_HIDDEN, version=1)
    made = _converted(asked, wanted, reason)
    names = [{text(value.name) for value in values} for values in (made.graph.initializer, model.graph.initializer)]
    if not names[0] <= names[1]:
        raise CannotMend(f"{reason}; onnx's converter adds initializers")
    old = {text(node.doc_string): node for node in model.graph.node}
    nodes = []
    for node in made.graph.node:
        if node.domain == _HIDDEN:
            node.domain = ""
        before = old.get(text(node.doc_string))
        if before is None:
            node.doc_string = text_of_change
        elif before.SerializeToString(deterministic=True) == node.SerializeToString(deterministic=True):
            node = before
        else:
            documents = [text(source.original(before).doc_string), text_of_change]
            node.doc_string = "\n".join(filter(None, documents))
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        nodes.append(copy)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _converted(model: onnx.ModelProto, wanted: int, reason: str) -> onnx.ModelProto:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    worker = Path(__file__).with_name("_converter.py")
    try:
        ended = subprocess.run(
            [sys.executable, "-P", str(worker), str(wanted)],
            input=model.SerializeToString(),
            capture_output=True,
            env=environment,
            timeout=Limit.ONNX_INFERENCE_TIME.most,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotMend(f"{reason}; onnx's converter did not end") from None
    if ended.returncode:
        lines = ended.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
        raise CannotMend(f"{reason}; onnx's converter: {printable(lines[-1] if lines else 'ended its process', 200)}")
    made = onnx.ModelProto()
    made.ParseFromString(ended.stdout)
    return made
