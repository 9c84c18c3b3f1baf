"""Adds the real library's answers about the operators and graphs that are judged: `dmlsplit check --ask`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from dmlsplit.checking.results import Judged, Result
from dmlsplit.descriptors.diagnostics import Report, Severity
from dmlsplit.descriptors.enums import HResult
from dmlsplit.descriptors.location import Location
from dmlsplit.library.asking import Prepared, ask_prepared, build_of, prepared
from dmlsplit.library.catalogue import LINUX, Build, directml_builds, find_build
from dmlsplit.library.fetching import is_added
from dmlsplit.rules import RULES
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from dmlsplit.checking.results import JudgedEntry
    from dmlsplit.formats.operator_files import Entry
    from dmlsplit.library.asking import LibraryAnswer, Question

BATCH: Final = 500
"""The number of operators that one process of a build is asked about at once."""


def builds_for(targets: Iterable[Target]) -> dict[Target, str]:
    """Maps each target to the name of the build to ask for it: the release's own or, for a feature level, one on this
    machine with that level.

    Raises ValueError if no build has the level, NotAdded if the build was not fetched, Unavailable if it cannot be
    asked here.
    """
    return {target: _build(target).name for target in targets}


def _build(target: Target) -> Build:
    if target.release is not None:
        return build_of(target.release)
    of_level = [build for build in directml_builds() if build.feature_level == target.feature_level]
    if not of_level:
        raise ValueError(f"no build of feature level {target.feature_level} can be asked; --directml names another")
    return build_of(max(of_level, key=lambda build: (is_added(build), build.platform is LINUX)))


def with_answers(
    judged: Iterable[JudgedEntry], builds: Mapping[Target, str], keep: Callable[[str], bool]
) -> Iterator[JudgedEntry]:
    """Yields the results in order; those about operators and graphs include the answer of the target's build, which
    `builds` names. `keep` returns True for the rules that are wanted."""
    found = iter(judged)
    while batch := list(islice(found, BATCH * len(builds))):
        for target, build in builds.items():
            places = [i for i, (_, by, _) in enumerate(batch) if by == target]
            of_build = _of_build([batch[i] for i in places], find_build(build), keep)
            for i, result in zip(places, of_build, strict=True):
                batch[i] = batch[i][0], target, result
        yield from batch


def _of_build(batch: Sequence[JudgedEntry], build: Build, keep: Callable[[str], bool]) -> list[Result]:
    results = [result for _, _, result in batch]
    asked: list[tuple[int, Prepared]] = []
    for i, (entry, _, result) in enumerate(batch):
        question = _question(entry)
        if question is None or not isinstance(result, Judged):
            continue
        try:
            asked.append((i, prepared(question)))
        except ValueError as error:
            results[i] = _marked(result, None, ("library/not-asked", f"{build.name} is not asked: {error}"), keep)
    for (i, _), answer in zip(asked, ask_prepared([each for _, each in asked], build), strict=True):
        result = results[i]
        assert isinstance(result, Judged)
        results[i] = _marked(result, answer, _otherwise(result.report, answer), keep)
    return results


def _question(entry: Entry) -> Question | None:
    """Returns the operator or graph of an entry, in the form in which a build is asked; None for a node of a model, and
    for an entry that could not be read."""
    if entry.node is not None:
        return None
    return entry.graph or entry.other or entry.descriptor


def _otherwise(report: Report, answer: LibraryAnswer) -> tuple[str, str]:
    """Returns the id of a rule under "library/" and a message if the library disagrees with the report, refuses what
    the report does not know, or gives no answer; else ("", "")."""
    reason = f": {answer.reason}" if answer.reason else ""
    node = "" if answer.node is None else f" of node {answer.node}"
    accepts = _accepts(report)
    if answer.ended_the_process:
        said = f"{answer.build} crashes the process in {answer.call}{node}{reason}"
        return ("library/ends-the-process", said) if accepts is not False else ("", "")
    if answer.hresult is None:
        return "library/not-asked", f"{answer.build} does not answer{reason}"
    if answer.accepted:
        return ("library/accepts", f"{answer.build} accepts it") if accepts is False else ("", "")
    said = f"{answer.build} refuses it: {answer.call}{node} returns 0x{answer.hresult:08X}{reason}"
    return ("library/refuses", said) if accepts is not False else ("", "")


def _accepts(report: Report) -> bool | None:
    """Returns True if, according to the report, the target creates the operator or compiles the graph, False if not;
    None if the report does not say."""
    from dmlsplit.graphs import GraphReport

    if isinstance(report, GraphReport):
        return report.compiles
    if report.basis_of_verdict == "tables":
        found = (*report.diagnostics, *report.hidden)
        return not any(d.severity is Severity.ERROR and d.basis != "ours" for d in found)
    return report.hresult == HResult.S_OK


def _marked(result: Judged, answer: LibraryAnswer | None, said: tuple[str, str], keep: Callable[[str], bool]) -> Judged:
    """Returns the result with the library's answer and, if `said` names a rule, a diagnostic of that rule, which is
    hidden unless `keep` returns True for the rule."""
    rule, message = said
    report = replace(result.report, library=None if answer is None else answer.to_dict())
    if rule:
        line, column = result.position or (None, None)
        found = RULES[rule].diagnostic(Location(), message, line=line, column=column)
        if keep(rule):
            report = replace(report, diagnostics=(*report.diagnostics, found))
        else:
            report = replace(report, hidden=(*report.hidden, found))
    return result._replace(report=report)
