"""The nodes of a framework's model, as front ends return them, with SplitNode for a Split."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import KW_ONLY
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dmlsplit.descriptors.descs import SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Diagnostic
from dmlsplit.descriptors.dims import Dim, Shape, agrees, shape_text
from dmlsplit.descriptors.enums import OperatorType
from dmlsplit.formats.operator_nodes import OperatorNode
from dmlsplit.system.errors import InputError
from dmlsplit.system.foreign import tensor_maker
from dmlsplit.system.printable import printable
from dmlsplit.system.records import entity, record

if TYPE_CHECKING:
    import numpy.typing as npt

    from dmlsplit.formats.joins import JoinNode
    from dmlsplit.formats.sessions import Sessions


@record
class SplitNode(OperatorNode[SplitOperatorDesc]):
    """One Split of a model."""

    _: KW_ONLY
    operator_type: ClassVar = OperatorType.SPLIT
    input_shape: Shape | None
    output_shapes: tuple[Shape | None, ...]
    input_name: str = ""
    output_names: tuple[str, ...] = ()

    @property
    def whole_shape(self) -> Shape | None:
        """The shape of the input; None if its rank is not known."""
        return self.input_shape

    @property
    def named_outputs(self) -> tuple[str, ...]:
        return self.output_names

    def execute(self, array: npt.NDArray[np.generic]) -> list[npt.NDArray[np.generic]]:
        """Returns the node's outputs for an input array, bit for bit as the framework defines them; the C core does the
        copying.

        The array has the node's element type and a shape that is compatible with `input_shape`; strings are an array of
        str (dtype object, U or T). A DLPack tensor of another library gives tensors of that library. The list includes
        outputs that the model omits. Raises InputError for an array that does not fit, and for a node that its
        framework refuses.
        """
        given, array = array, self._array(array, self._known_element(), "the input")
        if self.input_shape is not None and not agrees(array.shape, self.input_shape):
            raise InputError(f"{self.path}: the input's shape is {shape_text(self.input_shape)}, not {array.shape}")
        axis, lengths = self._cut(array.shape)
        from dmlsplit.native.arrays import split

        if array.dtype.kind in "OT":
            # Objects cannot be copied as bytes, so their indices are split.
            places = np.arange(array.size).reshape(array.shape)
            return [array.ravel()[piece] for piece in split(places, axis, lengths)]
        # As raw bytes, because the kernels ignore extension types.
        raw = array.view(np.dtype(f"V{array.dtype.itemsize}"))
        return [*map(tensor_maker(given), [piece.view(array.dtype) for piece in split(raw, axis, lengths)])]

    def _cut(self, shape: tuple[int, ...]) -> tuple[int, Sequence[int]]:
        """Returns the axis and the outputs' lengths along it for an input of this shape, by the framework's rules if
        the model does not give them. Raises InputError if they are not known or do not fit the shape."""
        axis, lengths = self.axis, self.lengths
        if self.facts is not None and self.input_shape != shape:
            facts = self.facts.with_shapes((shape,))
            self._check_facts(facts)
            axis, lengths = facts.axis_index, facts.lengths
        if axis is None or lengths is None:
            raise InputError(f"{self.path}: the axis or the lengths are not known")
        known = [length for length in lengths if isinstance(length, int)]
        if len(known) < len(lengths) - 1:
            raise InputError(f"{self.path}: the lengths {shape_text(lengths)} are not known")
        # The single unknown length is the rest of the axis.
        rest = shape[axis] - sum(known)
        sizes = [length if isinstance(length, int) else rest for length in lengths]
        if min(sizes, default=0) < 0 or sum(sizes) != shape[axis]:
            raise InputError(f"{self.path}: lengths {shape_text(lengths)} do not add up to the axis size {shape[axis]}")
        return axis, sizes


@record
class OtherNode:
    """A node that is listed but not judged; `diagnostic` says why."""

    name: str
    op: str
    diagnostic: Diagnostic


@entity
class ModelNodes:
    """The nodes that a front end found in a model, in its order."""

    items: tuple[SplitNode | JoinNode | OtherNode, ...]
    of_nodes: int = 0
    """The number of all nodes in the model; 0 if unknown."""
    sessions: Sessions | None = None
    """The model's sessions in ONNX Runtime; None for a model of another framework."""

    @property
    def judged(self) -> tuple[SplitNode | JoinNode, ...]:
        """The Split and Concat nodes, without the OtherNodes, which are only listed."""
        return tuple([item for item in self.items if not isinstance(item, OtherNode)])


def lengths_text(lengths: Sequence[Dim] | None, most: int = 8) -> str:
    """Returns lengths as text, in the form of shape_text; "?" if `lengths` is None. If there are more than `most`, the
    middle ones are left out and the number of lengths is added."""
    if lengths is None or len(lengths) <= most:
        return "?" if lengths is None else shape_text(lengths)
    head, tail = shape_text(lengths[: most - 2])[:-1], shape_text(lengths[-1:])[1:]
    return f"{head}, ... {tail} ({len(lengths)})"


def listed(names: Collection[str]) -> str:
    """Returns the first eight names, shortened and printable, as text for a message: "a, b, ..."; "none" if there are
    none."""
    shown = [printable(name, 40) for name in islice(names, 8)]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "") if shown else "none"
