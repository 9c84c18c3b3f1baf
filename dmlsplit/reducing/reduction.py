"""A reduced model and everything known about it, as a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace

import onnx

from dmlsplit.descriptors.diagnostics import SCHEMA, Severity
from dmlsplit.models.given import symbols_of
from dmlsplit.onnxruntime.explaining import Explanation, explain
from dmlsplit.reducing.classes import NEW, SESSION_FAILS
from dmlsplit.reducing.commands import CommandCheck
from dmlsplit.reducing.computed import Computed, by_directml, by_onnx, inputs_of
from dmlsplit.reducing.cutting import node_count, with_shapes
from dmlsplit.reducing.findings import Finding, Question, findings_of
from dmlsplit.reducing.reducer import Check, Reducer, SameClass
from dmlsplit.reducing.weights import Original, Seed, Source, filled, opened, seeds_for, tensors_of
from dmlsplit.rules import RULES
from dmlsplit.rules.onnxruntime import INFERENCE_FAILS
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.targets.runtime_versions import Runtime


class NothingWrongError(InputError):
    """The model has no finding to reduce it for."""


@record
class Reduction:
    """A model, reduced as long as it was still wrong.

    `rule` is the class of the fault: the id of a rule; "session-fails" if session creation fails for a reason without a
    rule; "new" if only the caller's check says that the model is wrong, and `finding` is then None.
    """

    rule: str
    finding: Finding | None
    runtime: Runtime
    model: onnx.ModelProto
    """The reduced model with its weights."""
    nodes_before: int
    nodes: int
    """The number of remaining nodes, including those of graphs in nodes."""
    checks: int
    """The number of models that were checked."""
    unclear: int
    """The number of checked models that the check could not judge."""
    seeds: Mapping[str, Seed]
    """The seeds of weights, by the names of tensors."""
    inputs: Computed
    expected: Computed
    """What ONNX computes from the inputs."""
    predicted: Computed
    """What DirectML computes from them."""
    explanation: Explanation | None = None
    """The explanation of the node at fault."""
    others: tuple[str, ...] = field(default=())
    """The other classes of the original's findings, the most serious first."""
    is_ended: bool = False
    """True if the reduction was ended before its end, so that the model may not be the smallest one."""

    @property
    def is_error(self) -> bool:
        """True if the model is refused or computed wrong, by a finding of severity error or by the caller's check."""
        return self.finding is None or self.finding.severity is Severity.ERROR

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict; all keys are always present."""
        found = self.finding
        return {
            "schema": SCHEMA,
            "class": self.rule,
            "severity": None if found is None else str(found.severity),
            "node": None if found is None else found.node,
            "message": None if found is None else found.message,
            "runtime": self.runtime.version,
            "nodes_before": self.nodes_before,
            "nodes": self.nodes,
            "checks": self.checks,
            "unclear": self.unclear,
            "ended": self.is_ended,
            "others": list(self.others),
            "weights": [{"name": name, **seed._asdict()} for name, seed in self.seeds.items()],
            "inputs": {"names": list(self.inputs.arrays), "why": self.inputs.why},
            "onnx": {"names": list(self.expected.arrays), "why": self.expected.why},
            "directml": {"names": list(self.predicted.arrays), "why": self.predicted.why},
        }


def reduced(
    source: Source,
    question: Question,
    rule: str | None,
    check: Sequence[str] | Callable[[onnx.ModelProto], bool] | None,
    timeout: float,
    seed: int,
    allow_paths: Iterable[str | os.PathLike[str]],
    progress: Callable[[str], None],
    ended: Callable[[Reduction], None],
) -> Reduction:
    """Returns the reduction of a model; arguments and errors are those of dmlsplit.reducing.reduce."""
    with opened(source, tuple(allow_paths)) as original, _check_of(check, original, seed, timeout) as asked:
        model = original.model
        found = _findings(model, question, needed=asked is None)
        chosen = _chosen(found, rule, needed=asked is None)
        own: Check = asked or SameClass(question, _identity(chosen))
        before = node_count(model)
        nodes = f"{before} node{'s' * (before != 1)}"
        first = f"{nodes}: {_named(chosen)}" if chosen is not None else nodes
        if isinstance(asked, CommandCheck):
            asked.begin(source)
        progress(first)
        reducer = Reducer(model, question, own, progress)
        if not isinstance(asked, CommandCheck) and not reducer.is_wrong(model):
            raise InputError("the check says that the model is right: there is nothing to reduce")
        try:
            reducer.reduce(None if chosen is None else chosen.node)
        except BaseException as error:
            if not isinstance(error, Exception) and node_count(reducer.smallest) < before:
                ended(_so_far(reducer, original, seed, asked, chosen, question, before))
            raise
        small = replace(question, inputs=with_shapes(question.inputs, reducer.shapes))
        seeds = _seeds(reducer, original, seed, asked)
        made = filled(reducer.model, original, seeds)
        left = _findings(made, small, needed=False)
        class_ = None if chosen is None else _class_of(left, chosen, by_rule=rule is not None)
        if class_ is None or asked is not None:
            class_ = _chosen(left, rule, needed=False)
        unclear = asked.unclear if isinstance(asked, CommandCheck) else 0
        names = [tensor.name for tensor in tensors_of(made)]
        inputs = inputs_of(made, small, seed)
        expected = Computed({}, inputs.why) if inputs.why else by_onnx(made, inputs.arrays)
        why = inputs.why or expected.why
        predicted = Computed({}, why) if why else by_directml(made, small, inputs.arrays, expected.arrays)
        return Reduction(
            NEW if class_ is None else class_.rule,
            class_,
            question.runtime,
            made,
            before,
            node_count(made),
            reducer.checks,
            unclear,
            {names[number]: each for number, each in seeds.items()},
            inputs,
            expected,
            predicted,
            _explained(made, class_, small),
            tuple(dict.fromkeys(each.rule for each in found if class_ is None or each.rule != class_.rule)),
        )


def _so_far(
    reducer: Reducer,
    original: Original,
    seed: int,
    asked: Check | None,
    chosen: Finding | None,
    question: Question,
    before: int,
) -> Reduction:
    """Returns a reduction that was ended, with the smallest model so far; nothing is computed from it."""
    is_command = isinstance(asked, CommandCheck)
    seeds = asked.seeds(reducer.smallest) if isinstance(asked, CommandCheck) else seeds_for(reducer.smallest, seed)
    made = filled(reducer.smallest, original, seeds)
    names = [tensor.name for tensor in tensors_of(made)]
    nothing = Computed({}, "the reduction was ended")
    return Reduction(
        NEW if chosen is None or is_command else chosen.rule,
        None if is_command else chosen,
        question.runtime,
        made,
        before,
        node_count(made),
        reducer.checks,
        asked.unclear if isinstance(asked, CommandCheck) else 0,
        {names[number]: each for number, each in seeds.items()},
        nothing,
        nothing,
        nothing,
        is_ended=True,
    )


@contextmanager
def _check_of(
    check: Sequence[str] | Callable[[onnx.ModelProto], bool] | None, original: Original, seed: int, timeout: float
) -> Iterator[Check | None]:
    """Context manager that gives the caller's check as a Check; None if there is none."""
    if check is None:
        yield None
    elif callable(check):
        yield lambda model, shapes: bool(check(filled(model, original, seeds_for(model, seed))))
    else:
        with CommandCheck.of(check, original, seed, timeout) as made:
            yield made


