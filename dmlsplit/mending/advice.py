"""Tries cures for the faults of a model's graphs on the model, before they are advised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dmlsplit.descriptors.diagnostics import Severity
from dmlsplit.mending.graph_cures import Key, Work, errors, keyed
from dmlsplit.mending.judged import JudgedModel
from dmlsplit.mending.words import Change
from dmlsplit.onnxruntime.cures import Cure, all_ways, of_run
from dmlsplit.onnxruntime.findings import GraphFinding
from dmlsplit.onnxruntime.onnx_session import OnnxSessions
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import Target

MOST_NODES: Final = 6_000
"""The most nodes of changed models that are judged for the advice on one model, for one target."""
MOST_OF_ALL: Final = 24_000
"""The same limit for all targets."""
NONE_HELPS: Final = "no single known change of the model helps"
NOT_TRIED: Final = " (not tried on this model)"


class Helps(NamedTuple):
    """A cure that helps in this model."""

    cure: Cure
    at: str = ""
    """The nodes that it changes, if they are not the nearest ones."""
    then: str = ""
    """Faults that appear after the cure, because another fault had hidden them."""


def advised(sessions: OnnxSessions, found: Sequence[GraphFinding], target: Target) -> list[GraphFinding]:
    """Returns the findings in their order, each with the first cure that, tried on the model, helps. A finding without
    a cure that helps gets none; if the model is too large to try cures, its findings are returned with a remark."""
    trials = _Trials(sessions, target)
    try:
        cures = trials.cures([each for each in found if _is_curable(each)])
    except InputError:  # of the model alone: none that the session itself would not have
        cures = {}
    keys = {id(finding): key for key, finding in keyed(found).items()}
    return [_advised(each, keys.get(id(each)), cures) for each in found]


def _is_curable(finding: GraphFinding) -> bool:
    """True if the finding is an error of a kind that a change of the model can cure."""
    return _severe(finding) and bool(all_ways(_kind(finding), finding.directml))


def _kind(finding: GraphFinding) -> FaultKind:
    assert finding.fault is not None
    return finding.fault.kind


def _severe(finding: GraphFinding) -> bool:
    return finding.fault is not None and finding.diagnostic.severity is Severity.ERROR


def _advised(finding: GraphFinding, key: Key | None, cures: dict[Key, Helps | None]) -> GraphFinding:
    if not _is_curable(finding):
        return finding
    if key is None or key not in cures:
        return finding if finding.cure is None else replace(finding, remark=NOT_TRIED)
    found = cures[key]
    if found is not None:
        said = "; ".join(filter(None, (found.at, found.then)))
        return replace(finding, cure=found.cure, remark=f" ({said})" if said else "")
    cure = of_run(_kind(finding))
    return replace(finding, cure=cure, remark="" if cure is not None else NONE_HELPS)


class _Trials:
    """A model, and models with cures, judged as often as its size allows."""

    def __init__(self, sessions: OnnxSessions, target: Target) -> None:
        self._sessions = sessions
        self._target = target
        runtime = target.graph_runtime
        assert runtime is not None
        session = sessions.of(runtime, target.session_options)
        graphs = session.graphs
        self._count = max(sum(len(graph.nodes) for graph in graphs), 1)  # including those of functions, for each call
        left = 0 if session.model.refused else min(MOST_NODES, MOST_OF_ALL - sessions.spent_on_advice)
        self._left = left // self._count
        """How many more models may be judged; 0 for one that no version loads, which no cure changes."""

    def _spend(self) -> None:
        self._left -= 1
        self._sessions.spent_on_advice += self._count

    def cures(self, found: Sequence[GraphFinding]) -> dict[Key, Helps | None]:
        """Maps the key of each finding to the cure that helps, or to None if each was tried and none helps. Findings
        for which the budget of trials did not suffice are missing."""
        if not found or self._left < 1:
            return {}
        self._judged = JudgedModel.of_sessions(self._sessions, self._target)
        self._before = _kinds(self._judged.findings)
        self._work = Work(self._judged, lambda node: node, all_ways)
        every = keyed(errors(self._judged))
        curable = {key: each for key, each in every.items() if _is_curable(each)}
        cures: dict[Key, Helps | None] = {}
        together = self._together(curable)
        if together is not None:
            return together
        for key in keyed(found):
            finding = curable.get(key)
            if finding is None:
                continue
            tried, cure = self._alone(key, finding)
            if tried:
                cures[key] = cure
        return cures

    def _together(self, curable: dict[Key, GraphFinding]) -> dict[Key, Helps | None] | None:
        """Returns the first cure of every finding in `curable`, by key, if applying all of these cures at once removes
        the faults and adds none; otherwise None."""
        chosen, asked = dict.fromkeys(curable, 0), dict(curable)
        self._spend()
        trial = self._work.tried(chosen, asked)
        if trial.refusals or asked.keys() != curable.keys():
            return None
        left = self._before - _kinds(curable.values())
        if not _kinds(trial.judged.findings) <= left:
            return None
        return {key: _helps(finding, chosen[key], trial.made_for[key]) for key, finding in curable.items()}

    def _alone(self, key: Key, finding: GraphFinding) -> tuple[bool, Helps | None]:
        """Tries the cures of one finding in order. Returns (True, the first cure that removes the fault and adds none);
        without such a cure, (True, the first that replaces the fault by others, None if none does); (False, None) if
        the budget of trials ran out before all cures were tried."""
        chosen = {key: 0}
        partly: Helps | None = None
        while self._left > 0:
            self._spend()
            trial = self._work.tried(chosen, {key: finding})
            if trial.refusals:
                return True, partly
            kind, after = _kind(finding), _kinds(trial.judged.findings)
            if after[kind] < self._before[kind]:
                helps = _helps(finding, chosen[key], trial.made_for[key])
                if after <= self._before:
                    return True, helps
                shown = self._shown(trial.judged)
                partly = partly or (helps._replace(then=shown) if shown else None)
            chosen[key] += 1
        return partly is not None, partly

    def _shown(self, judged: JudgedModel) -> str:
        """Returns text that names the faults of the changed model `judged` that the model did not have before; "" if
        the changed model has more faults, if a fault is at a new node, or if less is known of the changed model."""
        after = _kinds(judged.findings)
        new = [each for each in errors(judged) if (after - self._before)[_kind(each)]]
        if after.total() > self._before.total() or after[None] > self._before[None]:
            return ""
        if any(each.node not in self._judged.spots for each in new):
            return ""
        named = dict.fromkeys(f"{each.diagnostic.rule} at {printable(each.node, 60)}" for each in new)
        return f"then it has {', '.join(named)}"


def _helps(finding: GraphFinding, chosen: int, change: Change) -> Helps:
    cure, places = all_ways(_kind(finding), finding.directml)[chosen]
    return Helps(cure, "" if places == range(1) else "; ".join(change.before))


def _kinds(found: Iterable[GraphFinding]) -> Counter[FaultKind | None]:
    """Returns the number of errors of each kind of fault; the key None counts the findings that say that something is
    not known."""
    return Counter(
        None if each.fault is None else each.fault.kind for each in found if each.fault is None or _severe(each)
    )
