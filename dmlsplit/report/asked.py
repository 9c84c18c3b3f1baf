"""The answers of the real libraries, as text and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from dmlsplit.descriptors.enums import GRAPH
from dmlsplit.logs.codes import NAMES
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record

if TYPE_CHECKING:
    from dmlsplit.library.asking import LibraryAnswer, Question
    from dmlsplit.library.models import ModelAnswer

CODES: Final[Mapping[int, str]] = {**NAMES, 0x80000003: "E_INVALIDARG of older builds for Linux"}


class Asked(Protocol):
    """An answer to write."""

    def lines(self) -> list[str]: ...

    def to_dict(self) -> dict[str, object]: ...


@record
class Answered:
    """A build's answer about one operator or graph of a file."""

    file: str
    index: int
    name: str | None
    type: str
    answer: LibraryAnswer

    def lines(self) -> list[str]:
        """Returns the answer as one line of text; a reason, if there is one, follows on a second line."""
        place = f"{printable(self.file, None)}[{self.index}]" if self.index else printable(self.file, None)
        name = f" {printable(self.name)}" if self.name else ""
        found = [f"{place}: {self.type}{name}: {self.answer.build} {_said(self.answer)}"]
        if self.answer.reason is not None:
            found.append(f"  {printable(self.answer.reason, None)}")
        return found

    def to_dict(self) -> dict[str, object]:
        """Returns the answer as a dict that json.dumps accepts."""
        answer = self.answer
        return {
            "file": self.file,
            "index": self.index,
            "name": self.name,
            "operator": self.type,
            **answer.to_dict(),
            "compiled": answer.compiled,
            "temporary_bytes": answer.temporary_bytes,
            "persistent_bytes": answer.persistent_bytes,
            "dispatches": answer.dispatches,
        }


def _said(answer: LibraryAnswer) -> str:
    call = answer.call if answer.node is None else f"{answer.call} of node {answer.node}"
    if answer.ended_the_process:
        return f"crashes the process in {call}"
    if answer.hresult is None:
        return f"does not answer {call}"
    if answer.hresult != 0:
        code = CODES.get(answer.hresult)
        return f"refuses it: {call} returns 0x{answer.hresult:08X}{f' ({code})' if code else ''}"
    if not answer.compiled:
        return "accepts it"
    dispatches = "1 dispatch" if answer.dispatches == 1 else f"{answer.dispatches} dispatches"
    memory = f"{answer.temporary_bytes:,} bytes of temporary and {answer.persistent_bytes:,} of persistent memory"
    return f"accepts and compiles it: {dispatches}, {memory}"


@record
class ModelAnswered:
    """The run of a model in a version of ONNX Runtime."""

    file: str
    answer: ModelAnswer

    def lines(self) -> list[str]:
        answer, place = self.answer, f"{printable(self.file, None)}: onnxruntime {self.answer.version}"
        if not answer.created:
            found = [f"{place} does not create a session", f"  {printable(answer.failure or '', None)}"]
        else:
            counts = Counter(answer.nodes.values())
            placed = ", ".join(f"{count} {provider}" for provider, count in counts.most_common())
            found = [f"{place} creates a session: {len(answer.nodes)} nodes: {placed}"]
        found += [f"  {provider:<6} {printable(name)}" for name, provider in answer.nodes.items()]
        found += [
            f"  {provider:<6} {printable(name)} (created by the optimizer)" for name, provider in answer.added.items()
        ]
        for number, graph in enumerate(answer.graphs):
            result = "compiled" if graph.hresult == 0 else f"refused: 0x{graph.hresult:08X}"
            found.append(f"  graph {number}: {len(graph.nodes)} operators, {result}")
        found += [f"  {count} x {name}" for name, count in answer.operators.items()]
        found += [f"  refused: {name}: 0x{code:08X}" for name, code in answer.refused]
        return found

    def to_dict(self) -> dict[str, object]:
        return {"file": self.file, **self.answer.to_dict()}


def type_of(question: Question) -> str:
    """Returns the name of a question's operator in reports: "DML_OPERATOR_GEMM", or "DML_GRAPH" for a graph."""
    from dmlsplit.descriptors.any_operator import widened
    from dmlsplit.graphs import GraphDesc

    return GRAPH if isinstance(question, GraphDesc) else widened(question)[0].c_name


def _text(answers: Iterable[Asked]) -> Iterator[str]:
    for answer in answers:
        yield "\n".join(answer.lines()) + "\n"


def _jsonl(answers: Iterable[Asked]) -> Iterator[str]:
    for answer in answers:
        yield json.dumps(answer.to_dict()) + "\n"


def _json(answers: Iterable[Asked]) -> Iterator[str]:
    separator = "[\n"
    for answer in answers:
        yield separator + json.dumps(answer.to_dict())
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


WRITERS: Final[Mapping[str, Callable[[Iterable[Asked]], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
    "jsonl": _jsonl,
}
