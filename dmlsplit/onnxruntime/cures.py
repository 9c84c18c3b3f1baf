"""The table of cures: for each fault of a fused graph the changes of the ONNX model that cure it.

Which cure for this finding? A finding has a `fault`:

    for cure in cures_of(finding.fault.kind, directml="1.15.4"):     # the cheapest first
        cure.name, cure.sentence(), cure.bit_exact, cure.adds_output

Cures of faults that were observed with ONNX Runtime were executed by its DirectML execution provider, at optimization
levels 0 and 99, and gave the right result with every DirectML for which they are listed; the others are right by the
model of CompileGraph. Two rules hold for all cures: they leave no node whose output nothing uses (FaultKind.DEAD), and
they neither make an output of a node in GUARDED a graph output nor put an activation behind such a graph output
(FaultKind.UNWRITTEN). Where a cure may be applied, GUARDED and MOVABLE are in cure_places.py.

`check` applies the rows to a fused graph, and advises the first that is possible; `legalize` applies them to the model,
and dmlsplit.mending.cures makes the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from dmlsplit.onnxruntime.cure_places import (
    Around,
    CurePlace,
    Places,
    anywhere,
    has_sized_outputs,
    is_dead,
    is_doubled,
    is_repeated,
    itself,
    joined,
    joined_from,
    joined_parts,
    leaving,
    may_be_compressed,
    moves_behind_cut,
    moves_over_cut,
    moves_over_join,
    operands,
    other_uses,
    producers,
    taking,
    used_parts,
)
from dmlsplit.rules.graph_faults import FaultKind
from dmlsplit.system.records import record
from dmlsplit.targets.release_names import version_key
from dmlsplit.targets.target import ReleaseLike, RuntimeLike, find_target_release

_PLACES: Final = 4
"""The most places at which one cure is tried, the nearest first."""


@record
class Cure:
    """One change of a model. `change` describes it as an imperative; v, y, x, g, {a} and {b} are those of the
    FaultKind.

    `first_wrong` is the first DirectML for which it does not help, "" if it helps for all.
    """

    name: str
    fault: FaultKind
    change: str
    bit_exact: bool = True
    """True if the model's results stay the same bit for bit."""
    adds_output: bool = False
    """True if the model gets a further output."""
    renames: bool = False
    """True if outputs of the model get other names."""
    first_wrong: str = ""
    condition: str = ""
    """The condition for applying it, "" if there is none."""
    places: Places | None = None
    """Finds the places at which it may be applied; None for a change of the calls of Run, not of the model."""
    applies: Callable[[Around[Any], CurePlace], bool] = anywhere
    """True if it can be applied at a place."""

    @property
    def is_kept(self) -> bool:
        """True if a model may be written back with this cure: its results and outputs stay the same."""
        return self.places is not None and self.bit_exact and not self.adds_output and not self.renames

    def sentence(self, a: str = "a", b: str = "b") -> str:
        """Returns the change as an imperative sentence. `a` and `b` are the names of the two operands of the product at
        fault; a sentence that does not mention one ignores its name."""
        return self.change.format(a=a, b=b)

    def place(self, around: Around[Any], node: int, way: int, lost: Any = None) -> CurePlace | None:
        """Returns the place number `way` (0 is the nearest) at which to apply the cure against a fault of this node;
        None if there is no such place, if the cure does not apply there, or if it changes only how the model is run.

        `lost` is the tensor whose elements the fault loses, None if it loses none.
        """
        place = None if self.places is None else next(islice(self.places(around, node, lost), way, None), None)
        return place if place is not None and self.applies(around, place) else None


WHOLE_FAULTS: Final = (
    FaultKind.WHOLE_TOO_LARGE,
    FaultKind.WHOLE_TOO_NARROW,
    FaultKind.WHOLE_OVER_OTHERS,
    FaultKind.WHOLE_FIRST,
)

