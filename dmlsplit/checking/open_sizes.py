"""The verdict on a node for all sizes that its model leaves open: cases, each with the conditions on which it holds.

for node in onnx.read("model.onnx"):
    print(node.path, open_answer(node, feature_level="1_0"))  # as it is (sizes at least 1, ...)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from dmlsplit.descriptors.conditions import (
    DIMENSIONS,
    ELEMENTS,
    GREATEST_SIZE,
    LEAST_SIZE,
    Condition,
    Expression,
    Term,
    Values,
    all_hold,
    at_least,
    conditions_text,
    depending,
    divides,
    product,
    solved,
    symbols_of,
    total,
)
from dmlsplit.descriptors.enums import UINT_MAX, FeatureLevel, OperatorType
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.legalize import movable_types
from dmlsplit.rules import valid_where
from dmlsplit.rules.operator import INPUT_ELEMENTS_MAX
from dmlsplit.system.records import record
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, Target, Use, find_target, level_targets

if TYPE_CHECKING:
    from dmlsplit.formats.element_types import ElementType
    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.nodes import SplitNode
    from dmlsplit.rules._facts import NodeFacts

BEYOND: Final = "not known for larger tensors: it depends on how they can be cut"


MOST_PARTS: Final = 1024
"""Nodes with more parts need known sizes: their conditions would be too many to read."""


class Case(NamedTuple):
    """The node's use where all conditions hold and no earlier case applies."""

    use: Use
    conditions: tuple[Condition, ...]


@record
class OpenAnswer:
    """A target's answer about a node of open sizes. `valid`: the conditions under which the framework allows it;
    `cases`: its uses; the first one whose conditions hold applies, and the use is unknown if there is none."""

    valid: tuple[Condition, ...]
    cases: tuple[Case, ...]

    def use(self, values: Values) -> Use:
        """Returns the node's use for these sizes, given by the names of symbols: Use.NOT_ASKED if the framework does
        not allow them, that of the first case whose conditions hold, Use.UNKNOWN if none does."""
        if not all_hold(self.valid, values):
            return Use.NOT_ASKED
        return next((case.use for case in self.cases if all_hold(case.conditions, values)), Use.UNKNOWN)

    @property
    def main(self) -> Use:
        """The usual use, that of the first case; unknown if there is none."""
        return self.cases[0].use if self.cases else Use.UNKNOWN

    @property
    def condition(self) -> str:
        """The conditions of the usual use as text; "" if it always holds."""
        return conditions_text(self._solved)

    @property
    def _solved(self) -> tuple[Condition, ...]:
        return solved((*self.valid, *(self.cases[0].conditions if self.cases else ()))) or ()

    def __str__(self) -> str:
        return self.head + self.rest

    @property
    def head(self) -> str:
        """The usual use with its conditions, as text: "as it is (sizes at least 1)"."""
        if not self.cases:
            return "not known" if solved(self.valid) is not None else "no sizes satisfy the framework's own rules"
        return f"{self.main.value} ({self.condition})" if self.condition else self.main.value

    @property
    def rest(self) -> str:
        """The uses otherwise, as text to append to `head`: "; no otherwise", "" if there are none."""
        if not self.cases:
            return ""
        said, others = [""], self.cases[1:]
        if any(case.use is Use.REFUSED for case in others):
            said.append(f"{Use.REFUSED.value} otherwise")
        ranks = [case for case in others[:-1] if case.use is Use.REWRITTEN]
        if ranks:
            said.append(f"{Use.REWRITTEN.value} with other numbers of dimensions")
        if others and others[-1].use is Use.REWRITTEN and any(c.relation == "at least" for c in self._solved):
            said.append(f"{Use.REWRITTEN.value} if a size is 0")
        if any(condition.of for condition in self._solved):
            said.append(BEYOND)
        return "; ".join(said)


def open_answer(
    node: SplitNode | JoinNode,
    feature_level: LevelLike = None,
    *,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
) -> OpenAnswer | None:
    """Returns the answer of a feature level or a release about a node for all of its open sizes. A version of ONNX
    Runtime is judged as the release that it ships.

    None if no size is open, if more than sizes is open (the rank, the axis, the element type), and if the node is wrong
    for all sizes. Raises ValueError for an unknown level, release or version or for several at once.
    """
    if not hasattr(node, "facts"):
        raise TypeError(f"node: a SplitNode or JoinNode is expected, not {type(node).__name__}")
    return answer_by(node, find_target(feature_level, directml, onnxruntime))


def answer_by(node: SplitNode | JoinNode, target: Target) -> OpenAnswer | None:
    """Returns the answer of one target about a node for all of its open sizes; None in the same cases as
    `open_answer`: no size is open, more than sizes is open, or the node is wrong for all sizes."""
    found = OpenNode.of(node)
    return None if found is None else found.answer(target)


