"""The table of rewritings: each row has the reason why a node needs it, and the change of the node's Form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import onnx
from onnx import TensorProto

from dmlsplit.descriptors.dims import Dim, Shape, is_static, numbers
from dmlsplit.descriptors.enums import TensorDataType as T
from dmlsplit.formats.nodes import SplitNode
from dmlsplit.mending.constants import cast_node, empty_nodes
from dmlsplit.mending.conversion import takes
from dmlsplit.mending.forms import Form, NamedTensor
from dmlsplit.mending.reshaping import groups_of, merged, restored
from dmlsplit.mending.views import LEAST_RANK, MOST_RANK, View
from dmlsplit.mending.words import CannotMend
from dmlsplit.system.records import record

Needed: TypeAlias = Callable[[View], str]
"""Returns the reason why a node needs the rewriting; "" if it does not."""
Apply: TypeAlias = Callable[[Form, View], None]


@record
class Rewriting:
    """One row: its name, the reason to apply it, and the change."""

    name: str
    needed: Needed
    apply: Apply


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


# Outputs without a name.


def _has_omitted(view: View) -> str:
    if not isinstance(view.node, SplitNode) or view.on_cpu:
        return ""
    names = view.node.output_names
    missing = sum(not name for name in names) + max(len(view.node.lengths or ()) - len(names), 0)
    return f"{missing} of its outputs {_has(missing)} no name" if missing else ""


def _name_outputs(form: Form, view: View) -> None:
    for index, part in enumerate(form.parts):
        if not part.name:
            part.name = form.fresh(f"output_{index}")
            part.shape = _part_shape(form, index)


def _part_shape(form: Form, index: int) -> Shape | None:
    whole, axis, lengths = form.whole.shape, form.axis, form.lengths
    if whole is None or axis is None:
        return None
    length = lengths[index] if lengths is not None and index < len(lengths) else None
    return (*whole[:axis], length, *whole[axis + 1 :])


# Lengths.


def _lengths_are_unread(view: View) -> str:
    if not isinstance(view.node, SplitNode) or view.on_cpu:
        return ""
    if view.computed and is_static(view.node.lengths):
        return "its lengths are computed at run time, but are always the same"
    if view.found("onnxruntime/lengths-elsewhere"):
        return "the data of its lengths is in another file"
    if view.found("onnxruntime/twins-differ"):
        return "another Split of the same tensor differs only in its outputs"
    return ""


def _make_explicit(form: Form, view: View) -> None:
    form.explicit = True


# Parts without elements.


def _has_empty(view: View) -> str:
    if view.on_cpu or view.is_left_empty:
        return ""
    whole, *parts = view.shapes
    if whole is not None and 0 in whole:
        return "it has no elements"
    lengths = view.node.lengths or (None,) * len(parts)
    count = sum(_is_empty(*part) for part in zip(parts, lengths, strict=False))
    return f"{count} of its parts {_has(count)} no elements" if count else ""


def _is_empty(shape: Shape | None, length: Dim) -> bool:
    return length == 0 or (shape is not None and 0 in shape)


def _cut_empty(form: Form, view: View) -> None:
    if not form.is_split and form.whole.shape is not None and 0 in form.whole.shape:
        form.before += _joined_empty(form)
        form.parts = []
        return
    if form.lengths is None:
        raise CannotMend(f"{_has_empty(view)}, and its lengths are not known")
    kept = []
    for index, (part, length) in enumerate(zip(form.parts, form.lengths, strict=False)):
        if not _is_empty(part.shape, length):
            kept.append((part, length))
        elif form.is_split and part.name:
            form.before += _empty_part(form, part, form.lengths[: index + 1])
    form.parts = [part for part, _ in kept]
    form.lengths = [length for _, length in kept]
    form.explicit = form.is_split


def _empty_part(form: Form, part: NamedTensor, lengths: Sequence[Dim]) -> list[onnx.NodeProto]:
    """Returns the nodes that make a part without elements: a constant if its shape is known, else a Slice of the
    whole. `lengths` are those of the parts up to and including it. Raises CannotMend if they are not known."""
    if form.data_type is not None and part.shape is not None and is_static(part.shape):
        return _empty_constant(form, part.name, part.shape)
    known = [length for length in lengths if isinstance(length, int)]
    if form.axis is None or (lengths[-1] != 0 and len(known) < len(lengths)):
        raise CannotMend("its parts have no elements, and their lengths are not known")
    start, end = (sum(known[:-1]), sum(known)) if lengths[-1] else (0, 0)
    window = {"starts": [start], "ends": [end], "axes": [form.axis]}
    if form.opset < 10:
        return [form.node("Slice", [form.whole.name], [part.name], **window)]
    return [form.node("Slice", [form.whole.name, *map(form.integers, window.values())], [part.name])]


def _empty_constant(form: Form, name: str, shape: Shape) -> list[onnx.NodeProto]:
    assert form.data_type is not None
    return empty_nodes(name, form.data_type, numbers(shape), form.opset, form.taken)


def _joined_empty(form: Form) -> list[onnx.NodeProto]:
    """Returns the nodes that replace a Concat whose output has no elements: a constant if its shape is known, else a
    Reshape of the first input to the output's size on the axis. Raises CannotMend if that size is not known."""
    assert form.whole.shape is not None
    if form.data_type is not None and is_static(form.whole.shape):
        return _empty_constant(form, form.whole.name, form.whole.shape)
    size = None if form.axis is None else form.whole.shape[form.axis]
    if not isinstance(size, int):
        raise CannotMend("it computes a tensor without elements, whose size on the axis is not known")
    sizes = [size if axis == form.axis else 0 for axis in range(len(form.whole.shape))]
    return [_reshape_node(form, form.parts[0].name, form.whole.name, tuple(sizes))]


