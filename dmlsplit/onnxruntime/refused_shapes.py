"""The shapes of inputs that kernels of DirectML refuse, which fails session creation; onnx does not check them.

Observed with 1.18.0, 1.20.1, 1.24.4 and 1.30.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

from dmlsplit.descriptors.dims import Shape, is_static
from dmlsplit.models.graph import Node, attribute
from dmlsplit.onnxruntime.session_graph import SessionGraph

SUMS: Final = frozenset({"Max", "Mean", "Min", "Sum"})
_FIRST_BROADCAST: Final = 8
_FIRST_BY_CHANNEL: Final = 21
_FIRST_OF_NEW_LOSSES: Final = 17
"""The first opset in which every version infers the nodes of a loss by its schema; before, older ones do not."""
_RANK_OF_HIDDEN: Final = 3
"""The rank of an Attention's inputs whose heads are not a dimension of their own."""
_Check: TypeAlias = Callable[[Sequence[Shape], int], str]
"""Returns what is wrong with the shapes of a node's inputs, given an attribute of the node; "" if nothing is."""


def refused_shapes(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a node refuses the shapes of its inputs; "" if it does not, or if their ranks
    are not known."""
    if node.op_type == "Transpose" and (reason := _other_rank(graph, node)):
        return reason
    row = WITH_SHAPES.get(node.op_type)
    if row is None:
        return ""
    name, default, least, check = row
    shapes = [graph.shape(each) if each else None for each in node.proto.input[:]]
    known = [shape for shape in takewhile(lambda shape: shape is not None, shapes) if shape is not None]
    given = attribute(node, name)
    if any(shape is not None and 0 in shape for shape in shapes):  # nothing is submitted
        return ""
    return check(known, default if given is None else given.i) if len(known) >= least else ""


def refused_sum(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a Max, Mean, Min or Sum refuses the shapes of its inputs; "" if it does not. It
    broadcasts them in every opset; inference does so from opset 8 on, and before takes the result to have the shape
    of the first input."""
    shapes = [graph.shape(name) for name in node.proto.input] if graph.opset < _FIRST_BROADCAST else []
    known = [shape for shape in shapes if is_static(shape)]
    rank = max(map(len, known), default=0)
    result: tuple[int, ...] = ()
    for sizes in zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in known), strict=True):
        others = set(sizes) - {1}
        if len(others) > 1:
            return f"its inputs {', '.join(map(_text, known))} do not fit each other"
        result += tuple(others or {1})
    inferred = graph.shape(node.proto.output[0])
    if len(known) < len(shapes) or not shapes or not is_static(inferred) or inferred == result:
        return ""
    return f"its result is {_text(result)}, and that of the model {_text(inferred)}"


def refused_resize(graph: SessionGraph, node: Node) -> str:
    """Returns why DirectML's kernel for a Resize refuses it: it takes the sizes that the node is given, and inference
    those that keep the ratio of the input's; "" if they are equal, and if that is not known."""
    policy, axes = attribute(node, "keep_aspect_ratio_policy"), attribute(node, "axes")
    sizes = graph.scope.integers(node.proto.input[3]) if policy is not None and len(node.proto.input) > 3 else None
    inferred = graph.shape(node.proto.output[0])
    if sizes is None or inferred is None:
        return ""
    places = range(len(inferred)) if axes is None else axes.ints
    kept = [inferred[place] for place in places if -len(inferred) <= place < len(inferred)]
    if len(kept) != len(sizes) or not any(map(_differ, kept, sizes)):
        return ""
    return f"it resizes to {_text(sizes)}, and its result is {_text(inferred)}"


def divides_by_zero(graph: SessionGraph, node: Node) -> bool:
    """True for an Attention whose inference divides by its number of heads, 0, which ends the process."""
    heads = attribute(node, "kv_num_heads") if node.op_type == "Attention" and len(node.proto.input) > 1 else None
    shape = graph.shape(node.proto.input[1]) if heads is not None and heads.i == 0 else None
    return shape is not None and len(shape) == _RANK_OF_HIDDEN


def misfit_function(graph: SessionGraph, node: Node) -> str:
    """Returns why the nodes that replace a GroupNormalization do not fit its scale and bias, or those of a
    SoftmaxCrossEntropyLoss its weights; "" for another node, if they do, and if that is not known. From opset 21 on a
    GroupNormalization has one scale a channel, before one a group."""
    if len(node.proto.input) < 3:
        return ""
    if node.op_type == "SoftmaxCrossEntropyLoss":
        weights = graph.shape(node.proto.input[2]) if node.proto.input[2] else None
        looks = weights == () or graph.runtime.traits.follows_computed_sizes or graph.opset >= _FIRST_OF_NEW_LOSSES
        is_misfit = looks and weights is not None and len(weights) != 1
        return f"its weights have {len(weights or ())} dimensions, not 1" if is_misfit else ""
    if node.op_type != "GroupNormalization":
        return ""
    data, *vectors = [graph.shape(name) for name in node.proto.input[:3]]
    sizes = [shape[0] for shape in vectors if shape is not None and len(shape) == 1]
    known = [size for size in sizes if isinstance(size, int) and size != 1]
    if len(set(known)) > 1:
        return f"its scale has {known[0]} elements, and its bias {known[1]}"
    if graph.opset < _FIRST_BY_CHANNEL or not graph.runtime.traits.follows_computed_sizes:
        return ""
    return _of_other_count([(size,) for size in known], data[1]) if is_static(data) and len(data) > 1 else ""


