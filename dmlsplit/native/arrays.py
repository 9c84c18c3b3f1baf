"""Splits and joins numpy arrays without descriptors: any layout, none of DirectML's rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from dmlsplit.descriptors.layout import packed_strides
from dmlsplit.native import core
from dmlsplit.native.dispatchers import array_dispatcher
from dmlsplit.native.fresh import FreshArrays
from dmlsplit.system.foreign import as_array, is_foreign, tensor_maker
from dmlsplit.system.integers import integer, integers

RECIPES: Final = 256
"""The most recipes that split and join each cache; the least recently used is evicted first."""

Shape: TypeAlias = tuple[int, ...]
Scalar = TypeVar("Scalar", bound=np.generic)


@overload
def split(
    array: npt.NDArray[Scalar], axis: SupportsIndex, lengths: Sequence[SupportsIndex]
) -> list[npt.NDArray[Scalar]]: ...
@overload
def split(array: npt.NDArray[Scalar], axis: SupportsIndex, *, sections: SupportsIndex) -> list[npt.NDArray[Scalar]]: ...
def split(
    array: npt.NDArray[Scalar],
    axis: SupportsIndex,
    lengths: Sequence[SupportsIndex] | None = None,
    *,
    sections: SupportsIndex | None = None,
) -> list[npt.NDArray[Scalar]]:
    """Returns the pieces of an array, cut along `axis`, as fresh C-contiguous arrays.

    Either `lengths` (which sum up to the array's size; 0 gives an empty piece) or `sections` (equal pieces). The array
    may have any strides and any dtype without Python objects; a negative axis counts from the end. None of DirectML's
    limits apply. A DLPack tensor of another library is accepted as well and gives tensors of that library. Raises
    ValueError for lengths or sections that do not fit the shape, TypeError for arrays that cannot be copied byte by
    byte.
    """
    source = array if _is_plain(array) else _plain_array(array, "array")
    pieces = None if lengths is None else integers(lengths, "lengths")
    count = None if sections is None else integer(sections, "sections")
    axis = axis if type(axis) is int else integer(axis, "axis")
    recipe = _split_recipe(source.shape, source.strides, source.dtype, axis, pieces, count)
    outputs: list[npt.NDArray[Scalar]] | None = recipe.fresh(source)
    if outputs is None:
        outputs = recipe.run(source)
    return outputs if source is array else [*map(tensor_maker(array), outputs)]


def join(arrays: Sequence[npt.NDArray[Scalar]], axis: SupportsIndex) -> npt.NDArray[Scalar]:
    """Concatenates arrays along `axis` and returns a fresh C-contiguous array; the inverse of split.

    All must have the same dtype (nothing is converted) and the same shape except along `axis`; strides are free. If the
    first is a tensor of another library, so is the result. Raises ValueError or TypeError for arrays that do not fit
    together.
    """
    try:
        given = list(arrays)
    except TypeError:
        raise TypeError(f"arrays: {arrays!r} is not a sequence of arrays") from None
    output: npt.NDArray[Scalar] | None = None
    latest: list[_Recipe] = []
    if given and type(axis) is int and _is_plain(given[0]):
        latest = _latest_join(len(given), given[0].shape, given[0].dtype, axis)
        output = latest[0].fresh(given) if latest else None
    if output is not None:
        return output
    sources = [array if _is_plain(array) else _plain_array(array, f"arrays[{i}]") for i, array in enumerate(given)]
    if not sources:
        raise ValueError("at least one array is needed")
    dtype = sources[0].dtype
    for i, source in enumerate(sources):
        if source.dtype is not dtype and source.dtype != dtype:
            raise ValueError(
                f"arrays[{i}] has dtype {source.dtype}, arrays[0] {sources[0].dtype}; a join does not convert elements"
            )
    layouts = tuple([(source.shape, source.strides) for source in sources])
    recipe = _join_recipe(layouts, dtype, axis if type(axis) is int else integer(axis, "axis"))
    latest[:] = [recipe]
    output = recipe.fresh(sources)
    if output is None:
        output = recipe.run(sources)
    made: npt.NDArray[Scalar] = output if sources[0] is given[0] else tensor_maker(given[0])(output)
    return made


class _Recipe:
    """A checked and planned split or join of arrays of certain shapes and strides into fresh arrays."""

    __slots__ = ("_outputs", "_plan", "_splits", "fresh")

    def __init__(
        self, direction: int, dtype: np.dtype[Any], axis: int, whole: core.Layout, parts: Sequence[core.Layout]
    ) -> None:
        self._splits = direction == core.SPLIT
        self._outputs = FreshArrays([shape for shape, _ in (parts if self._splits else [whole])], dtype)
        self._plan: core.Plan | None = None
        self.fresh: Callable[[object], Any] = _nothing
        """The outputs of any inputs, or None: where they are not what the recipe was made for, or have to be looked at
        closely."""
        if dtype.itemsize == 0:
            return
        self._plan = core.Plan.of(direction, dtype.itemsize, axis, whole, parts)
        layouts = [
            (shape, strides or tuple([stride * dtype.itemsize for stride in packed_strides(shape)]))
            for shape, strides in (whole, *parts)
        ]
        dispatcher = array_dispatcher(self._plan, dtype, layouts, self._outputs)
        if dispatcher is not None and dispatcher.fresh is not None:
            self.fresh = dispatcher.fresh

    def run(self, inputs: Any) -> Any:
        """Returns the outputs for inputs that have the shapes and strides that the recipe was made for: a list for a
        split, an array for a join."""
        outputs = self._outputs.make()
        if self._plan is not None:
            whole, parts = (inputs, outputs) if self._splits else (outputs[0], inputs)
            self._plan.run(_pointer(whole), core.pointers([_pointer(part) for part in parts]))
        return outputs if self._splits else outputs[0]


def _nothing(inputs: object) -> None:
    pass


@lru_cache(RECIPES)
def _split_recipe(
    shape: Shape, strides: Shape, dtype: np.dtype[Any], axis: int, lengths: Shape | None, sections: int | None
) -> _Recipe:
    axis, lengths = cut(shape, axis, lengths, sections)
    parts: list[core.Layout] = [((*shape[:axis], n, *shape[axis + 1 :]), None) for n in lengths]
    return _Recipe(core.SPLIT, dtype, axis, (shape, strides), parts)


def cut(shape: Shape, axis: int, lengths: Shape | None, sections: int | None) -> tuple[int, Shape]:
    """Returns the axis as a non-negative index, and the lengths of the pieces. Raises ValueError if they do not fit the
    shape."""
    axis = _axis(axis, len(shape))
    size = shape[axis]
    if (lengths is None) == (sections is None):
        raise ValueError("exactly one of lengths and sections is needed")
    if sections is not None:
        if not 1 <= sections <= sys.maxsize or size % sections:
            raise ValueError(f"axis {axis} of size {size} cannot be divided into {sections} equal sections")
        return axis, (size // sections,) * sections
    assert lengths is not None
    if any(length < 0 for length in lengths):
        raise ValueError(f"lengths {_short(lengths)} has a negative entry")
    if sum(lengths) != size or not lengths:
        raise ValueError(f"lengths {_short(lengths)} add up to {sum(lengths)}, but axis {axis} has size {size}")
    return axis, lengths


@lru_cache(RECIPES)
def _join_recipe(layouts: tuple[tuple[Shape, Shape], ...], dtype: np.dtype[Any], axis: int) -> _Recipe:
    first, _ = layouts[0]
    axis = _axis(axis, len(first))
    for i, (shape, _) in enumerate(layouts):
        if len(shape) != len(first) or shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise ValueError(f"arrays[{i}] has shape {shape}, arrays[0] {first}; only axis {axis} may differ")
    size = sum(shape[axis] for shape, _ in layouts)
    if size > sys.maxsize:  # arrays without elements, or of one element that is broadcast, may have any size
        raise ValueError(f"the arrays have size {size} together on axis {axis}, more than an array can have")
    whole = (*first[:axis], size, *first[axis + 1 :])
    return _Recipe(core.JOIN, dtype, axis, (whole, None), layouts)


@lru_cache(RECIPES)
def _latest_join(count: int, shape: Shape, dtype: np.dtype[Any], axis: int) -> list[_Recipe]:
    """Returns a list, cached by these arguments, that holds the recipe of the latest join of `count` arrays with this
    first array; the list is empty before the first such join."""
    return []


def _is_plain(array: object) -> bool:
    """True for a numpy array, not of a subclass, that can be copied byte by byte."""
    return type(array) is np.ndarray and not array.dtype.hasobject


def _plain_array(array: Any, name: str) -> np.ndarray:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; pass its data, or fill it first")
    if is_foreign(array):
        try:
            return as_array(array)
        except TypeError as error:
            raise TypeError(f"{name} is {error}") from None
    plain = np.asarray(array)
    if plain.dtype.hasobject:
        raise TypeError(f"{name} has dtype {plain.dtype}, which holds Python objects")
    return plain


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % rank


def _pointer(array: np.ndarray) -> Any:
    return core.address(array.__array_interface__["data"][0])


def _short(numbers: Sequence[int]) -> str:
    return str(numbers) if len(numbers) <= 8 else f"({', '.join(map(str, numbers[:8]))}, ...)"
