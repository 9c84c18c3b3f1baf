"""The Split, VariadicSplit and Concat layers of an OpenVINO IR, judged by OpenVINO's specifications.

    for node in openvino.read("model.xml", shapes={"images": (1, 3, 640, 640)}):
        print(node.name, node.lengths, node.report)

Needs defusedxml, not OpenVINO.
"""

from __future__ import annotations

from dmlsplit.formats.openvino.reader import read, read_model

__all__ = ["read", "read_model"]
