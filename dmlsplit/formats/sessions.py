"""A node in its model's sessions. Front ends attach it to nodes, so that ONNX Runtime's answers about them can be
predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import Dim
from dmlsplit.system.records import entity, record
from dmlsplit.targets.runtime_versions import Runtime
from dmlsplit.targets.session_options import SessionOptions
from dmlsplit.verdicts.model_placements import SessionAnswer
from dmlsplit.verdicts.runtime_answers import RuntimeAnswer

if TYPE_CHECKING:
    from dmlsplit.graphs.execution import Correctness


@entity
class Inputs:
    """Facts about a model's inputs: `shapes`, `dims` (sizes of symbols) and `values` (elements of integer tensors) at
    the first Run, and `free_dimensions`, ONNX Runtime's overrides of symbols at session creation."""

    shapes: Mapping[str, Sequence[Dim]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)
    free_dimensions: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> object:
        """A hashable value that is equal for equal Inputs, regardless of the order of their mappings."""
        return (
            tuple(sorted((name, tuple(shape)) for name, shape in self.shapes.items())),
            tuple(sorted(self.dims.items())),
            tuple(sorted((name, repr(value)) for name, value in self.values.items())),
            tuple(sorted(self.free_dimensions.items())),
        )


Advise: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""Takes a session's findings about its graphs, and returns them with advice that was tried."""


class Session(Protocol):
    """The answers of one version of ONNX Runtime about a model and its nodes. Each method and property raises
    InputError if the given facts contradict the model."""

    def answer(self, place: NodeKey) -> RuntimeAnswer:
        """Returns the version's answer about the Split or Concat node at `place`."""

    def graph_diagnostics(self, place: NodeKey | None, advise: Advise | None = None) -> tuple[Diagnostic, ...]:
        """Returns the faults of the model's DirectML graphs that are reported at the Split or Concat at `place`: the
        faults at its path, and at the model's first one also those at nodes that are no Split or Concat. `place` is
        None for a model without a Split or Concat: the faults of all its graphs are returned. `advise` adds advice to
        each; None adds none."""

    def graph_correctness(self, place: NodeKey) -> Correctness:
        """Returns "wrong" if one of the faults that `graph_diagnostics` returns for `place` is an error, "unknown" if
        one is that a graph is not known, else "right"."""

    @property
    def placement(self) -> SessionAnswer:
        """The treatment of the model as a whole: the provider of every node, the fused graphs, copies and findings."""

    @property
    def tried_placement(self) -> SessionAnswer:
        """`placement`, with advice that was tried on the model."""


class Sessions(Protocol):
    """A model, for which any version of ONNX Runtime can make a session."""

    def of(self, runtime: Runtime, options: SessionOptions = ..., inputs: Inputs | None = None) -> Session:
        """Returns the session of a version with these options, and with the facts in `inputs`, or those given when the
        model was read if it is None."""

    def release(self) -> None:
        """Frees all sessions created so far, which are large; they are created again when needed."""


@record
class NodeKey:
    """Identifies a node of a model; `number` counts the nodes with the same operator and path."""

    op: str
    path: str
    number: int


@entity
class InSession:
    """A node of a model, and the model's sessions."""

    sessions: Sessions
    place: NodeKey
