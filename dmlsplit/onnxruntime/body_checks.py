"""Checks the shapes that the inputs of a Loop's or Scan's body declare against those of the tensors handed to them.

Source: Graph::InferAndVerifySubgraphTypes of ONNX Runtime's graph.cc, which warns of other shapes that differ, but not
of these. Observed with 1.18.0, 1.24.4 and 1.30.0: of a Loop only the condition keeps its shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import onnx

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.onnx.tensors import type_of
from dmlsplit.models.scope import Scope
from dmlsplit.system.printable import printable

_FIRST_SCAN: Final = 9
"""The first opset whose Scan has no batches."""


def fault_of_body(node: onnx.NodeProto, scope: Scope, body: onnx.GraphProto) -> str:
    """Returns what is wrong with the shapes of a body's inputs; "" if nothing is known to be, or for any other node
    than a Loop and a Scan. `scope` is that of the graph with the node."""
    handed = _CHECKED.get(node.op_type)
    for place, given in handed(node, scope) if handed is not None else ():
        if given is None or place >= len(body.input):
            continue
        declared = type_of(body.input[place].type)[1]
        if declared is not None and not _fit(declared, given):
            name, shapes = (
                printable(body.input[place].name, 60),
                [printable(str(list(s)), 60) for s in (given, declared)],
            )
            return f"hands a tensor of the shape {shapes[0]} to {name}, whose shape is {shapes[1]}"
    return ""


def _fit(declared: Shape, given: Shape) -> bool:
    """True if two shapes have as many dimensions, and no two sizes that differ."""
    pairs = zip(declared, given, strict=False)
    return len(declared) == len(given) and all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def _of_loop(node: onnx.NodeProto, scope: Scope) -> Iterator[tuple[int, Shape | None]]:
    """Yields the place of a body's input and the shape of what a Loop hands to it, None if that is not known."""
    if len(node.input) > 1:
        yield 1, scope.type_of(node.input[1])[1]


def _of_scan(node: onnx.NodeProto, scope: Scope) -> Iterator[tuple[int, Shape | None]]:
    """As `_of_loop` for a Scan: the states as they are, and slices of the tensors that it scans."""
    if scope.origin.opset < _FIRST_SCAN:
        return
    given = {attribute.name: attribute for attribute in node.attribute}
    states = len(node.input) - (given["num_scan_inputs"].i if "num_scan_inputs" in given else 0)
    axes = list(given["scan_input_axes"].ints) if "scan_input_axes" in given else []
    for place, name in enumerate(node.input):
        shape = scope.type_of(name)[1]
        if shape is not None and place >= states:
            number = place - states
            axis = axes[number] if number < len(axes) else 0
            axis += len(shape) if axis < 0 else 0
            shape = (*shape[:axis], *shape[axis + 1 :]) if 0 <= axis < len(shape) else None
        yield place, shape


_CHECKED: Final = {"Loop": _of_loop, "Scan": _of_scan}
