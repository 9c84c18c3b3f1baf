"""Faults that CompileGraph introduces into a graph: values, their rules, and their sentences.

`Fault` describes what is wrong by kind, node and tensors. Only the functions below it turn faults into sentences.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from dmlsplit.system.printable import printable
from dmlsplit.system.records import record


class FaultKind(enum.StrEnum):
    """The kinds of faults. Those that dmlsplit fixes in a model have cures in dmlsplit.onnxruntime.cures."""

    GATE = "gate"
    """a * sigmoid(b), with a and b outputs of one Split, computes b * sigmoid(b)."""
    PRODUCT = "product"
    """(y * x) * sigmoid(x) computes x * x * sigmoid(x)."""
    PRODUCT_CRASHES = "product-crashes"
    """As PRODUCT, but the operand used instead does not exist: the process ends."""
    REPEATED = "repeated"
    """Concat(v, v): only one of the two places is written."""
    OVERWRITTEN = "overwritten"
    """v of Concat(v, y) is used after an elementwise operator g that reads the Concat and has overwritten v."""
    REFUSED = "refused"
    """Only one part of a Split of an intermediate tensor is used, by an elementwise operator: session creation
    fails."""
    WHOLE_TOO_LARGE = "whole-too-large"
    """The input of a Split is joined in place of a part, and is larger than its memory."""
    WHOLE_TOO_NARROW = "whole-too-narrow"
    """The input of a Split is joined in place of a part, and is larger than the part's place."""
    WHOLE_OVER_OTHERS = "whole-over-others"
    """The input of a Split is joined in place of a part, and overwrites the adjacent places."""
    WHOLE_FIRST = "whole-first"
    """The input of a Split is joined in place of a part that begins elsewhere."""
    FIVE_DIMENSIONS = "five-dimensions"
    """A Split of five dimensions or more reads from wrong places."""
    OUTER_SPLIT = "outer-split"
    """A Split along a dimension before the last four is refused."""
    OUTER_JOIN = "outer-join"
    """A Join along a dimension before the last four that copies its inputs is refused."""
    CONSTANT = "constant"
    """A constant is a node of the graph; older builds refuse that."""
    UNWRITTEN = "unwritten"
    """A graph output that also feeds an activation fused into its node: the output is never written."""
    DEAD = "dead"
    """Nodes whose outputs are not used: session creation fails."""
    EMPTY_PART = "empty-part"
    """A Split with an empty part: no part is written."""
    EMPTY_SECOND_PART = "empty-second-part"
    """A Split of which only the second part is empty: session creation fails."""
    EMPTY_OUTPUT = "empty-output"
    """An empty output of the model: the other outputs are not copied from the device."""
    MAY_BE_EMPTY = "may-be-empty"
    """As EMPTY_OUTPUT, but it depends on a size that is not known."""

    @property
    def rule(self) -> str:
        """The id of the rule that reports faults of this kind."""
        return _KINDS[self][0]


_WHOLE: Final = "the input of the Split ({node}) "

