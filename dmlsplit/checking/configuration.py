"""A project's settings for `dmlsplit check`: dmlsplit.toml, or [tool.dmlsplit] of pyproject.toml.

The file is taken from the current folder, or from the nearest parent folder that has one. The command line overrides
it. Paths and patterns are relative to the file's folder.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dmlsplit.formats.limits import Limit
from dmlsplit.system.errors import InputError, naming
from dmlsplit.system.input_files import open_input, read_at_most
from dmlsplit.system.printable import printable
from dmlsplit.system.spelling import nearest

if TYPE_CHECKING:
    from dmlsplit.checking.settings import ValueKind

OWN: Final = "dmlsplit.toml"
SHARED: Final = "pyproject.toml"
_PART: Final = r"""(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.){0,100}+"|'[^'\n]*+')"""
_LONG_KEY: Final = rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{Limit.CONFIG_KEYS.most},}}"
"""Keys on which tomllib spends time and memory quadratic in their number. Of quoted keys beyond 100 characters a file
has too few for that, and searching for the end of each would be quadratic itself."""
_MOST_SHARED: Final = 1 << 20
"""The most bytes of a pyproject.toml."""
_MOST_BRACKETS: Final = 16
"""The most brackets in a pattern, because fnmatch searches for the end of each."""

Table = Mapping[str, Any]


class Configuration(NamedTuple):
    """The table of a file; empty if there is no file."""

    path: str = ""
    table: Table = {}

    def defaults(self) -> dict[str, Any]:
        """Returns the defaults that the file sets for options of `dmlsplit check`, by parameter name, as click's
        default_map takes them."""
        found: dict[str, Any] = {}
        if not self.table:
            return found
        from dmlsplit.checking.settings import OPTIONS  # most projects have no such file

        for name in OPTIONS:
            if name in self.table:
                value = self.table[name]
                found[name.replace("-", "_")] = [value] if isinstance(value, str) else value
        if "baseline" in self.table:
            found["baseline"] = os.path.join(os.path.dirname(self.path), self.table["baseline"])
        return found

    def ignored(self, file: str) -> tuple[str, ...]:
        """Returns the rules and scopes that per-file-ignores lists for a file, by all patterns that match the file; ()
        if none does."""
        entries = self.table.get("per-file-ignores", {})
        return tuple(rule for pattern, rules in entries.items() if self._matches(file, pattern) for rule in rules)

    def of_models(self, file: str, key: str) -> dict[str, Any]:
        """Returns the table `key` ("shapes", "dims" or "free-dimensions") for a model file: the general entries,
        overridden by the entries of each pattern that matches the file; of several patterns, the last in the
        configuration wins. {} if there are none."""
        found: dict[str, Any] = dict(self.table.get(key, {}))
        for pattern, table in self.table.get("models", {}).items():
            if self._matches(file, pattern):
                found.update(table.get(key, {}))
        return found

    def _matches(self, file: str, pattern: str) -> bool:
        """True if a pattern matches the file's path relative to the configuration; one without a slash is matched with
        the file's name only."""
        path = os.path.relpath(os.path.abspath(file), os.path.dirname(self.path)).replace(os.sep, "/")
        return fnmatch.fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


def find(folder: str) -> Configuration:
    """Returns the configuration in a folder or in its nearest parent that has one; an empty one if there is none.
    Raises InputError for an invalid file."""
    current = os.path.abspath(folder)
    while True:
        for name in (OWN, SHARED):
            path = os.path.join(current, name)
            if os.path.lexists(path) and not os.path.isdir(path) and (found := _read(path)) is not None:
                return found
        above = os.path.dirname(current)
        if above == current:
            return Configuration()
        current = above


def read(path: str) -> Configuration:
    """Returns the configuration in a file. Raises InputError if it is invalid or has none, OSError if it cannot be
    read."""
    found = _read(os.path.abspath(path))
    if found is None:
        raise InputError("has no table [tool.dmlsplit]", file=path)
    return found


def _read(path: str) -> Configuration | None:
    """Returns the configuration in a file; None for a pyproject.toml without a table for dmlsplit. Raises InputError if
    the configuration is invalid, OSError if the file cannot be read."""
    table = _table(path)
    if not _is_own(path):
        tools = table.get("tool", {})
        table = tools.get("dmlsplit") if isinstance(tools, dict) else None
        if table is None:
            return None
    from dmlsplit.checking.settings import KEYS, OF_MODELS

    _check(table, KEYS, path, "")
    for pattern, inside in table.get("models", {}).items():
        _check(inside, OF_MODELS, path, f"models.{_shown(pattern)}.")
    for pattern in (*table.get("models", {}), *table.get("per-file-ignores", {})):
        if len(pattern) > Limit.CONFIG_PATTERN.most or pattern.count("[") > _MOST_BRACKETS:
            most = f"{Limit.CONFIG_PATTERN.most} characters, or {_MOST_BRACKETS} opening brackets"
            raise InputError(f"the pattern {_shown(pattern)} has more than {most}", file=path)
    return Configuration(path, table)


def _table(path: str) -> Any:
    """Returns the TOML table in a file; {} for a pyproject.toml that does not mention dmlsplit. Raises InputError if it
    is malformed or too large, OSError if it cannot be read."""
    most = Limit.CONFIG_FILE.most
    with naming(path), open_input(path) as file:
        data = read_at_most(file, most if _is_own(path) else _MOST_SHARED)
    if data is not None and not _is_own(path) and b"dmlsplit" not in data:
        return {}
    if data is None or len(data) > most:
        raise InputError(f"is larger than {most} bytes", file=path)
    import tomllib

    try:
        text = data.decode("utf-8")
        if (long := re.search(_LONG_KEY, text)) is None:
            return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # includes TOMLDecodeError and UnicodeDecodeError
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = map(int, place.groups()) if place else (None, None)
        raise InputError(
            f"is not TOML: {printable(str(error).partition(' (at ')[0])}", file=path, line=line, column=column
        ) from None
    line = text.count("\n", 0, long.start()) + 1
    raise InputError(f"joins more than {Limit.CONFIG_KEYS.most} keys with dots", file=path, line=line)


def _is_own(path: str) -> bool:
    return os.path.basename(path) != SHARED


def _check(table: Any, keys: Mapping[str, ValueKind], path: str, prefix: str) -> None:
    if not isinstance(table, dict):
        raise InputError(f"tool.dmlsplit is {_shown(table)}; a table is expected", file=path)
    for name, value in table.items():
        if name not in keys:
            near = nearest(name, keys)
            suggestion = f"did you mean {near}?" if near else f"known: {', '.join(keys)}"
            raise InputError(f"{prefix}{printable(name)} is not a setting; {suggestion}", file=path)
        if not keys[name].check(value):
            raise InputError(f"{prefix}{name} is {_shown(value)}; {keys[name].words} is expected", file=path)


def _shown(value: object) -> str:
    try:
        return printable(repr(value))
    except (ValueError, RecursionError):  # an integer with more digits than Python converts; deeply nested tables
        return "beyond what can be shown"
