"""Cures wrong graphs: tries cures, the cheapest first, and keeps them where the graphs of the changed model are
right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, compress
from typing import Final, TypeAlias

import onnx

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.mending.cures import change_of
from dmlsplit.mending.editing import Replacement, names_of, node_text, outputs_of, replace_nodes
from dmlsplit.mending.judged import JudgedModel, wrong_graphs
from dmlsplit.mending.sites import Bodies, Place, Site, Spot
from dmlsplit.mending.source import SourceModel
from dmlsplit.mending.surroundings import Surroundings
from dmlsplit.mending.words import CannotMend, Change, Refusal, document
from dmlsplit.onnxruntime.cures import Cure, ways
from dmlsplit.onnxruntime.findings import GraphFinding
from dmlsplit.rules.graph_faults import Fault, FaultKind, lost_tensor

_ROUNDS: Final = 24
"""The most choices of cures that are tried, over all faults."""

_Key: TypeAlias = tuple[Fault, str, int]
"""A fault without its buffer, the path of the node that does it, and a number that tells nodes of one name apart."""


@dataclass
class Cured:
    """A model whose graphs are right where `refusals` is empty; `unknown` lists the nodes whose graphs are not
    known."""

    judged: JudgedModel
    changes: list[Change]
    refusals: list[Refusal]
    unknown: list[Refusal]


def cured(source: SourceModel, model: JudgedModel) -> Cured:
    """The model with the cures that make its graphs right in a session of the target's runtime.

    The session's own answers about Splits and Concats are asked for once no fault is left in the known graphs.
    """
    chosen: dict[_Key, int] = {}
    asked: dict[_Key, GraphFinding] = {}
    work: _Work | None = None
    trial = Cured(model, [], [], [])
    for _ in range(_ROUNDS + len(model.sites)):
        severe = [each.diagnostic.severity is Severity.ERROR for each in trial.judged.findings]
        wrong = [*compress(trial.judged.findings, severe)] or wrong_graphs(trial.judged.views)
        if not wrong:
            unknown = [each for each in trial.judged.findings if each.fault is None]
            trial.unknown = [Refusal(each.path, each.diagnostic.message) for each in unknown]
            return trial
        alike: Counter[tuple[FaultKind, str]] = Counter()
        for finding in wrong:
            if finding.fault is None or not ways(finding.fault.kind, finding.directml):
                return _refused(model, finding)
            name = finding.fault.kind, finding.node
            key = finding.fault.without_buffer, finding.node, alike[name]
            alike[name] += 1
            asked.setdefault(key, finding)
            chosen[key] = chosen.get(key, -1) + 1
        work = work or _Work(source, model)
        trial.judged.release()
        trial = work.tried(chosen, asked)
        if trial.refusals:
            return trial
    return _refused(model, wrong[0])


def _refused(judged: JudgedModel, finding: GraphFinding) -> Cured:
    return Cured(judged, [], [Refusal(finding.path, f"no cure is known: {finding.diagnostic.message}")], [])


class _Work:
    """A model, and the models that cures make of it."""

    def __init__(self, source: SourceModel, judged: JudgedModel) -> None:
        self._source = source
        self._judged = judged
        self._spots = judged.spots
        self._names = names_of(judged.model)
        self._sites: dict[Place, dict[int, list[Site]]] = {}
        typed = judged.typed_sites
        self._scopes = typed.scopes
        for site in typed.found:
            self._sites.setdefault(site.place, {}).setdefault(site.index, []).append(site)
        self._bodies = Bodies(judged.model)
        self._made_for: dict[str, _Key] = {}
        """The fault whose cure made a node, by the node's name."""
        self._around: dict[Place, Surroundings | None] = {}

    def tried(self, chosen: dict[_Key, int], asked: dict[_Key, GraphFinding]) -> Cured:
        """The model with the chosen cure of each fault, or the next cure that applies; `chosen` is updated.

        Where every cure of a fault would change nodes that another cure changes, that other fault gets its next cure.
        """
        while True:
            trial, left, blocking = self._once(chosen, asked)
            if left is None or blocking is None:
                return trial
            del chosen[left], asked[left]
            chosen[blocking] += 1

    def _once(
        self, chosen: dict[_Key, int], asked: Mapping[_Key, GraphFinding]
    ) -> tuple[Cured, _Key | None, _Key | None]:
        """The model, the fault that no cure is left for, and the fault whose cure changes the same nodes."""
        taken = Names(self._names)
        edits: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
        owners: dict[Spot, _Key] = {}
        done: dict[_Key | None, tuple[FaultKind, str]] = {}
        trial = Cured(self._judged, [], [], [])
        for key, finding in asked.items():
            options = _options(finding)
            blocking: _Key | None = None
            while chosen[key] < len(options):
                cure, places = options[chosen[key]]
                for place, made in self._made(key, finding, cure, places, taken):
                    if {done.get(owners.get((place, i))) for i in made} == {(cure.fault, cure.name)}:
                        break  # this change was made for another call of the function
                    others = [owners[place, i] for i in made if (place, i) in owners]
                    blocking = blocking or next(iter(others), None)
                    if others:
                        continue
                    owners.update({(place, i): key for i in made})
                    done[key] = cure.fault, cure.name
                    edits.setdefault(place, {}).update({i: list(nodes) for i, nodes in made.items()})
                    self._made_for |= {node.name: key for nodes in made.values() for node in nodes if node.name}
                    trial.changes.append(self._change(finding, cure, place, made))
                    break
                else:
                    chosen[key] += 1
                    continue
                break
            else:
                if finding.node not in self._spots:  # another cure made the node
                    made_for = self._made_for.get(finding.node)
                    blocking = blocking or (made_for if made_for in chosen and made_for != key else None)
                trial.refusals.append(Refusal(finding.path, f"no cure helps: {finding.diagnostic.message}"))
                return trial, key, blocking
        for place, edited in edits.items():
            first = min(edited)
            edited[first] = [*self._constants_of(place, edited), *edited[first]]
        model = deepcopy(self._judged.model)
        replace_nodes(model, edits)
        trial.judged = self._judged.changed(model)
        return trial, None, None

    def _made(
        self, key: _Key, finding: GraphFinding, cure: Cure, places: range, taken: Names
    ) -> Iterator[tuple[Place, Replacement]]:
        """Yields the nodes that a cure adds at each node that the finding may mean; of several of one name, the key's
        first."""
        spots, first = self._spots.get(finding.node, ()), key[-1]
        lost = lost_tensor(key[0])
        for place, index in (*spots[first:], *spots[:first]):
            around = self._surroundings(place)
            if around is None:
                continue
            if around.taken is not taken:
                around.begin(taken)
            around.document = document([cure.name], finding.path, self._judged.target.name, finding.what)
            try:
                made = change_of(cure, places, around, index, None if lost is None else str(lost))
            except CannotMend:
                continue
            if made and all(map(around.is_valid, chain.from_iterable(made.values()))):
                yield place, made

    def _surroundings(self, place: Place) -> Surroundings | None:
        if place not in self._around:
            graph = self._bodies.at(place)
            known = None
            if graph is not None and place in self._scopes:
                scopes, sites = self._scopes[place], self._sites.get(place, {})
                known = Surroundings(graph.node, outputs_of(graph), scopes, sites, self._source.original)
            self._around[place] = known
        return self._around[place]

    def _change(self, finding: GraphFinding, cure: Cure, place: Place, made: Replacement) -> Change:
        around = self._around[place]
        assert around is not None
        before = tuple(node_text(around.nodes[i]) for i in sorted(made))
        nodes = [*self._constants_of(place, made), *(node for index in sorted(made) for node in made[index])]
        return Change(finding.path, (cure.name,), finding.what, before, tuple(map(node_text, nodes)))

    def _constants_of(self, place: Place, made: Replacement) -> list[onnx.NodeProto]:
        """The constants that changes of a graph read."""
        around = self._around[place]
        assert around is not None
        return around.constants_of(chain.from_iterable(made.values()))


def _options(finding: GraphFinding) -> Sequence[tuple[Cure, range]]:
    assert finding.fault is not None
    return ways(finding.fault.kind, finding.directml)
