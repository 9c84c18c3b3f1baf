"""The targets of verdicts: feature levels, DirectML releases, versions of ONNX Runtime."""
