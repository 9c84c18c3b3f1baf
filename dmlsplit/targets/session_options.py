"""How a session of ONNX Runtime is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.targets.target import Target


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


def options_of(target: Target) -> SessionOptions:
    """How a session is made on the device of a target."""
    return SessionOptions(float64=TensorDataType.FLOAT64 not in target.lacking, compute_only=target.compute_only)
