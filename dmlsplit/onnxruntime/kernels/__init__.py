"""ONNX Runtime's DirectML kernels: the operators that they submit for their nodes."""
