"""Kernels of convolutions, poolings, local response normalization and resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.models.graph import attribute
from dmlsplit.onnxruntime.facts import MIN_RANK
from dmlsplit.onnxruntime.kernels.facts import KernelFacts, NotDescribedError, Sizes, single_precision
from dmlsplit.targets.runtime_versions import key_of

_SPATIAL: Final = 2
"""The minimum number of spatial dimensions of a convolution or pooling."""


def _window(f: KernelFacts, kernel: Sizes, spatial: Sizes) -> dict[str, object]:
    """Returns the members of a window that moves over spatial sizes, by name: strides, dilations and paddings."""
    rank = len(spatial)
    strides, dilations = f.ints("strides", (1,) * rank), f.ints("dilations", (1,) * rank)
    pads = f.ints("pads", (0,) * (2 * rank))
    start, end = pads[:rank], pads[rank:]
    auto = f.number("auto_pad", b"NOTSET")
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        out = [-(-size // step) for size, step in zip(spatial, strides, strict=True)]
        total = [max((o - 1) * s + r - n, 0) for o, s, r, n in zip(out, strides, reach, spatial, strict=True)]
        less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        start, end = (less, more) if auto == b"SAME_UPPER" else (more, less)
    elif auto == b"VALID":
        start = end = (0,) * rank
    missing = max(_SPATIAL - rank, 0)
    return {
        "DimensionCount": rank + missing,
        "Strides": (*(1,) * missing, *strides),
        "Dilations": (*(1,) * missing, *dilations),
        "StartPadding": (*(0,) * missing, *start),
        "EndPadding": (*(0,) * missing, *end),
    }


def _spatial(sizes: Sizes) -> Sizes:
    """Returns sizes with 1s between channels and spatial sizes, up to four dimensions."""
    return (*sizes[:2], *(1,) * (MIN_RANK - len(sizes)), *sizes[2:])


def conv(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole, filters = f.shape(f.value(0)), f.shape(f.value(1))
    window = _window(f, filters[2:], whole[2:])
    bias, backward = f.value(2), f.node.op_type == "ConvTranspose"
    channels = filters[1] * f.number("group", 1) if backward else filters[0]
    if backward and (f.number("auto_pad", b"NOTSET") != b"NOTSET" or f.ints("output_shape", ())):
        raise NotDescribedError("paddings that follow from output sizes are not derived")
    shape = (1, channels, *(1,) * (max(len(whole), MIN_RANK) - 2))
    described = None if bias is None else f.tensor(bias, shape)
    if bias is None and any(f.graph.nodes[i].op_type in ("BatchNormalization", "Add") for i in f.node.origins):
        described = f.tensor(f.value(1), shape)  # the shift of the fused BatchNormalization or Add
    members = {
        "InputTensor": f.tensor(f.value(0), _spatial(whole)),
        "FilterTensor": f.tensor(f.value(1), _spatial(filters)),
        "BiasTensor": described,
        "OutputTensor": f.tensor(f.node.outputs[0], _spatial(f.shape(f.node.outputs[0]))),
        "Mode": "CROSS_CORRELATION",
        "Direction": "BACKWARD" if backward else "FORWARD",
        **window,
        "OutputPadding": (0,) * int(str(window["DimensionCount"])),
        "GroupCount": f.number("group", 1),
        "FusedActivation": f.activation,
    }
    return [AnyOperatorDesc("CONVOLUTION", members)]


def pool(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    whole, name = f.shape(f.value(0)), f.node.op_type
    rank = len(whole) - 2
    is_global = name.startswith("Global")
    kernel = whole[2:] if is_global else f.ints("kernel_shape", ())
    if len(kernel) != rank or (len(f.node.outputs) > 1 and f.node.outputs[1].name):
        raise NotDescribedError("its indices or its window are not derived")
    window = _window(f, kernel, whole[2:])
    del window["Dilations"]
    if any(each != 1 for each in f.ints("dilations", (1,) * rank)):
        raise NotDescribedError("dilations of a pooling are not derived")
    missing = max(_SPATIAL - rank, 0)
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        **window,
        "WindowSize": (*(1,) * missing, *kernel),
    }
    if name.endswith("MaxPool"):
        return [AnyOperatorDesc("MAX_POOLING", members)]
    include = bool(f.number("count_include_pad", 0))
    return [AnyOperatorDesc("AVERAGE_POOLING", {**members, "IncludePadding": include})]


def lrn(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    members = {
        "InputTensor": f.input(0),
        "OutputTensor": f.output,
        "CrossChannel": True,
        "LocalSize": f.number("size", 1),
        "Alpha": f.number("alpha", 0.0001),
        "Beta": f.number("beta", 0.75),
        "Bias": f.number("bias", 1.0),
    }
    return [AnyOperatorDesc("LOCAL_RESPONSE_NORMALIZATION", members)]


WITH_RESAMPLE3: Final = key_of("1.19.0")

_HALF: Final = (0.5, -0.5)

_OFFSETS: Final = {
    b"half_pixel": _HALF,
    b"pytorch_half_pixel": _HALF,
    b"asymmetric": (0.0, 0.0),
    b"align_corners": (0.0, 0.0),
}
"""The offsets of pixels in the input and in the output, for each coordinate_transformation_mode."""

_NEAREST: Final = {
    b"floor": ("DECREASING", 0.0),
    b"ceil": ("INCREASING", 0.0),
    b"round_prefer_floor": ("INCREASING", 0.5),
    b"round_prefer_ceil": ("DECREASING", -0.5),
}
"""The rounding and the addend to the input's offset, for each nearest_mode."""


