"""Recurrent networks that DirectML's kernels refuse, which fails session creation; onnx checks the rank of their first
input alone.

Source: DmlOperatorRecurrentNeuralNetwork.cpp and RecurrentHelper of OperatorHelper.cpp of ONNX Runtime; observed with
1.18.0 to 1.30.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from dmlsplit.descriptors.dims import Shape, shape_text
from dmlsplit.models.graph import Node, attribute
from dmlsplit.onnxruntime.facts import MIN_RANK
from dmlsplit.onnxruntime.session_graph import SessionGraph
from dmlsplit.system.integers import signed
from dmlsplit.system.printable import printable


class _Network(NamedTuple):
    """The gates of a network, and the activations that it has in each direction."""

    gates: int
    activations: int


NETWORKS: Final[Mapping[str, _Network]] = {"GRU": _Network(3, 2), "LSTM": _Network(4, 3), "RNN": _Network(1, 1)}
_ACTIVATIONS: Final = frozenset(
    b"Elu HardSigmoid LeakyRelu Relu ScaledTanh Sigmoid Softplus Softsign Tanh ThresholdedRelu".split()
)
_ACTIVATIONS_IN_ANY_CASE: Final = frozenset(name.lower() for name in _ACTIVATIONS)


def refused_recurrence(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a GRU, LSTM or RNN refuses it; "" for another node, if it takes it, and if the
    sizes are not known."""
    network, read = NETWORKS.get(node.op_type), node.proto.input
    if network is None or len(read) < 3:
        return ""
    direction = attribute(node, "direction")
    directions = 2 if direction is not None and direction.s == b"bidirectional" else 1
    shapes = [graph.shape(name) if name else None for name in read]
    data, weights = shapes[:2]
    if data is None or len(data) < 2 or any(shape is not None and 0 in shape for shape in shapes):
        return ""  # nothing is submitted for a tensor without elements
    if weights and isinstance(weights[0], int) and weights[0] != directions:
        return f"its weights are for {weights[0]} directions, not {directions}"
    given = attribute(node, "hidden_size")
    hidden = 1 if given is None else signed(given.i)
    if not hidden:
        return ""
    recurrence = shapes[2]
    if recurrence and isinstance(recurrence[-1], int) and recurrence[-1] != hidden:
        return f"its hidden_size is {hidden}, that of its weights {recurrence[-1]}"
    for i, (name, wanted) in enumerate(_wanted(network.gates, directions, hidden, data).items(), 1):
        shape = shapes[i] if i < len(shapes) else None
        if shape is not None and _differ(shape, wanted):
            return f"its input {name} is {shape_text(shape)}, not {shape_text(wanted)}"
    state = directions, data[1], hidden
    for name, wanted in zip(node.proto.output, ((data[0], *state), state, state), strict=False):
        shape = graph.shape(name) if name else None
        if shape is not None and (len(shape) != len(wanted) or _differ(shape, wanted)):
            return (
                f"its output {printable(name, 60)} is {shape_text(wanted)}, and that of the model {shape_text(shape)}"
            )
    return _refused_activation(graph, node, network.activations * directions)


def _wanted(gates: int, directions: int, hidden: int, data: Shape) -> dict[str, Shape]:
    """Maps the names of the inputs behind the first one, in their order, to their shapes."""
    batch, width = data[1], data[-1]
    state = directions, batch, hidden
    return {
        "W": (directions, gates * hidden, width),
        "R": (directions, gates * hidden, hidden),
        "B": (directions, 2 * gates * hidden),
        "sequence_lens": (batch,),
        "initial_h": state,
        "initial_c": state,
        "P": (directions, 3 * hidden),
    }


def _differ(shape: Shape, wanted: Shape) -> bool:
    """True if two shapes differ as they are in descriptors, with leading dimensions of 1."""
    if len(shape) > MIN_RANK:
        return True
    own, other = [(*(1,) * (MIN_RANK - len(each)), *each) for each in (shape, wanted)]
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(own, other, strict=True))


def _refused_activation(graph: SessionGraph, node: Node, count: int) -> str:
    given = attribute(node, "activations")
    names = [] if given is None else list(given.strings)
    if not names:
        return ""
    if len(names) < count:
        return f"it has {len(names)} activations, not {count}"
    any_case = graph.runtime.traits.activations_in_any_case
    for name in names[:count]:
        if name.lower() not in _ACTIVATIONS_IN_ANY_CASE if any_case else name not in _ACTIVATIONS:
            return f"its activation is '{printable(name.decode('utf-8', 'replace'), 60)}'"
    return ""
