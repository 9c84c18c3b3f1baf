"""How builds of DirectML differ in compiling graphs: one row of traits for each range of builds.

Observed: CompileGraph and a recorded dispatch, over a Direct3D 12 device without a GPU, and executions. A version
without a row was never observed compiling graphs.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from functools import lru_cache
from typing import Final

from dmlsplit.graphs.operators import BY_NUMBER, SIGMOID, Family
from dmlsplit.system.records import record
from dmlsplit.targets.releases import Release


class Fusion(enum.Enum):
    """Which products a build takes for x * sigmoid(x) and computes in one dispatch."""

    NONE = "nothing"
    PRODUCT = "p * sigmoid(q), if p and q are any outputs of the same node"
    CHAIN = "also (p * q) * sigmoid(r)"


class JoinPlacement(enum.Enum):
    """When the inputs of a Join are computed into the joined buffer."""

    EACH = "each input separately, if its place is aligned"
    ALL_OR_NONE = "all or none: every place must be aligned"


class FiveDimensions(enum.Enum):
    """How a build compiles a Split of five dimensions whose first size is not 1. A build refuses a Split along that
    dimension."""

    SOUND = "it is compiled like any other, also along the first dimension"
    BROKEN = "it is compiled incorrectly"
    UNKNOWN = "its result was not observed"


@record
class GraphTraits:
    """How a build compiles graphs, where builds differ."""

    fusion: Fusion = Fusion.PRODUCT
    join_placement: JoinPlacement = JoinPlacement.EACH
    splits_are_slices: bool = False
    """A Split becomes a Slice for each used output, so that each is elided or copied separately."""
    slices_are_views: bool = True
    """A Slice can be elided, as a Split can."""
    all_places_aligned: bool = False
    """A Split is elided only if all its outputs, unused ones included, begin at a multiple of 16 bytes."""
    one_home_per_node: bool = False
    """Only one output of a node is written directly to a graph output or into a joined buffer."""
    forgets_repeats: bool = False
    """If a Join reads a tensor more than once, only one of the places is written."""
    vector_reads: bool = False
    """A Split is elided only if its parts consist of whole 16-byte vectors, or only Splits and Joins read them."""
    vector_joins: bool = False
    """An input of a Join is computed in place only if its blocks consist of whole 16-byte vectors."""
    narrow_ranks: frozenset[int] = frozenset()
    """Ranks in which activations and Slices cannot read views."""
    narrow_ranks_take_rows: bool = False
    """Exception to that: views whose rows follow each other at one distance."""
    keeps_identities: bool = False
    """Identities are kept as copies, in place if possible."""
    joins_reuse_rows: bool = True
    """A tensor with other uses can still be computed directly into rows of a Join."""
    normalizations_take_rows: bool = False
    """A normalization reads and writes rows of a larger tensor, like any other operator of family WHOLE."""
    drops_activation_identities: bool = False
    """DML_OPERATOR_ACTIVATION_IDENTITY is removed like any other identity."""
    signs_in_place: bool = True
    """DML_OPERATOR_ELEMENT_WISE_SIGN works in place."""
    parts_stay_packed: bool = True
    """A part of a Split that is read by a Join and by an operator of packed tensors is computed; otherwise the Join
    gets the whole input if the other reader reads a view."""
    shares_thin_parts: bool = True
    """An operator works in place even on a part of a Split whose size along the axis is 1."""
    five_dimensions: FiveDimensions = FiveDimensions.SOUND
    loses_branches: bool = False
    """Of two outputs computed from one tensor, the later one may be wrong if a normalization is in its branch: its
    buffer seems to be reused while it is still needed. The sizes for which this happens are not known."""
    needs_all_outputs: bool = False
    """A graph output without an edge ends the process in CompileGraph."""

    def __hash__(self) -> int:
        # Hashing some fields is enough: traits are in the keys of caches that every graph reads, and there are few of
        # them.
        return hash((self.splits_are_slices, self.slices_are_views, self.vector_reads, self.narrow_ranks))


_NEW: Final = GraphTraits()
_CHAINS: Final = replace(_NEW, fusion=Fusion.CHAIN)
_SLICES: Final = replace(_CHAINS, splits_are_slices=True)
_OLD: Final = replace(
    _NEW,
    fusion=Fusion.NONE,
    join_placement=JoinPlacement.ALL_OR_NONE,
    slices_are_views=False,
    all_places_aligned=True,
    one_home_per_node=True,
    parts_stay_packed=False,
)
_IDENTITIES: Final = replace(_OLD, drops_activation_identities=True)
_FORGETFUL: Final = replace(_IDENTITIES, vector_reads=True, vector_joins=True, forgets_repeats=True)
# Operators of ranks six to eight read views.
_TF_1_15_8: Final = replace(_IDENTITIES, narrow_ranks=frozenset({5}), normalizations_take_rows=True)
_LEVEL_5_0: Final = replace(_TF_1_15_8, joins_reuse_rows=False, narrow_ranks_take_rows=True, shares_thin_parts=False)
_1_8_0: Final = replace(_LEVEL_5_0, keeps_identities=True, drops_activation_identities=False)
_LEVEL_4_1: Final = replace(_1_8_0, signs_in_place=False)
_LEVEL_2_1: Final = replace(_LEVEL_4_1, needs_all_outputs=True)
_LEVEL_3_0: Final = replace(_LEVEL_2_1, five_dimensions=FiveDimensions.BROKEN)
_LEVEL_3_0_NOT_EXECUTED: Final = replace(_LEVEL_3_0, five_dimensions=FiveDimensions.UNKNOWN)

TRAITS: Final[dict[str, GraphTraits]] = {
    "1.0.200610": _LEVEL_2_1,
    "1.3.0-dev2": _LEVEL_3_0_NOT_EXECUTED,
    "1.4.0": _LEVEL_3_0,
    "1.5.0": _LEVEL_3_0,
    "1.5.1": _LEVEL_3_0_NOT_EXECUTED,
    "1.7.0": _LEVEL_4_1,
    "1.8.0": _1_8_0,
    "1.8.2": _1_8_0,
    "1.9.0": replace(_LEVEL_5_0, loses_branches=True),
    "1.9.1": replace(_TF_1_15_8, loses_branches=True),
    "1.10.1": _FORGETFUL,
    "1.12.0": _OLD,
    "1.12.1": _OLD,
    "1.13.1": _NEW,
    "1.14.1": _NEW,
    "1.14.2": _CHAINS,
    "1.15.1": _SLICES,
    "1.15.2": _SLICES,
    "1.15.4": _SLICES,
}
"""Maps DirectML versions to traits, oldest first; the Linux and Windows builds of a version compile alike."""


def traits_of(release: Release) -> GraphTraits | None:
    """Returns the traits of a release's DirectML version; None if its compilation of graphs was never recorded."""
    return TRAITS.get(release.directml)


@lru_cache(maxsize=1024)
def that_decide(traits: GraphTraits, operators: frozenset[int]) -> GraphTraits:
    """Returns traits by which a graph of these operators (DML_OPERATOR_TYPEs) is compiled as by `traits`: equal ones
    for builds that differ only in what they make of other operators."""
    if SIGMOID not in operators and traits.fusion is Fusion.CHAIN:
        traits = replace(traits, fusion=Fusion.PRODUCT)
    cuts = any(number in BY_NUMBER and BY_NUMBER[number].family in _CUTTING for number in operators)
    return traits if cuts else replace(traits, splits_are_slices=False)


_CUTTING: Final = (Family.SPLIT, Family.SLICE)
