"""A Concat node of a framework's model, as the front ends describe it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dmlsplit.descriptors import BufferTensorDesc, JoinOperatorDesc
from dmlsplit.diagnostics import Diagnostic, Report, Severity
from dmlsplit.dims import Dim, Shape, agrees, shape_text
from dmlsplit.enums import FeatureLevel, OperatorType
from dmlsplit.errors import InputError
from dmlsplit.formats.element_types import ElementType
from dmlsplit.formats.nodes import MAX_SIZE
from dmlsplit.formats.sessions import InSession, SessionNode
from dmlsplit.location import Location
from dmlsplit.printable import printable
from dmlsplit.releases import Release
from dmlsplit.rules import RULES, NodeFacts, judge_node
from dmlsplit.runtime_versions import Runtime
from dmlsplit.target import find_target

if TYPE_CHECKING:
    from dmlsplit.legalize import Legalization


@dataclass(frozen=True, slots=True)
class JoinNode(SessionNode):
    """One Concat of a model; as SplitNode, with inputs and one output.

    `axis` is resolved to 0..rank-1 where the rank is known; `lengths` are the inputs' sizes on it. Sizes are None, or a
    symbol's name, where the model says no more.
    """

    operator_type: ClassVar = OperatorType.JOIN
    name: str
    op: str
    version: int
    input_shapes: tuple[Shape | None, ...]
    data_type: str | None
    """The framework's name of the element type: FLOAT, f32."""
    axis: int | None
    lengths: tuple[Dim, ...] | None
    output_shape: Shape | None
    report: Report
    element: ElementType | None = field(repr=False)
    graph: str = ""
    input_names: tuple[str, ...] = ()
    output_name: str = ""
    facts: NodeFacts | None = field(default=None, repr=False)
    """What the report was made from; with it, `execute` judges a node of unknown sizes anew for those of the arrays."""
    in_session: InSession | None = field(default=None, repr=False, compare=False)
    """The node in the session of its model; None where its model is not ONNX's."""

    def descriptor(self) -> JoinOperatorDesc:
        """The node as one DirectML operator with packed tensors, before any level's limits: it may have nine
        dimensions or empty inputs. An element of 2 or 4 DirectML elements adds an innermost dimension.

        InputError where there is no such operator: unknown sizes, faults, or elements that no data type carries.
        """
        obstacle = self.obstacle()
        if obstacle is not None:
            raise InputError(f"{self.path}: {obstacle.message}")
        assert self.element is not None
        assert self.element.data_type is not None
        assert self.axis is not None
        sizes, lengths = _numbers(self.output_shape), _numbers(self.lengths)
        if self.element.count > 1:
            sizes = (*sizes, self.element.count)
        return JoinOperatorDesc.from_lengths(BufferTensorDesc(self.element.data_type, sizes), self.axis, lengths)

    def obstacle(self) -> Diagnostic | None:
        """Why the node stands for no DirectML operator; None where it does."""
        here = Location(node=self.path)
        unknown = RULES["node/shape-unknown"]
        if not self.report.ok:
            return RULES["node/not-lowered"].diagnostic(here, "the node is not valid by its framework's rules")
        if self.element is not None and self.element.data_type is None:
            message = f"{self.data_type} cannot be lowered: {self.element.refusal}"
            return RULES["node/type-not-lowered"].diagnostic(here, message, actual=self.data_type)
        for diagnostic in self.report.diagnostics:
            if diagnostic.rule == "node/shape-unknown":
                return diagnostic
        if self.element is None:
            return unknown.diagnostic(here, "the element type is not known", actual=self.data_type)
        for what, sizes in (("output shape", self.output_shape), ("lengths", self.lengths)):
            if sizes is None or not all(isinstance(size, int) for size in sizes):
                message = f"the {what} {shape_text(sizes)} is not known; --shape or --dim gives it"
                return unknown.diagnostic(here, message, actual=shape_text(sizes))
        if self.axis is None:
            return unknown.diagnostic(here, "the axis is not known")
        largest = max(_numbers(self.output_shape), default=0)
        if largest > MAX_SIZE:
            message = f"the output shape {shape_text(self.output_shape)} does not fit DirectML's UINTs of 32 bits"
            return RULES["node/not-lowered"].diagnostic(here, message, expected=f"sizes to {MAX_SIZE}", actual=largest)
        return None

    @property
    def whole_shape(self) -> Shape | None:
        """The shape of the tensor that is made."""
        return self.output_shape

    @property
    def path(self) -> str:
        """What diagnostics call the node, safe to print: its name, or that of its output, after that of its graph."""
        name = self.name or self.output_name or self.op
        return printable(f"{self.graph}/{name}" if self.graph else name)

    def legalize(
        self,
        feature_level: FeatureLevel | int | str | None = None,
        *,
        directml: Release | str | None = None,
        onnxruntime: Runtime | str | None = None,
    ) -> Legalization[JoinOperatorDesc]:
        """The node as operators that a feature level or a release takes, as `dmlsplit.legalize` gives them.

        Its `execute` and `dispatch` take arrays of the framework's type and shape. Where the node stands for no
        operator, `ok` is False, and the report says why.
        """
        from dmlsplit.formats.lowering import legalized_node

        return legalized_node(self, find_target(feature_level, directml, onnxruntime))

    def execute(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The node's output for its inputs, bit for bit as the framework defines it, copied by the C core.

        The arrays have the node's element type and shapes that agree with `input_shapes`; of strings they are arrays of
        str (dtype object, U or T). InputError for what does not fit, and for a node that its framework refuses.
        """
        given = self._checked(arrays)
        axis = self._axis(tuple([array.shape for array in given]))
        from dmlsplit.arrays import join

        if given[0].dtype.kind in "OUT":
            # Objects are not bytes to be copied: their places are joined.
            ends = np.cumsum([array.size for array in given])
            places = [
                np.arange(end - array.size, end).reshape(array.shape) for array, end in zip(given, ends, strict=True)
            ]
            whole: np.ndarray = np.concatenate([array.ravel() for array in given])[join(places, axis)]
            return whole
        # As raw bytes: extension types are no concern of the kernels.
        dtype = given[0].dtype
        return join([array.view(np.dtype(f"V{dtype.itemsize}")) for array in given], axis).view(dtype)

    def _checked(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if not self.report.ok:
            raise InputError(f"{self.path}: {(self.report.errors or self.report.hidden)[0].message}")
        if self.element is None:
            raise InputError(f"{self.path}: the element type is not known")
        if isinstance(arrays, np.ndarray) or len(arrays) != len(self.input_shapes):
            got = "one array" if isinstance(arrays, np.ndarray) else f"{len(arrays)} arrays"
            raise InputError(f"{self.path}: {len(self.input_shapes)} arrays are expected, not {got}")
        for i, (array, shape) in enumerate(zip(arrays, self.input_shapes, strict=True)):
            what = f"{self.path}: input {i}"
            if isinstance(array, np.ma.MaskedArray) or not isinstance(array, np.ndarray):
                raise InputError(f"{what} is {type(array).__name__}, not a plain numpy array")
            if not (
                array.dtype.kind in "OUT" if self.element.name == "string" else array.dtype == self.element.dtype()
            ):
                raise InputError(f"{what} is {self.element.name}, not {array.dtype}")
            if shape is not None and not agrees(array.shape, shape):
                raise InputError(f"{what} has the shape {shape_text(shape)}, not {array.shape}")
        return [np.asarray(array) for array in arrays]

    def _axis(self, shapes: tuple[tuple[int, ...], ...]) -> int:
        """The axis for inputs of these shapes, by the framework's rules where the model does not fix them."""
        axis = self.axis
        if self.facts is not None and self.input_shapes != shapes:
            facts = self.facts.with_shapes(shapes)  # type: ignore[attr-defined]
            errors = [d for d in judge_node(facts, self.path) if d.severity is Severity.ERROR]
            if errors:
                raise InputError(f"{errors[0].path}: {errors[0].message}")
            axis = facts.axis_index
        if axis is None:
            raise InputError(f"{self.path}: the axis is not known")
        return axis


def _numbers(shape: Collection[Dim] | None) -> tuple[int, ...]:
    assert shape is not None
    return tuple([dim for dim in shape if isinstance(dim, int)])
