"""Runs a framework's Splits and Concats on DirectML: the rewritten operators, with arrays of the framework's types and
shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report
from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.descriptors.geometry import Side, members_of
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.element_types import ElementType
from dmlsplit.legalize import Legalization
from dmlsplit.legalize.search import legalized
from dmlsplit.native.binding import NUMPY_DTYPE
from dmlsplit.rules import RULES
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.system.errors import BindingError
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from dmlsplit.descriptors.call_types import Array, Bindable

NO_SPLIT: Final = SplitOperatorDesc(None, None, 0)
NO_JOIN: Final = JoinOperatorDesc(None, None, 0)
"""The `desc` of a node that is not an operator."""


class LoweredNode(Protocol):
    """The members of OperatorNode that a rewriting uses."""

    @property
    def operator_type(self) -> OperatorType: ...
    @property
    def path(self) -> str: ...
    @property
    def data_type(self) -> str | None: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def lengths(self) -> Shape | None: ...
    @property
    def whole_shape(self) -> Shape | None: ...
    @property
    def report(self) -> Report: ...
    @property
    def element(self) -> ElementType | None: ...
    @property
    def facts(self) -> NodeFacts | None: ...
    def obstacle(self) -> Diagnostic | None: ...
    def descriptor(self) -> OperatorDesc: ...


@dataclass(frozen=True)
class NodeLegalization(Legalization[Any]):
    """A Legalization that takes arrays of the framework's type and shape; other buffers are raw memory, as in the base
    class.

    If an element is stored as several DirectML elements, the outputs of `dispatch` must be C-contiguous.
    """

    element: ElementType | None = None
    path: str = ""

    @property
    def is_rewritten(self) -> bool:
        """True if the operators differ from the node's own descriptor, or if another data type carries its elements; a
        resolved negative axis alone does not count."""
        return self.operators != (self.desc,) or (self.element is not None and not self.element.is_native)

    def execute(self, input: Any) -> Any:
        made: Any = super().execute(self._lowered(input, "input"))
        return [self._raised(output) for output in made] if isinstance(made, list) else self._raised(made)

    def dispatch(self, input: Any, out: Any) -> None:
        super().dispatch(self._lowered(input, "input"), self._lowered(out, "output", copies=False))

    def _lowered(self, given: Any, side: Side, *, copies: bool = True) -> Any:
        """Returns `given`, the framework's array or arrays of `side` ("input" or "output"), as arrays of DirectML
        elements: one array for a Split's input or a Concat's output, else a list. `copies`: an array may be copied to
        make it contiguous."""
        if side == members_of(self.desc).roles.whole_side:
            return self._array(given, side, copies)
        return [self._array(array, f"{side}s[{i}]", copies) for i, array in enumerate(given)]

    def _array(self, array: Bindable, what: str, copies: bool) -> Bindable:
        if not isinstance(array, np.ndarray) or self.element is None or self.element.data_type is None:
            return array
        dtype = self.element.dtype()
        if array.dtype != dtype:
            if array.dtype == np.uint8 and array.ndim == 1:
                return array
            raise BindingError(f"{self.path}: {what} has type {array.dtype}, {dtype} is expected")
        held = NUMPY_DTYPE[self.element.data_type]
        if self.element.count == 1:
            return array.view(held)
        if not array.flags.c_contiguous:
            if not copies:
                raise BindingError(f"{self.path}: {what} is not C-contiguous, as elements in {held} must be")
            array = np.ascontiguousarray(array)
        return array.view(held).reshape(*array.shape, self.element.count)

    def _raised(self, array: Array) -> Array:
        assert self.element is not None
        dtype = self.element.dtype()
        if self.element.count == 1:
            return array.view(dtype)
        return array.reshape(-1).view(dtype).reshape(array.shape[:-1])


def legalized_node(node: LoweredNode, target: Target) -> Legalization[Any]:
    """Returns the legalization of a node for one target; it implements SplitNode.legalize and JoinNode.legalize. If the
    node is not a DirectML operator, the result is not ok and its report says why."""
    splits = node.operator_type is OperatorType.SPLIT
    obstacle = node.obstacle()
    if obstacle is not None:
        report = Report((obstacle,), target.name, None, node.report.operator)
        return Legalization(NO_SPLIT if splits else NO_JOIN, False, report)
    steps = tuple(_steps(node))
    found = legalized(node.descriptor(), target)
    report = found.report
    # ONNX Runtime drops a Concat's empty inputs, as the rewriting does, so nothing is lost.
    if splits and 0 in (*(node.whole_shape or ()), *(node.lengths or ())):
        skipped = RULES["node/empty-tensor"].diagnostic(
            Location(node=node.path),
            "ONNX Runtime's DirectML back end skips the whole operator, because a tensor has no elements",
        )
        report = replace(report, diagnostics=(*report.diagnostics, skipped))
    given = {f.name: getattr(found, f.name) for f in fields(found)}
    changed: dict[str, Any] = {**given, "report": report, "steps": (*steps, *found.steps)}
    return NodeLegalization(**changed, element=node.element, path=node.path)


def _steps(node: LoweredNode) -> Iterator[str]:
    """Yields one sentence for each change between the framework's node and its descriptor: the data type that carries
    the elements, and a negative axis."""
    assert node.element is not None
    assert node.element.data_type is not None
    count, held = node.element.count, node.element.data_type
    if not node.element.is_native:
        yield f"{node.data_type} is copied as {f'{count} of ' if count > 1 else ''}{held.name}, the same bits"
    given = getattr(node.facts, "axis", None)
    if isinstance(given, int) and given < 0:
        yield f"axis {given} becomes {node.axis}"
