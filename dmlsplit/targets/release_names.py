"""Resolves names to releases: DirectML versions, and packages that ship a build, including unknown versions between
known ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import fields, replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.system.printable import shortened
from dmlsplit.targets.releases import LINUX, WINDOWS, Release, SizeArithmetic, directml_versions, releases

_NAME: Final = r"(?:(?P<package>[a-z].*?)-)?(?P<version>\d.*?)(?:-(?P<platform>linux|windows))?"
"""Compiled on first use."""


class _Shipment(NamedTuple):
    """A range of versions, `first` to `last`, that are the same build: versions of a package, or DirectML's own."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    package: str
    version: str
    release: Release

    def continues(self, version: str) -> bool:
        """True if this shipment's version is `version` followed by further numbers: 1.15.1 continues 1.15."""
        return self.version.startswith(f"{version}.")

    def __str__(self) -> str:
        name = f"{self.package}-{self.version}" if self.package else self.version
        return name if self.package or self.release.platform == WINDOWS else f"{name}-{self.release.platform}"


def find_release(name: str | Release) -> Release:
    """Returns the release of a DirectML version ("1.8.0") or of a package ("torch-directml-0.2.5.dev240914").

    A suffix "-linux" or "-windows" chooses the system. Without it a DirectML version means the Windows build, and a
    package the Linux build if it ships one. A version between two known ones resolves to one of their builds if those
    give the same verdicts; `agreeing` then names them.

    Raises ValueError for any other name: the message names the nearest releases and their differences. Raises TypeError
    for anything but a string or a Release.
    """
    if isinstance(name, Release):
        return name
    if not isinstance(name, str):
        raise TypeError(f"the name of a release is a string, not {type(name).__name__}")
    return _release_named(name)


@lru_cache(maxsize=256)
def _release_named(name: str) -> Release:
    text = "-".join(name.lower().split())
    match = re.fullmatch(_NAME, text)
    if match is None:
        raise _unknown(name, [_shipments()["", WINDOWS][-1]])
    package, version = match["package"] or "", match["version"]
    systems = (match["platform"],) if match["platform"] else (LINUX, WINDOWS) if package else (WINDOWS, LINUX)
    known = [found for system in systems if (found := _shipments().get((package, system)))]
    key = version_key(version)
    for entry in (entry for found in known for entry in found):
        if entry.first <= key <= entry.last:
            return entry.release
    around = _around(version, known[0] if known else _shipments()["", WINDOWS])
    if not known or len(around) == 1 or _judging(around[0]) != _judging(around[-1]):
        raise _unknown(name, around)
    agreeing = tuple(dict.fromkeys(entry.release.label for entry in around))
    chosen = next((entry for entry in around if entry.continues(version)), around[0])
    return replace(chosen.release, asked=text, agreeing=agreeing)


def _around(version: str, known: list[_Shipment]) -> list[_Shipment]:
    """Returns the shipments around an unknown version: the last one below it; and all that continue it (1.15.1
    continues 1.15), or otherwise the first one above. A side without shipments is left out."""
    key = version_key(version)
    below = [entry for entry in known if entry.last < key][-1:]
    above = [entry for entry in known if entry.continues(version)]
    return [*below, *(above or [entry for entry in known if entry.first > key][:1])]


def _judging(entry: _Shipment) -> tuple[object, int]:
    return entry.release.traits, entry.release.invalid_argument


def _unknown(name: str, around: list[_Shipment]) -> ValueError:
    first, last = around[0], around[-1]
    if first == last:
        nearest = f"the nearest is '{first}'"
    elif _judging(first) == _judging(last):
        nearest = f"the nearest are '{first}' and '{last}'"
    else:
        differences = "; ".join(_differences(first.release, last.release))
        nearest = f"the nearest are '{first}' and '{last}', which differ in {differences}"
    return ValueError(
        f"unknown DirectML release {shortened(name, 60)!r}; {nearest}; known: {', '.join(directml_versions())}"
    )


@cache
def _shipments() -> dict[tuple[str, str], list[_Shipment]]:
    """Maps each package ("" for DirectML's own versions) and system to its shipments, the oldest first."""
    found: dict[tuple[str, str], list[_Shipment]] = {}
    for release in releases():
        for shipped in (release.directml, *release.packages):
            match = re.fullmatch(_NAME, shipped)
            assert match is not None, shipped
            package, version = match["package"] or "", match["version"]
            first, _, last = version.partition("..")
            entry = _Shipment(version_key(first), version_key(last or first), package, last or first, release)
            found.setdefault((package, release.platform), []).append(entry)
    return {key: sorted(entries, key=lambda entry: entry.first) for key, entries in found.items()}


@lru_cache(maxsize=256)
def version_key(version: str) -> tuple[int, ...]:
    """Returns a sort key: 1.15.5.dev1 < 1.15.5rc1 < 1.15.5 < 1.15.5.1 < any text without a number."""
    parts = [{"dev": -2, "rc": -1}.get(part) or int(part[:15]) for part in re.findall(r"dev|rc|\d+", version)]
    return tuple(parts + [0] * (8 - len(parts))) if parts else (2**62,)


def _differences(a: Release, b: Release) -> Iterator[str]:
    for field in fields(a.traits):
        one, other = getattr(a.traits, field.name), getattr(b.traits, field.name)
        if one != other:
            yield f"{field.metadata['words']} ({_shown(one, other)} / {_shown(other, one)})"
    if a.invalid_argument != b.invalid_argument:
        yield f"the code of a refusal (0x{a.invalid_argument:08X} / 0x{b.invalid_argument:08X})"


def _shown(value: object, other: object) -> str:
    """Returns a trait's value as text; for a set or list only the elements that are not in `other`."""
    if isinstance(value, SizeArithmetic):
        return value.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Collection) and isinstance(other, Collection):
        own = sorted(set(value) - set(other))
        return " ".join(x.name if isinstance(x, TensorDataType) else str(x) for x in own) or "without"
    return str(value)
