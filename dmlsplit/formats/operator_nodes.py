"""The base class of a framework's Split and Concat nodes: each is one DirectML operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import numpy as np

from dmlsplit.descriptors.call_types import DescT
from dmlsplit.descriptors.descs import BufferTensorDesc, JoinOperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic, Report, Severity
from dmlsplit.descriptors.dims import Dim, Shape, is_static, numbers, shape_text
from dmlsplit.descriptors.enums import UINT_MAX, FeatureLevel, OperatorType, TensorDataType
from dmlsplit.descriptors.geometry import ROLES
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.arguments import inputs_of
from dmlsplit.formats.element_types import ElementType
from dmlsplit.formats.sessions import InSession
from dmlsplit.rules import RULES, judge_node
from dmlsplit.rules._facts import NodeFacts
from dmlsplit.system.errors import InputError
from dmlsplit.system.foreign import as_array, is_foreign
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity
from dmlsplit.targets.releases import Release
from dmlsplit.targets.runtime_versions import Runtime, find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions, check_options
from dmlsplit.targets.target import find_target
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer

if TYPE_CHECKING:
    from dmlsplit.legalize import Legalization


@lru_cache(maxsize=1024)
def _packed(
    operator: OperatorType, data_type: TensorDataType, sizes: tuple[int, ...], axis: int, lengths: tuple[int, ...]
) -> Any:
    """Returns the Split or Join descriptor with packed tensors: `sizes` is the shape of the whole, `lengths` are the
    parts' sizes along `axis`. Equal arguments give the same object."""
    kind = SplitOperatorDesc if operator is OperatorType.SPLIT else JoinOperatorDesc
    return kind.from_lengths(BufferTensorDesc(data_type, sizes), axis, lengths)


