"""The Split and VariadicSplit layers of an OpenVINO IR, judged by OpenVINO's specifications."""

from __future__ import annotations

from dmlsplit.formats.openvino.reader import read

__all__ = ["read"]
