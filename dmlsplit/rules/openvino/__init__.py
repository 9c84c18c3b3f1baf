"""Rules about OpenVINO's Split-1, VariadicSplit-1 and Concat-1.

They follow the text of the specifications; a rule also notes where OpenVINO was observed to deviate.
"""

from __future__ import annotations

from dmlsplit.rules.openvino.concat_facts import OpenVinoConcat
from dmlsplit.rules.openvino.split_facts import INPUTS, INTEGER_TYPES, OpenVinoSplit

__all__ = ["INPUTS", "INTEGER_TYPES", "OpenVinoConcat", "OpenVinoSplit"]
