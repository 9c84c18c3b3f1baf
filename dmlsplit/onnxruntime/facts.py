"""The facts of a Split or Concat that a prediction needs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, TypeAlias

from dmlsplit.descriptors.dims import Shape
from dmlsplit.descriptors.enums import OperatorType

Sizes: TypeAlias = tuple[int, ...]

DIRECTML_TYPES: Final = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "BOOL": "UINT8"}
"""DirectML's names of element types; types not listed keep ONNX's name."""
FIRST_WITH_KERNEL: Final = {"Split": 2, "Concat": 4}
"""The first opset with a kernel."""
LENGTHS_ARE_INPUT: Final = 13
"""The first opset in which a Split's lengths are an input."""
MIN_RANK: Final = 4
"""Tensors of fewer dimensions get leading 1s in descriptors."""
SMALLEST_BUFFER: Final = 8
"""The minimum size in bytes of an initializer that is passed as a buffer; a smaller one is a constant in the graph."""


class LengthsFrom(enum.Enum):
    """The source of a Split's lengths."""

    ATTRIBUTE = "attribute"
    CONSTANT = "constant"
    """An initializer, or a tensor that ONNX Runtime computes before session creation."""
    OUTER = "constant of an outer graph"
    DEFAULT = "default"
    """An initializer that is also an input, so that a Run may replace it."""
    COMPUTED = "computed"
    """A tensor that is known only during a Run."""
    EQUAL = "equal parts"
    NUM_OUTPUTS = "num_outputs"


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """The facts of a node in the model file; unknown sizes are names or None."""

    operator: OperatorType
    opset: int
    data_type: str
    """ONNX's name of the element type, for example FLOAT."""
    shapes: tuple[Shape | None, ...]
    """The shapes of the inputs that are split or joined: one for a Split."""
    axis: int = 0
    outputs: int = 1
    given: LengthsFrom = LengthsFrom.EQUAL
    lengths: Sizes | None = None
    lengths_elsewhere: bool = False
    """True if the lengths are an initializer whose data is in another file."""
    omitted: tuple[int, ...] = ()
    """The indices of outputs without a name."""
    declared: tuple[Shape | None, ...] = ()
    """The shapes of the outputs as the file declares them."""
    owned: tuple[bool, ...] = ()
    """True for each input that is an initializer which a fused graph passes to DirectML."""
    stored_rank: int = 0
    """The highest rank of the initializers among its tensors; these are copied to the device during session
    creation."""
    folded: bool = False
    """True if the node becomes a constant before nodes are placed."""
    ir_version: int = 10
    shapes_known: bool = True
    """False if a shape is missing that ONNX Runtime may infer."""
    axis_given: bool = True
    both_given: bool = False
    """True for a Split with both lengths and num_outputs."""
    num_outputs: int | None = None
    """The attribute of a Split whose lengths follow from it; None for any other node."""
    inputs: int = 1
    """The number of inputs, including omitted ones (without a name)."""
    prefers_cpu: bool = False
    """True if it computes sizes: ONNX Runtime leaves such nodes on the CPU."""

    def __hash__(self) -> int:
        # Facts are in the keys of caches that every node looks up: these fields mostly tell them apart, and equality
        # compares all.
        return hash((self.opset, self.axis, self.outputs, self.shapes, self.lengths))

    @property
    def rank(self) -> int | None:
        return next((len(shape) for shape in self.shapes if shape is not None), None)

    def axis_of(self, rank: int) -> int:
        """Returns the node's axis, counted from 0, for tensors of `rank` dimensions; 0 for rank 0."""
        return self.axis % rank if rank else 0

    @property
    def is_split(self) -> bool:
        return self.operator is OperatorType.SPLIT

    @property
    def gives_no_lengths(self) -> bool:
        """True for a Split with neither lengths nor num_outputs in an opset that has no default."""
        return self.is_split and self.opset >= 18 and self.given is LengthsFrom.EQUAL


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The sizes of a node's tensors at the first Run. Kernels that are not created with the session are created at that
    Run, for these sizes."""

    shapes: tuple[Sizes | None, ...]
    lengths: Sizes | None = None
