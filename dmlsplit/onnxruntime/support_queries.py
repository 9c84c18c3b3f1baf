"""Nodes that DirectML's execution provider refuses although it has a kernel for their types, by what they have besides
the attributes that the table of placements was asked about.

Source: the support queries that OperatorRegistration.cpp of the execution provider names, such as QueryAttention;
observed with all versions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import onnx


class _Query(NamedTuple):
    """What a kernel does not take: attributes that are not 0, and inputs and outputs that have a name, by position."""

    attributes: frozenset[str] = frozenset()
    inputs: Collection[int] = ()
    outputs: Collection[int] = ()


_STATISTICS: Final = _Query(outputs=(1, 2))
"""A normalization gives no mean and no deviation."""
_QUERIES: Final[Mapping[str, _Query]] = {
    "MaxPool": _Query(attributes=frozenset({"storage_order"})),
    "SimplifiedLayerNormalization": _STATISTICS,
    "com.microsoft.Attention": _Query(
        attributes=frozenset({"unidirectional", "do_rotary", "past_present_share_buffer"}), inputs=(4, 6), outputs=(1,)
    ),
    "com.microsoft.SkipLayerNormalization": _STATISTICS,
    "com.microsoft.SkipSimplifiedLayerNormalization": _STATISTICS,
}
QUERIED: Final = frozenset(_QUERIES)
"""The operators, with the domain before the name, that such a query is known of."""


def is_supported(operator: str, node: onnx.NodeProto) -> bool:
    """False for a node of an operator of QUERIED that DirectML's execution provider refuses by such a query."""
    query = _QUERIES[operator]
    return not (
        any(each.i for each in node.attribute if each.name in query.attributes)
        or any(place < len(node.input) and node.input[place] for place in query.inputs)
        or any(place < len(node.output) and node.output[place] for place in query.outputs)
    )
