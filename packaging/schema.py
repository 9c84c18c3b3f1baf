"""Writes the schema of DirectML's operators that the package ships: `python packaging/schema.py operators.json`.

The input has the facts of DirectML's public headers: {"enums": {name: {enumerator: number}}, "operators": [{"number",
"name", "since", "fields": [{"name", "role", "type", "optional", "count", "enum"}]}]}, the members of a struct in their
order. The output is what `dmlsplit.descriptors.schema` reads.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[1] / "dmlsplit" / "descriptors" / "operators.json.xz"


def compressed(facts: dict[str, Any]) -> bytes:
    """The table as the package has it."""
    operators = [
        {
            "number": operator["number"],
            "name": operator["name"].removeprefix("DML_OPERATOR_"),
            "since": operator["since"],
            "fields": operator["fields"],
        }
        for operator in sorted(facts["operators"], key=lambda operator: int(operator["number"]))
    ]
    enums = {
        name: {value.removeprefix(f"{name}_"): n for value, n in of.items()} for name, of in facts["enums"].items()
    }
    text = json.dumps({"enums": enums, "operators": operators}, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


if __name__ == "__main__":
    OUTPUT.write_bytes(compressed(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
