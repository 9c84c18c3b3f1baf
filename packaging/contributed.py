"""Writes the table of ONNX Runtime's own operators that the package ships: `python packaging/contributed.py`.

pip installs each observed version of onnxruntime for Linux into a temporary folder, and asks it for its schemas. A
version that is `like` another one has the schemas of the newest older version.
The output is what `dmlsplit.onnxruntime.contributed_schemas` reads.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx

from dmlsplit.onnxruntime.contributed_schemas import PLACE
from dmlsplit.targets.runtime_versions import recorded_runtimes

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "dmlsplit" / PLACE
DOMAINS = ("", "com.microsoft")
ASK = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state

def parameters(formal):
    return [[each.typeStr, each.option.name, each.isHomogeneous] for each in formal]

found = [
    {
        "key": [each.domain, each.name, each.since_version],
        "deprecated": bool(each.deprecated),
        "counts": [each.min_input, each.max_input, each.min_output, each.max_output],
        "inputs": parameters(each.inputs),
        "outputs": parameters(each.outputs),
        "types": {one.type_param_str: sorted(one.allowed_type_strs) for one in each.type_constraints},
        "attributes": {name: [int(one.type), bool(one.required)] for name, one in sorted(each.attributes.items())},
    }
    for each in state.get_all_operator_schema()
]
print(json.dumps(found))
"""


def schemas_of(version: str) -> list[dict[str, Any]]:
    """The schemas of a version, in the form of ASK."""
    with tempfile.TemporaryDirectory() as folder:
        # wheels before 1.19 need NumPy 1
        packages = [f"onnxruntime=={version}", *(("numpy<2",) if version.startswith("1.18.") else ())]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *packages]
        subprocess.run(pip, check=True)
        code = f"import sys; sys.path.insert(0, {folder!r}){ASK}"
        answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def table(by_version: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The table: for each operator and schema version a cell for each version of ONNX Runtime, the index of its row."""
    of_onnx = {(each.domain, each.name, each.since_version) for each in onnx.defs.get_all_schemas_with_history()}
    rows: list[dict[str, Any]] = []
    operators: dict[str, dict[str, list[int | None]]] = {}
    for column, (version, schemas) in enumerate(by_version.items()):
        print(version, len(schemas), file=sys.stderr)
        for schema in schemas:
            domain, name, since = schema["key"]
            if domain not in DOMAINS or (domain, name, since) in of_onnx:
                continue
            row = {key: value for key, value in schema.items() if key != "key"}
            if row not in rows:
                rows.append(row)
            cells = operators.setdefault(f"{domain}.{name}" if domain else name, {})
            cells.setdefault(str(since), [None] * len(by_version))[column] = rows.index(row)
    return {"versions": list(by_version), "rows": rows, "operators": dict(sorted(operators.items()))}


if __name__ == "__main__":
    asked = {runtime.version: schemas_of(runtime.version) for runtime in recorded_runtimes()}
    text = json.dumps(table(asked), separators=(",", ":"))
    OUTPUT.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
