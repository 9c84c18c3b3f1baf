"""Models written back, mended for a target: see `legalize` of dmlsplit.formats.onnx."""
