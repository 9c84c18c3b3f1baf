"""What verdicts are for: feature levels, DirectML releases, versions of ONNX Runtime."""
