"""Where the rules of OpenVINO's layers come from."""

from __future__ import annotations

from typing import Final

from dmlsplit.rules._sources import Source

_SPECIFICATIONS: Final = "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs"
SPLIT: Final = Source("OpenVINO Split-1", f"{_SPECIFICATIONS}/movement/split-1.html")
VARIADIC_SPLIT: Final = Source("OpenVINO VariadicSplit-1", f"{_SPECIFICATIONS}/movement/variadic-split-1.html")
CONCAT: Final = Source("OpenVINO Concat-1", f"{_SPECIFICATIONS}/movement/concat-1.html")
ELEMENT_TYPE: Final = Source(
    "OpenVINO element types",
    "https://github.com/openvinotoolkit/openvino/blob/master/src/core/include/openvino/core/type/element_type.hpp",
)
OBSERVED: Final = Source("observed: OpenVINO 2026.4 on the CPU")
