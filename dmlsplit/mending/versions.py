"""Converts a model to another opset: one that the runtime loads and has kernels for, or the older one in which more
nodes run on DirectML; and to an IR version that the runtime loads.

If every node means the same in the older opset by ONNX's schemas (models/older_schemas.py), only the opset's number is
changed, and attributes without meaning there are removed. Otherwise onnx's own converter makes the new nodes; Split 1
and 18, which it does not support, are rewritten here. onnxruntime/older_opset.py chooses the opset in which more nodes
are on DirectML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Final

import onnx

from dmlsplit.formats.onnx.protobuf import add_document, all_nodes, domain_of, first_output, refill, text
from dmlsplit.mending.conversion import convert
from dmlsplit.mending.editing import Original, node_text, replace_nodes
from dmlsplit.mending.forms import Form
from dmlsplit.mending.judged import JudgedModel, Step
from dmlsplit.mending.sites import Site
from dmlsplit.mending.words import CannotMend, Change, Refusal, document
from dmlsplit.models.older_schemas import at_older
from dmlsplit.models.places import Place
from dmlsplit.models.schemas import since
from dmlsplit.models.scope import opset_of
from dmlsplit.onnxruntime.facts import FIRST_WITH_KERNEL, LENGTHS_ARE_INPUT
from dmlsplit.onnxruntime.model_findings import moved_text
from dmlsplit.system.printable import printable
from dmlsplit.targets.runtime_versions import Runtime

OLDEST: Final = 7
"""The oldest opset that ONNX Runtime supports."""
_PARTS_ARE_COUNTED: Final = 18
"""The first opset whose Split has num_outputs."""
_NAME: Final = "convert-opset"
_OLDER: Final = "older-opset"
_OVERLOADS: Final = 10
"""The first IR version with overloads of functions."""


def converted(judged: JudgedModel, original: Original, runtime: Runtime) -> list[Change]:
    """Changes the judged model, in place, so that a runtime loads it, and returns the changes. Raises CannotMend if
    that is not possible."""
    model, sites, target = judged.model, judged.sites, judged.target.name
    changes = _with_ir_version(model, runtime)
    own = opset_of(model)
    wanted = min(own, runtime.newest_opset)
    reason = (
        f"opset {own} is newer than {runtime.newest_opset}, the newest that ONNX Runtime {runtime.version} supports"
    )
    old = next((site for site in sites if 0 < site.node.version < FIRST_WITH_KERNEL[site.node.op]), None)
    if wanted == own and old is not None and old.scope.origin.opset == own:
        wanted = OLDEST
        reason = f"ONNX Runtime has no kernel for {old.node.op} {old.node.version}"
    if own == 0 or wanted == own:
        return [*changes, *_with_older_functions(original, model, runtime, target)]
    if own > onnx.defs.onnx_opset_version():
        raise CannotMend(f"{reason}, and onnx {onnx.__version__} does not know it and cannot convert it")
    text_of_change = document([_NAME], "the model", target, reason)
    change = Change("", (_NAME,), reason, (f"opset {own}",), (f"opset {wanted}",))
    if wanted < own and not judged.different_at(wanted) and not different_bodies(model, wanted):
        return [*changes, change, *with_older_opset(original, model, wanted, text_of_change)]
    if why := judged.types_not_taken_at(wanted):  # the converter does not get nodes with graphs
        raise CannotMend(f"{reason}; {why}")
    _rewrite_judged(judged, original, wanted, text_of_change)
    imports = {-1: model.opset_import, **{i: function.opset_import for i, function in enumerate(model.functions)}}
    entries = {i: entry for i, own_imports in imports.items() for entry in own_imports if domain_of(entry) == ""}
    changed = {i: entry for i, entry in entries.items() if min(entry.version, wanted) != entry.version or i < 0}
    try:
        convert(model, {i: entry.version for i, entry in changed.items()}, wanted, original, text_of_change)
    except CannotMend as refused:
        raise CannotMend(f"{reason}; {refused}") from None
    for entry in changed.values():
        entry.version = wanted
    return [*changes, change]


def _with_older_functions(
    original: Original, model: onnx.ModelProto, runtime: Runtime, target: str
) -> Iterator[Change]:
    """Writes the newest opset that `runtime` supports, in place, into functions that import a newer one. Yields the
    changes of nodes; `of_functions` says those of opsets. Raises CannotMend if a node has another meaning there."""
    for function in model.functions:
        if reason := _too_new(function, runtime):
            part = onnx.ModelProto(functions=[function])
            if different := different_bodies(part, runtime.newest_opset):
                raise CannotMend(f"{reason}; {different}")
            documentation = document([_NAME], "the function", target, reason)
            yield from with_older_opset(original, part, runtime.newest_opset, documentation)
            function.CopyFrom(part.functions[0])


def of_functions(source: onnx.ModelProto, made: onnx.ModelProto, runtime: Runtime) -> Iterator[Change]:
    """Yields a change for each function whose opset is newer in `source` than `runtime` supports, and is older in
    `made`; nothing if that is so of the model, whose change says it."""
    for function, other in zip(source.functions, made.functions, strict=True):
        if opset_of(source) <= runtime.newest_opset and (reason := _too_new(function, runtime)):
            before, after = (f"opset {_version_of(each)}" for each in (function, other))
            yield Change(text(function.name), (_NAME,), reason, (before,), (after,))


def _too_new(function: onnx.FunctionProto, runtime: Runtime) -> str:
    """Returns, as text, that the function's opset is newer than `runtime` supports; "" if it is not."""
    own, newest = _version_of(function), runtime.newest_opset
    if own <= newest:
        return ""
    name = f"the function {printable(text(function.name), 60)}"
    return f"{name} has opset {own}, newer than {newest}, the newest that ONNX Runtime {runtime.version} supports"


