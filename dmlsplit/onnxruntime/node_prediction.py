"""Predicts, from the facts of one node, how ONNX Runtime's DirectML execution provider runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NoReturn

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.descriptors.dims import Shape, is_static, numbers
from dmlsplit.descriptors.enums import ExecutionFlags
from dmlsplit.descriptors.location import Location
from dmlsplit.onnxruntime.facts import LENGTHS_ARE_INPUT, FirstRun, LengthsFrom, RuntimeFacts, Sizes
from dmlsplit.onnxruntime.model_refusals import NO_LENGTHS, refusals
from dmlsplit.onnxruntime.node_shapes import output_shapes, static_axis
from dmlsplit.onnxruntime.submitted import operator_of, owned_by_directml
from dmlsplit.rules import RULES
from dmlsplit.rules.onnxruntime import Habit
from dmlsplit.system.records import entity
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions
from dmlsplit.targets.target import target_of
from dmlsplit.verdicts.runtime_answers import CompileCall, Outcome, RuntimeAnswer
from dmlsplit.verdicts.validation import evaluate

INIT: Final = "init"
RUN: Final = "run"
LEAST_NODES_FOR_VOLATILE: Final = 5
"""The minimum number of nodes of a fused graph that is compiled with DESCRIPTORS_VOLATILE."""

_ON_CPU: Final = ("STRING", "BFLOAT16")
MAX_RANK: Final = 8
"""The highest rank of DirectML's tensors."""


def diagnostic(id: str, path: str, message: str) -> Diagnostic:
    """Returns a diagnostic of the rule with this id, in the scope onnxruntime/, about the node at `path`: `message`,
    followed by the rule's cure if it has one."""
    rule = RULES[id]
    cure = f"; {rule.cure}" if isinstance(rule, Habit) and rule.cure else ""
    return rule.diagnostic(Location(node=path), f"{message}{cure}")


@lru_cache(maxsize=1024)
def _validated(desc: OperatorDesc, release: Release) -> Report:
    """Returns the report of a release on a descriptor. Cached: runtimes that ship the release, and equal nodes, call it
    repeatedly."""
    return evaluate(desc, target_of(release))


class _Stop(Exception):
    """Ends a prediction with an answer."""

    def __init__(self, answer: RuntimeAnswer) -> None:
        super().__init__()
        self.answer = answer


@entity
class PlacementByFacts:
    """The placement of a node, judged by its own facts.

    `in_graph` is True if the node can be part of a fused graph. `answer` is the whole answer if no operator is created,
    else None.
    """

    in_graph: bool = False
    answer: RuntimeAnswer | None = None


def predict(
    facts: RuntimeFacts,
    runtime: Runtime,
    *,
    path: str = "",
    first_run: FirstRun | None = None,
    options: SessionOptions = DEFAULTS,
    graph_nodes: int | None = 1,
) -> RuntimeAnswer:
    """Returns the answer of `runtime` about a node. `path` is the node's name in diagnostics.

    `first_run` has the sizes of the first Run, None if they are unknown. `graph_nodes` is the number of nodes of the
    fused graph that contains the node, including the node; None if it is unknown whether that is below 5.
    """
    least = None if graph_nodes is None else min(graph_nodes, LEAST_NODES_FOR_VOLATILE)
    answer = _predicted(facts, runtime, first_run, options, least)
    if not answer.diagnostics:
        return answer
    here = Location(node=path)
    return replace(answer, diagnostics=tuple([replace(each, location=here) for each in answer.diagnostics]))


@lru_cache(maxsize=1024)
def _predicted(
    facts: RuntimeFacts, runtime: Runtime, first_run: FirstRun | None, options: SessionOptions, graph_nodes: int | None
) -> RuntimeAnswer:
    """Returns the answer without the node's name; nodes with equal facts share it."""
    found = _Predictor(facts, runtime, first_run, options, graph_nodes)
    try:
        return found.answer()
    except _Stop as stop:
        return stop.answer


@lru_cache(maxsize=1024)
def placement_by_facts(
    facts: RuntimeFacts, runtime: Runtime, *, options: SessionOptions = DEFAULTS
) -> PlacementByFacts:
    """Returns the placement of a node by its own facts, found by the steps of `predict` before its operator is created:
    with an `answer` if one of these steps decides it."""
    found = _Predictor(facts, runtime, None, options, 1)
    try:
        found.before_operators()
        return PlacementByFacts(in_graph=found.in_graph())
    except _Stop as stop:
        return PlacementByFacts(answer=stop.answer)


