"""A framework's Split in DirectML: the rewritten operators, fed with arrays of the framework's type and shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from dmlsplit._binding import NUMPY_DTYPE
from dmlsplit.descriptors import SplitOperatorDesc
from dmlsplit.diagnostics import Report
from dmlsplit.enums import FeatureLevel
from dmlsplit.errors import BindingError
from dmlsplit.formats.element_types import ElementType
from dmlsplit.legalize import Legalization, legalized
from dmlsplit.location import Location
from dmlsplit.releases import Release
from dmlsplit.rules import RULES
from dmlsplit.target import Target, find_target

if TYPE_CHECKING:
    from dmlsplit._typing import Bindable
    from dmlsplit.formats.nodes import SplitNode

NO_OPERATOR: Final = SplitOperatorDesc(None, None, 0)
"""The `desc` of a node that stands for no operator."""


@dataclass(frozen=True)
class NodeLegalization(Legalization[SplitOperatorDesc]):
    """A Legalization whose arrays are the framework's; other buffers are raw memory, as for any."""

    element: ElementType | None = None
    path: str = ""

    def execute(self, input: Bindable) -> list[np.ndarray]:
        """Runs the operators on an array of the framework's type and shape into fresh ones."""
        outputs = super().execute(self._lowered(input, "input"))
        return [self._raised(output) for output in outputs]

    def dispatch(self, input: Bindable, out: Sequence[Bindable]) -> None:
        """Runs the operators in the caller's buffers; arrays of several DirectML elements each are C-contiguous."""
        lowered = [self._lowered(array, f"outputs[{i}]", copies=False) for i, array in enumerate(out)]
        super().dispatch(self._lowered(input, "input"), lowered)

    def _lowered(self, array: Bindable, what: str, copies: bool = True) -> Bindable:
        if not isinstance(array, np.ndarray) or self.element is None or self.element.data_type is None:
            return array
        dtype = self.element.dtype()
        if array.dtype != dtype:
            if array.dtype == np.uint8 and array.ndim == 1:
                return array
            raise BindingError(f"{self.path}: {what} is of type {array.dtype}, {dtype} is expected")
        held = NUMPY_DTYPE[self.element.data_type]
        if self.element.count == 1:
            return array.view(held)
        if not array.flags.c_contiguous:
            if not copies:
                raise BindingError(f"{self.path}: {what} is not C-contiguous, as elements in {held} have to be")
            array = np.ascontiguousarray(array)
        return array.view(held).reshape(*array.shape, self.element.count)

    def _raised(self, array: np.ndarray) -> np.ndarray:
        assert self.element is not None
        dtype = self.element.dtype()
        if self.element.count == 1:
            return array.view(dtype)
        return array.reshape(-1).view(dtype).reshape(array.shape[:-1])


def legalize(
    node: SplitNode, feature_level: FeatureLevel | int | str | None, directml: Release | str | None
) -> Legalization[SplitOperatorDesc]:
    """SplitNode.legalize."""
    return legalized_node(node, find_target(feature_level, directml))


def legalized_node(node: SplitNode, target: Target) -> Legalization[SplitOperatorDesc]:
    """`legalize` for one target."""
    obstacle = node.obstacle()
    if obstacle is not None:
        return Legalization.refused(NO_OPERATOR, Report((obstacle,), target.name, None, node.report.operator))
    found = legalized(node.descriptor(), target)
    report = found.report
    if 0 in (*(node.input_shape or ()), *(node.lengths or ())):
        skipped = RULES["node/empty-tensor"].diagnostic(
            Location(node=node.path),
            "ONNX Runtime's DirectML back end skips the whole operator, since a tensor has no elements",
        )
        report = replace(report, diagnostics=(*report.diagnostics, skipped))
    given = {f.name: getattr(found, f.name) for f in fields(found)}
    changed = {"report": report, "steps": (*_steps(node), *found.steps)}
    return NodeLegalization(**{**given, **changed}, element=node.element, path=node.path)


def is_rewritten(node: SplitNode, found: Legalization) -> bool:
    """Whether more was changed than how the axis is counted."""
    return found.operators != (found.desc,) or (node.element is not None and not node.element.is_native)


def _steps(node: SplitNode) -> Iterator[str]:
    """What the descriptor itself changed of the framework's node."""
    assert node.element is not None
    assert node.element.data_type is not None
    count, held = node.element.count, node.element.data_type
    if not node.element.is_native:
        yield f"{node.data_type} is moved as {f'{count} of ' if count > 1 else ''}{held.name}, the same bits"
    given = getattr(node.facts, "axis", None)
    if isinstance(given, int) and given < 0:
        yield f"axis {given} becomes {node.axis}"