CURES: Final = (
    Cure(
        "two-slices",
        FaultKind.GATE,
        "replace the Split with two Slices that compute {a} and {b}",
        places=producers("Split"),
    ),
    Cure(
        "one-slice",
        FaultKind.GATE,
        "compute {a}, or {b}, with a Slice in addition to the Split",
        places=operands("Split"),
    ),
    Cure(
        "reshape-part",
        FaultKind.GATE,
        "insert a Reshape to (0, ..., 0) after {a}, or {b}",
        places=operands("Split"),
    ),
    Cure("max-part", FaultKind.GATE, "insert Max(t, t) after {a}, or {b}", places=operands("Split")),
    Cure("clip-sigmoid", FaultKind.GATE, "insert Clip(0, 1) after the Sigmoid", places=operands("Sigmoid")),
    Cure(
        "sigmoid-output",
        FaultKind.GATE,
        "make the Sigmoid's output a graph output as well",
        adds_output=True,
        places=operands("Sigmoid"),
    ),
    Cure(
        "tanh-form",
        FaultKind.GATE,
        "compute the Sigmoid as 0.5 + 0.5 * tanh(0.5 * {b})",
        bit_exact=False,
        places=operands("Sigmoid"),
    ),
    *(
        cure
        for fault in (FaultKind.PRODUCT, FaultKind.PRODUCT_CRASHES)
        for cure in (
            Cure("reshape-factor", fault, "insert a Reshape to (0, ..., 0) after y * x", places=operands("Mul")),
            Cure("max-factor", fault, "insert Max(t, t) before the Sigmoid, or after y * x", places=operands("Mul")),
            Cure("clip-sigmoid", fault, "insert Clip(0, 1) after the Sigmoid", places=operands("Sigmoid")),
            Cure(
                "regroup",
                fault,
                "compute y * (x * sigmoid(x)) instead",
                bit_exact=False,
                places=operands("Sigmoid"),
            ),
            Cure("factor-output", fault, "make y * x a graph output as well", adds_output=True, places=operands("Mul")),
        )
    ),
    Cure(
        "max-branch",
        FaultKind.REPEATED,
        "insert Max(v, v) before all but one of the Concat's inputs",
        places=itself,
        applies=is_repeated,
    ),
    Cure(
        "tile",
        FaultKind.REPEATED,
        "replace the Concat with a Tile",
        condition="only for Concat(v, v)",
        places=itself,
        applies=is_doubled,
    ),
    Cure(
        "operator-first",
        FaultKind.OVERWRITTEN,
        "move the elementwise operator before the Concat: Concat(g(v), g(y))",
        condition="g is in MOVABLE; v is not a graph output of a node into which g is fused",
        places=joined_from,
        applies=moves_over_join,
    ),
    Cure("max-input", FaultKind.OVERWRITTEN, "insert Max(v, v) before the Concat", places=taking),
    Cure(
        "concat-output",
        FaultKind.OVERWRITTEN,
        "make the Concat's output a graph output as well",
        adds_output=True,
        places=joined,
    ),
    Cure(
        "second-reader",
        FaultKind.OVERWRITTEN,
        "add a second reader of the Concat (ReduceSum)",
        adds_output=True,
        places=joined,
    ),
    Cure("cut-and-join", FaultKind.OVERWRITTEN, "insert two Slices and a Concat after the Concat", places=joined),
    Cure(
        "rename",
        FaultKind.OVERWRITTEN,
        "rename the graph outputs so that v's other use comes before g in byte order",
        renames=True,
        condition="v's other use and g are graph outputs, and nothing reads g",
        places=other_uses,
    ),
    Cure(
        "operator-first",
        FaultKind.REFUSED,
        "move the elementwise operator before the Split",
        condition="the operator is in MOVABLE; only one part of the Split is used",
        places=used_parts,
        applies=moves_over_cut,
    ),
    Cure("gather", FaultKind.REFUSED, "compute the part with a Gather instead of the Split", places=used_parts),
    Cure(
        "negative-pad",
        FaultKind.REFUSED,
        "compute the part with a Pad of negative pads instead of the Split",
        places=used_parts,
    ),
    Cure("max-part", FaultKind.REFUSED, "insert Max(t, t) after the part", places=used_parts),
    Cure(
        "split-first",
        FaultKind.REFUSED,
        "split the operand of the node that computes the Split's input",
        condition="that node is in MOVABLE, and only the Split reads it",
        places=used_parts,
        applies=moves_behind_cut,
    ),
    Cure(
        "part-output",
        FaultKind.REFUSED,
        "make the Split's input, or one of its parts, a graph output as well",
        adds_output=True,
        places=used_parts,
    ),
    Cure(
        "slice",
        FaultKind.REFUSED,
        "compute the part with a Slice instead of the Split",
        first_wrong="1.13.1",
        places=used_parts,
    ),
    *(
        Cure("max-part", fault, "insert Max(t, t) between the part and the Concat", places=joined_parts)
        for fault in WHOLE_FAULTS
    ),
    Cure("max-between", FaultKind.UNWRITTEN, "insert Max(t, t) between the node and the activation", places=leaving),
    Cure(
        "empty-constant",
        FaultKind.EMPTY_OUTPUT,
        "replace the output, which has no elements, with a constant",
        condition="all sizes of the output are known",
        places=itself,
        applies=has_sized_outputs,
    ),
    Cure(
        "compress",
        FaultKind.EMPTY_OUTPUT,
        "insert a Compress with an empty condition after the output, which the CPU executes",
        places=itself,
        applies=may_be_compressed,
    ),
    Cure(
        "ask-alone",
        FaultKind.EMPTY_OUTPUT,
        "request only the other outputs from Run",
    ),
    *(
        Cure("leave-out", fault, "remove the part from the Split, and replace it with a constant", places=itself)
        for fault in (FaultKind.EMPTY_PART, FaultKind.EMPTY_SECOND_PART)
    ),
    Cure("ask-alone", FaultKind.MAY_BE_EMPTY, "request that output in a separate Run"),
    Cure("remove-dead", FaultKind.DEAD, "remove what nothing uses", places=itself, applies=is_dead),
)
"""The cures of all faults, those of a fault with the cheapest first."""

