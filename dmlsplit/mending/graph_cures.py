"""Cures wrong graphs: tries cures, the cheapest first, and keeps them if the graphs of the changed model are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import onnx

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.mending.cures import change_of
from dmlsplit.mending.editing import Original, Replacement, node_text, outputs_of, replace_nodes, show_output
from dmlsplit.mending.judged import JudgedModel, Step, wrong_graphs
from dmlsplit.mending.sites import Site
from dmlsplit.mending.surroundings import Surroundings
from dmlsplit.mending.words import CannotMend, Change, Refusal, document
from dmlsplit.models.places import Place, Spot
from dmlsplit.onnxruntime.cures import Cure, ways
from dmlsplit.onnxruntime.findings import GraphFinding
from dmlsplit.rules.graph_faults import Fault, FaultKind, lost_tensor

_ROUNDS: Final = 24
"""The most combinations of cures that are tried, over all faults."""

Key: TypeAlias = tuple[Fault, str, int]
"""A fault without its buffer, the path of the node at fault, and a number that distinguishes nodes of one name."""


Options: TypeAlias = Callable[[FaultKind, str], Sequence[tuple[Cure, range]]]
"""Returns the cures of a fault that a DirectML version has, in the order in which they are tried."""


@dataclass(eq=False, repr=False)
class Cured(Step):
    """A model with cures; `refusals` has the fault for which none is left."""

    made_for: dict[Key, Change] = field(default_factory=dict)
    """The change that was made for each fault."""


def cure(step: Step, original: Original) -> None:
    """Cures the wrong graphs of `step` in a session of the target's runtime, and adds the nodes whose graphs are not
    known; if no cure helps, adds the reason.

    The session's own answers about Splits and Concats are requested only after no fault is left in the known graphs.
    """
    judged = step.judged
    chosen: dict[Key, int] = {}
    asked: dict[Key, GraphFinding] = {}
    work: Work | None = None
    trial = Cured(judged)
    for _ in range(_ROUNDS + len(judged.sites)):
        wrong = errors(trial.judged) or wrong_graphs(trial.judged.views)
        if not wrong:
            step.judged = trial.judged
            step.changes += trial.changes
            unknown = [each for each in trial.judged.findings if each.fault is None]
            step.unknown += [Refusal(each.path, each.diagnostic.message) for each in unknown]
            return
        incurable = [each for each in wrong if each.fault is None or not ways(each.fault.kind, each.directml)]
        if incurable:
            wrong = incurable
            break
        for key, finding in keyed(wrong).items():
            asked.setdefault(key, finding)
            chosen[key] = chosen.get(key, -1) + 1
        work = work or Work(judged, original, ways)
        trial.judged.release()
        trial = work.tried(chosen, asked)
        if trial.refusals:
            step.refusals += trial.refusals
            return
    step.refusals.append(Refusal(wrong[0].path, f"no cure is known: {wrong[0].diagnostic.message}"))


def errors(judged: JudgedModel) -> list[GraphFinding]:
    """Returns the graph findings of severity error."""
    return [each for each in judged.findings if each.severity is Severity.ERROR]


def keyed(found: Iterable[GraphFinding]) -> dict[Key, GraphFinding]:
    """Maps a key (fault, node, number among equal ones) to each finding, in order; findings without a known fault are
    left out."""
    alike: Counter[tuple[FaultKind, str]] = Counter()
    keys: dict[Key, GraphFinding] = {}
    for finding in found:
        if finding.fault is not None:
            name = finding.fault.kind, finding.node
            keys[finding.fault.without_buffer, finding.node, alike[name]] = finding
            alike[name] += 1
    return keys


class _Changed(NamedTuple):
    """A fault at `node`, reported at `path` and described by `what`, and the cure that changes the nodes at
    `places`."""

    key: Key
    node: str
    path: str
    what: str
    cure: Cure
    places: range


class Work:
    """A model, and the models that result from cures."""

    def __init__(self, judged: JudgedModel, original: Original, options: Options) -> None:
        """Makes the Work on a judged model. `options` returns the cures of a kind of fault in a release, in the order
        to try them."""
        self._original = original
        self._options = options
        self._judged = judged
        self._spots = judged.spots
        self._names = judged.names
        self._sites: dict[Place, dict[int, list[Site]]] = {}
        typed = judged.typed_sites
        self._scopes = typed.scopes
        for site in typed.found:
            self._sites.setdefault(site.place, {}).setdefault(site.index, []).append(site)
        self._bodies = judged.bodies
        self._twins = judged.twins
        self._made_for: dict[str, Key] = {}
        """Maps the name of a node that a cure made to the cure's fault."""
        self._around: dict[Place, Surroundings | None] = {}

    def tried(self, chosen: dict[Key, int], asked: dict[Key, GraphFinding]) -> Cured:
        """Returns the model with the chosen cure of each fault in `asked`, or with the next one that applies. `chosen`
        maps each fault to the number of its cure and is updated in place.

        If every cure of a fault would change nodes that another fault's cure changes, that other fault gets its next
        cure, and the first is dropped from `chosen` and `asked`.
        """
        while True:
            trial, left, blocking = self._once(chosen, asked)
            if left is None or blocking is None:
                return trial
            del chosen[left], asked[left]
            chosen[blocking] += 1

    def _once(self, chosen: dict[Key, int], asked: Mapping[Key, GraphFinding]) -> tuple[Cured, Key | None, Key | None]:
        """Returns the model with the chosen cures, the fault for which no cure is left (None if there is none), and the
        fault whose cure changes the same nodes (None if none does). Updates `chosen`."""
        taken = Names(self._names)
        edits: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
        owners: dict[Spot, Key] = {}
        done: dict[Key | None, tuple[FaultKind, str]] = {}
        changed: dict[Spot, _Changed] = {}
        trial = Cured(self._judged)
        for key, finding in asked.items():
            assert finding.fault is not None
            options = self._options(finding.fault.kind, finding.directml)
            blocking: Key | None = None
            while chosen[key] < len(options):
                cure, places = options[chosen[key]]
                change = _Changed(key, finding.node, finding.path, finding.what, cure, places)
                for (place, index), made in self._made(change, taken):
                    if {done.get(owners.get((place, i))) for i in made} == {(cure.fault, cure.name)}:
                        # this change was already made for another call of the function
                        trial.made_for[key] = trial.made_for[owners[place, min(made)]]
                        break
                    others = [owners[place, i] for i in made if (place, i) in owners]
                    blocking = blocking or next(iter(others), None)
                    if others:
                        continue
                    done[key] = cure.fault, cure.name
                    changed[place, index] = change
                    trial.made_for[key] = self._keep(changed[place, index], place, made, owners, edits)
                    trial.changes.append(trial.made_for[key])
                    break
                else:
                    chosen[key] += 1
                    continue
                break
            else:
                if finding.node not in self._spots:  # another cure made the node
                    made_for = self._fault_behind(finding.node)
                    blocking = blocking or (made_for if made_for in chosen and made_for != key else None)
                trial.refusals.append(Refusal(finding.path, f"no cure helps: {finding.diagnostic.message}"))
                return trial, key, blocking
        for (place, index), of_twin in self._repeated(changed):
            around = self._surroundings(place)
            if around is None:
                continue
            shown = dict(around.shown)
            repeated = self._made_at(around, index, of_twin, taken)
            if repeated is None or any((place, i) in owners for i in repeated):
                around.shown = shown
            else:
                trial.changes.append(self._keep(of_twin, place, repeated, owners, edits))
        for place, edited in edits.items():
            first = min(edited)
            edited[first] = [*self._constants_of(place, edited), *edited[first]]
        model = deepcopy(self._judged.model)
        replace_nodes(model, edits)
        around, edited = self._around.get(Place(None)), edits.get(Place(None), {})
        for index, (old, new) in around.shown.items() if around is not None else ():
            if index in edited:
                show_output(model.graph, old, new)
        trial.judged = self._judged.changed(model)
        return trial, None, None

    def _keep(
        self,
        changed: _Changed,
        place: Place,
        made: Replacement,
        owners: dict[Spot, Key],
        edits: dict[Place, dict[int, list[onnx.NodeProto]]],
    ) -> Change:
        """Adds the nodes that a cure makes in the graph at `place` to `edits`, records in `owners` the fault that it
        cures, and returns the change."""
        owners.update({(place, i): changed.key for i in made})
        edits.setdefault(place, {}).update({i: list(nodes) for i, nodes in made.items()})
        self._made_for |= {node.name: changed.key for nodes in made.values() for node in nodes if node.name}
        return self._change(changed, place, made)

    def _repeated(self, changed: Mapping[Spot, _Changed]) -> Iterator[tuple[Spot, _Changed]]:
        """Yields the nodes that are equal to several nodes with the same fault, each with the change of the first of
        these. A session merges equal nodes: each of them would be at fault only after the previous one is cured."""
        first: dict[tuple[Spot, FaultKind], Spot] = {}
        for spot, each in changed.items():
            alike = self._twins.get(spot, ())
            if len(alike) < 2:
                continue
            of_first = changed[first.setdefault((alike[0][0], each.key[0].kind), spot)]
            if of_first is each:
                continue
            for twin, path in alike:
                if twin not in changed:
                    yield twin, of_first._replace(path=path, what=f"it is the same as {of_first.node}: {of_first.what}")

    def _fault_behind(self, path: str) -> Key | None:
        """Returns the fault whose cure made the node at `path`; None if no cure made it. In a path, the name of a node
        in a function follows the path of the call."""
        parts = path.split("/")
        return next((key for i in range(len(parts)) if (key := self._made_for.get("/".join(parts[i:])))), None)

    def _made(self, changed: _Changed, taken: Names) -> Iterator[tuple[Spot, Replacement]]:
        """Yields, for each node to which the fault's name may refer, its place and the nodes that the cure inserts
        there; a node to which the cure does not apply is skipped. The node with the key's number comes first."""
        spots, first = self._spots.get(changed.node, ()), changed.key[-1]
        for place, index in (*spots[first:], *spots[:first]):
            around = self._surroundings(place)
            if around is None:
                continue
            shown = dict(around.shown)
            made = self._made_at(around, index, changed, taken)
            if made is not None:
                yield (place, index), made
            around.shown = shown  # the change is not made

    def _made_at(self, around: Surroundings, index: int, changed: _Changed, taken: Names) -> Replacement | None:
        """Returns the nodes that a cure makes for the node with this index in a graph, and records in `around` which
        outputs they rename; None if it does not apply."""
        if around.taken is not taken:
            around.begin(taken)
        around.document = document([changed.cure.name], changed.path, self._judged.target.name, changed.what)
        lost = lost_tensor(changed.key[0])
        try:
            made = change_of(changed.cure, changed.places, around, index, None if lost is None else str(lost))
        except CannotMend:
            return None
        return made if made and all(map(around.is_valid, chain.from_iterable(made.values()))) else None

    def _surroundings(self, place: Place) -> Surroundings | None:
        if place not in self._around:
            graph = self._bodies.at(place)
            known = None
            if graph is not None and place in self._scopes:
                scopes, sites = self._scopes[place], self._sites.get(place, {})
                known = Surroundings(
                    graph.node, outputs_of(graph), scopes, sites, self._original, may_show=place == Place(None)
                )
            self._around[place] = known
        return self._around[place]

    def _change(self, changed: _Changed, place: Place, made: Replacement) -> Change:
        around = self._around[place]
        assert around is not None
        before = tuple(node_text(around.nodes[i]) for i in sorted(made))
        nodes = [*self._constants_of(place, made), *(node for index in sorted(made) for node in made[index])]
        return Change(changed.path, (changed.cure.name,), changed.what, before, tuple(map(node_text, nodes)))

    def _constants_of(self, place: Place, made: Replacement) -> list[onnx.NodeProto]:
        """Returns the nodes that compute the constants read by the new nodes `made` in the graph at `place`."""
        around = self._around[place]
        assert around is not None
        return around.constants_of(chain.from_iterable(made.values()))