# Element types.

_CARRIERS: Final = {"BOOL": ("INT32", T.INT32), "INT8": ("INT32", T.INT32), "UINT8": ("INT32", T.INT32)}
"""For each type, the types that hold all its values: a Cast there and back keeps every bit."""
_NO_CARRIER: Final = "ONNX has no lossless casts to a type that the target accepts and back"


def _has_other_type(view: View) -> str:
    element = view.node.element
    if element is None or (view.on_cpu and (view.target.runtime is not None or element.data_type is not None)):
        return ""
    if element.data_type is None:
        return f"DirectML has no data type for {view.node.data_type}: {element.refusal}"
    if int(element.data_type) in view.data_types:
        return ""
    return f"the target does not accept {view.node.data_type}"


def _cast(form: Form, view: View) -> None:
    own = form.data_type or ""
    name, held = _CARRIERS.get(own, ("", None))
    if held is None or int(held) not in view.data_types:
        raise CannotMend(f"{_has_other_type(view)}; {_NO_CARRIER}")
    there, back = (name,), ("UINT8", own) if own == "BOOL" else (own,)
    form.surround(
        name.lower(),
        lambda tensor, output: _casts(form, tensor.name, output, there),
        lambda tensor, output: _casts(form, tensor.name, output, back),
    )


# OpenVINO refuses a Cast to BOOL directly behind a Split, or computes it wrongly; a Cast to UINT8 works


def _casts(form: Form, read: str, output: str, types: Sequence[str]) -> list[onnx.NodeProto]:
    names = [read, *(form.fresh(name.lower()) for name in types[:-1]), output]
    steps = zip(names, names[1:], map(TensorProto.DataType.Value, types), strict=False)
    return [cast_node(before, after, data_type, form.opset) for before, after, data_type in steps]


# Ranks.


def _has_other_rank(view: View) -> str:
    rank = view.rank
    if rank is None or view.on_cpu:
        return ""
    most = max(view.dimension_counts)
    if max(rank, LEAST_RANK) <= most:
        return ""
    return f"its tensors have {rank} dimensions, but the target accepts {most}"


def _reshape(form: Form, view: View) -> None:
    rank = form.rank
    if rank is None or form.axis is None:
        raise CannotMend("its number of dimensions, or its axis, differs between the calls of its function")
    if view.in_session and rank > MOST_RANK:
        message = f"its tensors have {rank} dimensions, but ONNX Runtime's DirectML execution provider does not accept"
        raise CannotMend(f"{message} more than {MOST_RANK}, not even for a Reshape")
    if form.whole.shape is None:
        form.whole.shape = next(tensor.shape for tensor in form.parts if tensor.shape is not None)
        form.whole.shape = (*form.whole.shape[: form.axis], None, *form.whole.shape[form.axis + 1 :])
    for index, part in enumerate(form.parts):
        if part.shape is None:
            part.shape = _part_shape(form, index)
    tensors = [form.whole, *form.parts]
    shapes = [tensor.shape for tensor in tensors if tensor.shape is not None]
    groups = groups_of(shapes, form.axis, max(view.dimension_counts))
    if groups is None:
        raise CannotMend(f"its {rank} dimensions cannot be merged by a Reshape: too many sizes are open")
    form.surround(
        "merged",
        lambda tensor, output: [_reshape_node(form, tensor.name, output, merged(tensor.shape or (), groups))],
        lambda tensor, output: [_reshape_node(form, tensor.name, output, restored(tensor.shape or (), groups))],
    )
    form.axis = next(i for i, (start, _) in enumerate(groups) if start == form.axis)


def _reshape_node(form: Form, read: str, output: str, sizes: tuple[int, ...] | None) -> onnx.NodeProto:
    assert sizes is not None
    if not takes("Reshape", form.opset, form.data_type):
        raise CannotMend(f"Reshape of opset {form.opset} does not accept {form.data_type}")
    if form.opset < 5:
        return form.node("Reshape", [read], [output], shape=list(sizes))
    return form.node("Reshape", [read, form.integers(sizes)], [output])


REWRITINGS: Final = (
    # write the lengths out as a constant
    Rewriting("explicit-lengths", _lengths_are_unread, _make_explicit),
    # leave out the parts without elements; each is replaced with a constant
    Rewriting("cut-empty", _has_empty, _cut_empty),
    # name the omitted outputs, which nothing reads
    Rewriting("name-outputs", _has_omitted, _name_outputs),
    # cast to a type that the target accepts, and back: the same bits
    Rewriting("cast", _has_other_type, _cast),
    # merge dimensions with a Reshape in front of the node, and restore them behind it
    Rewriting("merge-dimensions", _has_other_rank, _reshape),
)
"""The rewritings in the order in which they are applied to a node."""
