"""Runs DxDispatch models on the CPU: `read` a model, `run` it.

DxDispatch is Microsoft's tool that executes DirectML operators described in JSON. Format and behaviour follow its
sources (https://github.com/microsoft/DirectML, folder DxDispatch).
"""

from dmlsplit.formats.dxdispatch.model import Model, read
from dmlsplit.formats.dxdispatch.run import RunResult, run

__all__ = ["Model", "RunResult", "read", "run"]
