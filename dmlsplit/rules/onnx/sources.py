"""Where the rules of ONNX's Split come from."""

from __future__ import annotations

from typing import Final

from dmlsplit.rules._sources import Source

_REPOSITORY: Final = "https://github.com/onnx/onnx/blob/main"
SPLIT: Final = Source("ONNX operators: Split", "https://onnx.ai/onnx/operators/onnx__Split.html")
CHANGELOG: Final = Source("ONNX changelog of operators", f"{_REPOSITORY}/docs/Changelog.md#Split-1")
IR: Final = Source("ONNX intermediate representation", f"{_REPOSITORY}/docs/IR.md")
INFERENCE: Final = Source("ONNX shape inference of Split", f"{_REPOSITORY}/onnx/defs/tensor/defs.cc")
OBSERVED: Final = Source("observed: onnx 1.23, ONNX Runtime 1.31 and OpenVINO 2026.4 on the CPU")
