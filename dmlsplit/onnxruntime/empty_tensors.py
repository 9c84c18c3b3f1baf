"""The effect of tensors without elements on a model: outputs that are never written.

Source: DmlOperator.cpp and ExecutionProvider.cpp (CopyTensors) of ONNX Runtime's DirectML execution provider; executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.models.graph import Node, Value
from dmlsplit.onnxruntime.node_facts import facts_in, first_run
from dmlsplit.onnxruntime.node_prediction import predict
from dmlsplit.onnxruntime.placements import side
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.rules.onnxruntime import FAULTS
from dmlsplit.system.printable import printable
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import Provider

NAMED: Final = 5
"""The most lost outputs that a fault lists; its message names fewer."""
_OF_SPLITS: Final = frozenset({FaultKind.EMPTY_PART, FaultKind.EMPTY_SECOND_PART})


class LostOutputs(NamedTuple):
    """An output without elements, and the outputs that Run does not copy because of it."""

    empty: Value
    others: tuple[str, ...]
    """All lost outputs if the output never has elements, else the first few."""
    condition: str
    """The condition on sizes for having no elements; "" if the output never has any."""


def lost_outputs(graph: SessionGraph) -> Iterator[LostOutputs]:
    """Yields each output of a model that has no elements, or may have none, with the outputs that Run does not copy
    because of it.

    Outputs that are constants, or that the CPU computes, neither cause this nor are affected.
    """
    if graph.parent is not None:
        return
    shapes = {
        value: _shape(graph, value.name)
        for value in graph.graph.values.values()
        if value.is_output and value.producer is not None and side(graph, value) is Provider.DML
    }
    empty = {value for value, shape in shapes.items() if shape is not None and 0 in shape}
    if empty:
        others = tuple([value.name for value in shapes if value not in empty])
        if others:
            yield from (LostOutputs(value, others, "") for value in shapes if value in empty)
        return

    @cache
    def unaffected(size: str | int | None) -> list[str]:
        """Returns the names of the first outputs that may have elements if the size is 0: at most NAMED + 1, since the
        output itself may be among them."""
        names = (value.name for value, shape in shapes.items() if not _follows(shape, size))
        return list(islice(names, NAMED + 1))

    for value, shape in shapes.items():
        for size in [None] if shape is None else [dim for dim in shape if not isinstance(dim, int)]:
            others = tuple([name for name in unaffected(size) if name != value.name][:NAMED])
            if others:
                condition = f"{printable(size, 60)} = 0" if isinstance(size, str) else "one of its sizes is 0"
                yield LostOutputs(value, others, condition)
                break


def _follows(shape: Shape | None, size: str | int | None) -> bool:
    """True if a tensor of this shape has no elements whenever the symbolic size `size` is 0; False if `size` is not a
    symbol or the shape is unknown."""
    return isinstance(size, str) and shape is not None and size in shape


def _shape(graph: SessionGraph, name: str) -> Shape | None:
    """Returns the shape of an output at the first Run if it is known, else at session creation; None if both are
    unknown."""
    if graph.run_scope is not None:
        at_run = graph.run_scope.type_of(name)[1]
        if at_run is not None and is_static(at_run):
            return at_run
    return graph.shape(name)


def empty_parts(graph: SessionGraph, options: SessionOptions) -> Iterator[tuple[Node, FaultKind]]:
    """Yields the Split nodes on DirectML that have both empty and other parts, each with the kind of its fault, in a
    session with these options."""
    facts = facts_in(graph)
    if options.graph_fusion and not graph.fuses:
        options = replace(options, graph_fusion=False)
    for node in graph.order:
        if node.op_type != "Split" or node.index not in facts:
            continue
        run = first_run(graph, node.index)
        answer = predict(facts[node.index], graph.runtime, first_run=run, options=options)
        found = {kind for each in answer.diagnostics for kind in FAULTS.get(each.rule, ())} & _OF_SPLITS
        yield from ((node, kind) for kind in found)
