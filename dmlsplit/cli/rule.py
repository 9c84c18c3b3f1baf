"""dmlsplit rule: the registry's description of a rule."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dmlsplit.checking.judging import validate
from dmlsplit.cli import _streams
from dmlsplit.cli._arguments import complete_rule, known_rule_id, output_options
from dmlsplit.descriptors.diagnostics import SCHEMA, Diagnostic
from dmlsplit.report import text
from dmlsplit.report.rule import examples
from dmlsplit.report.table import WIDTH, Table, wrapped
from dmlsplit.report.text import Part
from dmlsplit.rules import RULES, DescriptorRule, NodeRule, Rule
from dmlsplit.rules._debug_layer import BUILD, MESSAGES
from dmlsplit.rules.any_operator import AnyOperatorRule
from dmlsplit.rules.graph import GraphRule
from dmlsplit.rules.onnxruntime import Habit
from dmlsplit.rules.whole_model import ModelRule
from dmlsplit.targets.target import find_target
from dmlsplit.verdicts.validation import evaluate

if TYPE_CHECKING:
    from rich.console import Console

_TENSOR: Final = re.compile(
    r' (?="(?:Input|Output)Tensors?":)|(?=\{"Type": "BUFFER")| (?="(?:Axis|OutputCount|InputCount)":)'
)
MAX_WIDTH: Final = 100
"""The width of prose: longer lines are hard to read."""
TABLE_WIDTH: Final = 120
"""The least width of a terminal, in columns, on which the list of rules is a table."""


@click.command()
@click.argument("id", metavar="[ID]", required=False, shell_complete=complete_rule)
@output_options("text", "json", json_help="json: an object, or one array of the listed rules.")
def rule(id: str | None, format_: str) -> int:
    """List the rules, all or of a scope, or explain one: its reason, its sources, and a bad and a good example.

    \b
    Examples:
      dmlsplit rule
      dmlsplit rule split/
      dmlsplit rule split/axis-out-of-range

    \f
    Prints the list for `id` None or a scope (`split/`), else the page of that rule, and returns the exit status, 0.
    Raises UsageError if there is no such rule or scope.
    """
    scope = id if id is not None and id.endswith("/") else ""
    rules = [each for each in RULES.values() if each.id.startswith(scope)]
    found = None if id is None or (scope and rules) else RULES[known_rule_id(id)]
    if format_ == "json":
        answer = [_rule_json(r) for r in rules] if found is None else _rule_json(found)
        _streams.write(json.dumps(answer, indent=2) + "\n")
    elif _streams.person_reads(sys.stdout):
        from dmlsplit.report import terminal

        console = terminal.console(sys.stdout)
        if found is None:
            _show_list(rules, console)
        else:
            for parts in _page(found, min(console.width, MAX_WIDTH), wrap_examples=True):
                terminal.print_parts(console, parts)
    elif found is not None:
        _streams.write("".join(f"{text.plain(parts)}\n" for parts in _page(found, WIDTH)))
    else:
        # One rule per line, whatever its width, because scripts read this.
        _streams.write("".join(f"{r.id}  {r.severity}  {r.basis}  {r.summary}\n" for r in rules))
    return 0


def _show_list(rules: Sequence[Rule], console: Console) -> None:
    """Prints rules: as a table or, on a narrow terminal, as a heading and a summary for each."""
    from dmlsplit.report import terminal

    if console.width >= TABLE_WIDTH:
        rows = [(r.id, str(r.severity), str(r.basis), r.summary) for r in rules]
        terminal.show_table(Table("", ("Rule", "Severity", "Basis", "Summary"), rows), console)
        return
    for rule in rules:
        for parts in (_heading(rule), *_filled(rule.summary, console.width, "  ")):
            terminal.print_parts(console, parts)


def _heading(rule: Rule) -> list[Part]:
    return [
        (rule.id, "bold"),
        ("  (", ""),
        (str(rule.severity), text.SEVERITY_STYLES[rule.severity]),
        (f", {rule.basis})", ""),
    ]


def _page(rule: Rule, width: int, *, wrap_examples: bool = False) -> Iterator[list[Part]]:
    """Yields the styled lines of a rule's page, filled to `width`. An example is one line of JSON, which
    `wrap_examples` breaks between members."""
    yield _heading(rule)
    runtimes = f"Runtimes: {rule.runtimes}." if isinstance(rule, NodeRule) and rule.runtimes else ""
    releases = f"Releases: {rule.releases}." if isinstance(rule, GraphRule) else ""
    cure = f"What helps: {_cure(rule)}." if _cure(rule) else ""
    for paragraph in (rule.summary, rule.explanation, runtimes, releases, cure):
        if not paragraph:
            continue
        yield []
        yield from _filled(paragraph, width)
    yield []
    yield [("Sources:", "bold")]
    for source in rule.sources:
        yield from _filled(": ".join(filter(None, source)), width, "  ")
    for said in MESSAGES.get(rule.id, ()):
        yield []
        yield [(f"Observed: the debug layer of {BUILD} says", "bold")]
        yield from _filled(said, width, "  ")
    for example in examples(rule):
        yield []
        yield [(f"{example.name.title()}, judged by {example.judged_by}:", "bold")]
        if wrap_examples:
            for i, part in enumerate(_TENSOR.split(example.text)):
                yield from _filled(part, width, "    " if i else "  ")
        else:
            yield [(example.text, "")]
        if example.name == "bad":
            for diagnostic in _found(rule):
                yield from _filled(text.plain(text.diagnostic_parts(diagnostic, None)), width, "  ")
    steps = _steps(rule)
    if steps is not None:
        yield []
        yield [(f"Outcome: {rule.outcome}.", "bold")]
        for name, lines in zip(("Bad, the last lines of a program", "Good"), steps, strict=True):
            yield []
            yield [(f"{name}:", "bold")]
            yield from ([(line, "")] for line in lines.splitlines())


def _steps(rule: Rule) -> tuple[str, str] | None:
    """Returns the bad and the good example program of a rule about the device, as text; None for a rule without such
    programs."""
    if rule.scope not in ("binding", "device"):
        return None
    from dmlsplit.device import examples as programs

    found = programs.programs(rule)
    return None if found is None else (programs.source(found.bad), programs.source(found.good))


def _found(rule: Rule) -> Sequence[Diagnostic]:
    """Returns the diagnostics of the rule's bad example; () for a kind of rule without a descriptor."""
    if isinstance(rule, DescriptorRule):
        return evaluate(rule.bad(), find_target(**rule.target_of_examples)).diagnostics
    if isinstance(rule, AnyOperatorRule):
        return validate(rule.bad(), **rule.target_of_examples).diagnostics
    if isinstance(rule, GraphRule):
        from dmlsplit import graphs  # importing it is slow, and most commands do not need it

        if rule.id in graphs.EXAMPLES:
            target = find_target(directml=rule.examples_for)
            return graphs.evaluate_graph(graphs.EXAMPLES[rule.id](False), target).diagnostics
    return ()