@dataclass(slots=True, eq=False, repr=False)
class _Predictor:
    """Follows one node through session creation."""

    facts: RuntimeFacts
    runtime: Runtime
    first_run: FirstRun | None
    options: SessionOptions
    graph_nodes: int | None
    notes: list[Diagnostic] = field(default_factory=list)

    # The steps of a node, in ONNX Runtime's order.

    def answer(self) -> RuntimeAnswer:
        if self.runtime.like:
            message = f"{self.runtime.version} is assumed to behave like {self.runtime.like}"
            self._note("onnxruntime/version-not-observed", message)
        self.before_operators()
        self._check_rank(self.facts.stored_rank, INIT)
        in_graph = self.in_graph()
        if not in_graph and not self._is_made_at_init():
            return self._at_run()
        sizes = [numbers(shape) for shape in self.facts.shapes]
        self._check_rank(len(sizes[0]), INIT)
        self._check_count(INIT if in_graph else RUN)
        lengths = self._lengths(sizes[0])
        if in_graph:
            return self._in_graph(sizes, lengths)
        self._note("onnxruntime/outside-graph", "it is not part of a fused graph")
        return self._alone(sizes, lengths, INIT)

    def before_operators(self) -> None:
        """Follows session creation up to the creation of operators: loading, folding, the choice of a provider, shapes.
        Returns nothing if the node gets that far on DirectML; else raises _Stop with the answer."""
        if self.runtime.no_session:
            self._fail("onnxruntime/no-device", self.runtime.no_session)
        if not self.runtime.observed:
            message = f"the behaviour of {self.runtime.version} was not observed"
            self._unknown("onnxruntime/version-not-observed", message)
        for name, message in refusals(self.facts, self.runtime):
            self._fail(name, message)
        self._place()
        self._check_shapes()

    def _place(self) -> None:
        facts, options = self.facts, self.options
        if facts.folded:
            message = "it is folded when the session is created: its inputs are constants, or only its shape is read"
            self._stop(Outcome.CPU, "onnxruntime/folded", message, INIT)
        reason = None
        if facts.data_type in _ON_CPU:
            reason = ("onnxruntime/type-on-cpu", f"DirectML has no kernel for {facts.data_type}")
        elif facts.data_type == "DOUBLE" and not options.float64:
            reason = ("onnxruntime/double-on-cpu", "the device does not support DOUBLE")
        elif facts.prefers_cpu:
            reason = ("onnxruntime/prefers-cpu", "it computes sizes")
        if reason is None:
            return
        if not options.cpu_fallback:
            self._fail("onnxruntime/cpu-fallback-disabled", f"{reason[1]}, and the fallback to the CPU is disabled")
        self._stop(Outcome.CPU, *reason)

    def _check_shapes(self) -> None:
        if not self.facts.shapes_known and not all(is_static(shape) for shape in self.facts.shapes):
            self._unknown("onnxruntime/context-unknown", "the shapes that ONNX Runtime infers here are not known")
        if self.facts.given in (LengthsFrom.CONSTANT, LengthsFrom.OUTER) and self.facts.lengths is None:
            message = "the lengths are constant, but computed in a way that is not modelled"
            self._unknown("onnxruntime/context-unknown", message)

    def in_graph(self) -> bool:
        """Returns True if the partitioner puts the node into a fused graph. Raises _Stop if session creation fails
        because its sizes do not fit 32 bits."""
        facts = self.facts
        if not self.options.graph_fusion or facts.given in (LengthsFrom.COMPUTED, LengthsFrom.OUTER):
            return False
        inputs = self._narrowed(facts.shapes)
        if inputs is None or any(0 in shape for shape in inputs):
            return False
        outputs = self._narrowed(output_shapes(self.facts))
        # output 1 is skipped if input 1, the lengths, is a constant that the CPU reads
        skipped = {1} if facts.is_split and facts.opset >= LENGTHS_ARE_INPUT else set()
        places = [i for i in range(facts.outputs) if i not in facts.omitted]
        return outputs is not None and not any(
            0 in shape for i, shape in zip(places, outputs, strict=True) if i not in skipped
        )

    def _in_graph(self, sizes: Sequence[Sizes], lengths: Sizes) -> RuntimeAnswer:
        if self.facts.is_split and 0 in self._named(lengths):
            self._fail("onnxruntime/second-output-empty", "only output 1 has no elements")
        desc = operator_of(self.facts, sizes, lengths)
        operators = [desc, owned_by_directml(desc, self.facts.owned)] if any(self.facts.owned) else [desc]
        answer = self._created(operators, lengths, INIT)
        if answer.outcome is not Outcome.DML:
            return answer
        flags = ExecutionFlags.NONE
        if self.options.compute_only or (self.graph_nodes or 0) >= LEAST_NODES_FOR_VOLATILE:
            flags = ExecutionFlags.DESCRIPTORS_VOLATILE
        elif self.graph_nodes is None:
            return replace(answer, compile=CompileCall("CompileGraph", None))
        return replace(answer, compile=CompileCall("CompileGraph", int(flags)))

    def _is_made_at_init(self) -> bool:
        """True if a kernel outside fused graphs is created with the session: all its sizes are then known."""
        facts = self.facts
        if not all(is_static(shape) for shape in facts.shapes):
            return False
        if not facts.is_split or facts.opset < LENGTHS_ARE_INPUT:
            return True
        if facts.given is LengthsFrom.OUTER:
            return self.runtime.traits.outer_lengths_are_known
        return facts.given is LengthsFrom.CONSTANT

    def _at_run(self) -> RuntimeAnswer:
        facts, run = self.facts, self.first_run
        if facts.gives_no_lengths:
            self._fail("onnxruntime/lengths-do-not-fit", NO_LENGTHS, RUN)
        self._check_count(RUN)
        sizes = [shape for shape in run.shapes if shape is not None] if run is not None else []
        if len(sizes) != len(facts.shapes):
            if not all(is_static(shape) for shape in facts.shapes):
                self._check_rank(facts.rank or 0, RUN)  # for any sizes, also without elements
                self._unknown("onnxruntime/sizes-unknown", "sizes are unknown until the first Run", RUN)
            sizes = [numbers(shape) for shape in facts.shapes]
        lengths = self._run_lengths(sizes[0])
        if lengths is None:
            self._check_rank(len(sizes[0]), RUN)
            self._unknown("onnxruntime/sizes-unknown", "the lengths are computed at run time", RUN)
        self._note("onnxruntime/made-at-run", "it is not part of a fused graph")
        self._check_rank(len(sizes[0]), RUN)
        if self._has_empty(sizes, lengths):
            return self._skipped(sizes)
        if facts.is_split:
            self._check_run_lengths(sizes[0], lengths)
        return self._alone(sizes, lengths, RUN)

    # Tensors and lengths.

    def _lengths(self, sizes: Sizes) -> Sizes:
        """Returns the lengths of a Split as the kernel computes them from the sizes of its input; () for a Concat."""
        facts = self.facts
        if not facts.is_split:
            return ()
        size, count = sizes[self.facts.axis_of(len(sizes))], facts.outputs
        if facts.given is LengthsFrom.EQUAL:
            return (size // count,) * count
        if facts.given is LengthsFrom.NUM_OUTPUTS:
            chunk = -(-size // count)
            return (*(chunk,) * (count - 1), size - chunk * (count - 1))
        assert facts.lengths is not None
        return facts.lengths

    def _run_lengths(self, sizes: Sizes) -> Sizes | None:
        if self.facts.given in (LengthsFrom.COMPUTED, LengthsFrom.DEFAULT):
            return self.first_run.lengths if self.first_run is not None else None
        if self.facts.given is LengthsFrom.OUTER and self.facts.lengths is None:
            return None
        return self._lengths(sizes)

    def _check_run_lengths(self, sizes: Sizes, lengths: Sizes) -> None:
        size = sizes[self.facts.axis_of(len(sizes))]
        if min(lengths) < 0 and self._negative_is_inferred():
            self._fail("onnxruntime/negative-length", f"the last part would have length {min(lengths)}", RUN)
        if sum(lengths) != size or len(lengths) != self.facts.outputs:
            message = f"the lengths {list(lengths)} do not add up to the axis size {size}"
            self._fail("onnxruntime/lengths-do-not-fit", message, RUN)

    def _check_count(self, at: str) -> None:
        """The kernel of a Split takes a num_outputs only if it is the number of outputs."""
        count, outputs = self.facts.num_outputs, self.facts.outputs
        if count is not None and count != outputs:
            self._fail("onnxruntime/lengths-do-not-fit", f"num_outputs is {count}, but there are {outputs} outputs", at)

    def _negative_is_inferred(self) -> bool:
        """True if shape inference finds a negative length: Run allocates no such output."""
        inferred = self.facts.given is LengthsFrom.NUM_OUTPUTS and static_axis(self.facts) is not None
        return inferred and not all(is_static(shape) for shape in self.facts.shapes)

    def _narrowed(self, shapes: Sequence[Shape | None]) -> list[Sizes] | None:
        """Returns the shapes, if all are static; None if one is not. Raises _Stop for a negative size or one beyond 32
        bits, which makes session creation fail."""
        found = []
        for shape in shapes:
            sizes = []
            for dim in shape if shape is not None else (None,):
                if not isinstance(dim, int):
                    return None
                if dim < 0:
                    self._fail("onnxruntime/negative-length", f"a part would have length {dim}")
                if dim > 0xFFFFFFFF:
                    self._fail("onnxruntime/size-beyond-32-bits", f"a size is {dim}")
                sizes.append(dim)
            found.append(tuple(sizes))
        return found

    def _named(self, lengths: Sizes) -> Sizes:
        """Returns the lengths of the outputs that have a name; the others get no tensor."""
        return tuple([length for i, length in enumerate(lengths) if i not in self.facts.omitted])

    def _has_empty(self, sizes: Sequence[Sizes], lengths: Sizes) -> bool:
        if self.facts.is_split:
            return 0 in sizes[0] or 0 in self._named(lengths)
        # the size of the whole is computed in 32 bits
        total = sum(shape[self.facts.axis_of(len(shape))] for shape in sizes)
        return all(0 in shape for shape in sizes) or total % 2**32 == 0

    # Descriptors.

    def _alone(self, sizes: Sequence[Sizes], lengths: Sizes, at: str) -> RuntimeAnswer:
        """Returns the answer about an operator that is created outside fused graphs; `at`, the event that creates it,
        is part of the answer."""
        if self._has_empty(sizes, lengths):
            return self._skipped(sizes)
        kept = [shape for shape in sizes if 0 not in shape] if not self.facts.is_split else sizes
        if len(kept) < len(sizes):
            message = f"{len(sizes) - len(kept)} of {len(sizes)} inputs have no elements"
            self._note("onnxruntime/empty-inputs-left-out", message)
        answer = self._created([operator_of(self.facts, kept, lengths)], lengths, at)
        if answer.outcome is not Outcome.DML:
            return answer
        half = self.facts.data_type == "FLOAT16"
        flags = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION if half else ExecutionFlags.NONE
        return replace(answer, compile=CompileCall("CompileOperator", int(flags)))

    def _created(self, operators: Sequence[OperatorDesc], lengths: Sizes, at: str) -> RuntimeAnswer:
        """Returns the answer after CreateOperator of each operator, up to the first refused one."""
        hresults: Sizes = ()
        for i, desc in enumerate(operators):
            report = _validated(desc, self.runtime.release)
            hresults += (int(report.hresult or 0),)
            if report.ok:
                continue
            name = "onnxruntime/refused-by-directml"
            found = "; ".join(diagnostic.message for diagnostic in report.errors[:2])
            if self.facts.omitted:
                name, found = "onnxruntime/output-omitted", f"output {self.facts.omitted[0]} has no name"
            elif self.facts.given is LengthsFrom.NUM_OUTPUTS and min(lengths) < 0:
                name, found = "onnxruntime/negative-length", "a negative length reaches DirectML modulo 2^32"
            self._note(name, found)
            return self._ended(_failure(at), at, operators[: i + 1], hresults)
        return self._ended(Outcome.DML, at, operators, hresults)

    # Ends.

    def _check_rank(self, rank: int, at: str) -> None:
        if rank > MAX_RANK:
            self._fail("onnxruntime/rank", f"rank {rank} exceeds {MAX_RANK}", at)

    def _skipped(self, sizes: Sequence[Sizes]) -> RuntimeAnswer:
        if self.facts.is_split and 0 not in sizes[0]:
            self._note(
                "onnxruntime/empty-part",
                "a part has no elements: nothing is submitted, and none of the parts are written",
            )
        else:
            self._note("onnxruntime/empty-tensor", "no tensor has elements: nothing is submitted")
        return self._ended(Outcome.DML)

    def _ended(
        self, outcome: Outcome, at: str | None = None, operators: Sequence[OperatorDesc] = (), hresults: Sizes = ()
    ) -> RuntimeAnswer:
        return RuntimeAnswer(self.runtime, outcome, at, tuple(operators), hresults, diagnostics=tuple(self.notes))

    def _note(self, name: str, message: str) -> None:
        self.notes.append(diagnostic(name, "", message))

    def _stop(self, outcome: Outcome, name: str, message: str, at: str | None = None) -> NoReturn:
        self._note(name, message)
        raise _Stop(self._ended(outcome, at))

    def _unknown(self, name: str, message: str, at: str | None = None) -> NoReturn:
        self._stop(Outcome.UNKNOWN, name, message, at)

    def _fail(self, name: str, message: str, at: str = INIT) -> NoReturn:
        self._stop(_failure(at), name, message, at)


def _failure(at: str) -> Outcome:
    return Outcome.SESSION_FAILS if at == INIT else Outcome.RUN_FAILS
