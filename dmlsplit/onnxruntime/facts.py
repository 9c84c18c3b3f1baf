"""The inputs and the result of a prediction: facts of a Split or Concat, session options, ONNX Runtime's answer."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import OperatorType

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
    stored_rank: int = 0
    """The highest rank of initializers among the tensors: they are copied to the device as the session is made."""
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

    @property
    def gives_no_lengths(self) -> bool:
        """Whether it is a Split that says nothing of its lengths, where equal parts are no longer the default."""
        return self.is_split and self.opset >= 18 and self.given is LengthsFrom.EQUAL


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The sizes of the first Run. A kernel that is made then is made for these."""

    shapes: tuple[Sizes | None, ...]
    lengths: Sizes | None = None
