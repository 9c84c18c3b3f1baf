"""A node with the target's answer: the facts that rewritings check."""

from __future__ import annotations

from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.mending.sites import Site
from dmlsplit.onnxruntime.facts import LengthsFrom, RuntimeFacts
from dmlsplit.system.records import entity
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.target import Target
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer

LEAST_RANK = 4
"""The rank up to which ONNX Runtime adds leading dimensions of size 1."""
MOST_RANK = 8
"""The highest rank of a tensor in ONNX Runtime's DirectML execution provider, for any operator."""


@entity
class View:
    """A node, and the answer of the target's runtime.

    `runtime` is the version of ONNX Runtime that represents the target. `in_session`: True if the model must run in it;
    otherwise only descriptors must be accepted. `facts` and `answer` are None if the runtime has no answer about the
    node.
    """

    site: Site
    target: Target
    runtime: Runtime
    in_session: bool
    facts: RuntimeFacts | None = None
    answer: RuntimeAnswer | None = None
    on_cpu: bool = False
    """True if the node runs on the CPU."""

    @property
    def node(self) -> SplitNode | JoinNode:
        return self.site.node

    @property
    def shapes(self) -> tuple[Shape | None, ...]:
        """The shape of the whole, then those of the parts; None for an unknown rank."""
        node = self.node
        if isinstance(node, JoinNode):
            return (node.output_shape, *node.input_shapes)
        return (node.input_shape, *node.output_shapes)

    @property
    def rank(self) -> int | None:
        return next((len(shape) for shape in self.shapes if shape is not None), None)

    @property
    def computed(self) -> bool:
        """True if ONNX Runtime knows the lengths of the parts only during a Run."""
        return self.facts is not None and self.facts.given is LengthsFrom.COMPUTED

    @property
    def dimension_counts(self) -> set[int]:
        """The dimension counts that the target accepts for all tensors of the operator."""
        rows = self.target.support[self.node.operator_type]
        return set.intersection(*(set(row.dimension_counts) for row in rows))

    @property
    def data_types(self) -> set[int]:
        """The DML_TENSOR_DATA_TYPE numbers that the target accepts for all tensors of the operator."""
        rows = self.target.support[self.node.operator_type]
        return set.intersection(*({int(kind) for kind in row.data_types} for row in rows))

    @property
    def is_split(self) -> bool:
        return self.node.operator_type is OperatorType.SPLIT

    @property
    def is_left_empty(self) -> bool:
        """True if the target is a runtime that skips tensors without elements: inputs of a Concat, or a Split whose
        input has none."""
        whole = self.shapes[0]
        return self.target.runtime is not None and (not self.is_split or (whole is not None and 0 in whole))

    def found(self, rule: str) -> bool:
        """True if the runtime's answer has a diagnostic of this rule id; False if there is no answer."""
        return self.answer is not None and any(d.rule == rule for d in self.answer.diagnostics)
