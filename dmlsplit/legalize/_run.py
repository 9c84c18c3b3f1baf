"""Running the operators of a rewriting in the buffers of the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dmlsplit import _native
from dmlsplit._binding import NUMPY_DTYPE, BoundMemory, BoundTensor
from dmlsplit.descriptors import OperatorDesc
from dmlsplit.diagnostics import Report
from dmlsplit.errors import BindingError
from dmlsplit.execution import CompiledOperator, refuse_undecided
from dmlsplit.geometry import Geometry, members_of

if TYPE_CHECKING:
    from dmlsplit._typing import Array
    from dmlsplit.legalize.result import Region


class Runner:
    """The compiled operators; the original is compiled too, as it knows what may be bound to it."""

    def __init__(
        self,
        desc: OperatorDesc,
        report: Report,
        operators: Sequence[OperatorDesc],
        bindings: Sequence[Sequence[Region]],
        temporary_bytes: int,
    ) -> None:
        refuse_undecided(report)
        original = Geometry.of(desc)
        if not {tensor.data_type for tensor in original.tensors} <= set(NUMPY_DTYPE):
            raise BindingError("numpy has no 4-bit elements: bind raw memory to the operators, as `bindings` says")
        self._original = CompiledOperator(desc, report)
        self._sides = original.roles.sides
        self._steps = [
            (CompiledOperator(operator, report), *members_of(operator).roles.whole_and_parts(regions))
            for operator, regions in zip(operators, bindings, strict=True)
        ]
        self._temporary_bytes = temporary_bytes

    def new_outputs(self) -> list[Array] | Array:
        """Fresh arrays as the original descriptor has them."""
        return self._original.new_outputs()

    def dispatch(self, input: object, out: object) -> None:
        """Checks the buffers against the original, then runs the operators."""
        bound = self._original.bind_tensors(*self._sides(input, out))
        whole, parts = bound.bindings
        whole_tensor, part_tensors = self._original.tensors
        wholes = [_laid_out(whole_tensor, whole)]
        pieces = [_laid_out(tensor, part) for tensor, part in zip(part_tensors, parts, strict=True)]
        inputs, outputs = self._sides(wholes, pieces)
        memory = {"input": inputs, "output": outputs, "temporary": [_Memory.fresh(self._temporary_bytes)]}
        for operator, region, part_regions in self._steps:
            tensor, tensors = operator.tensors
            views = [
                memory[region.buffer][region.index].view(tensor, region.offset)
                for tensor, region in zip((tensor, *tensors), (region, *part_regions), strict=True)
            ]
            operator.dispatch_tensors(views[0], views[1:])


class _Memory:
    """Memory at an address, and what keeps it alive."""

    def __init__(self, address: int, owner: object) -> None:
        self._address = address
        self._owner = owner

    @classmethod
    def fresh(cls, size: int) -> _Memory:
        block = np.empty(size, np.uint8)
        return cls(block.__array_interface__["data"][0], block)

    def view(self, tensor: BoundTensor, offset: int) -> np.ndarray:
        """The array that a tensor is at an offset."""
        place = _Place(self._address + offset, not tensor.is_output, tensor, self._owner)
        return np.asarray(place)


class _Place:
    """A buffer that numpy makes an array of without a copy."""

    def __init__(self, address: int, read_only: bool, tensor: BoundTensor, owner: object) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, read_only),
            "shape": tensor.sizes,
            "strides": tensor.strides,
            "typestr": tensor.dtype.str,
        }


def _laid_out(tensor: BoundTensor, binding: BoundMemory) -> _Memory:
    """The bound memory in the descriptor's layout: itself, or a copy of an input array with other strides."""
    if binding.strides == tensor.strides:
        return _Memory(_native.address_of(binding.pointer), binding)
    block = np.empty(tensor.extent, tensor.dtype)
    np.ndarray(tensor.sizes, tensor.dtype, block, 0, tensor.strides)[...] = binding.owner
    return _Memory(block.__array_interface__["data"][0], block)