def _cure(rule: Rule) -> str:
    return rule.cure if isinstance(rule, (GraphRule, Habit, ModelRule)) else ""


def _rule_json(rule: Rule) -> dict[str, Any]:
    found = {example.name: json.loads(example.text) for example in examples(rule)}
    steps = _steps(rule)
    judged_by = rule.target_of_examples if isinstance(rule, (DescriptorRule, AnyOperatorRule)) else {}
    if isinstance(rule, GraphRule) and found:
        judged_by = {"directml": rule.examples_for}
    return {
        "schema": SCHEMA,
        "id": rule.id,
        "severity": str(rule.severity),
        "basis": str(rule.basis),
        "summary": rule.summary,
        "explanation": rule.explanation,
        "runtimes": rule.runtimes or None if isinstance(rule, NodeRule) else None,
        "releases": rule.releases if isinstance(rule, GraphRule) else None,
        "cure": _cure(rule) or None,
        "sources": [{"title": source.title, "url": source.url or None} for source in rule.sources],
        "feature_level": judged_by.get("feature_level"),
        "directml": judged_by.get("directml"),
        **{name: found.get(name) for name in ("bad", "good")},
        "bad_steps": steps and steps[0],
        "good_steps": steps and steps[1],
        "outcome": rule.outcome or None,
        "debug_layer": {"build": BUILD, "messages": MESSAGES[rule.id]} if rule.id in MESSAGES else None,
    }


def _filled(paragraph: str, width: int, indent: str = "") -> Iterator[list[Part]]:
    for line in wrapped(paragraph, width, indent, indent):
        yield [(line, "")]
