"""Writes the pages that are generated from the registry: `python docs/generate.py`; --check only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from dmlsplit.formats.json import dumps
from dmlsplit.rules import RULES, Rule
from dmlsplit.validation import find_judge

HERE = Path(__file__).parent
HEAD = """# Rules

Every rule that `dmlsplit check` and `dmlsplit.validate` apply, generated from the registry by `docs/generate.py`.
`dmlsplit rule ID` shows the same in the terminal.
"""


def rule_section(rule: Rule) -> str:
    lines = [f"## {rule.id}", "", f"{rule.summary} {rule.explanation}", ""]
    lines.append(f"Severity: {rule.severity}. Basis: {rule.basis}.")
    lines += ["", "Sources:", ""]
    lines += [f"- [{source.title}]({source.url})" if source.url else f"- {source.title}" for source in rule.sources]
    for title, example in (("Triggers it", rule.bad), ("Does not", rule.good)):
        if example is not None:
            by = find_judge(**rule.judge_of_examples).name
            lines += ["", f"{title} (judged by {by}):", "", "```json", dumps(example()), "```"]
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    return {HERE / "rules.md": "\n".join([HEAD, *map(rule_section, RULES.values())])}


def main(arguments: list[str]) -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.name} is not what docs/generate.py writes", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
