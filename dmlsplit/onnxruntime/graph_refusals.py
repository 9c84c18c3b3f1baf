"""Fused graphs that CompileGraph refuses, by the model of it in dmlsplit.graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dmlsplit.graphs.traits import traits_of
from dmlsplit.onnxruntime.fused import FusedGraph
from dmlsplit.onnxruntime.graph_build import session_graphs
from dmlsplit.onnxruntime.graph_judging import GraphFault, compiles
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.printable import printable


class Refusal(NamedTuple):
    """The reason why CompileGraph refuses a fused graph, or may refuse it where it is not `certain`; `members` are the
    nodes of the model's graph, by index."""

    members: frozenset[int]
    why: str
    certain: bool


def refusals(graph: SessionGraph) -> Iterator[Refusal]:
    """The fused graphs of one graph of a model that are refused, or may be."""
    traits, graphs = traits_of(graph.runtime.release), session_graphs(graph)
    for variants in [*((fused,) for fused in graphs.fused), *(doubtful.variants for doubtful in graphs.doubtful)]:
        verdicts = [compiles(variant, traits) for variant in variants]
        faults = [verdict for verdict in verdicts if isinstance(verdict, GraphFault)]
        if len(verdicts) > len(faults) + verdicts.count(True) or 0 < len(faults) < len(verdicts):
            why = "whether CompileGraph takes its fused graph is not known"
            yield Refusal(_members(variants), why, certain=False)
        elif faults:
            node = variants[0].paths[faults[0].node or 0]
            yield Refusal(_members(variants), f"CompileGraph refuses a fused graph, at {printable(node, 60)}", True)


def _members(variants: tuple[FusedGraph, ...]) -> frozenset[int]:
    return frozenset().union(*(variant.members for variant in variants))