@entity
class OperatorNode(Generic[DescT]):
    """A node with the report of its framework's rules.

    `op` and `version` name the specification that judges it (Split 13, VariadicSplit 1). `axis` is resolved to
    0..rank-1 if the rank is known; in `lengths` and the shapes, unknown sizes are None or a symbol's name. `report` is
    the framework's verdict. `graph` names the subgraph or function that contains the node; "" is the model's own graph.
    """

    _: KW_ONLY
    operator_type: ClassVar[OperatorType]
    name: str
    op: str
    version: int
    data_type: str | None
    """The framework's name of the element type: FLOAT, f32."""
    axis: int | None
    lengths: tuple[Dim, ...] | None
    """The sizes of the parts along the axis."""
    report: Report
    element: ElementType | None = field(repr=False)
    graph: str = ""
    facts: NodeFacts | None = field(default=None, repr=False)
    """The facts behind the report; `execute` uses them to judge a node of unknown sizes again with the sizes of its
    arrays."""
    in_session: InSession | None = field(default=None, repr=False, compare=False)
    """The node in its model's session; None for formats other than ONNX."""

    @property
    @abstractmethod
    def whole_shape(self) -> Shape | None:
        """The shape of a Split's input or a Concat's output; None if its rank is not known."""

    @property
    @abstractmethod
    def named_outputs(self) -> Sequence[str]:
        """The names of the outputs in order, "" for unnamed ones."""

    @property
    def path(self) -> str:
        """The node's printable name in diagnostics: the name of its graph, then its own name, or that of an output, or
        its operator's."""
        name = self.name or next(filter(None, self.named_outputs), "") or self.op
        return printable(f"{self.graph}/{name}" if self.graph else name)

    def descriptor(self) -> DescT:
        """Returns the node as one DirectML operator with packed tensors, before any level's limits: it may have nine
        dimensions or empty tensors. An element that is stored as 2 or 4 DirectML elements adds an innermost dimension.

        Raises InputError if there is no such operator: unknown sizes, faults, or elements that no data type carries.
        """
        obstacle = self.obstacle()
        if obstacle is not None:
            raise InputError(f"{self.path}: {obstacle.message}")
        return self._described()

    def descriptor_if_any(self) -> DescT | None:
        """As `descriptor`, but returns None if `descriptor` raises InputError."""
        return None if self.obstacle() is not None else self._described()

    def _described(self) -> DescT:
        assert self.element is not None
        assert self.element.data_type is not None
        assert self.axis is not None
        sizes, lengths = numbers(self.whole_shape), numbers(self.lengths)
        if self.element.count > 1:
            sizes = (*sizes, self.element.count)
        desc: DescT = _packed(self.operator_type, self.element.data_type, sizes, self.axis, lengths)
        return desc

    def obstacle(self) -> Diagnostic | None:
        """Returns the diagnostic that says why the node is not a DirectML operator; None if it is one."""

        def found(rule: str, message: str, **values: Any) -> Diagnostic:
            return RULES[rule].diagnostic(Location(node=self.path), message, **values)

        if not self.report.ok:
            return found("node/not-lowered", "the node is not valid by its framework's rules")
        if self.element is not None and self.element.data_type is None:
            message = f"{self.data_type} cannot be lowered: {self.element.refusal}"
            return found("node/type-not-lowered", message, actual=self.data_type)
        for diagnostic in self.report.diagnostics:
            if diagnostic.rule == "node/shape-unknown":
                return diagnostic
        if self.element is None:
            return found("node/shape-unknown", "the element type is not known", actual=self.data_type)
        shape = f"{ROLES[self.operator_type].whole_side} shape"
        for what, sizes in ((shape, self.whole_shape), ("lengths", self.lengths)):
            if not is_static(sizes):
                message = f"the {what} {shape_text(sizes)} is not known; pass it with --shape or --dim"
                return found("node/shape-unknown", message, actual=shape_text(sizes))
        if self.axis is None:
            return found("node/shape-unknown", "the axis is not known")
        largest = max(numbers(self.whole_shape), default=0)
        if largest > UINT_MAX:
            message = f"the {shape} {shape_text(self.whole_shape)} does not fit into DirectML's UINTs of 32 bits"
            return found("node/not-lowered", message, expected=f"sizes to {UINT_MAX}", actual=largest)
        return None

    def legalize(
        self,
        feature_level: FeatureLevel | int | str | None = None,
        *,
        directml: Release | str | None = None,
        onnxruntime: Runtime | str | None = None,
    ) -> Legalization[DescT]:
        """Returns operators that a feature level or a release accepts and that have the same effect as the node, as
        `dmlsplit.legalize` does for a descriptor.

        The result's `execute` and `dispatch` take arrays of the framework's type and shape. If the node is not an
        operator, `ok` is False, and the report has the reason.
        """
        from dmlsplit.formats.lowering import legalized_node  # it loads the C core, which few questions need

        return legalized_node(self, find_target(feature_level, directml, onnxruntime))

    def on_onnxruntime(
        self,
        version: Runtime | str,
        *,
        run_shapes: Mapping[str, Sequence[Dim]] | None = None,
        run_values: Mapping[str, Sequence[int]] | None = None,
        free_dimensions: Mapping[str, int] | None = None,
        options: SessionOptions = DEFAULTS,
    ) -> RuntimeAnswer:
        """Returns the answer of a version of ONNX Runtime, with its DirectML execution provider, about the node in its
        model.

        `run_shapes` and `run_values` describe the model's inputs at the first Run: shapes, and the elements of integer
        tensors that determine lengths; `free_dimensions` are ONNX Runtime's overrides of symbolic dimensions at
        session creation. If none of them is given, the facts given when the model was read apply to the first Run.

        Raises ValueError for an unknown version; InputError for facts that contradict the model or name something that
        it does not have, and for a node of a format other than ONNX.
        """
        said = None
        if not (run_shapes is None and run_values is None and free_dimensions is None):
            said = inputs_of(run_shapes, None, run_values, free_dimensions, "run_")
        check_options(options)
        runtime, node = find_runtime(version), self.in_session
        if node is None:
            raise InputError(
                f"{self.path}: it does not belong to an ONNX model, so there is no answer for ONNX Runtime"
            )
        return node.sessions.of(runtime, options, said).answer(node.place)

    def _known_element(self) -> ElementType:
        """Returns the element type of the node. Raises InputError if the framework's rules refuse the node or the type
        is not known."""
        if not self.report.ok:
            raise InputError(f"{self.path}: {(self.report.errors or self.report.hidden)[0].message}")
        if self.element is None:
            raise InputError(f"{self.path}: the element type is not known")
        return self.element

    def _array(self, given: Any, element: ElementType, what: str) -> np.ndarray:
        """Returns a value as an array of type `element`, without copying; tensors of other libraries are viewed. Raises
        InputError, which names the value `what`, if it is not a plain array or has another type."""
        array = given
        if is_foreign(given):
            try:
                array = as_array(given)
            except TypeError as error:
                raise InputError(f"{self.path}: {what} is {error}") from None
            if array.dtype.kind == "V" and str(given.dtype).rpartition(".")[2] == element.name:  # torch.bfloat16
                array = array.view(element.dtype())
        if isinstance(array, np.ma.MaskedArray) or not isinstance(array, np.ndarray):
            raise InputError(f"{self.path}: {what} is {type(array).__name__}, not a plain numpy array")
        if not (array.dtype.kind in "OUT" if element.name == "string" else array.dtype == element.dtype()):
            raise InputError(f"{self.path}: {what} is {element.name}, not {getattr(given, 'dtype', array.dtype)}")
        return array

    def _check_facts(self, facts: NodeFacts) -> None:
        """Raises InputError if the framework's rules refuse the node with `facts`, which have the shapes of the arrays
        that it is executed on."""
        errors = [d for d in judge_node(facts, self.path) if d.severity is Severity.ERROR]
        if errors:
            raise InputError(f"{errors[0].path}: {errors[0].message}")
