"""What a kernel reads of its node: sizes, types, attributes, constants, and the fused activation."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from onnx import helper

from dmlsplit.descriptors.any_operator import AnyOperatorDesc
from dmlsplit.descriptors.descs import BufferTensorDesc
from dmlsplit.descriptors.dims import is_static
from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.formats.onnx.tensors import Array
from dmlsplit.models.graph import Node, Value, attribute
from dmlsplit.onnxruntime.facts import DIRECTML_TYPES, MIN_RANK
from dmlsplit.onnxruntime.operator_traits import row_of
from dmlsplit.onnxruntime.session_graph import SessionGraph

Sizes: TypeAlias = tuple[int, ...]


class NotDescribedError(Exception):
    """The descriptors of a node's operator cannot be derived; the message says why."""


_Parameters: TypeAlias = Mapping[str, tuple[str, float]]
"""Maps each member to its attribute and default value."""

_ALPHA: Final = "Alpha"

ACTIVATIONS: Final[Mapping[str, tuple[str, _Parameters]]] = {
    "Relu": ("ACTIVATION_RELU", {}),
    "Sigmoid": ("ACTIVATION_SIGMOID", {}),
    "Tanh": ("ACTIVATION_TANH", {}),
    "Softsign": ("ACTIVATION_SOFTSIGN", {}),
    "Softplus": ("ACTIVATION_SOFTPLUS", {"Steepness": ("", 1.0)}),
    "Elu": ("ACTIVATION_ELU", {_ALPHA: ("alpha", 1.0)}),
    "Celu": ("ACTIVATION_CELU", {_ALPHA: ("alpha", 1.0)}),
    "LeakyRelu": ("ACTIVATION_LEAKY_RELU", {_ALPHA: ("alpha", 0.01)}),
    "ThresholdedRelu": ("ACTIVATION_THRESHOLDED_RELU", {_ALPHA: ("alpha", 1.0)}),
    "HardSigmoid": ("ACTIVATION_HARD_SIGMOID", {_ALPHA: ("alpha", 0.2), "Beta": ("beta", 0.5)}),
    "Selu": (
        "ACTIVATION_SCALED_ELU",
        {_ALPHA: ("alpha", 1.67326319217681884765625), "Gamma": ("gamma", 1.05070102214813232421875)},
    ),
}


