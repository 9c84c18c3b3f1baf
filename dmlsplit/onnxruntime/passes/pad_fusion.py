"""A Pad with zeros becomes padding of the Conv or pool that alone reads it, or that reads it behind a Cast.

Source: pad_fusion.cc of ONNX Runtime. Observed with all versions: 1.18.0 fuses with Conv and MaxPool that have pads,
1.19.2 also with AveragePool and behind a Cast, 1.20.1 also where the pads are left out, 1.30.0 also a Pad of version 21
or newer. As in the source, a zero of negative sign counts as another value if it is an input.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

import onnx
from onnx import helper

from dmlsplit.models.graph import Graph, Node, Value, attribute

_WINDOWS: Final = frozenset({"AveragePool", "Conv", "MaxPool"})
_VALUES_ARE_INPUTS: Final = 11
"""The first version of Pad that reads its pads and its value."""
_MOST_INPUTS: Final = 3
"""A Pad with axes is not fused."""
_NEW_CAST: Final = 19
"""From this version of Cast on, old versions of ONNX Runtime do not fuse a Pad in front of one."""


def pad_fusion(graph: Graph) -> None:
    """Fuses, in place, each Pad with the Conv or pool that it feeds, before anything is folded; not if the Pad's output
    is a branch's output or the two are in different branches."""
    _fuse_all(graph, graph.facts.branches.given, apart=True)


def later_pad_fusion(graph: Graph) -> None:
    """Fuses, in place, each Pad with the Conv or pool that it feeds, including Pads whose pads were folded and those of
    branches that have taken the places of their Ifs."""
    _fuse_all(graph, (), apart=False)


def _fuse_all(graph: Graph, kept: Container[str], *, apart: bool) -> None:
    if not graph.facts.fuses_pads:
        return
    chain = graph.facts.branches.chain
    for node in reversed(graph.nodes):  # of Pads in a row, the last is fused first
        pads = _pads(graph, node) if node.op_type == "Pad" and node.name not in kept else ()
        window = _window(graph, node) if pads else None
        if window is not None and not (apart and chain(window.name) != chain(node.name)):
            _fuse(graph, node, pads, window)


def _pads(graph: Graph, node: Node) -> Sequence[int]:
    """Returns the pads of a Pad that adds zeros along dimensions from the third one on; () for any other."""
    mode = attribute(node, "mode")
    if (mode is not None and mode.s != b"constant") or len(node.inputs) > _MOST_INPUTS:
        return ()
    if graph.facts.opset < _VALUES_ARE_INPUTS:
        given, value = attribute(node, "pads"), attribute(node, "value")
        pads = tuple(given.ints) if given is not None else ()
        is_zero = value is None or value.f == 0
    else:
        found = [graph.facts.elements(each.name) if each.name else None for each in node.inputs[1:]]
        known = [array for array in found if array is not None]
        if not known or len(known) < len(found):
            return ()
        pads = tuple(known[0].ravel().tolist()) if known[0].dtype.kind in "iu" else ()
        is_zero = len(known) == 1 or not any(known[1].tobytes())
    rank = len(pads) // 2
    inner = [*pads[2:rank], *pads[rank + 2 :]]
    return pads if is_zero and inner and min(inner) >= 0 and not any((*pads[:2], *pads[rank : rank + 2])) else ()


def _window(graph: Graph, node: Node) -> Node | None:
    """Returns the Conv or pool with which a Pad is fused; None if there is none."""
    facts, traits = graph.facts, graph.facts.traits
    read, found = node.outputs[0], node.only_reader
    if found is not None and found.op_type == "Cast" and traits.pads_any_window:
        if facts.opset >= _NEW_CAST and not traits.fuses_new_pads:
            return None
        read, found = found.outputs[0], found.only_reader
    if found is None or found.op_type not in _WINDOWS or found.inputs[0] is not read or len(found.outputs) > 1:
        return None
    if found.op_type == "AveragePool" and not traits.pads_any_window:
        return None
    automatic = attribute(found, "auto_pad")
    if automatic is not None and automatic.s != b"NOTSET":
        return None
    return found if traits.pads_unpadded_windows or attribute(found, "pads") is not None else None


def _fuse(graph: Graph, node: Node, pads: Sequence[int], window: Node) -> None:
    """Removes a Pad, in place; the node that read it, a Cast or `window`, reads its input instead."""
    source, (result,) = node.inputs[0], node.outputs
    (reader,) = result.readers
    graph.remove(node)
    graph.read(reader, [source if value is result else value for value in reader.inputs])
    if reader is not window:  # the sizes of what the Cast writes are those of what it reads
        cast = reader.outputs[0]
        cast.like, cast.typed = source.like or source, Value(cast.name)
    window.proto = _padded(window.proto, pads)
    window.absorbed += node.origins
    window.doubts |= node.doubts
    graph.replaced.add(window.index)


def _padded(proto: onnx.NodeProto, pads: Sequence[int]) -> onnx.NodeProto:
    """Returns a Conv or pool that also pads by the pads of a Pad."""
    rank = len(pads) // 2
    more = [*pads[2:rank], *pads[rank + 2 :]]
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    own = next((each for each in made.attribute if each.name == "pads"), None)
    if own is None:
        made.attribute.append(helper.make_attribute("pads", more))
    else:
        own.ints[:] = [a + b for a, b in zip(own.ints, more, strict=False)]
    return made