def resize(f: KernelFacts) -> Sequence[AnyOperatorDesc]:
    own, result = f.shape(f.value(0)), f.shape(f.node.outputs[0])
    mode, transform = f.number("mode", b"nearest"), f.number("coordinate_transformation_mode", b"half_pixel")
    nearest = f.number("nearest_mode", b"round_prefer_floor")
    unusual = [attribute(f.node, name) for name in ("axes", "antialias", "keep_aspect_ratio_policy")]
    if f.opset < 11 or any(unusual) or transform not in _OFFSETS or mode not in (b"nearest", b"linear"):
        raise NotDescribedError("its mode or an attribute is not derived")
    leading = next((i for i, sizes in enumerate(zip(own, result, strict=True)) if sizes != (1, 1)), len(own))
    if len(own) - leading > MIN_RANK or any(size == 1 for size in own[leading:]):
        raise NotDescribedError("a size of 1 is not derived")
    own, result = own[leading:], result[leading:]
    scales = tuple([each / size for each, size in zip(result, own, strict=True)])
    if transform == b"align_corners":
        scales = tuple([(each - 1) / (size - 1) for each, size in zip(result, own, strict=True)])
    elif f.value(2) is not None and f.value(3) is None:
        scales = f.floats(2)[leading:]
    rounding, more = _NEAREST[nearest] if mode == b"nearest" else ("DECREASING", 0.0)
    before, after = _OFFSETS[transform]
    missing = MIN_RANK - len(own)
    members = {
        "InputTensor": f.tensor(f.value(0), own),
        "OutputTensor": f.tensor(f.node.outputs[0], result),
        "InterpolationMode": "NEAREST_NEIGHBOR" if mode == b"nearest" else "LINEAR",
        "RoundingDirection": rounding,
        "DimensionCount": MIN_RANK,
        "Scales": (*(1.0,) * missing, *map(single_precision, scales)),
        "InputPixelOffsets": (*(_HALF[0] + more,) * missing, *(before + more,) * len(own)),
        "OutputPixelOffsets": (*(_HALF[1],) * missing, *(after,) * len(own)),
    }
    if f.graph.runtime.key < WITH_RESAMPLE3:
        return [AnyOperatorDesc("RESAMPLE2", members)]
    return [AnyOperatorDesc("RESAMPLE3", {**members, "Antialiased": False})]
