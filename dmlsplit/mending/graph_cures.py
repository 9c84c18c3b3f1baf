"""Wrong graphs made right: cures are chosen, the cheapest first, and kept if the graphs that come of them are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, compress, islice
from typing import Final, TypeAlias

import onnx

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.formats.onnx.protobuf import Names
from dmlsplit.mending.carriers import CARRIERS, OTHERS, Carrier
from dmlsplit.mending.editing import Replacement, names_of, node_text, outputs_of, replace_nodes
from dmlsplit.mending.judged import JudgedModel, wrong_graphs
from dmlsplit.mending.sites import Bodies, Place, Site, Spot
from dmlsplit.mending.source import SourceModel
from dmlsplit.mending.surroundings import Surroundings
from dmlsplit.mending.words import CannotMend, Change, Refusal, document
from dmlsplit.onnxruntime.cures import Fault, cures_of
from dmlsplit.onnxruntime.findings import GraphFinding

_ROUNDS: Final = 24
"""Choices of cures that are tried, of all faults at once."""
_BUFFER: Final = re.compile(r"\btemporary \d+")
"""The name of memory in a message; its number is another one after another cure."""

_Key: TypeAlias = tuple[Fault, str, str, int]
"""A fault, the path of the node that does it, and what happens: a cure may leave another of them at the same node. The
number is for nodes of one name."""
_PLACES: Final = 4
"""Ways to apply one cure that are tried, the nearest first."""
_Option: TypeAlias = tuple[str, Carrier, int]
"""A cure's name, what carries it out, and which of its ways."""


@dataclass
class Cured:
    """A model whose graphs are right, unless something is refused; `unknown` says of which it is not known."""

    judged: JudgedModel
    changes: list[Change]
    refusals: list[Refusal]
    unknown: list[Refusal]


def cured(source: SourceModel, model: JudgedModel) -> Cured:
    """The model with the cures that make its graphs right in a session of the target's runtime.

    What the session says of its Splits and Concats is asked once nothing is wrong with the graphs that are known.
    """
    chosen: dict[_Key, int] = {}
    asked: dict[_Key, GraphFinding] = {}
    work: _Work | None = None
    trial = Cured(model, [], [], [])
    for _ in range(_ROUNDS + len(model.sites)):
        severe = [each.diagnostic.severity is Severity.ERROR for each in trial.judged.findings]
        wrong = [*compress(trial.judged.findings, severe)] or wrong_graphs(trial.judged.views)
        if not wrong:
            trial.unknown = [Refusal(each.path, each.diagnostic.message) for each in trial.judged.findings]
            return trial
        alike: Counter[tuple[Fault, str, str]] = Counter()
        for finding in wrong:
            if finding.fault is None:
                return _refused(model, finding)
            name = finding.fault, finding.node, _BUFFER.sub("memory", finding.happens)
            key = *name, alike[name]
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
    """A model, and what cures make of it."""

    def __init__(self, source: SourceModel, judged: JudgedModel) -> None:
        self._source = source
        self._judged = judged
        self._spots = judged.spots
        self._names = names_of(judged.model)
        self._sites: dict[Place, dict[int, list[Site]]] = {}
        for site in judged.sites:
            self._sites.setdefault(site.place, {}).setdefault(site.index, []).append(site)
        self._bodies = Bodies(judged.model)
        self._around: dict[Place, Surroundings | None] = {}

    def tried(self, chosen: dict[_Key, int], asked: dict[_Key, GraphFinding]) -> Cured:
        """The model with the chosen cure of each fault, or the next one that can be applied; `chosen` is moved on.

        A fault whose cures would all change nodes that another cure changes is left to the next cure of that one.
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
        """Also the fault that nothing is left for, and the one that stands in its way."""
        taken = Names(self._names)
        edits: dict[Place, dict[int, list[onnx.NodeProto]]] = {}
        owners: dict[Spot, _Key] = {}
        done: dict[_Key | None, tuple[Fault, str]] = {}
        trial = Cured(self._judged, [], [], [])
        for key, finding in asked.items():
            options = list(_options(finding))
            blocking: _Key | None = None
            while chosen[key] < len(options):
                name = options[chosen[key]][0]
                for place, made in self._made(key, finding, options[chosen[key]], taken):
                    if {done.get(owners.get((place, i))) for i in made} == {(finding.fault, name)}:
                        break  # the same is done against another of them: another call of a function, for one
                    others = [owners[place, i] for i in made if (place, i) in owners]
                    blocking = blocking or next(iter(others), None)
                    if others:
                        continue
                    owners.update({(place, i): key for i in made})
                    done[key] = key[0], name
                    edits.setdefault(place, {}).update({i: list(nodes) for i, nodes in made.items()})
                    trial.changes.append(self._change(finding, name, place, made))
                    break
                else:
                    chosen[key] += 1
                    continue
                break
            else:
                trial.refusals.append(Refusal(finding.path, f"no cure helps: {finding.diagnostic.message}"))
                return trial, key, blocking
        model = deepcopy(self._judged.model)
        replace_nodes(model, edits)
        trial.judged = self._judged.changed(model)
        return trial, None, None

    def _made(
        self, key: _Key, finding: GraphFinding, option: _Option, taken: Names
    ) -> Iterator[tuple[Place, Replacement]]:
        """The nodes that a cure adds, at each place that the finding may mean: of several alike the next one first."""
        name, carrier, way = option
        spots, first = self._spots.get(finding.node, ()), key[-1]
        for place, index in (*spots[first:], *spots[:first]):
            around = self._surroundings(place)
            if around is None:
                continue
            around.taken = taken
            around.document = document([name], finding.path, self._judged.target.name, _happens(finding))
            try:
                made = next(islice(carrier(around, index), way, None), None)
            except CannotMend:
                continue
            if made and all(map(around.is_valid, chain.from_iterable(made.values()))):
                yield place, made

    def _surroundings(self, place: Place) -> Surroundings | None:
        if place not in self._around:
            graph = self._bodies.at(place)
            known = None
            if graph is not None and place in self._sites:
                known = Surroundings(graph.node, outputs_of(graph), self._sites[place], self._source.original)
            self._around[place] = known
        return self._around[place]

    def _change(self, finding: GraphFinding, name: str, place: Place, made: Replacement) -> Change:
        around = self._around[place]
        assert around is not None
        before = tuple(node_text(around.nodes[i]) for i in sorted(made))
        return Change(finding.path, (name,), _happens(finding), before, tuple(_texts(made)))


def _texts(made: Replacement) -> Iterator[str]:
    return (node_text(node) for index in sorted(made) for node in made[index])


def _happens(finding: GraphFinding) -> str:
    """The message without the releases and the cures."""
    return finding.diagnostic.message.partition("; ")[0]


def _options(finding: GraphFinding) -> Iterator[_Option]:
    """The cures of a finding that can be carried out: at the nearest place first, there the cheapest first."""
    assert finding.fault is not None
    for name, carrier in OTHERS.get(finding.fault, ()):
        yield name, carrier, 0
    for way in range(_PLACES):
        for cure in cures_of(finding.fault, finding.directml):
            found = CARRIERS.get((cure.fault, cure.name))
            if found is not None:
                yield cure.name, found, way