def _gathered(shapes: Sequence[Shape], axis: int) -> str:
    data, indices = shapes[:2]
    if len(data) != len(indices):
        return f"its inputs have {len(data)} and {len(indices)} dimensions"
    axis += len(data) if axis < 0 else 0
    if any(i != axis and _differ(a, b) for i, (a, b) in enumerate(zip(data, indices, strict=True))):
        return f"indices of {_text(indices)} and data of {_text(data)} differ in another dimension than {axis}"
    return ""


def _gathered_slices(shapes: Sequence[Shape], batch: int) -> str:
    data, indices = shapes[:2]
    if batch < 0 or not indices or not isinstance(count := indices[-1], int):
        return ""
    if len(indices) <= batch:
        return f"indices of {_text(indices)} have too few dimensions for {batch} batch_dims"
    if any(map(_differ, data[:batch], indices[:batch])):
        return f"indices of {_text(indices)} and data of {_text(data)} differ in their first {batch} dimensions"
    return "its result is a scalar" if len(data) + len(indices) == batch + count + 1 else ""


def _scattered(shapes: Sequence[Shape], axis: int) -> str:
    data, indices, updates = shapes[:3]
    if len(indices) != len(updates) or any(map(_differ, indices, updates)):
        return f"indices of {_text(indices)} and updates of {_text(updates)} differ"
    if any(isinstance(a, int) and isinstance(b, int) and a < b for a, b in zip(data, indices, strict=False)):
        return f"indices of {_text(indices)} are larger than data of {_text(data)}"
    return _gathered(shapes, axis)


def _scattered_slices(shapes: Sequence[Shape], _: int) -> str:
    data, indices, updates = shapes[:3]
    if not indices or not isinstance(count := indices[-1], int):
        return ""
    wanted = (*indices[:-1], *data[count:])
    rank = max(len(wanted), len(updates))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (wanted, updates)]  # as in descriptors
    if count > len(data) or any(map(_differ, *padded)):
        return f"updates of {_text(updates)} do not fit indices of {_text(indices)} into {_text(data)}"
    return ""


def _convolved(shapes: Sequence[Shape], groups: int) -> str:
    data, weights = shapes[:2]
    if groups < 1:
        return f"it has {groups} groups"
    if len(data) < 2 or len(weights) < 2:
        return ""
    channels, outputs, inputs = data[1], *weights[:2]
    if isinstance(channels, int) and isinstance(inputs, int) and channels != inputs * groups:
        return f"{groups} groups of {inputs} channels are not {channels}"
    if isinstance(outputs, int) and outputs % groups:
        return f"{outputs} outputs are not divisible by {groups} groups"
    return _of_other_count(shapes[2:], outputs)


def _convolved_backwards(shapes: Sequence[Shape], groups: int) -> str:
    channels, inputs = [
        shape[place] if place < len(shape) else None for place, shape in zip((1, 0), shapes, strict=False)
    ]
    if _differ(channels, inputs):
        return f"the weights take {inputs} channels, not {channels}"
    if isinstance(channels, int) and groups > 0 and channels % groups:
        return f"{channels} channels are not divisible by {groups} groups"
    outputs = shapes[1][1] if len(shapes[1]) > 1 else None
    return _of_other_count(shapes[2:], outputs * groups if isinstance(outputs, int) and groups > 0 else None)


def _normalized(shapes: Sequence[Shape], _: int) -> str:
    channels = shapes[0][1] if len(shapes[0]) > 1 else None
    return _of_other_count([shape for shape in shapes[1:] if shape != (1,)], channels)


def _of_other_count(vectors: Sequence[Shape], channels: object) -> str:
    """Returns which of `vectors`, if their shapes are those of vectors, does not have one element for each channel."""
    wrong = next((shape[0] for shape in vectors if len(shape) == 1 and _differ(shape[0], channels)), None)
    return "" if wrong is None else f"one of its inputs has {wrong} elements for {channels} channels"


def _pooled(shapes: Sequence[Shape], _: int) -> str:
    rank = len(shapes[0])
    return f"its input has {rank} dimension{'' if rank == 1 else 's'}, not 3 or more" if rank < 3 else ""


def _other_rank(graph: SessionGraph, node: Node) -> str:
    """Returns why a Transpose does not take its perm, which must have all dimensions; "" if it does. Inference takes
    any number of those that exist."""
    shape, perm = graph.shape(node.proto.input[0]), attribute(node, "perm")
    if not shape or 0 in shape or perm is None or len(perm.ints) in (0, len(shape)):
        return ""
    return f"its perm has {len(perm.ints)} dimensions, and its input {len(shape)}"


def _transposed(shapes: Sequence[Shape], _: int) -> str:
    return "" if shapes[0] else "its input is a scalar"


def _differ(first: object, second: object) -> bool:
    return isinstance(first, int) and isinstance(second, int) and first != second


def _text(shape: Shape) -> str:
    return f"[{', '.join(str(size) if isinstance(size, int) else '?' for size in shape)}]"


WITH_SHAPES: Final[Mapping[str, tuple[str, int, int, _Check]]] = {
    "BatchNormalization": ("", 0, 5, _normalized),
    "InstanceNormalization": ("", 0, 3, _normalized),
    "Conv": ("group", 1, 2, _convolved),
    "ConvTranspose": ("group", 1, 2, _convolved_backwards),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), ("", 0, 1, _pooled)),
    "GatherND": ("batch_dims", 0, 2, _gathered_slices),
    "GatherElements": ("axis", 0, 2, _gathered),
    **dict.fromkeys(("Scatter", "ScatterElements"), ("axis", 0, 3, _scattered)),
    "ScatterND": ("", 0, 3, _scattered_slices),
    "Transpose": ("", 0, 1, _transposed),
}
"""Maps an operator to an attribute, its default, the number of inputs whose ranks must be known, and the check
of the shapes of these and of all that follow them."""
