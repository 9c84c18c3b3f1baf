"""The inputs and the result of a prediction: facts of a Split or Concat, session options, ONNX Runtime's answer."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.targets.runtime_versions import Runtime

Sizes: TypeAlias = tuple[int, ...]


class LengthsFrom(enum.Enum):
    """Where a Split has its lengths from."""

    ATTRIBUTE = "attribute"
    CONSTANT = "constant"
    """An input that is an initializer, or that ONNX Runtime computes before the session is made."""
    OUTER = "constant of an outer graph"
    DEFAULT = "default"
    """An initializer that is an input as well, so that a run may give others."""
    COMPUTED = "computed"
    """An input that is known only as the model runs."""
    EQUAL = "equal parts"
    NUM_OUTPUTS = "num_outputs"


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """A node as the model file has it; sizes that the file leaves open are names or None."""

    operator: OperatorType
    opset: int
    data_type: str
    """ONNX's name: FLOAT."""
    shapes: tuple[Shape | None, ...]
    """Of the tensors that are split or joined: one for a Split."""
    axis: int = 0
    outputs: int = 1
    given: LengthsFrom = LengthsFrom.EQUAL
    lengths: Sizes | None = None
    omitted: tuple[int, ...] = ()
    """Outputs whose name is empty."""
    declared: tuple[Shape | None, ...] = ()
    """The shapes that the file itself declares of the outputs."""
    owned: tuple[bool, ...] = ()
    """Which of the tensors are initializers that a fused graph hands over to DirectML."""
    folded: bool = False
    """Whether the node is a constant before anything is placed."""
    ir_version: int = 10
    shapes_known: bool = True
    """False where a shape is missing that ONNX Runtime may infer all the same."""
    axis_given: bool = True
    both_given: bool = False
    """Whether a Split has lengths as well as num_outputs."""
    prefers_cpu: bool = False
    """Whether it computes with sizes: ONNX Runtime leaves such nodes on the CPU."""

    @property
    def rank(self) -> int | None:
        return next((len(shape) for shape in self.shapes if shape is not None), None)

    def axis_of(self, rank: int) -> int:
        """The axis from 0 of tensors of a rank."""
        return self.axis % rank if rank else 0

    @property
    def is_split(self) -> bool:
        return self.operator is OperatorType.SPLIT


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The sizes of the first Run. A kernel that is made then is made for these."""

    shapes: tuple[Sizes | None, ...]
    lengths: Sizes | None = None


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How the session is made, and on what device."""

    graph_fusion: bool = True
    """False: the session configuration ep.dml.disable_graph_fusion is "1"."""
    optimization: int = 99
    """The graph optimization level: 0, 1, 2 or 99."""
    cpu_fallback: bool = True
    """False: the session configuration session.disable_cpu_ep_fallback is "1"."""
    float64: bool = True
    """Whether the device computes with doubles."""
    compute_only: bool = False
    """Whether the device is a compute-only one (MCDM), as NPUs are."""


DEFAULTS: Final = SessionOptions()


class Outcome(enum.StrEnum):
    DML = "DML"
    CPU = "CPU"
    SESSION_FAILS = "session-fails"
    RUN_FAILS = "run-fails"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CompileCall:
    """CompileGraph or CompileOperator, and its DML_EXECUTION_FLAGS."""

    call: str
    flags: int


@dataclass(frozen=True, slots=True)
class RuntimeAnswer:
    """The answer of a version of ONNX Runtime about a node.

    `at`: "init" where the operator is made, or the failure happens, at session creation, "run" at the first Run; None
    where nothing is submitted. `operators` are the distinct descriptors that are submitted, in order, `hresults` what
    CreateOperator returns for each. `diagnostics` say why, and what to do about it.
    """

    runtime: Runtime
    outcome: Outcome
    at: str | None = None
    operators: tuple[OperatorDesc, ...] = ()
    hresults: tuple[int, ...] = ()
    compile: CompileCall | None = None
    diagnostics: tuple[Diagnostic, ...] = field(default=())
