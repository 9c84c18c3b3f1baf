"""What ONNX Runtime did with a model beside what dmlsplit predicts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.formats import json as operator_json
from dmlsplit.onnxruntime import Outcome, RuntimeAnswer, SessionOptions
from dmlsplit.onnxruntime.answers import NodeOnRuntime
from dmlsplit.onnxruntime.prediction import on_onnxruntime
from tests.onnxruntime.models import Sample

Record: TypeAlias = Mapping[str, Any]
"""What the harness answers (harness/main.cpp)."""


class Submitted(NamedTuple):
    """A descriptor that reached CreateOperator."""

    operator: OperatorDesc
    hresult: int
    at: str


class Compiled(NamedTuple):
    """An operator that was compiled, alone or in a graph."""

    operator: OperatorDesc
    at: str
    call: str
    flags: int


@dataclass
class Observed:
    """What the record of a model says of its Splits and Concats."""

    session: bool
    ran: bool | None
    submitted: set[Submitted] = field(default_factory=set)
    compiled: set[Compiled] = field(default_factory=set)
    on_cpu: int | None = 0
    """Splits and Concats on the CPU; None: all of them."""
    error: str = ""


def observed(record: Record) -> Observed:
    """The record in the words of the predictions."""
    found = Observed(bool(record.get("session")), record.get("ran"), error=record.get("error", ""))
    at, operators = "init", {}
    for event in record.get("events", ()):
        match event["call"]:
            case "Run":
                at = "run"
            case "CreateOperator":
                operator = operator_of(event["desc"])
                if operator is not None and not _is_of_sequence(operator):
                    operators[event["id"]] = operator
                    found.submitted.add(Submitted(operator, int(event["hr"], 16), at))
            case "CompileOperator" if event["id"] in operators and event["hr"] == "0x00000000":
                found.compiled.add(Compiled(operators[event["id"]], at, "CompileOperator", event["flags"]))
            case "CompileGraph" if event["hr"] == "0x00000000":
                for node in event["nodes"]:
                    if node.get("id") in operators:
                        found.compiled.add(Compiled(operators[node["id"]], at, "CompileGraph", event["flags"]))
    provider = ""
    if any(line.strip().startswith("All nodes placed on [CPU") for line in record.get("placement") or ()):
        found.on_cpu = None
    for line in record.get("placement") or ():
        placed = re.search(r"placed on \[(\w+)\]", line)
        if placed:
            provider = placed[1]
        elif (
            found.on_cpu is not None and provider == "CPUExecutionProvider" and re.match(r"\s+(Split|Concat) \(", line)
        ):
            found.on_cpu += 1
    return found


def _is_of_sequence(operator: OperatorDesc) -> bool:
    """Whether a Join is that of a ConcatFromSequence: those of Concats have at least four dimensions."""
    if not isinstance(operator, JoinOperatorDesc) or operator.output_tensor is None:
        return False
    return len(operator.output_tensor.sizes or ()) < 4


def operator_of(desc: Mapping[str, Any]) -> OperatorDesc | None:
    """The Split or the Join of an event; None for any other operator."""
    if desc["Type"] not in ("DML_OPERATOR_SPLIT", "DML_OPERATOR_JOIN"):
        return None
    return operator_json.loads(json.dumps(desc))


def predicted(sample: Sample, version: str) -> list[NodeOnRuntime]:
    """dmlsplit's answers for a sample."""
    run = sample.run or ()
    options = SessionOptions(
        graph_fusion=sample.config.get("ep.dml.disable_graph_fusion") != "1",
        optimization=sample.optimization,
        cpu_fallback=sample.config.get("session.disable_cpu_ep_fallback") != "1",
    )
    return on_onnxruntime(
        sample.model,
        version,
        run_shapes={**{entry.name: entry.shape for entry in run}, **sample.computed},
        run_values={entry.name: entry.values for entry in run if entry.values is not None},
        free_dimensions=sample.free_dimensions,
        options=options,
    )


class Verdict(NamedTuple):
    """Whether a prediction agrees: the disagreements, and how many nodes were answered with "unknown"."""

    disagreements: tuple[str, ...]
    nodes: int
    unknown: int


