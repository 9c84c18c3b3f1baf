"""Running splits and joins: compiled operators, bindings, and the one-liners on arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from dmlsplit import _native
from dmlsplit._buffers import Binding, BoundTensor, bind, check_apart, new_output
from dmlsplit.descriptors import OperatorDesc, SplitOperatorDesc, TensorDesc
from dmlsplit.diagnostics import Report
from dmlsplit.enums import FeatureLevel
from dmlsplit.errors import BindingError, NativeError
from dmlsplit.releases import Release
from dmlsplit.validation import validate

PLANS_PER_OPERATOR: Final = 16
"""Plans a compiled operator keeps for inputs whose strides are not the descriptor's."""
OVERLAP_UNDECIDED: Final = "tensor/output-overlap-undecided"
PLANS_OF_ARRAYS: Final = 256
"""Plans that split and join keep."""


def compile(
    desc: OperatorDesc,
    *,
    feature_level: FeatureLevel | int | str | None = None,
    directml: Release | str | None = None,
) -> CompiledOperator:
    """Plans a descriptor for execution.

    Raises ValidationError, which carries the Report, where `validate` with the same arguments finds an error;
    NativeError where the core refuses it (outputs of which it could not be decided whether their elements overlap).
    """
    report = validate(desc, feature_level=feature_level, directml=directml)
    report.raise_if_errors()
    for diagnostic in report.diagnostics:
        if diagnostic.rule == OVERLAP_UNDECIDED:
            raise NativeError(f"{diagnostic.path}: {diagnostic.message}")
    return CompiledOperator(desc, report)


class CompiledOperator:
    """A planned split or join; immutable in effect, and free to be used by many threads at once.

    A split takes one array and gives a list; a join takes a list and gives one array. Arrays have the descriptor's
    sizes and data type, an input in any strides, an output in the descriptor's. Raw memory (bytes-like objects of at
    least TotalTensorSizeInBytes, 1-D uint8 arrays) is laid out as the descriptor says.
    """

    def __init__(self, desc: OperatorDesc, report: Report) -> None:
        self.desc = desc
        self.report = report
        if isinstance(desc, SplitOperatorDesc):
            self._is_split = True
            self._whole = _bound_tensor("InputTensor", desc.input_tensor, False)
            array, count, path = desc.output_tensors, desc.output_count, "OutputTensors"
        else:
            self._is_split = False
            self._whole = _bound_tensor("OutputTensor", desc.output_tensor, True)
            array, count, path = desc.input_tensors, desc.input_count, "InputTensors"
        self._parts = [
            _bound_tensor(f"{path}[{i}]", tensor, self._is_split) for i, tensor in enumerate((array or ())[:count])
        ]
        self._lengths = [part.sizes[desc.axis] for part in self._parts]
        self._other_plan = lru_cache(PLANS_PER_OPERATOR)(self._new_plan)
        self._own_strides = self._whole.strides, tuple(part.strides for part in self._parts)
        self.plan = self._new_plan(*self._own_strides)
        """How the C core runs it; `plan.describe()` tells in words."""

    def _new_plan(self, strides: tuple[int, ...], part_strides: tuple[tuple[int, ...], ...]) -> _native.Plan:
        return _native.Plan(
            _native.SPLIT if self._is_split else _native.JOIN,
            self._whole.dtype.itemsize,
            self._whole.sizes,
            strides,
            self.desc.axis,
            self._lengths,
            [stride for part in part_strides for stride in part],
            overlap_allowed=True,  # validation has decided that nothing written overlaps
        )

    def __call__(self, input: Any) -> Any:
        """Executes into fresh arrays of the outputs' sizes and strides: a list for a split, an array for a join."""
        out: Any = [new_output(part) for part in self._parts] if self._is_split else new_output(self._whole)
        self.dispatch(input, out)
        return out

    def dispatch(self, input: Any, out: Any) -> None:
        """Executes into the caller's buffers; BindingError where one does not fit, before anything is written."""
        self.bind(input, out).dispatch()

    def bind(self, input: Any, out: Any) -> BoundOperator:
        """Resolves the buffers once, for many dispatches. The result keeps them alive."""
        whole_value, part_values = (input, out) if self._is_split else (out, input)
        whole = bind(self._whole, whole_value)
        parts = self._bind_parts(part_values)
        strides = whole.strides, tuple([part.strides for part in parts])
        plan = self.plan if strides == self._own_strides else self._other_plan(*strides)
        vector = _native.pointers([part.pointer for part in parts])
        if not plan.ranges_apart(whole.pointer, vector):
            check_apart(plan, self._whole, whole, list(zip(self._parts, parts, strict=True)))
        return BoundOperator(plan, whole, parts, vector)

    def _bind_parts(self, values: Any) -> list[Binding]:
        path = "OutputTensors" if self._is_split else "InputTensors"
        if isinstance(values, (np.ndarray, bytes, bytearray, memoryview)) or not isinstance(values, Sequence):
            kind = type(values).__name__
            raise BindingError(f"{path}: a list or tuple of {len(self._parts)} buffers is expected, not {kind}")
        if len(values) != len(self._parts):
            raise BindingError(f"{path}: {len(values)} buffers were given, the operator has {len(self._parts)}")
        return [bind(part, value) for part, value in zip(self._parts, values, strict=True)]


