"""Mends a model for a target: changes, refusals, and the bytes of the new model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

import onnx

from dmlsplit.formats.files import AllowedFolders
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.onnx.protobuf import all_nodes, first_output, text
from dmlsplit.formats.onnx.tensors import ReadExternal
from dmlsplit.mending.assembling import assembled
from dmlsplit.mending.editing import Original, node_text, replace_nodes
from dmlsplit.mending.empty_inputs import without_empty_inputs
from dmlsplit.mending.fields import Part, size_of
from dmlsplit.mending.forms import Form
from dmlsplit.mending.graph_cures import cure
from dmlsplit.mending.inferred_sizes import without_allowzero
from dmlsplit.mending.judged import JudgedModel, Step, doubts, failing_elsewhere, faults, observed, session_of
from dmlsplit.mending.quantization_axes import along_axes
from dmlsplit.mending.quantized import without_quantized_faults
from dmlsplit.mending.ranks import within_ranks
from dmlsplit.mending.rewritings import REWRITINGS
from dmlsplit.mending.source import SourceModel, origin
from dmlsplit.mending.versions import align_functions, at_older_opset, converted, of_functions, restore_untouched
from dmlsplit.mending.views import View
from dmlsplit.mending.words import CannotMend, Change, Refusal, document, invalid, together
from dmlsplit.models.places import Place
from dmlsplit.system.errors import NotLoadedError
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import Target

FIX_SIZES: Final = "fix-sizes"
_ROUNDS: Final = 8
"""The most rounds of rewritings: a new node may make more facts known about the nodes behind it."""


@dataclass
class Mending:
    """The result of mending. `parts` are the bytes to write, None if something is refused."""

    source: SourceModel
    changes: list[Change]
    refusals: list[Refusal]
    unknown: list[Refusal]
    """Nodes with unknown facts that a judgement needs; the model is still written."""
    left: list[Refusal]
    """What stays slow although the target accepts it, and why; the model is still written."""
    parts: list[Part] | None = None
    file: str = ""
    """The file of the source model; "" for a model that is not a file."""
    folders: AllowedFolders | None = None
    """The folders from which external data may be read; None for a model that is not a file."""

    @property
    def outcome(self) -> str:
        """The outcome in a few words: "2 nodes changed", "nothing to legalize" or "cannot be legalized"."""
        if self.refusals:
            return "cannot be legalized"
        count = sum(bool(change.path) for change in self.changes)
        changed = ["the model"] * (count < len(self.changes)) + [f"{count} node{'s' * (count != 1)}"] * (count > 0)
        return f"{' and '.join(changed)} changed" if changed else "nothing to legalize"

    @property
    def doubts(self) -> list[str]:
        """The unknown facts, one line for each reason."""
        return [f"not known{of and f' of {of}'}: {reason}" for of, reason in together(self.unknown)]

    @property
    def size(self) -> int:
        return size_of(self.parts or ())

    def copied(self) -> Iterator[bytes | memoryview]:
        """Yields the bytes of the new model in pieces, nothing if it cannot be legalized. Each piece must be used
        before the next one is requested."""
        for part in self.parts or ():
            yield from self.source.copy(part)


def mended(
    source: SourceModel, target: Target, read_external: ReadExternal, sizes: Mapping[str, int] | None = None
) -> Mending:
    """Returns the changes that make a target accept the source's model, with the new bytes, or the reasons why no
    changes do. `sizes` replace symbolic dimensions first. Raises InputError if the source is not a model, and for a
    symbol that it does not have."""
    if sizes:
        source.fix_sizes(sizes)
    model = deepcopy(source.model)
    aligned = align_functions(model)
    try:
        step = _accepted(JudgedModel.of(model, target, read_external), source.original)
    except NotLoadedError as error:  # by no version: nothing is judged, hence nothing is rewritten
        return Mending(source, [], [Refusal(error.node, error.message)], [], [])
    found = Mending(source, [*_fixed(sizes or {}), *step.changes], step.refusals, step.unknown, step.left)
    if found.refusals:
        return found
    restore_untouched(step.judged.model, source.model, aligned)
    found.changes += of_functions(source.model, step.judged.model, session_of(target)[0])
    _name_apart(step.judged)
    parts = assembled(source, step.judged.model)
    size, most = size_of(parts), Limit.ONNX_FILE.most
    if size > most:
        message = f"it would have {size} bytes, but a protobuf message has at most {most}; use external data"
        found.refusals.append(Refusal("", message))
        return found
    found.parts = parts
    found.unknown += _unknown(step)
    return found


def _fixed(sizes: Mapping[str, int]) -> Iterator[Change]:
    for name, size in sizes.items():
        symbol = printable(name, 60)
        yield Change("", (FIX_SIZES,), f"the size {symbol} is {size}", (symbol,), (str(size),))


def _accepted(judged: JudgedModel, original: Original) -> Step:
    """Returns the model after the changes that make the target accept it; the reasons in `refusals` if none do."""
    found = Step(judged)
    try:
        found.changes += converted(judged, original, session_of(judged.target)[0])
    except CannotMend as refused:
        found.refusals.append(Refusal("", str(refused)))
        return found
    if found.changes:
        found.judged = judged.changed(judged.model)
    at_older_opset(found, original)
    within_ranks(found, original)
    for step in (without_quantized_faults, along_axes, without_allowzero) if not found.refusals else ():
        step(found, original)
    for _ in range(_ROUNDS):
        replaced = _rewritten(found, original)
        if not replaced or found.refusals:
            break
        found.judged.release()
        replace_nodes(found.judged.model, replaced)
        found.judged = found.judged.changed(found.judged.model)
    found.refusals += [] if found.refusals else [Refusal("", why) for why in found.judged.not_loaded]
    if found.refusals:
        return found
    cure(found, original)
    if found.refusals:
        return found
    without_empty_inputs(found, original)
    if found.changes:
        at_older_opset(found, original)  # new nodes may have operators that the model did not have
    views = found.judged.views
    found.refusals += dict.fromkeys(Refusal(v.site.path, message) for v in views for message in faults(v))
    if not found.refusals:
        elsewhere = failing_elsewhere(found.judged) or found.judged.failure
        found.refusals += [Refusal("", elsewhere)] if elsewhere else []
    return found


def _unknown(found: Step) -> Iterator[Refusal]:
    """Yields, with the reason, each node of the result that the target may refuse, unless `found.unknown` names it;
    first the target itself (path "") if its behaviour was never recorded."""
    runtime, in_session = session_of(found.judged.target)
    if in_session and not runtime.observed:
        yield Refusal(
            "", f"the behaviour of {runtime.version} was not observed; that of {observed(runtime).version} is assumed"
        )
    named = {each.path for each in found.unknown}
    yield from (each for each in doubts(found.judged.views) if each.path not in named)


def _name_apart(judged: JudgedModel) -> None:
    """Renames, in place, each new node whose name another node also has: ONNX Runtime does not load a graph with two
    nodes of one name. A new node is named after its output."""
    model = judged.model
    nodes = [*all_nodes(model.graph.node), *(n for function in model.functions for n in all_nodes(function.node))]
    named: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in nodes:
        named[text(node.name)].append(node)
    for name, alike in named.items():
        for node in alike if name and len(alike) > 1 else ():
            if name == first_output(node) and origin(node) is None:
                node.name = judged.names.fresh(name)


def _rewritten(step: Step, original: Original) -> dict[Place, dict[int, list[onnx.NodeProto]]]:
    """Returns the nodes that replace nodes of `step` that the target does not accept, by graph and index. Adds the
    changes, and the nodes that cannot be replaced, with the reason."""
    calls: dict[tuple[Place, int], list[View]] = {}
    for view in step.judged.views:
        calls.setdefault((view.site.place, view.site.index), []).append(view)
    replaced: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
    for (place, index), group in calls.items():
        try:
            made = _node(step.judged, original, group)
        except CannotMend as refused:
            step.refusals.append(Refusal(group[0].site.path, str(refused)))
            continue
        if made is not None:
            replaced.setdefault(place, {})[index], change = made
            step.changes.append(change)
    return replaced


def _node(judged: JudgedModel, original: Original, group: Sequence[View]) -> tuple[list[onnx.NodeProto], Change] | None:
    """Returns the nodes that replace one node, and the change; None if the node stays. `group` has a view of the node
    for each call of the functions around it. Raises CannotMend if it cannot be replaced."""
    site = group[0].site
    for view in group:
        if not view.site.node.report.ok:
            raise CannotMend(invalid(view.site.node))
    form: Form | None = None
    names, reasons = [], []
    for rewriting in REWRITINGS:
        reason = next(filter(None, map(rewriting.needed, group)), "")
        if not reason:
            continue
        if form is None:
            form = Form.of([view.site for view in group], judged.names)
        rewriting.apply(form, group[0])
        names.append(rewriting.name)
        reasons.append(reason)
        if len(form.parts) < 2:  # one part is left: nothing is moved
            break
    if form is None:
        return None
    reason, graph = "; ".join(reasons), judged.bodies.at(site.place)
    if graph is None:
        raise CannotMend("its graph is an attribute of a function call, and other calls may pass another graph")
    nodes = form.nodes(original(graph.node[site.index]), document(names, site.path, judged.target.name, reason))
    after = tuple(node_text(node) for node in nodes)
    return nodes, Change(site.path, tuple(names), reason, (node_text(site.proto),), after)
