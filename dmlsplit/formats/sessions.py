"""A node in the session of its model: what a reader of models gives its nodes, so that ONNX Runtime can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import Dim
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer


@dataclass(frozen=True, slots=True)
class Inputs:
    """The facts given of a model's inputs: `shapes`, `dims` (sizes of symbols) and `values` (elements of integers) of
    the first Run, and `free_dimensions`, ONNX Runtime's overrides of symbols at session creation."""

    shapes: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    free_dimensions: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> object:
        """Equal for equal inputs, and hashable."""
        return (
            tuple(sorted((name, tuple(shape)) for name, shape in self.shapes.items())),
            tuple(sorted(self.dims.items())),
            tuple(sorted((name, tuple(map(int, value))) for name, value in self.values.items())),
            tuple(sorted(self.free_dimensions.items())),
        )


class Session(Protocol):
    """A model that versions of ONNX Runtime can be asked about."""

    def answer(self, place: NodeKey, runtime: Runtime, options: SessionOptions, inputs: Inputs | None) -> RuntimeAnswer:
        """The answer for a node; `inputs` None: what was said as the model was read. InputError for what contradicts
        the model."""

    def graph_diagnostics(self, place: NodeKey, runtime: Runtime, options: SessionOptions) -> tuple[Diagnostic, ...]:
        """The faults of the DirectML graphs around a node. InputError for sizes that contradict the model."""


@dataclass(frozen=True, slots=True)
class NodeKey:
    """A node of a model; `number` counts the nodes of one operator whose path is the same."""

    op: str
    path: str
    number: int


@dataclass(frozen=True, slots=True)
class InSession:
    """A node in the session of its model."""

    session: Session
    place: NodeKey
