"""The options of an ONNX Runtime session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of an ONNX Runtime session, and the properties of its device."""

    graph_fusion: bool = True
    """False: the session configuration ep.dml.disable_graph_fusion is "1"."""
    optimization: int = 99
    """The graph optimization level: 0, 1, 2 or 99."""
    cpu_fallback: bool = True
    """False: the session configuration session.disable_cpu_ep_fallback is "1"."""
    float64: bool = True
    """True if the device supports doubles."""
    compute_only: bool = False
    """True for a compute-only device (MCDM), as NPUs are."""


DEFAULTS: Final = SessionOptions()


def check_options(options: object) -> None:
    """Raises TypeError for what are no SessionOptions."""
    if not isinstance(options, SessionOptions):
        raise TypeError(f"options: SessionOptions are expected, not {type(options).__name__}")
