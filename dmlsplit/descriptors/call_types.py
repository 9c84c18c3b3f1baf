"""Types for the functions that take and return buffers. Only type checkers import this module, so it costs nothing at
run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer, TypeVar  # every type checker knows typing_extensions, installed or not

    Bindable: TypeAlias = npt.NDArray[np.generic] | Buffer
    """An array that matches the tensor, or raw memory: see CompiledOperator."""
    Array: TypeAlias = npt.NDArray[np.number]
    """A fresh output; a descriptor's data type is known at run time only."""
    DescT = TypeVar("DescT", bound=OperatorDesc)
    DescT_co = TypeVar("DescT_co", bound=OperatorDesc, covariant=True, default=OperatorDesc)
    """The type of descriptor; it decides which side is one buffer and which is a list."""
else:
    from typing import TypeVar

    DescT = TypeVar("DescT")
    DescT_co = TypeVar("DescT_co", covariant=True)
