"""Windows that DirectML's kernels of convolutions and pools refuse, which fails session creation.

A window must not be larger than the padded tensor; sizes are computed in 32 bits without a sign, as windows are with
negative attributes. Source: InitializeKernelOutputDimensions and ConvolutionHelperBase of ONNX Runtime's
OperatorHelper.cpp; observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dmlsplit.descriptors.dims import Shape
from dmlsplit.models.graph import Node, attribute
from dmlsplit.onnxruntime.facts import MIN_RANK
from dmlsplit.onnxruntime.session_graph import SessionGraph

_BACKWARDS: Final = "ConvTranspose"
WITH_WINDOWS: Final[Mapping[str, int | None]] = {
    "Conv": 1,
    "ConvInteger": 1,
    "QLinearConv": 3,
    _BACKWARDS: 1,
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool")),
}
"""Maps an operator with windows over its first input to its input with the weights; None if it has none."""
_SAME: Final = frozenset({b"SAME_UPPER", b"SAME_LOWER"})
_VALID: Final = b"VALID"


def refused_window(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a convolution or pool refuses its window; "" for another operator, if it takes
    the window, and if a shape is not known."""
    if node.op_type not in WITH_WINDOWS:
        return ""
    weights, read = WITH_WINDOWS[node.op_type], node.proto.input
    data = graph.shape(read[0]) if read else None
    if data is None or len(data) < 2:
        return ""
    kernel: Shape = tuple(_ints(node, "kernel_shape") or ())
    if weights is not None:
        shape = graph.shape(read[weights]) if len(read) > weights and read[weights] else None
        if shape is None:
            return ""
        is_described = node.op_type == _BACKWARDS and max(len(shape), MIN_RANK) == max(len(data), MIN_RANK)
        if len(shape) < len(data) or (len(shape) > len(data) and not is_described):
            return f"its weights have {len(shape)} dimensions, and its input {len(data)}"
        kernel = kernel or shape[2:]
    return (_backwards if node.op_type == _BACKWARDS else _forwards)(node, data[2:], kernel)


def _forwards(node: Node, sizes: Shape, kernel: Shape) -> str:
    """Returns, as a clause about a Conv or pool, why DirectML does not take its window or strides; "" if nothing is
    known against them."""
    strides, dilations, pads = _moves(node, len(sizes))
    padding = attribute(node, "auto_pad")
    is_same = padding is not None and padding.s in _SAME
    ceiling = attribute(node, "ceil_mode")
    rounds_up = ceiling is not None and ceiling.i != 0
    for i, (size, length, stride, dilation) in enumerate(zip(sizes, kernel, strides, dilations, strict=False)):
        if not isinstance(size, int) or not isinstance(length, int) or len(pads) < 2 * len(sizes):
            continue
        window = _unsigned(1 + (length - 1) * dilation)
        if is_same:
            if window >= 1 << 31:  # inference pads nothing, and comes to another result
                return f"its window is {window - (1 << 32)}"
            if stride <= 0:
                return f"its stride is {stride}"
            continue  # the padding makes room for any other window
        padded = _unsigned(size + pads[i] + pads[i + len(sizes)])
        if window > padded:
            return f"its window of {window} is larger than its input, {padded} with the padding"
        moves = padded - window
        if stride == 0 or (stride < 0 and (moves >= -stride or (rounds_up and moves))):
            return f"its stride is {stride}"
    return ""


def _backwards(node: Node, sizes: Shape, kernel: Shape) -> str:
    strides, dilations, pads = _moves(node, len(sizes))
    added, wanted = _ints(node, "output_padding"), _ints(node, "output_shape") or ()
    group, padding = attribute(node, "group"), attribute(node, "auto_pad")
    is_same = padding is not None and padding.s in _SAME
    read = () if is_same else (kernel,)  # the kernel reads what is in front of too short a kernel_shape
    given = *read, strides, dilations, *((added,) if added else ()), *((wanted,) if wanted else ())
    if any(len(each) < len(sizes) for each in given):
        return f"an attribute is for less than {len(sizes)} dimensions"
    if group is not None and group.i < 0:
        return f"it has {group.i} groups"
    for i, size in enumerate(sizes):
        length = kernel[i] if i < len(kernel) else 0
        if not isinstance(size, int) or not isinstance(length, int):
            continue
        if wanted:
            last = wanted[i - len(sizes)]
            if last < size:
                return f"its output_shape has {last} for an input of {size}"
        elif not is_same and len(pads) >= 2 * len(sizes):
            window = 1 + (length - 1) * dilations[i]
            result = strides[i] * (size - 1) + window + (added[i] if added else 0) - pads[i] - pads[i + len(sizes)]
            if result < 0:
                return f"its result would have a size of {result}"
    return ""


def _moves(node: Node, rank: int) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Returns the strides, dilations and pads of a node for the given number of dimensions, or its defaults."""
    padding = attribute(node, "auto_pad")
    is_padded = padding is None or padding.s != _VALID
    pads = _ints(node, "pads") if is_padded else None
    return _ints(node, "strides") or [1] * rank, _ints(node, "dilations") or [1] * rank, pads or [0] * (2 * rank)


def _ints(node: Node, name: str) -> Sequence[int] | None:
    given = attribute(node, name)
    return None if given is None else given.ints


def _unsigned(number: int) -> int:
    return number % (1 << 32)