class KernelFacts:
    """What a kernel reads of its node: shapes, types, attributes and constants. Its methods raise NotDescribedError if
    what they return is not known."""

    def __init__(self, graph: SessionGraph, node: Node) -> None:
        self.graph = graph
        self.node = node

    @property
    def opset(self) -> int:
        return self.graph.opset

    def value(self, index: int) -> Value | None:
        """Returns the input at `index`; None if it is omitted."""
        inputs = self.node.inputs
        return inputs[index] if index < len(inputs) and inputs[index].name else None

    def shape(self, value: Value | None) -> Sizes:
        """Returns the sizes of a tensor. Raises NotDescribedError if they are not all known."""
        shape = None if value is None else self.graph.shape(value.known)
        if shape is None or not is_static(shape):
            raise NotDescribedError("its sizes are open")
        return tuple([int(size) for size in shape])

    def data_type(self, value: Value | None) -> TensorDataType:
        """Returns DirectML's element type of a tensor. Raises NotDescribedError if it is not known."""
        name = None if value is None else self.graph.data_type(value.known_type)
        try:
            return TensorDataType[DIRECTML_TYPES.get(name or "", name or "")]
        except KeyError:
            raise NotDescribedError("its element type is not known") from None

    def number(self, name: str, default: Any) -> Any:
        """Returns the value of an attribute, `default` if it is missing; a FLOAT is rounded to 32 bits, as in ONNX
        Runtime."""
        found = attribute(self.node, name)
        value = default if found is None else helper.get_attribute_value(found)
        return single_precision(value) if isinstance(value, float) else value

    def ints(self, name: str, default: Sequence[int]) -> Sizes:
        """Returns the integers of an attribute, `default` if it is missing."""
        return tuple(map(int, self.number(name, default)))

    def constants(self, index: int) -> Sizes | None:
        """Returns the elements of a constant integer input; None if it is omitted. Raises NotDescribedError if they are
        not known."""
        value = self.value(index)
        if value is None:
            return None
        found = self._elements(value)
        if found is None:
            raise NotDescribedError("what it reads on the CPU is not known")
        return tuple(map(int, found.reshape(-1)))

    def floats(self, index: int) -> tuple[float, ...]:
        """Returns the elements of a constant input. Raises NotDescribedError if they are not known."""
        value = self.value(index)
        found = None if value is None else self._elements(value)
        if found is None:
            raise NotDescribedError("what it reads on the CPU is not known")
        return tuple(map(float, found.reshape(-1)))

    def scalar(self, index: int) -> float | None:
        """Returns the element of a constant input of one element; None if it is omitted. Raises NotDescribedError if it
        is not known."""
        value = self.value(index)
        found = None if value is None else self._elements(value)
        if value is None:
            return None
        if found is None or found.size != 1:
            raise NotDescribedError("what it reads on the CPU is not known")
        return float(found.reshape(-1)[0])

    def _elements(self, value: Value) -> Array | None:
        """Returns the elements of a constant of this graph; None for any other tensor: kernels do not see the constants
        of outer graphs."""
        return self.graph.elements(value.known) if self.graph.is_initializer(value.known) else None

    # Tensors.

    def tensor(
        self, value: Value | None, sizes: Sizes | None = None, strides: Sequence[int] | None = None, least: int = 4
    ) -> BufferTensorDesc:
        """Returns the descriptor of a value's tensor, with leading 1s up to `least` dimensions; `sizes` and `strides`
        (in elements), if given, replace its own. Raises NotDescribedError if it is not known or has no elements."""
        known = padded(self.shape(value) if sizes is None else sizes, least)
        if not known or 0 in known:
            raise NotDescribedError("a tensor has no elements")
        return BufferTensorDesc(self.data_type(value), known, strides=strides)

    def input(self, index: int) -> BufferTensorDesc:
        return self.tensor(self.value(index))

    @property
    def output(self) -> BufferTensorDesc:
        return self.tensor(self.node.outputs[0])

    def broadcast(self, index: int, whole: Sizes) -> BufferTensorDesc:
        """Returns the descriptor of the input at `index` broadcast to the sizes `whole`: strides are 0 in repeated
        dimensions."""
        return self.repeated(self.value(index), whole)

    def repeated(self, value: Value | None, whole: Sizes) -> BufferTensorDesc:
        """Returns the descriptor of a tensor broadcast to the sizes `whole`. A tensor of fewer dimensions has strides
        even if no size differs."""
        own = self.shape(value)
        if own == whole:
            return self.tensor(value, whole)
        own, whole = padded(own, max(len(whole), MIN_RANK)), padded(whole, MIN_RANK)
        packed, strides = 1, [0] * len(own)
        for i in reversed(range(len(own))):
            strides[i] = packed if own[i] != 1 else 0
            packed *= own[i]
        return self.tensor(value, whole, strides)

    @property
    def activation(self) -> AnyOperatorDesc | None:
        """The activation fused into the node; None if there is none. Raises NotDescribedError if its parameters are not
        known."""
        proto = self.graph.nodes[self.node.index].proto
        if proto is self.node.proto or proto.op_type not in row_of("Conv").absorbs:
            return None
        row = ACTIVATIONS.get(proto.op_type)
        if row is None:
            raise NotDescribedError(f"the parameters of a fused {proto.op_type} are not derived")
        name, parameters = row
        own = {each.name: float(helper.get_attribute_value(each)) for each in proto.attribute}
        members = {member: single_precision(own.get(word, default)) for member, (word, default) in parameters.items()}
        return AnyOperatorDesc(name, members, fused=True)


Kernel: TypeAlias = Callable[[KernelFacts], Sequence[AnyOperatorDesc]]


def single_precision(number: float) -> float:
    """Returns a number rounded to 32 bits."""
    found: float = struct.unpack("f", struct.pack("f", number))[0]
    return found


def padded(sizes: Sizes, least: int = MIN_RANK) -> Sizes:
    """Returns sizes with leading 1s up to `least` dimensions."""
    return (*(1,) * (least - len(sizes)), *sizes)
