"""The settings that a project's configuration may have: their names, their values, and the JSON schema of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dmlsplit.checking.question import FAILING

_LARGEST: Final = 2**63 - 1
"""The largest integer in TOML, and the largest size in ONNX."""


class ValueKind(NamedTuple):
    """A kind of value: its description, its JSON schema, and the check that the schema expresses."""

    words: str
    schema: dict[str, Any]
    check: Callable[[Any], bool]


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _table_of(kind: ValueKind, words: str) -> ValueKind:
    return ValueKind(
        words,
        {"type": "object", "additionalProperties": kind.schema},
        lambda value: isinstance(value, dict) and all(map(kind.check, value.values())),
    )


_SIZE: Final = {"type": "integer", "minimum": 0, "maximum": _LARGEST}
_TEXT: Final = ValueKind("a text", {"type": "string"}, lambda value: isinstance(value, str))
_PATH: Final = ValueKind(
    "a path", {"type": "string", "pattern": "^[^\\u0000]*$"}, lambda value: isinstance(value, str) and "\0" not in value
)
_TEXTS: Final = ValueKind("a list of texts", {"type": "array", "items": {"type": "string"}}, _is_texts)
_TEXT_OR_TEXTS: Final = ValueKind(
    "a text or a list of texts",
    {"anyOf": [_TEXT.schema, _TEXTS.schema]},
    lambda value: isinstance(value, str) or _is_texts(value),
)
_FAILING: Final = ValueKind(
    '"error", "warning", "unknown" or a list of these',
    {"anyOf": [{"enum": [*FAILING]}, {"type": "array", "items": {"enum": [*FAILING]}}]},
    lambda value: value in FAILING or (_is_texts(value) and set(value) <= set(FAILING)),
)
_PART: Final = ValueKind(
    "a number from 0 to 1",
    {"type": "number", "minimum": 0, "maximum": 1},
    lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1,
)
_BOOL: Final = ValueKind("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))
_SHAPE: Final = ValueKind(
    "a list of sizes, with ? for unknown sizes",
    {"type": "array", "items": {"anyOf": [_SIZE, {"const": "?"}]}},
    lambda value: isinstance(value, list) and all(size == "?" or _is_size(size) for size in value),
)
_SHAPES: Final = _table_of(_SHAPE, "a table of shapes: images = [1, 3, 640, 640]")
_SIZES: Final = _table_of(ValueKind("a size", _SIZE, _is_size), "a table of sizes: batch = 1")

OF_MODELS: Final[Mapping[str, ValueKind]] = {"shapes": _SHAPES, "dims": _SIZES, "free-dimensions": _SIZES}
"""The keys that the tables of [models] have as well."""
KEYS: Final[Mapping[str, ValueKind]] = {
    "feature-level": _TEXT,
    "directml": _TEXT_OR_TEXTS,
    "onnxruntime": _TEXT_OR_TEXTS,
    "windows": _TEXT_OR_TEXTS,
    "windows-ml": _TEXT_OR_TEXTS,
    "assume": _TEXTS,
    "select": _TEXTS,
    "ignore": _TEXTS,
    "fail-on": _FAILING,
    "require-dml": _PART,
    "require-capture": _BOOL,
    "baseline": _PATH,
    **OF_MODELS,
    "per-file-ignores": _table_of(_TEXTS, 'a table of lists of rules: "old/*.onnx" = ["node/"]'),
    "models": ValueKind(
        'a table of tables: [models."yolo*.onnx".dims]',
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {name: kind.schema for name, kind in OF_MODELS.items()},
                "additionalProperties": False,
            },
        },
        lambda value: isinstance(value, dict) and all(isinstance(table, dict) for table in value.values()),
    ),
}
OPTIONS: Final = tuple([name for name in KEYS if name not in (*OF_MODELS, "baseline", "per-file-ignores", "models")])
"""The keys that are options of `dmlsplit check`."""
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "dmlsplit.toml, and [tool.dmlsplit] of pyproject.toml",
    "type": "object",
    "properties": {name: kind.schema for name, kind in KEYS.items()},
    "additionalProperties": False,
}
"""The JSON schema of the table; docs/dmlsplit.schema.json is generated from it."""
