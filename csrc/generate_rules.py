"""Writes dms_rules.inc, what C says of a broken rule, from the package's registry: `python csrc/generate_rules.py`."""

from __future__ import annotations

import json
from pathlib import Path

from dmlsplit.rules import RULES

SUMMARIES = Path(__file__).with_name("dms_rules.inc")
HEAD = "/* dms_rules.inc - what breaks a rule, in a sentence: written by generate_rules.py from the registry */\n"
SCOPES = ("tensor", "split", "join")


def text() -> str:
    """The text of dms_rules.inc."""
    rows = [
        f"{{{json.dumps(rule.id)}, {json.dumps(rule.summary)}}},\n"
        for rule in RULES.values()
        if rule.id.split("/")[0] in SCOPES
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    SUMMARIES.write_text(text(), "utf-8")