_KINDS: Final = {
    FaultKind.GATE: (
        "graph/fused-wrongly",
        "it computes q * sigmoid(q) with q = {tensors[0]}, not {tensors[1]} * sigmoid(q)",
    ),
    FaultKind.PRODUCT: (
        "graph/fused-wrongly",
        "it computes {tensors[0]} * r * sigmoid(r) with r = {tensors[1]}, not {tensors[2]} * {tensors[3]} * sigmoid(r)",
    ),
    FaultKind.PRODUCT_CRASHES: (
        "graph/fusion-crashes",
        "the fusion reads output {numbers[0]} of a node that has {numbers[1]}",
    ),
    FaultKind.REPEATED: (
        "graph/place-not-written",
        "the place of input {numbers[0]} of the Join ({node}) is never written",
    ),
    FaultKind.OVERWRITTEN: (
        "graph/memory-overwritten",
        "{operation} overwrites it, and its result is read instead",
    ),
    FaultKind.REFUSED: (
        "graph/memory-too-small",
        "{numbers[0]} bytes at offset {numbers[1]} do not fit into the {numbers[2]} bytes of {buffer}",
    ),
    FaultKind.WHOLE_TOO_LARGE: (
        "graph/whole-for-part",
        "{numbers[0]} bytes at offset {numbers[1]} do not fit into the {numbers[2]} bytes of {buffer}",
    ),
    FaultKind.WHOLE_TOO_NARROW: ("graph/whole-for-part", "its input does not fit into the place of a part"),
    FaultKind.WHOLE_OVER_OTHERS: ("graph/whole-for-part", _WHOLE + "overwrites the places next to that of a part"),
    FaultKind.WHOLE_FIRST: (
        "graph/whole-for-part",
        _WHOLE + "is joined instead of a part",
    ),
    FaultKind.FIVE_DIMENSIONS: (
        "graph/five-dimensions",
        "elements with a first index other than 0 are read from wrong positions",
    ),
    FaultKind.OUTER_SPLIT: (
        "graph/five-dimensions",
        "the Split has {numbers[0]} dimensions, and splits one before the last four",
    ),
    FaultKind.OUTER_JOIN: (
        "graph/five-dimensions",
        "the Join has {numbers[0]} dimensions, joins along one before the last four, and copies its inputs",
    ),
    FaultKind.CONSTANT: ("graph/constant-node", "a constant is a node of the graph"),
    FaultKind.UNWRITTEN: (
        "graph/output-not-written",
        "the output {tensors[0]} of {node} is never written, because the activation after it is fused into the node: "
        "Run returns an empty value for it",
    ),
    FaultKind.DEAD: (
        "graph/empty",
        "nothing uses what {nodes}: ONNX Runtime compiles a graph without nodes, and the session is not created",
    ),
    FaultKind.EMPTY_PART: (
        "graph/empty-part",
        "{node} has a part without elements: it is not executed, and none of its parts are written",
    ),
    FaultKind.EMPTY_SECOND_PART: (
        "graph/empty-part",
        "only the second part of {node} has no elements: ONNX Runtime adds the node to a fused graph, and the "
        "session is not created",
    ),
    FaultKind.EMPTY_OUTPUT: (
        "graph/empty-output",
        "the output {tensors[0]} has no elements, and Run does not copy {others} from the device: nothing is written "
        "there",
    ),
    FaultKind.MAY_BE_EMPTY: (
        "graph/output-may-be-empty",
        "if {condition}, the output {tensors[0]} has no elements, and Run does not copy {others} from the device",
    ),
}
"""Maps each kind to its rule and to the sentence that describes it."""

_SAY_ALL: Final = frozenset(
    {
        FaultKind.UNWRITTEN,
        FaultKind.DEAD,
        FaultKind.EMPTY_SECOND_PART,
        FaultKind.EMPTY_OUTPUT,
        FaultKind.MAY_BE_EMPTY,
    }
)
"""The kinds whose sentence is complete for a model."""


class NodeName(NamedTuple):
    """A node of a model: its operator and path."""

    op: str
    path: str

    def __str__(self) -> str:
        return f"{self.op} {printable(self.path, 60)}"


class TensorName(NamedTuple):
    """A tensor of a graph: an output of a node, or an input of the graph (`node` None)."""

    node: int | None
    number: int

    def __str__(self) -> str:
        return f"graph input {self.number}" if self.node is None else f"output {self.number} of node {self.node}"


Node: TypeAlias = int | NodeName | None
"""A node of a graph by index, or a node of a model by name; None for a copy that CompileGraph inserts."""


@record
class Fault:
    """One fault: its kind, the node that causes it, and the tensors and numbers involved, in order.

    For OVERWRITTEN the tensor is the one that is overwritten.

    In a graph, nodes and tensors are indices; `named` returns the fault with the names of a model.
    """

    kind: FaultKind
    node: Node
    tensors: tuple[TensorName | str, ...] = ()
    numbers: tuple[int, ...] = ()
    operator: str = ""
    """The operator of the dispatch that overwrites the tensor."""
    buffer: str = ""
    """The buffer that is too small."""
    nodes: tuple[NodeName, ...] = ()
    """All nodes of a part without readers, for DEAD."""
    condition: str = ""
    """The sizes for which the fault occurs; "" for all sizes."""

    @property
    def rule(self) -> str:
        return self.kind.rule

    @property
    def index(self) -> int | None:
        """The node's index in its graph; None for a copy, and in a fault that has a model's names."""
        return self.node if isinstance(self.node, int) else None

    def named(self, node: Callable[[int], NodeName], tensor: Callable[[TensorName], str]) -> Fault:
        """Returns this fault with indices of nodes and tensors replaced by the model's names, which the two functions
        return."""
        names = tuple([tensor(each) if isinstance(each, TensorName) else each for each in self.tensors])
        return replace(self, node=node(self.node) if isinstance(self.node, int) else self.node, tensors=names)

    @property
    def without_buffer(self) -> Fault:
        """This fault without its buffer, whose number depends on the rest of the graph."""
        return replace(self, buffer="")


