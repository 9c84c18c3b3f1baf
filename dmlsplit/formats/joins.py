"""A Concat node of a framework's model, as front ends return it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dmlsplit.descriptors.descs import JoinOperatorDesc
from dmlsplit.descriptors.dims import Shape, agrees, shape_text
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.formats.operator_nodes import OperatorNode
from dmlsplit.system.errors import InputError
from dmlsplit.system.foreign import tensor_maker
from dmlsplit.system.records import record

if TYPE_CHECKING:
    import numpy.typing as npt


@record
class JoinNode(OperatorNode[JoinOperatorDesc]):
    """One Concat of a model: a SplitNode's counterpart with several inputs and one output. `lengths` are the inputs'
    sizes along the axis."""

    _: KW_ONLY
    operator_type: ClassVar = OperatorType.JOIN
    input_shapes: tuple[Shape | None, ...]
    output_shape: Shape | None
    input_names: tuple[str, ...] = ()
    output_name: str = ""

    @property
    def whole_shape(self) -> Shape | None:
        """The shape of the output; None if it is not known, which may be because the node has errors."""
        return self.output_shape

    @property
    def named_outputs(self) -> tuple[str, ...]:
        return (self.output_name,)

    def execute(self, arrays: Sequence[npt.NDArray[np.generic]]) -> npt.NDArray[np.generic]:
        """Returns the node's output for the input arrays, bit for bit as the framework defines it; the C core does the
        copying.

        The arrays have the node's element type and shapes that are compatible with `input_shapes`; strings are arrays
        of str (dtype object, U or T). If the first is a DLPack tensor of another library, so is the output. Raises
        InputError for arrays that do not fit, and for a node that its framework refuses.
        """
        given = self._checked(arrays)
        axis = self._axis(tuple([array.shape for array in given]))
        from dmlsplit.native.arrays import join

        if given[0].dtype.kind in "OUT":
            # Objects cannot be copied as bytes, so their indices are joined.
            ends = np.cumsum([array.size for array in given])
            places = [
                np.arange(end - array.size, end).reshape(array.shape) for array, end in zip(given, ends, strict=True)
            ]
            whole: npt.NDArray[np.generic] = np.concatenate([array.ravel() for array in given])[join(places, axis)]
            return whole
        # As raw bytes, because the kernels ignore extension types.
        dtype = given[0].dtype
        output = join([array.view(np.dtype(f"V{dtype.itemsize}")) for array in given], axis).view(dtype)
        made: npt.NDArray[np.generic] = tensor_maker(arrays[0])(output)
        return made

    def _checked(self, arrays: Sequence[npt.NDArray[np.generic]]) -> list[npt.NDArray[np.generic]]:
        element = self._known_element()
        if isinstance(arrays, np.ndarray) or len(arrays) != len(self.input_shapes):
            got = "one array" if isinstance(arrays, np.ndarray) else f"{len(arrays)} arrays"
            raise InputError(f"{self.path}: {len(self.input_shapes)} arrays are expected, not {got}")
        given = [self._array(array, element, f"input {i}") for i, array in enumerate(arrays)]
        for i, (array, shape) in enumerate(zip(given, self.input_shapes, strict=True)):
            if shape is not None and not agrees(array.shape, shape):
                raise InputError(f"{self.path}: input {i} has the shape {shape_text(shape)}, not {array.shape}")
        return given

    def _axis(self, shapes: tuple[tuple[int, ...], ...]) -> int:
        """Returns the axis (0..rank-1) for inputs of these shapes, by the framework's rules if the model does not give
        it. Raises InputError if the rules refuse the shapes or the axis is not known."""
        axis = self.axis
        if self.facts is not None and self.input_shapes != shapes:
            facts = self.facts.with_shapes(shapes)
            self._check_facts(facts)
            axis = facts.axis_index
        if axis is None:
            raise InputError(f"{self.path}: the axis is not known")
        return axis
