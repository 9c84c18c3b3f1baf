"""The table of placements in the package, made of the answers that record_operators has recorded."""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dmlsplit
from dmlsplit.onnxruntime.operators import NOT_ASKED, PLACE, Cell
from dmlsplit.targets.runtime_versions import key_of
from tests.onnxruntime.operator_models import Key, default_types, recorded, schemas
from tests.onnxruntime.record_operators import NO_KERNEL

NOISE = (
    re.compile(r"^\[\d+\] |Exception during initialization: "),
    re.compile(r" ?\(caller: \w+\)| Exception\(\d+\)| tid\(\w+\)"),
)
"""What an error message says of the process, and not of the node."""
SIZED = frozenset({"Shape"})
"""Operators that are asked with symbolic sizes."""
PATH = Path(dmlsplit.__file__).parent / PLACE


def cell_of(answer: Mapping[str, Any]) -> Cell:
    """The answer of one version about one node, as the table has it."""
    at, kernel = answer["at"], bool(answer.get("cpu"))
    if at == "fails":
        if NO_KERNEL.search(answer["error"]) or (not kernel and "transformer_memcpy" in answer["error"]):
            return Cell.NO_KERNEL
        return Cell.FAILS_WITH_CPU if kernel else Cell.FAILS
    if at == "DML":
        on_dml = (Cell.DML, Cell.DML_WITH_CPU), (Cell.FUSED, Cell.FUSED_WITH_CPU)
        return on_dml[bool(answer["graphs"])][kernel]
    if at == "expanded":
        nodes = answer["nodes"]
        if len(nodes) > 1:
            copied = any(op.startswith("Memcpy") for listed in nodes.values() for op in listed)
            return Cell.EXPANDED_WITH_COPIES if copied else Cell.EXPANDED
        return Cell.EXPANDED_ON_DML if "DML" in nodes else Cell.EXPANDED_ON_CPU
    return {"CPU": Cell.CPU, "none": Cell.FOLDED, "invalid": Cell.INVALID}[at]


