"""dmlsplit rule: what the registry says of a rule."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Any

import click

from dmlsplit.cli import _streams
from dmlsplit.cli._judging import known_rule_id
from dmlsplit.diagnostics import SCHEMA
from dmlsplit.report.rule import examples
from dmlsplit.report.table import WIDTH, Table
from dmlsplit.rules import RULES, Rule


@click.command(short_help="List the rules, or explain one.")
@click.argument("id", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rule(id: str | None, as_json: bool) -> int:
    """List the rules, or explain one: why it is there, its sources, a bad and a good descriptor or node.

    \b
    Examples:
      dmlsplit rule
      dmlsplit rule split/axis-out-of-range
    """
    found = None if id is None else RULES[known_rule_id(id)]
    if as_json:
        answer = [_rule_json(r) for r in RULES.values()] if found is None else _rule_json(found)
        _streams.write(json.dumps(answer, indent=2) + "\n")
    elif found is not None:
        _streams.write(_rule_text(found))
    elif _streams.person_reads(sys.stdout):
        from dmlsplit.report import terminal

        rows = [(r.id, str(r.severity), str(r.basis), r.summary) for r in RULES.values()]
        terminal.show_table(Table("", ("Rule", "Severity", "Basis", "Summary"), rows), terminal.console(sys.stdout))
    else:
        # One rule a line, whatever its width: this is what scripts read.
        _streams.write("".join(f"{r.id}  {r.severity}  {r.basis}  {r.summary}\n" for r in RULES.values()))
    return 0


def _rule_text(rule: Rule) -> str:
    paragraphs = [
        f"{rule.id}  ({rule.severity}, {rule.basis})",
        _filled(rule.summary),
        _filled(rule.explanation),
        *([_filled(f"Runtimes: {rule.runtimes}.")] if rule.runtimes else []),
        "\n".join(["Sources:", *(_filled(": ".join(filter(None, source)), "  ") for source in rule.sources)]),
    ]
    for example in examples(rule):
        paragraphs.append(f"{example.name.title()}, judged by {example.judged_by}:\n{example.text}")
    return "\n\n".join(paragraphs) + "\n"


def _rule_json(rule: Rule) -> dict[str, Any]:
    found = {example.name: json.loads(example.text) for example in examples(rule)}
    return {
        "schema": SCHEMA,
        "id": rule.id,
        "severity": str(rule.severity),
        "basis": str(rule.basis),
        "summary": rule.summary,
        "explanation": rule.explanation,
        "runtimes": rule.runtimes or None,
        "sources": [{"title": source.title, "url": source.url or None} for source in rule.sources],
        "feature_level": rule.judge_of_examples.get("feature_level"),
        "directml": rule.judge_of_examples.get("directml"),
        **{name: found.get(name) for name in ("bad", "good")},
    }


def _filled(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(
        paragraph,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
