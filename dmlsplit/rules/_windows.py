"""The spatial sizes of convolutions and poolings: what CreateOperator leaves unchecked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dmlsplit.descriptors.descs import BufferTensorDesc

_FORWARD: Final = 0
"""DML_CONVOLUTION_DIRECTION_FORWARD."""


class Window(NamedTuple):
    """The names of the tensors that a window slides between. `filter` names the tensor that gives the window's size; ""
    if WindowSize gives it."""

    input: str = "InputTensor"
    output: str = "OutputTensor"
    filter: str = ""


WINDOWS: Final[Mapping[str, Window]] = {
    **dict.fromkeys(
        ("CONVOLUTION", "CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"), Window(filter="FilterTensor")
    ),
    **dict.fromkeys(
        (
            *("AVERAGE_POOLING", "AVERAGE_POOLING1", "LP_POOLING", "LP_POOLING1", "MAX_POOLING"),
            "QUANTIZED_LINEAR_AVERAGE_POOLING",
        ),
        Window(),
    ),
    "AVERAGE_POOLING_GRAD": Window("OutputGradientTensor", "InputGradientTensor"),
}


def window_sizes(
    window: Window, members: Mapping[str, Any], tensors: Mapping[str, BufferTensorDesc]
) -> Iterator[tuple[str, int, int, int]]:
    """Yields (tensor, dimension, expected size, size) for each size of the output that differs from the size that the
    window implies.

    Yields nothing if members are missing or too short.
    """
    count = members["DimensionCount"]
    whole, output = (_spatial(tensors.get(name), count) for name in (window.input, window.output))
    # this also covers counts larger than the number of dimensions, such as 2^32 - 1
    if whole is None or output is None:
        return
    sizes = _spatial(tensors.get(window.filter), count) if window.filter else _entries(members["WindowSize"], count)
    strides, before, behind = (_entries(members[name], count) for name in ("Strides", "StartPadding", "EndPadding"))
    dilations = _entries(members.get("Dilations", (1,) * count), count)
    if sizes is None or before is None or behind is None or dilations is None or strides is None or 0 in strides:
        return
    extra = _entries(members.get("OutputPadding", (0,) * count), count) or (0,) * count
    backward = members.get("Direction", _FORWARD) != _FORWARD
    for i in range(count):
        reach = dilations[i] * (sizes[i] - 1) + 1
        padding = before[i] + behind[i]
        if backward:
            expected = strides[i] * (whole[i] - 1) + reach - padding + extra[i]
        else:
            expected = (whole[i] + padding - reach) // strides[i] + 1
        if expected != output[i]:
            yield window.output, len(tensors[window.output].sizes or ()) - count + i, expected, output[i]


def _spatial(tensor: BufferTensorDesc | None, count: int) -> tuple[int, ...] | None:
    if tensor is None or tensor.sizes is None or not 0 < count <= len(tensor.sizes):
        return None
    return tensor.sizes[len(tensor.sizes) - count :]


def _entries(values: Any, count: int) -> tuple[int, ...] | None:
    return values[:count] if isinstance(values, tuple) and len(values) >= count else None