def compare(record: Record, nodes: Sequence[NodeOnRuntime]) -> Verdict:
    """A record beside the predictions for the same model."""
    found = observed(record)
    unknown = sum(_is_unknown(node.answer) and not _waits(node, found) for node in nodes)
    return Verdict(tuple(disagreements(found, nodes)), len(nodes), unknown)


def _is_unknown(answer: RuntimeAnswer) -> bool:
    return answer.outcome is Outcome.UNKNOWN or (answer.compile is not None and answer.compile.flags is None)


def _waits(node: NodeOnRuntime, found: Observed) -> bool:
    """Whether what is not known is the Run that was not asked for."""
    return found.ran is None and node.answer.at == "run"


def disagreements(found: Observed, nodes: Sequence[NodeOnRuntime]) -> Iterator[str]:
    answers = [node.answer for node in nodes]
    outcomes = Counter(answer.outcome for answer in answers)
    fails = Outcome.SESSION_FAILS in outcomes
    is_known = not any(map(_is_unknown, answers))
    if fails == found.session and (fails or is_known):
        yield f"session {'created' if found.session else 'fails'}: {found.error}"
        return
    if not found.session:
        if is_known:
            yield from _differences(found, answers, "init")
        return
    if not all(_waits(node, found) for node in nodes if _is_unknown(node.answer)):
        return
    on_cpu = sum(a.outcome is Outcome.CPU and a.at is None and not _is_merged(a) for a in answers)
    if on_cpu != (found.on_cpu if found.on_cpu is not None else sum(a.at != "init" for a in answers)):
        yield f"{'all' if found.on_cpu is None else found.on_cpu} nodes on the CPU, predicted {on_cpu}"
    run_fails = Outcome.RUN_FAILS in outcomes
    if found.ran is not None and found.ran == run_fails:
        yield f"Run {'succeeds' if found.ran else 'fails'}: {found.error}"
        return
    for at in ("init",) if found.ran is None or run_fails else ("init", "run"):
        yield from _differences(found, answers, at)


def _differences(found: Observed, answers: Sequence[RuntimeAnswer], at: str) -> Iterator[str]:
    """What is submitted and compiled at session creation, or at the first Run."""
    actual_compiled = {compiled for compiled in found.compiled if compiled.at == at}
    expected = {
        Compiled(a.operators[-1], at, a.compile.call, a.compile.flags)
        for a in answers
        if a.compile is not None and a.at == at
    }
    if actual_compiled != expected:
        extra, missing = actual_compiled - expected, expected - actual_compiled
        yield f"{at}: compiled and not predicted {_texts(extra)}, predicted and not compiled {_texts(missing)}"
    actual = {submitted for submitted in found.submitted if submitted.at == at}
    submitted = {
        Submitted(o, h, at) for a in answers if a.at == at for o, h in zip(a.operators, a.hresults, strict=True)
    }
    if actual != submitted:
        yield f"{at}: submitted {_texts(actual - submitted)}, predicted {_texts(submitted - actual)}"


def _is_merged(answer: RuntimeAnswer) -> bool:
    """Whether another node stands for this one: the record has them as one."""
    return any(diagnostic.rule == "onnxruntime/computed-once" for diagnostic in answer.diagnostics)


def _texts(found: set[Any]) -> str:
    return json.dumps([_text(entry) for entry in found])


def _text(entry: Submitted | Compiled) -> str:
    operator, *others = entry
    if isinstance(operator, SplitOperatorDesc):
        tensors = f"{_sizes(operator.input_tensor)} -> {[_sizes(part) for part in operator.output_tensors or ()]}"
    else:
        tensors = f"{[_sizes(part) for part in operator.input_tensors or ()]} -> {_sizes(operator.output_tensor)}"
    return f"{tensors} axis {operator.axis} {' '.join(map(str, others))}"


def _sizes(tensor: TensorDesc | None) -> str:
    if tensor is None or tensor.desc is None:
        return "invalid"
    return f"{list(tensor.sizes or ())}{' owned' if tensor.flags else ''}"
