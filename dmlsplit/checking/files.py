"""`dmlsplit check` without its command line: judges the operators of files, one file after another or several at once.

The walk of a file: judge_files, judge_file, read_entries (front_ends.py), judge_entry, and from there judge_node
(node_verdicts.py) for a node of a model, judged (judging.py) for the descriptor of an operator or a graph. judge_file
then completes the results (results.py) with what the question asks for besides (compatibility.py, asking.py), and they
go to report/formats.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from dmlsplit.checking.judging import judged
from dmlsplit.checking.question import Keep, Question, keep_all
from dmlsplit.checking.results import Judged, NodeSummary, Note, NotJudged, NotRead, Result, is_problem
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.enums import GRAPH
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.limits import Limit
from dmlsplit.rules import RULES
from dmlsplit.system.atomic_files import FileKey, inputs_noted, note_inputs
from dmlsplit.system.errors import InputError, fault_of
from dmlsplit.system.input_files import paths_of
from dmlsplit.system.printable import shortened
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, Target, find_target
from dmlsplit.verdicts.validation import faults

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dmlsplit.checking.results import JudgedEntry
    from dmlsplit.descriptors.dims import Dim
    from dmlsplit.formats.operator_files import Entry
    from dmlsplit.formats.sessions import Sessions
    from dmlsplit.targets.windows import WindowsLike, WindowsMLLike
    from dmlsplit.verdicts.model_placements import SessionAnswer

_MOST_SERIOUS: Final = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
MAX_NAME: Final = Limit.REPORT_NAME.most


class FileResults(NamedTuple):
    """The results of a file from another process; `inputs` are files that no output may replace."""

    results: list[Result]
    inputs: Mapping[FileKey, str]


def check_files(
    paths: Iterable[str | os.PathLike[str]],
    *,
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
    windows: WindowsLike = None,
    windows_ml: WindowsMLLike = None,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, int] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    assume: Iterable[str] = (),
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    executor: Executor | None = None,
) -> Iterator[Report]:
    """Yields a report on each operator of the files, in the order of the files, as `dmlsplit check` judges them.

    A file is .json, .jsonl, .onnx or .xml (OpenVINO IR). A node of a model is ok if its framework's specification
    allows it and the feature level or release accepts it, possibly rewritten. For a version of ONNX Runtime it is ok if
    neither session creation nor the first Run fails; its report is a RuntimeReport, which has the `answer`. Unreadable
    input gives a report with the rule input/malformed, and reading continues. `shapes` and `dims` apply to models that
    have such tensors and symbols, and for ONNX Runtime to the first Run; `free_dimensions` are ONNX Runtime's overrides
    at session creation. A single model must have all of them. A model without operators has one report if something is
    or may be wrong with it; a model with operators has one more, the first, if there is an error about the model as a
    whole. These reports have no operator. `assume` names properties of the device
    (dmlsplit.targets.target.ASSUMPTIONS). `allow_paths` are folders of files that models may refer to. `executor` is a
    concurrent.futures.Executor with which several files are read at once; a process pool is faster than threads.

    `windows` and `windows_ml` name targets as in find_target.

    Raises ValueError for an unknown level, release, version or assumption, for several targets at once, and for
    invalid sizes; TypeError, which names the argument and the place in it, for values of a wrong type.
    """
    from dmlsplit.checking.front_ends import Given, given_for
    from dmlsplit.formats.arguments import inputs_of

    files, folders = paths_of(paths, "paths"), paths_of(allow_paths, "allow_paths")
    target = find_target(feature_level, directml, onnxruntime, windows=windows, windows_ml=windows_ml, assume=assume)
    said = inputs_of(shapes, dims, free_dimensions=free_dimensions)
    given = Given(said.shapes, said.dims, folders, free_dimensions=said.free_dimensions)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor: an Executor is expected, not {type(executor).__name__}")
    found = judge_files(files, Question((target,), given_for(files, given), levels=False), executor)
    return (each.report for results in found for each in results if not isinstance(each, Note) or is_problem(each))


def judge_files(
    files: Iterable[str], question: Question | Callable[[str], Question], executor: Executor | None = None
) -> Iterator[Iterable[Result]]:
    """Yields an iterable of the results of each file, in the order of the files. `question` may be a function that
    returns one for each file."""
    of_file = question if callable(question) else lambda file: question
    if executor is None:
        for file in files:
            yield judge_file(file, of_file(file))
        return
    from dmlsplit.system.processes import at_once

    asked = ((file, of_file(file)) for file in files)
    for (file, about), result in at_once(executor, _judged_file, asked, lambda call: call[0] == "-"):
        yield judge_file(file, about) if result is None else _results(file, about, result)


def _results(file: str, question: Question, result: Callable[[], FileResults]) -> list[Result]:
    try:
        found = result()
    except Exception as error:
        fault = fault_of(error)
        return [_not_read(file, 0, fault, target) for target in question.targets]
    note_inputs(found.inputs)
    return found.results


def _judged_file(file: str, question: Question) -> FileResults:
    with inputs_noted() as inputs:
        return FileResults(list(judge_file(file, question)), inputs)


def judge_file(file: str, question: Question) -> Iterator[Result]:
    """Yields the results about every operator of a file by every target; the answers to one operator are consecutive.

    Any failure becomes the last result, so that one file never prevents the judging of others.
    """
    judged: set[int] = set()
    try:
        found = _judged_entries(file, question, judged)
        if question.name_fixes or question.columns:
            found = _with_rewritings(found, question)
        if question.builds:
            from dmlsplit.checking.asking import with_answers  # most questions are answered by tables

            found = with_answers(found, question.builds, question.keep)
        yield from (result for _, _, result in found)
        return
    except Exception as error:
        fault = fault_of(error)
    # Only here are the exception's frames, and all that they held, gone.
    yield from (_not_read(file, len(judged), fault, target) for target in question.targets)


def _with_rewritings(judged: Iterable[JudgedEntry], question: Question) -> Iterator[JudgedEntry]:
    """Yields the results in order. If the question asks for it, those about a refused operator or a wrong graph name
    its rewriting or its cure, if it has one (the report on a node of a model names the node's own), and those about
    nodes by the first target have columns."""
    for entry, target, result in judged:
        if isinstance(result, Judged) and question.name_fixes and (fix := _fix(entry, result.report, target)):
            result = result._replace(fix=fix)
        if isinstance(result, Judged) and question.columns and entry.node is not None and target is question.targets[0]:
            from dmlsplit.checking.compatibility import columns_of  # of pages only

            result = result._replace(columns=tuple([columns_of(entry, each) for each in question.columns]))
        yield entry, target, result


def _fix(entry: Entry, report: Report, target: Target) -> str:
    """Returns the cure of a wrong graph, or the line that names the rewriting of a refused operator; "" if there is
    neither."""
    if entry.graph is not None:
        return report.cure
    desc = entry.descriptor
    if entry.node is not None or desc is None or report.ok or faults(desc):
        return ""  # no rewriting removes faults, and searching for one imports much
    from dmlsplit.legalize import in_words
    from dmlsplit.legalize.search import legalized

    found = legalized(desc, target)
    return in_words.fix(found, entry.file, target) if found.ok else ""


def _judged_entries(file: str, question: Question, judged: set[int]) -> Iterator[JudgedEntry]:
    """Yields the result about each entry of a file by each target. Adds the number of each entry to `judged` once every
    target has judged it."""
    from dmlsplit.checking.front_ends import read_entries

    sessions: Sessions | None = None
    try:
        for number, entry in enumerate(read_entries(file, question.given)):
            sessions = entry.sessions
            results = [
                (entry, target, judge_entry(entry, target, question.keep, levels=question.levels))
                for target in question.targets
            ]
            # the placements of the model's nodes come with the first entry
            yield from _with_placements(entry, question, results) if number == 0 else results
            judged.add(number)
    finally:
        if sessions is not None:
            sessions.release()


def judge_entry(entry: Entry, target: Target, keep: Keep = keep_all, *, levels: bool = False) -> Result:
    """Returns a target's result about one entry, with positions in the file; unreadable input is reported regardless of
    `keep`. `levels` as in judge_node."""
    if entry.node is None:
        return judge_alone(entry, target, keep)
    from dmlsplit.checking.node_verdicts import judge_node  # many files are not models

    report, row = judge_node(entry.node, entry.descriptor, target, levels=levels)
    return _in_file(report, row, entry, target, keep)


def judge_alone(entry: Entry, target: Target, keep: Keep = keep_all) -> Result:
    """As `judge_entry`, for an entry that is not a node of a model: an operator or graph by itself, an entry that could
    not be read, or one that is not judged."""
    if entry.error is not None:
        return _not_read(entry.file, entry.index, entry.error, target, entry.name)
    return _in_file(_judged_alone(entry, target), None, entry, target, keep)


def _judged_alone(entry: Entry, target: Target) -> Report:
    """Returns the report about a readable entry that is not a node: a graph, an operator, or remarks about what is not
    judged."""
    desc = entry.graph or entry.other or entry.descriptor
    if desc is not None:
        report = judged(desc, target)
        if report.diagnostics:
            report = report.located(entry.locate)
        return replace(report, diagnostics=entry.notes + report.diagnostics) if entry.notes else report
    notes = entry.notes
    if entry.index < 0 and entry.sessions is not None:
        from dmlsplit.checking.node_verdicts import graph_diagnostics  # most files have operators

        notes = (*graph_diagnostics(entry.sessions, None, target, advises=True), *notes)
    return Report(notes, target.name, None, entry.operator)


def _in_file(report: Report, row: NodeSummary | None, entry: Entry, target: Target, keep: Keep) -> Result:
    """Returns the result about an entry that could be read: the report has its file and index, and hides what `keep`
    does not want. `row` is that of a node of a model."""
    shown, hidden = list(report.diagnostics), []
    if report.operator is not None or report.ok:
        shown = [d for d in report.diagnostics if keep(d.rule)]
        hidden = [d for d in report.diagnostics if not keep(d.rule)]
    report = replace(report, diagnostics=tuple(shown), hidden=tuple(hidden), file=entry.file, index=max(entry.index, 0))
    report = _by(target, report)
    if entry.index < 0:
        return Note(report)
    name, position = _short(entry.name), entry.locate(Location())
    if row is not None:
        return Judged(report, name, position, entry.descriptor, node=row, of_nodes=entry.of_nodes)
    if report.operator is None:
        return NotJudged(report, name, position) if report.ok else NotRead(report, name, position)
    is_open = entry.descriptor is None and entry.graph is None and entry.other is None
    return Judged(report, name, position, entry.descriptor, graph=entry.graph, is_open=is_open)


def _not_read(file: str, index: int, error: InputError, target: Target, name: str | None = None) -> NotRead:
    """Returns the result about operator number `index` of a file, or about the file, that could not be read, or not
    judged, because of `error`."""
    line, column = error.line, error.column
    found = RULES["input/malformed"].diagnostic(Location(), error.message, line=line, column=column)
    report = _by(target, Report((found,), target.name, None, None, file, index))
    return NotRead(report, _short(name), None if line is None or column is None else (line, column))


def _by(target: Target, report: Report) -> Report:
    """Returns the report as a RuntimeReport if the target is a version of ONNX Runtime and the report is not about a
    graph; else the report itself."""
    if target.runtime is None or report.operator == GRAPH:
        return report
    from dmlsplit.onnxruntime.reports import RuntimeReport

    return RuntimeReport.of(report)


def _short(name: str | None) -> str | None:
    """Returns an entry's name, shortened because every diagnostic in the results repeats it; None if it has none."""
    return None if name is None else shortened(name, MAX_NAME)


def _with_placements(entry: Entry, question: Question, results: Sequence[JudgedEntry]) -> Iterator[JudgedEntry]:
    """Yields the results of the first entry of a file; before them, for an ONNX model, a note with the placement of all
    nodes in each target that is a version of ONNX Runtime."""
    placements = {}
    for i, target in enumerate(question.targets):
        if entry.sessions is not None and target.runtime is not None:
            with suppress(InputError):  # if given facts contradict the model, its nodes report that
                placements[i] = entry.sessions.of(target.runtime, target.session_options).tried_placement
    if placements:
        target = question.targets[0]
        found = tuple([d for d in _of_models(tuple(placements.values())) if question.keep(d.rule)])
        head = _by(target, Report(found, target.name, None, None, entry.file, -1))
        yield entry, target, Note(head, tuple(placements.values()), entry.index >= 0)
    for i, (_, target, result) in enumerate(results):
        report = result.report
        if i in placements:
            from dmlsplit.onnxruntime.reports import RuntimeReport

            report = replace(RuntimeReport.of(report), model=placements[i])
        yield entry, target, result._replace(report=report)


def _of_models(placements: Sequence[SessionAnswer]) -> Iterator[Diagnostic]:
    """Yields the findings about a model as a whole, the most serious first, each once; one that not all versions have
    names the versions that do."""
    versions: dict[Diagnostic, list[str]] = {}
    for each in placements:
        for found in each.diagnostics:
            versions.setdefault(found, []).append(each.runtime.judged_by)
    for found, by in sorted(versions.items(), key=lambda each: _MOST_SERIOUS.index(each[0].severity)):
        some = f" ({', '.join(by)})" if len(by) < len(placements) else ""
        yield replace(found, message=f"{found.message}{some}")
