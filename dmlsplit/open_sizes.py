"""The former place of dmlsplit.onnx.open_answer."""

from dmlsplit.checking.open_sizes import OpenAnswer, open_answer

__all__ = ["OpenAnswer", "open_answer"]
