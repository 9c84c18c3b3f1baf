"""Fused graphs that CompileGraph refuses, by the model of it in dmlsplit.graphs."""

from __future__ import annotations

from typing import NamedTuple

from dmlsplit.graphs.traits import GraphTraits
from dmlsplit.onnxruntime.fused import Part
from dmlsplit.onnxruntime.graph_judging import GraphFault, compiles
from dmlsplit.system.printable import printable


class Refusal(NamedTuple):
    """The reason why CompileGraph refuses a part, or may refuse it where it is not `certain`."""

    why: str
    certain: bool


def refusal(part: Part, traits: GraphTraits | None) -> Refusal | None:
    """Whether a release with these traits refuses the graph of a part; None where it takes it."""
    verdicts = [compiles(variant, traits) for variant in part.variants]
    faults = [verdict for verdict in verdicts if isinstance(verdict, GraphFault)]
    if len(verdicts) > len(faults) + verdicts.count(True) or 0 < len(faults) < len(verdicts):
        return Refusal("whether CompileGraph takes its fused graph is not known", certain=False)
    if not faults:
        return None
    node = part.variants[0].paths[faults[0].node or 0]
    return Refusal(f"CompileGraph refuses a fused graph, at {printable(node, 60)}", certain=True)
