"""The graphs that builds executed, and what came out."""

from __future__ import annotations

from typing import Any, NamedTuple

from dmlsplit.conformance import recorded
from dmlsplit.conformance.recorded import graph as graph

Spec = dict[str, Any]


class Build(NamedTuple):
    """A build that executed graphs, and its DirectML version."""

    build: str
    directml: str


class Execution(NamedTuple):
    """A graph and what each build made of it: "refused", "error" (CreateOperator), "right", "wrong", or each output."""

    name: str
    spec: Spec
    verdicts: dict[Build, str | list[str]]


def executions() -> list[Execution]:
    """All that were recorded."""
    builds, *lines = recorded.lines("graphs/executions")
    found = []
    for name, spec, groups in lines:
        verdicts = {Build(**builds[i]): verdict for verdict, indices in groups for i in indices}
        found.append(Execution(name, spec, verdicts))
    return found