def lost_tensor(fault: Fault) -> TensorName | str | None:
    """Returns the overwritten tensor; None for a fault of another kind."""
    return fault.tensors[0] if fault.kind is FaultKind.OVERWRITTEN and fault.tensors else None


def happens(fault: Fault) -> str:
    """Returns a sentence that says what happens, without the consequences: "node 3 (RELU) has written over it, and its
    result is read instead"."""
    return _KINDS[fault.kind][1].format_map(_Words(fault))


class _Words(dict[str, Any]):
    """The values for the placeholders of a fault's sentence, each computed when the sentence uses it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(numbers=fault.numbers, buffer=fault.buffer, condition=fault.condition)
        self._fault = fault

    def __missing__(self, word: str) -> object:
        return _WORDS[word](self._fault)


def _node(fault: Fault) -> str:
    return f"node {fault.node}" if isinstance(fault.node, int) else str(fault.node)


def _operation(fault: Fault) -> str:
    if fault.node is None:
        return "a copy"
    return f"{_node(fault)} ({fault.operator})" if isinstance(fault.node, int) else _node(fault)


_WORDS: Final[Mapping[str, Callable[[Fault], object]]] = {
    "node": _node,
    "operation": _operation,
    "tensors": lambda fault: [printable(str(tensor), 60) for tensor in fault.tensors],
    "others": lambda fault: first_names(list(map(str, fault.tensors[1:]))),
    "nodes": lambda fault: (
        f"{first_names([each.path for each in fault.nodes])} {'computes' if len(fault.nodes) == 1 else 'compute'}"
    ),
}


def of_output(index: int, fault: Fault) -> str:
    """Returns a sentence that says what is wrong with output `index` of a graph."""
    by = "a copy" if fault.node is None else f"Nodes[{fault.node}]"
    return f"graph output {index} is wrong: {happens(fault)} ({by})"


class Affected(NamedTuple):
    """Successive DirectML versions with the same fault, the ONNX Runtime versions that ship them, and those of the
    latter that are assumed to behave alike."""

    directml: Sequence[str]
    versions: Sequence[str]
    assumed: Sequence[str]

    def __str__(self) -> str:
        text = f"DirectML {_span(self.directml)}, that is ONNX Runtime {_span(self.versions)}"
        runs = groupby(self.versions, set(self.assumed).__contains__)
        *most, last = [_span(list(run)) for is_assumed, run in runs if is_assumed] or [""]
        assumed = f"{', '.join(most)} and {last}" if most else last
        return f"{text} ({assumed} not observed)" if assumed else text


def in_model(
    fault: Fault, culprit: NodeName, outputs: Sequence[str], *, leave: bool = False, reader: NodeName | None = None
) -> str:
    """Returns a sentence that says what is wrong with a model, for a fault that has the model's names.

    `outputs` are the wrong tensors, none if the graph is refused; `leave`: they are outputs of the model. `reader` is
    the only node that reads a part of what `culprit` computes.
    """
    said = happens(fault)
    if fault.kind in _SAY_ALL:
        return said
    if not outputs:
        if reader is not None:
            said = f"only one part of it is used, by {reader}, which runs in place: {said}"
        if fault.kind is FaultKind.PRODUCT_CRASHES:
            return f"CompileGraph crashes the process for the graph at {culprit}: {said}"
        return f"CompileGraph refuses the graph at {culprit}, and the session is not created: {said}"
    kind = "the output" if leave else "the tensor"
    subject = f"{kind}s {first_names(outputs)} are" if len(outputs) > 1 else f"{kind} {first_names(outputs)} is"
    place = "" if str(culprit) in said else f" ({culprit})"
    return f"{subject} wrong: {said}{place}"


def unknown(reason: str) -> str:
    """Returns the message of the rule graph/unknown about a model; `reason` is why the outcome is not known."""
    return f"the result of its graph is not known: {reason}"


def first_names(names: Sequence[str]) -> str:
    """Returns the names as text, separated by commas; of more than four, the first four and "..."."""
    return ", ".join(printable(name, 60) for name in names[:4]) + (", ..." if len(names) > 4 else "")


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