@record
class OpenNode:
    """A node of open sizes as one operator with packed tensors; `valid` holds where its framework allows it."""

    kind: OperatorType
    element: ElementType
    whole: tuple[Expression, ...] | None
    """None if the rank is open as well."""
    parts: tuple[Expression, ...]
    axis: int
    valid: tuple[Condition, ...]

    @classmethod
    def of(cls, node: SplitNode | JoinNode) -> OpenNode | None:
        """Returns the OpenNode of a node; None if all sizes are known, if more than sizes is unknown, and for a node
        with errors or without a data type in DirectML."""
        facts, element = node.facts, node.element
        if facts is None or element is None or element.data_type is None or not node.report.ok:
            return None
        return _open_node(node.operator_type, element, facts)

    def answer(self, target: Target) -> OpenAnswer:
        """Returns a target's answer for all sizes; cases that no sizes satisfy are left out."""
        cases = [case for case in self.cases(target) if solved((*self.valid, *case.conditions)) is not None]
        return OpenAnswer(self.valid, tuple(cases))

    @property
    def lowest_level(self) -> FeatureLevel | None:
        """The lowest feature level that accepts the node as it is, under the conditions of that level's answer; None if
        none does."""
        return _lowest_level(self)

    def cases(self, target: Target) -> Iterator[Case]:
        """Yields a target's cases in order: of those whose conditions hold, the first applies. The framework is taken
        to allow the node."""
        held, count = self.element.data_type, self.element.count
        assert held is not None
        bits = ELEMENT_BITS[held]
        # Equal parts of a size that is a multiple of their number are empty only where the size is 0.
        own = [part for part in self.parts if not (isinstance(part, Term) and part.operation == "share")]
        sizes = (LEAST_SIZE,) if self.whole is None else self.whole
        present = tuple([at_least(size, 1) for size in (*sizes, *own)])
        moved = [ELEMENT_BITS[data_type] for data_type in movable_types(target, self.kind, held)]
        rows = target.support[self.kind]
        ranks = [n - (count > 1) for n in rows[0].dimension_counts if all(n in row.dimension_counts for row in rows)]
        typed = all(held in row.data_types for row in rows)
        taken = typed and (self.whole is None or len(self.whole) in ranks)
        # Moving elements as narrower ones multiplies their number; as wider ones, divides it.
        narrow = bits if taken else min(bits, moved[0])
        bounded = tuple(self._bounded(narrow, count * bits // narrow, target))
        together: tuple[Condition, ...] = ()
        if taken or moved[0] <= bits:
            if taken and self.element.is_native:
                yield Case(Use.AS_IT_IS, depending((*self._ranks(ranks), *present, *bounded)))
            if self.whole is None or not (taken and self.element.is_native):
                yield Case(Use.REWRITTEN, depending((*present, *bounded)))
        elif self.whole is None:
            return
        else:
            together = tuple(self._together(self.whole, min(moved) // bits))
            yield Case(Use.REWRITTEN, depending((*present, *bounded, *together)))
            if depending(together):
                yield Case(Use.REFUSED, depending((*present, *bounded)))
        greatest = (GREATEST_SIZE,) if self.whole is None else self.whole
        if depending(present):
            limits = [Condition(size, "at most", UINT_MAX) for size in greatest]
            yield Case(Use.REWRITTEN, depending((*limits, *bounded, *together)))

    def _ranks(self, ranks: list[int]) -> Iterator[Condition]:
        """Yields the conditions under which the rank is in `ranks`, consecutive numbers in ascending order; nothing if
        the rank is known."""
        if self.whole is not None:
            return
        if len(ranks) == 1:
            yield Condition(DIMENSIONS, "is", ranks[0])
        else:
            yield Condition(DIMENSIONS, "at least", max(ranks[0], 1))
            yield Condition(DIMENSIONS, "at most", ranks[-1])

    def _bounded(self, bits: int, factor: int, target: Target) -> Iterator[Condition]:
        """Yields the conditions under which no tensor exceeds the target's limit on its size. Tensors are taken as
        elements of `bits` bits, of which `factor` make one element of the node."""
        elements = ELEMENTS if self.whole is None else product(self.whole)
        yield Condition(elements, "at most", _most_elements(bits, target) // factor, "elements")
        if self.kind is OperatorType.JOIN and self.whole is not None:
            for part in self.parts:
                sizes = (*self.whole[: self.axis], part, *self.whole[self.axis + 1 :])
                yield Condition(product(sizes), "at most", INPUT_ELEMENTS_MAX // factor, "elements in an input")

    def _together(self, whole: tuple[Expression, ...], number: int) -> Iterator[Condition]:
        """Yields one condition a part, under which the contiguous runs of elements that the node moves are multiples
        of `number` elements long in each tensor; `whole` is the shape of the whole."""
        inner = (*whole[self.axis + 1 :], self.element.count)
        for part in self.parts:
            sizes = (*(whole[: self.axis] if len(self.parts) == 1 else ()), part, *inner)
            yield divides(number, product(sizes))


@lru_cache(maxsize=256)
def _open_node(kind: OperatorType, element: ElementType, facts: NodeFacts) -> OpenNode | None:
    """Returns the OpenNode of facts, None if no size is open or more than sizes is. Cached, since targets and equal
    nodes ask repeatedly."""
    whole, parts, axis, valid = facts.whole, facts.parts, facts.axis_index, valid_where(facts)
    if not parts or len(parts) > MOST_PARTS:
        return None
    if whole is None and facts.least_rank is not None:
        ranks = Condition(DIMENSIONS, "at least", facts.least_rank)
        return OpenNode(kind, element, None, parts, 0, (ranks, *valid))
    if whole is None or axis is None or not any(symbols_of(total((*whole, *parts)))):
        return None
    return OpenNode(kind, element, whole, parts, axis, valid)


@lru_cache(maxsize=256)
def _lowest_level(node: OpenNode) -> FeatureLevel | None:
    taking = (each.feature_level for each in level_targets() if node.answer(each).main is Use.AS_IT_IS)
    return next(taking, None)


@cache
def _most_elements(bits: int, target: Target) -> int:
    """Returns the most elements of `bits` bits that a packed tensor can have so that its total size, a multiple of 4
    bytes, is accepted."""
    limit = UINT_MAX * bits // 8
    if target.total_counts_whole_elements:
        limit += (bits - 1) // 8
    return min(UINT_MAX, limit // 4 * 4 * 8 // bits)
