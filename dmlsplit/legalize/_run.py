"""Runs the operators of a rewriting on the original's buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dmlsplit.descriptors.descs import OperatorDesc
from dmlsplit.descriptors.diagnostics import Report
from dmlsplit.descriptors.geometry import Geometry, members_of
from dmlsplit.native import core
from dmlsplit.native.binding import NUMPY_DTYPE, BoundMemory, BoundTensor
from dmlsplit.native.execution import CompiledOperator, refuse_undecided
from dmlsplit.system.errors import BindingError

if TYPE_CHECKING:
    from dmlsplit.descriptors.call_types import Array
    from dmlsplit.legalize.regions import Region


class Runner:
    """Holds the compiled operators, and the compiled original, which validates the caller's buffers."""

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
        """Returns fresh arrays in the original descriptor's layout: a list for a split, an array for a join."""
        return self._original.new_outputs()

    def dispatch(self, input: object, out: object) -> None:
        """Checks the buffers against the original, then runs the operators on them. Raises BindingError if a buffer
        does not fit."""
        bound = self._original.bind_tensors(*self._sides(input, out))
        whole, parts = bound.bindings
        whole_tensor, part_tensors = self._original.tensors
        wholes = [_laid_out(whole_tensor, whole)]
        pieces = [_laid_out(tensor, part) for tensor, part in zip(part_tensors, parts, strict=True)]
        inputs, outputs = self._sides(wholes, pieces)
        temporary = _Memory.of(np.empty(self._temporary_bytes, np.uint8))
        memory = {"input": inputs, "output": outputs, "temporary": [temporary]}
        for operator, region, part_regions in self._steps:
            tensor, tensors = operator.tensors
            views = [
                np.asarray(_TensorInMemory(memory[region.buffer][region.index], region.offset, tensor))
                for tensor, region in zip((tensor, *tensors), (region, *part_regions), strict=True)
            ]
            operator.dispatch_tensors(views[0], views[1:])


class _Memory(NamedTuple):
    """A memory address, and the object that keeps the memory alive."""

    address: int
    owner: object

    @classmethod
    def of(cls, block: np.ndarray) -> _Memory:
        return cls(block.__array_interface__["data"][0], block)


class _TensorInMemory:
    """A tensor at an offset of memory, from which numpy makes an array without copying."""

    def __init__(self, memory: _Memory, offset: int, tensor: BoundTensor) -> None:
        self._owner = memory.owner
        self.__array_interface__ = {
            "version": 3,
            "data": (memory.address + offset, not tensor.is_output),
            "shape": tensor.sizes,
            "strides": tensor.strides,
            "typestr": tensor.dtype.str,
        }


def _laid_out(tensor: BoundTensor, binding: BoundMemory) -> _Memory:
    """Returns the bound memory if it has the descriptor's layout; otherwise copies the input array to new memory in
    that layout, and returns this memory."""
    if binding.strides == tensor.strides:
        return _Memory(core.address_of(binding.pointer), binding)
    block = np.empty(tensor.extent, tensor.dtype)
    np.ndarray(tensor.sizes, tensor.dtype, block, 0, tensor.strides)[...] = binding.owner
    return _Memory.of(block)
