"""Rules of OpenVINO's Split-1 and VariadicSplit-1.

They follow the text of the specifications; what OpenVINO was seen to do otherwise is said beside.
"""

from __future__ import annotations

from typing import Final

from dmlsplit.rules.openvino import inputs, lengths, outputs
from dmlsplit.rules.openvino.facts import Dim, Interval, OpenVinoSplit, Shape, bounds, compatible, dim_text, interval

__all__ = [
    "RULES",
    "Dim",
    "Interval",
    "OpenVinoSplit",
    "Shape",
    "bounds",
    "compatible",
    "dim_text",
    "interval",
]

RULES: Final = (*inputs.RULES, *lengths.RULES, *outputs.RULES)