UNSPLIT: Final = "set ep.dml.disable_graph_fusion to 1"
"""The setting that cures the faults of compiled graphs without a change of the model: operators are compiled one by
one."""

CURED_BY_UNSPLIT: Final = frozenset(FaultKind) - {
    FaultKind.UNWRITTEN,
    FaultKind.DEAD,
    FaultKind.EMPTY_PART,
    FaultKind.EMPTY_SECOND_PART,
    FaultKind.EMPTY_OUTPUT,
    FaultKind.MAY_BE_EMPTY,
}
"""The faults that the setting cures, except DEAD, for which removing the nodes costs nothing."""


def cures_of(fault: FaultKind, directml: ReleaseLike = None, *, onnxruntime: RuntimeLike = None) -> tuple[Cure, ...]:
    """Returns the cures of a fault that help with a DirectML release, or with the one that a version of ONNX Runtime
    ships, the cheapest first. Without either, the cures that help with every release.

    Raises ValueError for an unknown release or version, or for both at once.
    """
    asked = directml is not None or onnxruntime is not None
    release = find_target_release(directml, onnxruntime) if asked else None

    def helps(cure: Cure) -> bool:
        if release is None or not cure.first_wrong:
            return not cure.first_wrong
        return version_key(release.directml) < version_key(cure.first_wrong)

    return tuple([cure for cure in CURES if cure.fault is fault and helps(cure)])


@lru_cache(maxsize=1024)  # called for each fault of a graph
def ways(fault: FaultKind, directml: ReleaseLike) -> Sequence[tuple[Cure, range]]:
    """Returns the cures of a fault that can be written into a model, each with the numbers of the places at which it is
    applied. First come all cures at the nearest place, the cheapest first, then all at the next place, and so on; last,
    all at the nearest two, three and more places together, since a tensor that is in one Concat may be in several."""
    return tuple(_at_places([cure for cure in cures_of(fault, directml) if cure.is_kept]))


@lru_cache(maxsize=1024)
def all_ways(fault: FaultKind, directml: ReleaseLike) -> Sequence[tuple[Cure, range]]:
    """Returns the result of `ways`, followed by the cures that change the model's outputs, their names or rounding, in
    the same form; cures that change only how the model is run are left out."""
    cures = cures_of(fault, directml)
    return (*ways(fault, directml), *_at_places([each for each in cures if each.places and not each.is_kept]))


def _at_places(cures: Sequence[Cure]) -> list[tuple[Cure, range]]:
    single = [range(way, way + 1) for way in range(_PLACES)]
    together = [range(count) for count in range(2, _PLACES + 1)]
    return [(cure, places) for places in (*single, *together) for cure in cures]


def advised(fault: FaultKind, around: Around[Any], node: int, directml: ReleaseLike, lost: Any = None) -> Cure | None:
    """Returns the first cure of a fault, in the order of `all_ways`, that applies around the node; else the first that
    only changes how the model is run; None if there is neither. `lost` is the tensor whose elements the fault loses,
    None if it loses none."""
    found = (cure for cure, at in all_ways(fault, directml) if cure.place(around, node, at[0], lost) is not None)
    return next(found, None) or of_run(fault)


def of_run(fault: FaultKind) -> Cure | None:
    """Returns the first cure of a fault that changes only how the model is run; None if there is none."""
    return next((cure for cure in CURES if cure.fault is fault and cure.places is None), None)
