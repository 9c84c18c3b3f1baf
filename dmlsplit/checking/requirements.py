"""What a project demands of whole models in ONNX Runtime: each demand that a model misses becomes an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.checking.results import Note, Result
from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.descriptors.location import Location
from dmlsplit.rules import RULES

if TYPE_CHECKING:
    from dmlsplit.verdicts.model_placements import SessionAnswer


class Requirements(NamedTuple):
    """Demands on each model and version of ONNX Runtime. `dml` is the smallest fraction of the running nodes on
    DirectML; `capture`: the model is captured as one graph; `known`: its session and placement are known."""

    dml: float | None = None
    capture: bool = False
    known: bool = False

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yields the results in order and, after those of a model, a note for each version of ONNX Runtime in which the
        model misses a demand."""
        missed: list[Note] = []
        for result in results:
            if missed and (result.report.file != missed[0].report.file or _is_head(result)):
                yield from missed
                missed = []
            yield result
            if isinstance(result, Note):
                missed += self._of_file(result)
        yield from missed

    def _of_file(self, note: Note) -> Iterator[Note]:
        for session in note.placements:
            if found := tuple(self._missed(session)):
                yield Note(Report(found, session.runtime.judged_by, None, None, note.report.file, -1))

    def _missed(self, session: SessionAnswer) -> Iterator[Diagnostic]:
        by, fails = session.runtime.judged_by, session.created is False
        if self.dml is not None and session.on_dml < self.dml:
            what = "its session fails" if fails else f"{session.on_dml:.3f} of its nodes are on DirectML"
            left = "" if fails else _of_sizes(session)
            message = f"{by}: {what}{left}; --require-dml is {self.dml:g}"
            yield _error("dml", message, f"{self.dml:g}", f"{session.on_dml:.3f}")
        if self.capture and (fails or not session.capture):
            unknown = "its session fails" if fails else "whether it is captured is not known"
            why = session.capture_prevented_by or unknown
            yield _error("capture", f"{by}: it is not captured as one graph, as --require-capture demands: {why}")
        if self.known and session.unknown:
            yield _error("known", f"{by}: --fail-on has unknown, and {session.unknown}")


def _of_sizes(session: SessionAnswer) -> str:
    """Returns how many nodes no change of the model moves to DirectML, as a remark; "" if there are none."""
    from dmlsplit.verdicts.model_placements import Why

    count = sum(node.why is Why.SIZES for node in session.nodes.values())
    return f" ({count} of the others compute{'s' * (count == 1)} sizes, which belong on the CPU)" if count else ""


def _is_head(result: Result) -> bool:
    """True for the note with which the results of a model begin."""
    return isinstance(result, Note) and bool(result.placements)


def _error(demand: str, message: str, expected: str | None = None, actual: str | None = None) -> Diagnostic:
    return RULES[f"require/{demand}"].diagnostic(Location(), message, expected=expected, actual=actual)
