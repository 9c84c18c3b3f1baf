"""The fused graphs that CompileGraph refuses, according to dmlsplit.graphs."""

from __future__ import annotations

from typing import NamedTuple

from dmlsplit.graphs.traits import GraphTraits
from dmlsplit.onnxruntime.fused import Part
from dmlsplit.onnxruntime.graph_judging import GraphFault, compiles
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.printable import printable


class Refusal(NamedTuple):
    """The reason why CompileGraph refuses a part; not `certain` where it only may."""

    why: str
    certain: bool


def refusal(part: Part, traits: GraphTraits | None) -> Refusal | None:
    """Returns why CompileGraph of a DirectML release with these traits refuses, or may refuse, a part's graph; None if
    it accepts it, or if no variant of the graph is known. Traits are None for a release that was never recorded."""
    verdicts = [compiles(variant, traits) for variant in part.variants]
    faults = [verdict for verdict in verdicts if isinstance(verdict, GraphFault)]
    if len(verdicts) > len(faults) + verdicts.count(True) or 0 < len(faults) < len(verdicts):
        return Refusal("whether CompileGraph takes its fused graph is not known", certain=False)
    if not faults:
        return None
    node = part.variants[0].paths[faults[0].node or 0]
    refuses = "ends the process for" if faults[0].fault.kind is FaultKind.PRODUCT_CRASHES else "refuses"
    return Refusal(f"CompileGraph {refuses} a fused graph, at {printable(node, 60)} ({faults[0].rule})", certain=True)
