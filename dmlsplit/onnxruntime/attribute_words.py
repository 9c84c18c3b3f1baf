"""The words that kernels take as values of attributes; others fail session creation, as the kernel is created.

Observed: 45 words for each attribute and version of an operator, with 1.18.0 and 1.24.4. onnx does not check them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.models.graph import Node, attribute
from dmlsplit.system.printable import printable

_PADDINGS: Final = ("auto_pad", frozenset({b"", b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID"}))
_WORDS: Final[Mapping[str, tuple[str, frozenset[bytes]]]] = {
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"), _PADDINGS),
    "BitShift": ("direction", frozenset({b"LEFT", b"RIGHT"})),
    "DepthToSpace": ("mode", frozenset({b"", b"DCR", b"CRD"})),
    "GridSample": ("padding_mode", frozenset({b"zeros", b"border", b"reflection"})),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), ("direction", frozenset({b"forward", b"reverse", b"bidirectional"}))),
}
"""Maps an operator to an attribute of it, and to the words that the attribute may have."""


def unknown_word(node: Node) -> str:
    """Returns that an attribute of a node has a word that its kernel does not know; "" if none has."""
    if node.op_type not in _WORDS or not node.proto.attribute:
        return ""
    name, words = _WORDS[node.op_type]
    given = attribute(node, name)
    if given is None or given.s in words:
        return ""
    return f"its {name} is '{printable(given.s.decode('utf-8', 'replace'), 60)}'"
