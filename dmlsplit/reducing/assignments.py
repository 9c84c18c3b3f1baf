"""Where the nodes of a model ran on a machine, as reported by ONNX Runtime's Session_GetEpGraphAssignmentInfo, and
where that differs from the prediction.

The file is JSON: a list of subgraphs, or an object with one as "subgraphs". A subgraph has the members of
OrtEpAssignedSubgraph as Python names them: "ep_name" and "nodes", each with "name", "op_type" and "domain", of which
name and domain may be missing. Source: onnxruntime_c_api.h, since 1.24; it reports the nodes that exist after the basic
optimizations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dmlsplit.formats.jsontext import JsonText, KeyPath
from dmlsplit.system.records import record
from dmlsplit.verdicts.model_placements import NodePlacement, Provider, SessionAnswer

PROVIDERS: Final[Mapping[str, Provider]] = {
    "DmlExecutionProvider": Provider.DML,
    "CPUExecutionProvider": Provider.CPU,
}


class Assigned(NamedTuple):
    """One node on the machine; `op` starts with its domain, unless that is the default one."""

    name: str
    op: str
    provider: str
    """The name of the execution provider; "DML" and "CPU" for those two."""


class Difference(NamedTuple):
    """A node that the machine ran elsewhere than predicted."""

    node: str
    op: str
    predicted: str
    machine: str


class Count(NamedTuple):
    """The number of nodes of an operator that ran with one provider on the machine, and the number predicted; only for
    an operator that has equally many nodes in both."""

    op: str
    provider: str
    predicted: int
    machine: int


@record
class Comparison:
    """The comparison of a prediction with a machine. `alike` is the number of nodes that were found by name and ran
    where predicted."""

    alike: int
    differences: tuple[Difference, ...]
    counts: tuple[Count, ...]
    """Differing counts of the nodes that were not found by name."""
    unpredicted: int
    """Nodes on the machine that are not found in the model by name: optimization created them, or they have no name."""

    @property
    def differs(self) -> bool:
        """True if any node ran elsewhere than predicted."""
        return bool(self.differences or self.counts)

    def to_dict(self) -> dict[str, object]:
        """Returns the JSON form as a dict."""
        return {
            "alike": self.alike,
            "differences": [each._asdict() for each in self.differences],
            "counts": [each._asdict() for each in self.counts],
            "unpredicted": self.unpredicted,
        }


def read(file: str) -> list[Assigned]:
    """Returns the nodes that the file lists, with the providers that ran them. Raises InputError, with line and column,
    for a file of any other form, OSError if it cannot be read."""
    text = JsonText.of_file(file)
    return list(_subgraphs(text))


def _subgraphs(text: JsonText) -> Iterator[Assigned]:
    path: KeyPath = ("subgraphs",) if isinstance(text.value, dict) else ()
    for i, subgraph in enumerate(_list(text, path)):
        here = (*path, i)
        provider = _string(text, subgraph, "ep_name", here)
        for k, node in enumerate(_list(text, (*here, "nodes"), subgraph)):
            place = (*here, "nodes", k)
            op = _string(text, node, "op_type", place)
            domain = _string(text, node, "domain", place, "")
            named = op if domain in ("", "ai.onnx") else f"{domain}.{op}"
            yield Assigned(_string(text, node, "name", place, ""), named, str(PROVIDERS.get(provider, provider)))


def _list(text: JsonText, path: KeyPath, holder: object = None) -> list[object]:
    value = text.value if not path else (holder if holder is not None else text.value)
    if path:
        value = value.get(path[-1]) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise text.error(path[:-1], f"a list of {'nodes' if path[-1:] == ('nodes',) else 'subgraphs'} is expected")
    return value


def _string(text: JsonText, holder: object, name: str, path: KeyPath, default: str | None = None) -> str:
    value = holder.get(name, default) if isinstance(holder, dict) else None
    if not isinstance(value, str):
        raise text.error(path, f'an object with a string "{name}" is expected')
    return value


def compared(predicted: SessionAnswer, machine: list[Assigned]) -> Comparison:
    """Compares a prediction with a machine and returns the differences: nodes are compared by name, those without a
    unique name by the counts of their operators."""
    by_name = Counter(node.name for node in machine if node.name)
    known: dict[str, NodePlacement] = {path: node for path, node in predicted.nodes.items() if _runs(node)}
    differences: list[Difference] = []
    found: set[str] = set()
    left: list[Assigned] = []
    alike = 0
    for node in machine:
        wanted = known.get(node.name) if by_name[node.name] == 1 else None
        if wanted is None or wanted.op != node.op:
            left.append(node)
            continue
        found.add(node.name)
        if str(wanted.provider) == node.provider:
            alike += 1
        elif wanted.provider in (Provider.DML, Provider.CPU):
            differences.append(Difference(node.name, node.op, str(wanted.provider), node.provider))
    others = [node for path, node in known.items() if path not in found]
    return Comparison(alike, tuple(differences), tuple(_counts(others, left)), len(left))


def _runs(node: NodePlacement) -> bool:
    return node.provider is not Provider.FOLDED


def _counts(predicted: list[NodePlacement], machine: list[Assigned]) -> Iterator[Count]:
    """Yields the counts of nodes by operator and provider that differ, for operators with equally many nodes in both
    and no unknown placement."""
    all_of = Counter(node.op for node in predicted)
    there = Counter(node.op for node in machine)
    known = Counter((node.op, str(node.provider)) for node in predicted)
    ran = Counter((node.op, node.provider) for node in machine)
    unknown = {node.op for node in predicted if node.provider not in (Provider.DML, Provider.CPU)}
    for op, provider in sorted({*known, *ran}):
        if all_of[op] == there[op] and op not in unknown and known[op, provider] != ran[op, provider]:
            yield Count(op, provider, known[op, provider], ran[op, provider])