def _findings(model: onnx.ModelProto, question: Question, *, needed: bool) -> Sequence[Finding]:
    """Returns the findings about a model. If the model cannot be judged, raises InputError if the findings are
    `needed`, else returns ()."""
    try:
        return findings_of(model, question)
    except InputError:
        if needed:
            raise
        return ()


def _chosen(found: Sequence[Finding], rule: str | None, *, needed: bool) -> Finding | None:
    """Returns the finding to reduce for: the first of the rule or, without a rule, the first one that is not a note.

    If there is none, raises NothingWrongError if it is `needed`, else returns None. Raises ValueError for an unknown
    rule.
    """
    if rule is not None:
        if rule not in RULES and rule not in (SESSION_FAILS, NEW):
            raise ValueError(f"there is no rule '{printable(rule)}'")
        wanted = next((each for each in found if each.rule == rule), None)
    else:
        wanted = next((each for each in found if each.severity is not Severity.NOTE), None)
    if wanted is None and needed:
        rules = list(dict.fromkeys(each.rule for each in found))
        notes = f"; findings to choose by a rule: {', '.join(rules)}" if rules else ""
        what = "it has no known fault" if rule is None else f"it has no finding of {rule}"
        raise NothingWrongError(f"{what}{notes}")
    return wanted


def _class_of(left: Sequence[Finding], chosen: Finding, *, by_rule: bool) -> Finding | None:
    """Returns what the chosen finding has become among `left`, the findings about the reduced model; None if it is
    gone. A failed inference that was not chosen `by_rule` is replaced by the first error of its node, which says what
    its shapes break."""
    alike = next((each for each in left if each.is_like(chosen.identity)), None)
    if alike is None or by_rule or alike.rule != INFERENCE_FAILS.id:
        return alike
    return next(each for each in left if (each.node, each.severity) == (alike.node, alike.severity))


def _identity(chosen: Finding | None) -> tuple[str, str]:
    assert chosen is not None
    return chosen.identity


def _named(chosen: Finding) -> str:
    place = f" at {printable(chosen.node)}" if chosen.node else ""
    return f"{chosen.rule}{place}"


def _seeds(reducer: Reducer, original: Original, seed: int, asked: Check | None) -> dict[int, Seed]:
    """Returns the seeds, by the tensors' numbers, of those weights that may be random numbers: the model is still wrong
    with them."""
    wanted = seeds_for(reducer.model, seed)
    if not wanted or isinstance(asked, CommandCheck):
        return asked.seeds(reducer.model) if isinstance(asked, CommandCheck) else wanted
    if reducer.is_wrong(filled(reducer.model, original, wanted)):
        return wanted
    kept: dict[int, Seed] = {}
    for number, each in wanted.items():
        with suppress(InputError):
            if reducer.is_wrong(filled(reducer.model, original, {**kept, number: each})):
                kept[number] = each
    return kept


def _explained(model: onnx.ModelProto, found: Finding | None, question: Question) -> Explanation | None:
    """Returns the explanation of the node at fault or, if that cannot be explained, of the first one that can; None if
    none can."""
    names = [] if found is None or not found.node else [found.node]
    names += [name for node in model.graph.node for name in (node.name, *node.output) if name]
    inputs, symbols = question.inputs, symbols_of(model.graph)
    tensors = {value.name for value in model.graph.input}
    for name in names:
        with suppress(InputError):
            return explain(
                model,
                name,
                question.runtime,
                run_shapes={name: shape for name, shape in inputs.shapes.items() if name in tensors},
                run_dims={name: size for name, size in inputs.dims.items() if name in symbols},
                free_dimensions={name: size for name, size in inputs.free_dimensions.items() if name in symbols},
                options=question.options,
            )
    return None