def _version_of(function: onnx.FunctionProto) -> int:
    return _version([entry for entry in function.opset_import if domain_of(entry) == ""])


def align_functions(model: onnx.ModelProto) -> dict[int, int]:
    """Gives functions of another opset, in place, the model's opset if their operators are equal in both. Returns a
    mapping from the index of each changed function to its old opset.

    A model is not valid if an operator of a function differs between the two opsets; Constant, which is inserted into
    functions, differs between most.
    """
    own = opset_of(model)
    old = {}
    for index, function in enumerate(model.functions):
        for entry in function.opset_import:
            if domain_of(entry) == "" and entry.version != own and _is_same(function.node, entry.version, own):
                old[index], entry.version = entry.version, own
    return old


def restore_untouched(model: onnx.ModelProto, source: onnx.ModelProto, old: Mapping[int, int]) -> None:
    """Restores the opsets of functions, in place: `old` maps indices of functions to opsets. A function gets its old
    opset if its nodes are still those of `source`, and if the opset is not newer than its present one."""
    for index, version in old.items():
        function = model.functions[index]
        if function.node == source.functions[index].node:
            for entry in function.opset_import:
                if domain_of(entry) == "" and version < entry.version:
                    entry.version = version


def _is_same(nodes: Iterable[onnx.NodeProto], one: int, other: int) -> bool:
    names = {text(node.op_type) for node in all_nodes(nodes) if domain_of(node) == ""}
    return all((first := since(name, one)) is not None and first == since(name, other) for name in names)


def _with_ir_version(model: onnx.ModelProto, runtime: Runtime) -> list[Change]:
    own, newest = model.ir_version, runtime.newest_ir_version
    if own <= newest:
        return []
    reason = f"IR version {own} is newer than {newest}, the newest that ONNX Runtime {runtime.version} supports"
    if newest < _OVERLOADS and any(text(function.overload) for function in model.functions):
        raise CannotMend(f"{reason}, and its functions have overloads")
    model.ir_version = newest
    return [Change("", ("older-ir-version",), reason, (f"IR version {own}",), (f"IR version {newest}",))]


