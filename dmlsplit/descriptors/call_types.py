"""Types of the calls that take and give buffers: for type checkers, so that nothing is imported for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dmlsplit.descriptors.descs import OperatorDesc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer, TypeVar  # every type checker knows them, installed or not

    Bindable: TypeAlias = npt.NDArray[np.generic] | Buffer
    """An array that is the tensor, or raw memory: see CompiledOperator."""
    Array: TypeAlias = npt.NDArray[np.number]
    """A fresh output; a descriptor's data type is known at run time only."""
    DescT = TypeVar("DescT", bound=OperatorDesc)
    DescT_co = TypeVar("DescT_co", bound=OperatorDesc, covariant=True, default=OperatorDesc)
    """The kind of operator, which decides where one buffer is taken and given, and where a list of them."""
else:
    from typing import TypeVar

    DescT = TypeVar("DescT")
    DescT_co = TypeVar("DescT_co", covariant=True)
