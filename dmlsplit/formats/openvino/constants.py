"""Known values in an IR: constants of the .bin, and values that only pass through layers that move or convert them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dmlsplit.descriptors.dims import Shape
from dmlsplit.formats.files import AllowedFolders, note_reference, reason
from dmlsplit.formats.limits import Limit
from dmlsplit.formats.openvino.graph import Graph, Layer, PortId, read_shape
from dmlsplit.formats.openvino.types import type_name
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

MAX_ELEMENTS: Final = Limit.IR_ELEMENTS.most
MAX_VALUES: Final = Limit.IR_VALUES.most

_DTYPES: Final[Mapping[str, str]] = {
    **{f"{kind}{bits}": f"<{kind}{bits // 8}" for kind in "iu" for bits in (8, 16, 32, 64)},
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
    "i4": "|u1",
    "u4": "|u1",
}
"""Element types of the .bin, always little endian; two 4-bit elements share a byte."""

Number: TypeAlias = int | float


class Value(NamedTuple):
    """A tensor's value; if `numbers` is None, `unknown` is the reason."""

    type: str | None
    shape: Shape | None
    numbers: tuple[Number, ...] | None
    unknown: str | None = None


class Weights:
    """The .bin next to the XML."""

    def __init__(self, model: str, folders: AllowedFolders) -> None:
        self.name = os.path.splitext(os.path.basename(model))[0] + ".bin"
        note_reference(os.path.join(folders.folder, self.name), model)
        self._folders = folders
        self._left = MAX_VALUES

    def read(self, layer: Layer, offset: int, size: int) -> bytes:
        """Returns `size` bytes from byte `offset` of the .bin. Raises InputError, at the layer, if the file is shorter
        or cannot be read."""
        try:
            data, held = self._folders.read(self.name, offset, size)
        except (OSError, InputError) as error:
            raise layer.error(f"its data is in '{printable(self.name)}': {reason(error)}") from None
        if len(data) != size or not 0 <= offset <= held:
            end = offset + size
            raise layer.error(f"its data is bytes {offset} to {end} of '{printable(self.name)}', which has {held}")
        return data

    def constant(self, layer: Layer) -> Value:
        """Returns the value of a Const layer, or the reason why it is unknown (too many elements, or an unsupported
        type). Raises InputError if its attributes or data are malformed."""
        type = type_name(layer.attribute("element_type"))
        try:
            shape = read_shape(layer.attribute("shape"))
        except InputError as error:
            raise layer.error(error.message) from None
        if shape is None or not all(isinstance(dim, int) for dim in shape):
            raise layer.error(f"the shape of a constant is '{printable(layer.data['shape'], 60)}'")
        count = math.prod(dim for dim in shape if isinstance(dim, int))
        offset, size = layer.integer("offset"), layer.integer("size")
        dtype = _DTYPES.get(type or "")
        if type is None or dtype is None:
            named = f"'{printable(layer.data['element_type'], 60)}'" if type is None else type
            return Value(type, shape, None, f"{layer} has elements of {named}, which are not read")
        bits = 4 if type in ("i4", "u4") else np.dtype(dtype).itemsize * 8
        if size != (count * bits + 7) // 8:
            message = f"size is {size}, {count} elements of {type} need {(count * bits + 7) // 8} bytes"
            raise layer.error(message)
        if count > MAX_ELEMENTS:
            return Value(type, shape, None, f"{layer} has {count} elements; the limit is {MAX_ELEMENTS}")
        self._left -= count
        if self._left < 0:
            return Value(type, shape, None, f"it comes from {layer}, after {MAX_VALUES} elements of constants")
        array = np.frombuffer(self.read(layer, offset, size), dtype)
        if bits == 4:
            array = _unpacked(array, signed=type == "i4")[:count]
        return Value(type, shape, tuple(array.tolist()))


def resolve(graph: Graph, source: PortId, weights: Weights, shape_of: Callable[[PortId], Shape | None]) -> Value:
    """Returns the value of the output `source` as far as it follows from constants and from layers that only move or
    convert them; otherwise a Value whose `unknown` is the reason. `shape_of` returns the shape of an output."""
    chain: list[Layer] = []
    while True:
        layer = graph.layers[source[0]]
        if layer.type == "Const":
            value = weights.constant(layer)
            break
        feeding = graph.sources.get((layer.id, layer.inputs[0].id)) if layer.inputs else None
        if layer.type == "ShapeOf" and feeding is not None:
            value = _shape_of(layer, shape_of(feeding))
            break
        if layer.type not in _STEPS or feeding is None or len(chain) == Limit.IR_CHAIN.most:
            return Value(None, None, None, f"it comes from {layer}")
        chain.append(layer)
        source = feeding
    for layer in reversed(chain):
        if value.numbers is None:
            return value
        value = _STEPS[layer.type](layer, value, value.numbers)
    return value


def _shape_of(layer: Layer, shape: Shape | None) -> Value:
    type = type_name(layer.data.get("output_type", "i64"))
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return Value(type, None, None, f"it comes from {layer}, whose shape is not known")
    return Value(type, (len(shape),), tuple([dim for dim in shape if isinstance(dim, int)]))


def _converted(layer: Layer, value: Value, numbers: tuple[Number, ...]) -> Value:
    type = type_name(layer.data.get("destination_type"))
    if type in ("f16", "f32", "f64"):
        return Value(type, value.shape, tuple(map(float, numbers)))
    if type is None or type not in _DTYPES or type in ("i4", "u4"):
        return Value(type, value.shape, None, f"it comes from {layer} to {type}")
    limits = np.iinfo(_DTYPES[type])
    if not all(limits.min <= number <= limits.max for number in numbers):  # NaN also fails this test
        return Value(type, value.shape, None, f"it comes from {layer}, whose input does not fit into {type}")
    return Value(type, value.shape, tuple(map(int, numbers)))


def _reshaped(layer: Layer, value: Value, numbers: tuple[Number, ...]) -> Value:
    """Returns `numbers`, in the same order, as a Value with the shape that the layer declares; the Value is unknown if
    that shape does not fit."""
    shape = layer.outputs[0].shape if len(layer.outputs) == 1 else None
    if shape is None and len(numbers) == 1:
        shape = ()
    sizes = [dim for dim in shape or () if isinstance(dim, int)]
    if shape is None or len(sizes) != len(shape) or math.prod(sizes) != len(numbers):
        return Value(value.type, shape, None, f"it comes from {layer}, whose shape is not known")
    return Value(value.type, shape, numbers)


_STEPS: Final[Mapping[str, Callable[[Layer, Value, tuple[Number, ...]], Value]]] = {
    "Convert": _converted,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), _reshaped),
}


def _unpacked(pairs: npt.NDArray[np.uint8], signed: bool) -> npt.NDArray[np.int64]:
    """Returns the 4-bit elements of bytes as int64, two for each byte, the low half first; from -8 to 7 if `signed`,
    else from 0 to 15."""
    halves = np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(-1).astype(np.int64)
    return np.where(halves > 7, halves - 16, halves) if signed else halves