def table(answers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The table as JSON: of each operator and schema version the types of its inputs and outputs, the usual ones, and
    for each combination, and each variant of the usual one, a letter for each version of ONNX Runtime."""
    known: dict[Key, dict[str, Mapping[str, Any]]] = {}
    for answer in answers:
        known.setdefault(Key.of_json(answer), {})[answer["ort"]] = answer
    versions = sorted({version for cells in known.values() for version in cells}, key=key_of)
    operators: dict[str, dict[str, Any]] = {}
    messages: dict[str, int] = {}
    for key in sorted(known, key=lambda key: (key.domain, key.op, key.version, key.types, key.variant)):
        cells = "".join(cell_of(known[key][v]) if v in known[key] else NOT_ASKED for v in versions)
        if key.op in SIZED and key.variant != "sym":
            continue  # of static sizes it is a constant, and says nothing
        if not set(cells) - {NOT_ASKED, Cell.INVALID}:
            continue
        name = f"{key.domain}.{key.op}" if key.domain else key.op
        rows = operators.setdefault(name, {}).setdefault(str(key.version), {})
        if not rows:
            rows.update(_signature(key))
        types = dict(key.types)
        place = ",".join(types.get(parameter, "") for parameter in rows["parameters"])
        if key.variant and key.op not in SIZED:
            if key.variant.startswith("a:"):
                rows.setdefault("attributes", {})[key.variant[2:]] = [*_variant(key), place, cells]
            elif key.variant.startswith("opset"):
                rows.setdefault("opsets", {}).setdefault(place, {})[key.variant[5:]] = cells
            else:
                rows.setdefault("variants", {})[key.variant] = [place, cells]
        else:
            rows.setdefault("types", {})[place] = cells
        said = [message for message in map(_message, known[key].values()) if message]
        if said and (not key.variant or key.op in SIZED):
            rows.setdefault("messages", {})[place] = messages.setdefault(said[-1], len(messages))
    return {"versions": versions, "messages": list(messages), "operators": operators}


def _signature(key: Key) -> dict[str, Any]:
    """The type parameters of an operator, and which of them its inputs and outputs have: -1 for a type of their own."""
    schema = schemas()[key.domain, key.op, key.version]
    parameters = [name for name in schema.parameters if name in schema.used]
    usual = default_types(key.domain, key.op, key.version)

    def places(side: Sequence[tuple[str, str]]) -> list[int]:
        return [parameters.index(name) if name in parameters else -1 for name, _ in side]

    return {
        "parameters": parameters,
        "usual": ",".join(usual.get(name, "") for name in parameters),
        "inputs": places(schema.inputs),
        "outputs": places(schema.outputs),
        "variadic": any(option == "Variadic" for _, option in schema.inputs),
    }


def _variant(key: Key) -> tuple[Mapping[str, Any], int]:
    """The attributes of a variant, and the number of outputs from which on it is one."""
    rows = recorded()["variants"][key.op]
    _, attributes, outputs = next(row for row in rows if row[0] == key.variant[2:])
    return attributes, outputs or 0


def _message(answer: Mapping[str, Any]) -> str:
    """What ONNX Runtime says of a session that it does not make, without what is of the question."""
    if answer["at"] != "fails" or cell_of(answer) is Cell.NO_KERNEL:
        return ""
    said = str(answer["error"]).removeprefix("CreateSession: ")
    for noise in NOISE:
        said = noise.sub("", said)
    return said.strip()[:160]


def combined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Two tables as one; what both have of a version is the new one's."""
    versions = sorted({*old["versions"], *new["versions"]}, key=key_of)
    messages = list(dict.fromkeys([*old["messages"], *new["messages"]]))

    def cells(rows: Sequence[str]) -> str:
        found = dict.fromkeys(versions, NOT_ASKED)
        for each, row in zip((old, new), rows, strict=True):
            found |= {v: cell for v, cell in zip(each["versions"], row, strict=False) if cell != NOT_ASKED}
        return "".join(found.values())

    def of(rows: Mapping[str, Any], kind: str, place: str) -> Any:
        return rows.get(kind, {}).get(place)

    operators: dict[str, dict[str, Any]] = {}
    for name in sorted({*old["operators"], *new["operators"]}):
        sides = [each["operators"].get(name, {}) for each in (old, new)]
        for version in sorted({*sides[0], *sides[1]}, key=int):
            rows = [side.get(version, {}) for side in sides]
            row = {key: value for key, value in (rows[1] or rows[0]).items() if not isinstance(value, dict)}
            for kind in ("types", "variants", "attributes"):
                for place in sorted({*rows[0].get(kind, {}), *rows[1].get(kind, {})}):
                    found = [of(each, kind, place) for each in rows]
                    if kind == "types":
                        value: Any = cells([each or "" for each in found])
                    else:
                        known = found[1] or found[0]
                        value = [*known[:-1], cells([each[-1] if each else "" for each in found])]
                    row.setdefault(kind, {})[place] = value
            for place in sorted({*rows[0].get("opsets", {}), *rows[1].get("opsets", {})}):
                found = [of(each, "opsets", place) or {} for each in rows]
                known = {o: cells([each.get(o, "") for each in found]) for o in sorted({*found[0], *found[1]}, key=int)}
                row.setdefault("opsets", {})[place] = known
            said = [
                (place, each["messages"][number])
                for each, side in zip((old, new), rows, strict=True)
                for place, number in side.get("messages", {}).items()
            ]
            if said:
                row["messages"] = {place: messages.index(text) for place, text in said}
            operators.setdefault(name, {})[version] = row
    return {"versions": versions, "messages": messages, "operators": operators}


def packed(rows: Mapping[str, Any]) -> bytes:
    """The file of a table."""
    text = json.dumps(rows, separators=(",", ":"), sort_keys=True)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def written(answers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Adds answers to the table in the package; yields the letters in it."""
    rows = table(answers)
    if PATH.exists():
        rows = combined(json.loads(lzma.decompress(PATH.read_bytes())), rows)
    PATH.write_bytes(packed(rows))
    for versions in rows["operators"].values():
        for row in versions.values():
            yield from "".join(row.get("types", {}).values())
