"""The caller's choices for showing a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dmlsplit.descriptors.diagnostics import Severity
    from dmlsplit.targets.target import Target


class Shown(NamedTuple):
    """`verbose`: shows each note and warning separately. `only_problems`: omits accepted operators. `runtimes`: the
    versions of ONNX Runtime for which a page has columns. `fail_on`: what makes the check fail besides errors:
    "warning", "unknown". `runtime_to_ask`: the version of ONNX Runtime that a report without one suggests for models,
    "" if one is asked. `known`: the numbers of diagnostics that a baseline hides, which grow with the results."""

    verbose: bool = False
    only_problems: bool = False
    runtimes: tuple[Target, ...] = ()
    fail_on: tuple[str, ...] = ()
    runtime_to_ask: str = ""
    known: Mapping[Severity, int] = {}


AS_USUAL: Final = Shown()
