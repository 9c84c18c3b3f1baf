"""Nodes that do nothing are removed, one by one in the order of ONNX Runtime's walk.

Source: rule_based_graph_transformer.cc of ONNX Runtime, and a file for each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final, TypeAlias

from dmlsplit.formats.onnx.walking import depth_first
from dmlsplit.models.graph import Graph, Node, Value
from dmlsplit.models.taken_branches import UntakenIfs
from dmlsplit.onnxruntime.passes.cast_elimination import cast_elimination
from dmlsplit.onnxruntime.passes.clip_quantizelinear import clip_quantizelinear
from dmlsplit.onnxruntime.passes.dropout_elimination import dropout_elimination
from dmlsplit.onnxruntime.passes.expand_elimination import expand_elimination
from dmlsplit.onnxruntime.passes.identity_elimination import (
    identity_elimination,
    write_outputs,
    write_outputs_of_branches,
)
from dmlsplit.onnxruntime.passes.noop_elimination import noop_elimination
from dmlsplit.onnxruntime.passes.patterns import CLIPS
from dmlsplit.onnxruntime.passes.pre_shape_node_elimination import (
    first_pre_shape_node_elimination,
    pre_shape_node_elimination,
)
from dmlsplit.onnxruntime.passes.slice_elimination import slice_elimination

Rule: TypeAlias = Callable[[Graph, Node], Value | None]
"""Returns the value that can replace a node's output; None if the node does something."""

RULES: Final[Mapping[str, Sequence[Rule]]] = {
    "Cast": (cast_elimination, pre_shape_node_elimination),
    "Dropout": (dropout_elimination,),
    "Expand": (expand_elimination,),
    "Identity": (identity_elimination,),
    "Slice": (slice_elimination,),
    **dict.fromkeys(("Add", "Div", "Mul", "Sub"), (noop_elimination,)),
    **dict.fromkeys(CLIPS, (clip_quantizelinear,)),
}
_OF_BRANCHES: Final = {op_type: rules for op_type, rules in RULES.items() if op_type != "Identity"}
"""The rules that apply after branches have taken the places of their Ifs; Identities have passes of their own."""
_FIRST: Final = {**_OF_BRANCHES, "Cast": (cast_elimination, first_pre_shape_node_elimination)}
"""The rules that apply before anything is folded."""


def remove_first_noops(graph: Graph) -> None:
    """Removes, in place, the nodes other than Identities that do nothing, unless they compute outputs of graphs or
    branches; then the Identities of outputs that the nodes in front of them can compute."""
    _remove(graph, _FIRST, graph.facts.branches.given, graph.untaken_ifs)
    write_outputs(graph)


def noops_of_branches(graph: Graph) -> None:
    """Removes, in place, the nodes other than Identities that do nothing, including those that compute outputs of
    branches, after branches have taken the places of their Ifs; then Identities of outputs, as `remove_first_noops`
    does."""
    if graph.facts.branches.given:
        _remove(graph, _OF_BRANCHES, ())
        write_outputs_of_branches(graph)


def remove_noops(graph: Graph) -> None:
    """Removes, in place, the nodes that do nothing, unless they compute graph outputs; then the Identities of graph
    outputs that the nodes in front of them can compute."""
    _remove(graph, RULES, ())
    write_outputs_of_branches(graph)


def _remove(
    graph: Graph, rules: Mapping[str, Sequence[Rule]], kept: Container[str], ifs: UntakenIfs | None = None
) -> None:
    """Removes, in place, the nodes that do nothing according to `rules`, except those whose output is in `kept`. `ifs`
    are those whose branches have yet to take their places, None if there are none."""
    if not any(rule(graph, node) for node in graph.nodes for rule in rules.get(node.op_type, ())):
        return  # the order of the nodes matters only after one is removed
    instead: dict[Value, Value] = {}
    for node in list(depth_first(reversed(graph.nodes), lambda node: reversed(node.producers))):
        graph.redirect(node, instead)
        if node.op_type not in rules:
            continue
        found = (rule(graph, node) for rule in rules[node.op_type])
        source = next((value for value in found if value is not None), None)
        if source is None or not _can_be_removed(node) or node.outputs[0].name in kept:
            continue
        result = node.outputs[0]
        within = [reader for reader in result.readers if reader.captured and result in reader.captured]
        if not all(reader.names_inside.can_rename(result.name, source.name) for reader in within):
            continue
        if any(value.is_output for value in node.outputs):
            continue
        if ifs is not None:
            if not ifs.can_rename(result.name, source.name, graph.facts.branches.chain(result.name)):
                continue
            ifs.rename(result.name, source.name)
        instead[result] = source
        for reader in within:
            reader.names_inside = reader.names_inside.renamed(result.name, source.name)
        graph.remove(node)
    graph.redirect_all(instead)


def _can_be_removed(node: Node) -> bool:
    """True if a node has one input, or has exactly one input that a node of the graph computes. Source: CanRemoveNode
    of graph_utils.cc."""
    return len(node.inputs) == 1 or sum(v.producer is not None for v in node.inputs) == 1
