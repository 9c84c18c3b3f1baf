"""The table of cures: for each fault of a fused graph the changes of the ONNX model that help against it.

Which cure for this finding? A finding has a `fault`:

    for cure in cures_of(finding.fault, directml="1.15.4"):     # the cheapest first
        cure.name, cure.change, cure.bit_exact, cure.adds_output

All of these were executed by ONNX Runtime with its DirectML execution provider, at optimization levels 0 and 99, and
gave the right result with every DirectML that they are named for. Two rules hold for all: leave no node behind whose
output nothing uses (Fault.DEAD), and make no output of a node in GUARDED a graph output, nor put an activation behind
such a graph output (Fault.UNWRITTEN).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.target import ReleaseLike, RuntimeLike, find_target_release


class Fault(enum.StrEnum):
    """The kinds of faults of a graph that a model's nodes become."""

    GATE = "gate"
    """a * sigmoid(b) of two outputs of one Split gives b * sigmoid(b)."""
    PRODUCT = "product"
    """(y * x) * sigmoid(x) gives x * x * sigmoid(x)."""
    REPEATED = "repeated"
    """Concat(v, v): one of the places is not written."""
    OVERWRITTEN = "overwritten"
    """v of Concat(v, y) is used after an elementwise operator g behind the Concat, which has destroyed it."""
    REFUSED = "refused"
    """One part of a Split of an intermediate is used, by an elementwise operator: the session is not made."""
    UNWRITTEN = "unwritten"
    """A graph output that also feeds an activation that is fused into its node: the output stays empty."""
    DEAD = "dead"
    """Nodes whose outputs nothing uses: the session is not made."""

    @property
    def rule(self) -> str:
        """The id of the rule that reports it."""
        return _RULES[self]


_RULES: Final = {
    Fault.GATE: "graph/fused-wrongly",
    Fault.PRODUCT: "graph/fused-wrongly",
    Fault.REPEATED: "graph/place-not-written",
    Fault.OVERWRITTEN: "graph/memory-overwritten",
    Fault.REFUSED: "graph/memory-too-small",
    Fault.UNWRITTEN: "graph/output-not-written",
    Fault.DEAD: "graph/empty",
}


@dataclass(frozen=True, slots=True)
class Cure:
    """One change of a model. `change` says it as an imperative; v, y, a, b, x, g are those of the Fault.

    `first_wrong` is the first DirectML with which it does not help, "" where it always did.
    """

    name: str
    fault: Fault
    change: str
    bit_exact: bool = True
    """Whether the model's results stay the same bit for bit."""
    adds_output: bool = False
    """Whether the model gets a further output."""
    first_wrong: str = ""
    condition: str = ""
    """Where it can be applied, "" where everywhere."""


CURES: Final = (
    Cure("two-slices", Fault.GATE, "take a and b with two Slices in place of the Split"),
    Cure("one-slice", Fault.GATE, "take a, or b, with a Slice beside the Split"),
    Cure("reshape-part", Fault.GATE, "put a Reshape to (0, ..., 0) behind a, or b"),
    Cure("max-part", Fault.GATE, "put Max(t, t) behind a, or b"),
    Cure("clip-sigmoid", Fault.GATE, "put Clip(0, 1) behind the Sigmoid"),
    Cure("sigmoid-output", Fault.GATE, "make the Sigmoid's output a graph output, too", adds_output=True),
    Cure("tanh-form", Fault.GATE, "compute the Sigmoid as 0.5 + 0.5 * tanh(0.5 * b)", bit_exact=False),
    Cure("reshape-factor", Fault.PRODUCT, "put a Reshape to (0, ..., 0) behind y * x"),
    Cure("max-factor", Fault.PRODUCT, "put Max(t, t) in front of the Sigmoid, or behind y * x"),
    Cure("clip-sigmoid", Fault.PRODUCT, "put Clip(0, 1) behind the Sigmoid"),
    Cure("regroup", Fault.PRODUCT, "compute y * (x * sigmoid(x)) instead", bit_exact=False),
    Cure("factor-output", Fault.PRODUCT, "make y * x a graph output, too", adds_output=True),
    Cure("max-branch", Fault.REPEATED, "put Max(v, v) in front of all but one of the Concat's inputs"),
    Cure("tile", Fault.REPEATED, "take a Tile in place of the Concat", condition="Concat(v, v) only"),
    Cure(
        "operator-first",
        Fault.OVERWRITTEN,
        "move the elementwise operator in front of the Concat: Concat(g(v), g(y))",
        condition="g is in MOVABLE; v is no graph output made by a node that g is fused into",
    ),
    Cure("max-input", Fault.OVERWRITTEN, "put Max(v, v) in front of the Concat"),
    Cure("concat-output", Fault.OVERWRITTEN, "make the Concat's output a graph output, too", adds_output=True),
    Cure("second-reader", Fault.OVERWRITTEN, "give the Concat a second reader (ReduceSum)", adds_output=True),
    Cure("cut-and-join", Fault.OVERWRITTEN, "put two Slices and a Concat behind the Concat"),
    Cure(
        "rename",
        Fault.OVERWRITTEN,
        "rename the graph outputs, so that v's other use comes before g in byte order",
        condition="v's other use and g are graph outputs, and nothing follows g",
    ),
    Cure(
        "operator-first",
        Fault.REFUSED,
        "put the elementwise operator in front of the Split",
        condition="the operator is in MOVABLE; only one part of the Split is used",
    ),
    Cure("gather", Fault.REFUSED, "take the part with a Gather in place of the Split"),
    Cure("negative-pad", Fault.REFUSED, "take the part with a Pad of negative pads in place of the Split"),
    Cure("max-part", Fault.REFUSED, "put Max(t, t) behind the part"),
    Cure("split-first", Fault.REFUSED, "split the operand of the node that feeds the Split"),
    Cure(
        "part-output",
        Fault.REFUSED,
        "make the Split's input, or one of its parts, a graph output, too",
        adds_output=True,
    ),
    Cure("slice", Fault.REFUSED, "take the part with a Slice in place of the Split", first_wrong="1.13.1"),
)
"""By fault, the cheapest first."""

UNSPLIT: Final = "set ep.dml.disable_graph_fusion to 1"
"""The setting that cures every fault but UNWRITTEN without a change of the model: operators are compiled one by one."""

GUARDED: Final = frozenset({"Add", "BatchNormalization", "Conv", "Gemm", "MatMul"})
"""Operators that optimization fuses an activation into, although their output is a graph output as well."""

MOVABLE: Final = frozenset({"Abs", "Ceil", "Clip", "Floor", "LeakyRelu", "Neg", "Relu", "Sign", "ThresholdedRelu"})
"""Elementwise operators of one tensor that may be moved over a Split or Concat: the result for an element is one
rounding at most, wherever it stands."""


def cures_of(fault: Fault, directml: ReleaseLike = None, *, onnxruntime: RuntimeLike = None) -> tuple[Cure, ...]:
    """The cures of a fault that help with a DirectML release, or with the one that a version of ONNX Runtime ships, the
    cheapest first; those that help with every one where neither is given.

    ValueError for an unknown release or version, or for both at once.
    """
    asked = directml is not None or onnxruntime is not None
    release = find_target_release(directml, onnxruntime) if asked else None

    def helps(cure: Cure) -> bool:
        if release is None or not cure.first_wrong:
            return not cure.first_wrong
        return version_key(release.directml) < version_key(cure.first_wrong)

    return tuple([cure for cure in CURES if cure.fault is fault and helps(cure)])