class BoundOperator:
    """A compiled operator with its buffers; `dispatch` copies. Made by CompiledOperator.bind."""

    __slots__ = ("_arguments", "_keep", "_run", "plan")

    def __init__(self, plan: _native.Plan, whole: Binding, parts: list[Binding], vector: Any) -> None:
        self.plan = plan
        self._keep = (whole, parts, vector)
        self._run, *arguments = plan.bound_call(whole.pointer, vector)
        self._arguments = tuple(arguments)

    def dispatch(self) -> None:
        """Copies once; the GIL is released meanwhile."""
        self._run(*self._arguments)


def _bound_tensor(path: str, tensor: TensorDesc | None, is_output: bool) -> BoundTensor:
    # A descriptor without errors has no null pointers.
    assert tensor is not None
    assert tensor.desc is not None
    return BoundTensor(path, tensor.desc, is_output)


def split(
    array: np.ndarray, axis: int, lengths: Sequence[int] | None = None, *, sections: int | None = None
) -> list[np.ndarray]:
    """Cuts an array along `axis` into fresh C-contiguous arrays.

    Either `lengths` (which sum up to the array's size; 0 gives an empty piece) or `sections` (equal pieces). The array
    may have any strides and any dtype without Python objects; a negative axis counts from the end. None of DirectML's
    limits apply. ValueError for what does not fit, TypeError for arrays that cannot be copied byte by byte.
    """
    source = _plain_array(array, "array")
    axis = _axis(axis, source.ndim)
    size = source.shape[axis]
    if (lengths is None) == (sections is None):
        raise ValueError("exactly one of lengths and sections is needed")
    if lengths is not None:
        pieces = tuple([operator.index(length) for length in lengths])
        if any(length < 0 for length in pieces):
            raise ValueError(f"lengths {_short(pieces)} has a negative entry")
        if sum(pieces) != size or not pieces:
            raise ValueError(f"lengths {_short(pieces)} sum up to {sum(pieces)}, axis {axis} has size {size}")
    else:
        count = operator.index(sections)  # type: ignore[arg-type]
        if count < 1 or size % count:
            raise ValueError(f"axis {axis} of size {size} does not divide into {count} sections")
        pieces = (size // count,) * count
    before, after = source.shape[:axis], source.shape[axis + 1 :]
    outputs = [np.empty((*before, length, *after), source.dtype) for length in pieces]
    if source.dtype.itemsize:
        plan = _array_plan(_native.SPLIT, source.dtype.itemsize, source.shape, source.strides, axis, pieces, None)
        plan.run(_pointer(source), _native.pointers([_pointer(output) for output in outputs]))
    return outputs


def join(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Lays arrays one after another along `axis` into a fresh C-contiguous array; the inverse of split.

    All have the same dtype (nothing is converted) and, off the axis, the same shape; strides are free.
    """
    sources = [_plain_array(array, f"arrays[{i}]") for i, array in enumerate(arrays)]
    if not sources:
        raise ValueError("at least one array is needed")
    first = sources[0]
    axis = _axis(axis, first.ndim)
    for i, source in enumerate(sources):
        if source.dtype != first.dtype:
            raise ValueError(f"arrays[{i}] has dtype {source.dtype}, arrays[0] {first.dtype}; a join converts nothing")
        shape = source.shape[:axis] + first.shape[axis : axis + 1] + source.shape[axis + 1 :]
        if source.ndim != first.ndim or shape != first.shape:
            raise ValueError(
                f"arrays[{i}] has shape {source.shape}, arrays[0] {first.shape}; only axis {axis} may differ"
            )
    pieces = tuple([source.shape[axis] for source in sources])
    output = np.empty((*first.shape[:axis], sum(pieces), *first.shape[axis + 1 :]), first.dtype)
    if first.dtype.itemsize:
        strides = tuple([stride for source in sources for stride in source.strides])
        plan = _array_plan(_native.JOIN, first.dtype.itemsize, output.shape, None, axis, pieces, strides)
        plan.run(_pointer(output), _native.pointers([_pointer(source) for source in sources]))
    return output


_array_plan = lru_cache(PLANS_OF_ARRAYS)(_native.Plan)


def _plain_array(array: Any, name: str) -> np.ndarray:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; pass its data, or fill it first")
    plain = np.asarray(array)
    if plain.dtype.hasobject:
        raise TypeError(f"{name} has dtype {plain.dtype}, which holds Python objects")
    return plain


def _axis(axis: int, rank: int) -> int:
    number = operator.index(axis)
    if not -rank <= number < rank:
        raise ValueError(f"axis {number} is out of range for {rank} dimensions")
    return number % rank


def _pointer(array: np.ndarray) -> Any:
    return _native.address(array.__array_interface__["data"][0])


def _short(numbers: Sequence[int]) -> str:
    return str(numbers) if len(numbers) <= 8 else f"({', '.join(map(str, numbers[:8]))}, ...)"