def _rewrite_judged(judged: JudgedModel, original: Original, wanted: int, text_of_change: str) -> None:
    """Converts the Split and Concat nodes of the model to opset `wanted`, in place. Each new node gets `text_of_change`
    in its doc_string. Raises CannotMend if one cannot be converted."""
    bodies, taken = judged.bodies, judged.names
    calls: dict[tuple[Place, int], list[Site]] = {}
    for site in judged.sites:
        calls.setdefault((site.place, site.index), []).append(site)
    replaced: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
    for (place, index), group in calls.items():
        own = group[0].scope.origin.opset
        if own == wanted or since(group[0].node.op, own) == since(group[0].node.op, wanted):
            continue
        graph = bodies.at(place)
        if graph is None:
            raise CannotMend(f"{group[0].path}: its graph is an attribute of a function call")
        form = Form.of(group, taken)
        form.opset = wanted
        if form.is_split:
            as_input = len(form.proto.input) > 1  # also for Split 1
            given = as_input or any(a.name == "split" for a in form.proto.attribute)
            moved = as_input != (wanted >= LENGTHS_ARE_INPUT)
            counted = (own < _PARTS_ARE_COUNTED) != (wanted < _PARTS_ARE_COUNTED)
            form.explicit = moved if given else counted
        try:
            replaced.setdefault(place, {})[index] = form.nodes(original(graph.node[index]), text_of_change)
        except CannotMend as refused:
            raise CannotMend(f"{group[0].path}: {refused}") from None
    replace_nodes(judged.model, replaced)


def at_older_opset(step: Step, original: Original) -> None:
    """Converts the model of `step` to the opset in which more nodes run on DirectML, if there is one; says in `left` if
    the model has another meaning there."""
    judged = step.judged
    older = judged.older_opset
    if older is None:
        return
    reason = f"{moved_text(older)} on the CPU, but on DirectML at opset {older.opset}"
    model, own = deepcopy(judged.model), opset_of(judged.model)
    why = older.why or different_bodies(model, older.opset)
    if not why:
        documentation = document([_OLDER], "the model", judged.target.name, reason)
        changes = [Change("", (_OLDER,), reason, (f"opset {own}",), (f"opset {older.opset}",))]
        changes += with_older_opset(original, model, older.opset, documentation)
        found = judged.changed(model)
        if judged.failure or not found.failure:
            step.judged = found
            step.changes += changes
            return
        why = "the session fails there"
    left = Refusal("", f"{reason}: {why}")
    step.left += [left] if left not in step.left else []


def different_bodies(model: onnx.ModelProto, opset: int) -> str:
    """Returns, as text, the first node of a model and its functions (called or not) that has another meaning in an
    older opset, and why; "" if there is none."""
    for nodes, entries in _bodies(model):
        for node in nodes if (version := _version(entries)) > opset else ():
            found = at_older(node, None, None, version, opset)
            if found.why:
                return f"{printable(text(node.name) or first_output(node), 60)}: {found.why}"
    return ""


def with_older_opset(original: Original, model: onnx.ModelProto, opset: int, documentation: str) -> list[Change]:
    """Writes an older opset into `model` and its functions, in place. Returns the changes of nodes that lose an
    attribute."""
    changes: list[Change] = []
    for nodes, entries in _bodies(model):
        version = _version(entries)
        if version > opset:
            changes += _without_attributes(original, nodes, version, opset, documentation)
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
    original: Original, nodes: list[onnx.NodeProto], own: int, wanted: int, documentation: str
) -> Iterator[Change]:
    """Removes, in place, the attributes that opset `wanted` lacks from nodes of opset `own`, and yields a change for
    each node that had one."""
    for node in nodes:
        found = at_older(node, None, None, own, wanted)
        if not found.dropped:
            continue
        before, whole = node_text(node), original(node)
        node.CopyFrom(whole)
        refill(node.attribute, [deepcopy(each) for each in whole.attribute if text(each.name) not in found.dropped])
        add_document(node, documentation)
        reason = f"removed what opset {wanted} lacks and has no effect: {', '.join(sorted(found.dropped))}"
        yield Change(text(node.name) or first_output(node), (_OLDER,), reason, (before,), (node_text(node),))
