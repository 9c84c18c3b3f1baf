"""Element types of models: their numpy types, and the DirectML types that carry their bits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dmlsplit.descriptors.enums import TensorDataType
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.system.errors import InputError
from dmlsplit.system.records import record


@record
class ElementType:
    """One element type; `name` is numpy's, or ml_dtypes' if numpy has no such type.

    DirectML stores an element as `count` elements of `data_type`; if it cannot, `data_type` is None and `refusal` is
    the reason. `itemsize` is the size of numpy's unpacked form, 0 if numpy has none.
    """

    name: str
    itemsize: int
    data_type: TensorDataType | None
    count: int = 1
    refusal: str = ""

    @property
    def is_native(self) -> bool:
        """True if DirectML has this type itself, rather than another type of the same size that carries its bits."""
        return self.data_type is not None and self.data_type.name.lower() == self.name

    def dtype(self) -> np.dtype[Any]:
        """Returns the numpy dtype of the type. Raises InputError if there is none, or if it requires ml_dtypes, which
        is missing or does not have it."""
        if self.itemsize == 0:
            raise InputError(f"numpy has no fixed-size type for {self.name}")
        try:
            return np.dtype(self.name)
        except TypeError:
            pass
        try:
            import ml_dtypes
        except ImportError:
            raise InputError(f"type {self.name} needs ml_dtypes: pip install 'dmlsplit[onnx]'") from None
        held = getattr(ml_dtypes, self.name, None)
        if held is None:
            raise InputError(f"ml_dtypes {ml_dtypes.__version__} has no type {self.name}")
        dtype: np.dtype[Any] = np.dtype(held)
        return dtype


def _packed(name: str, itemsize: int = 1) -> ElementType:
    bits = re.findall("[0-9]", name)[0]
    refusal = f"{bits}-bit elements share bytes, and DirectML splits whole bytes only"
    return ElementType(name, itemsize, None, refusal=refusal)


_NATIVE: Final = [ElementType(t.name.lower(), ELEMENT_BITS[t] // 8, t) for t in TensorDataType if t in ELEMENT_BITS]
_CARRIED: Final = (
    *("bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
"""Types of 8 bits. A split moves bits regardless of their meaning: an integer of the same width carries them."""
ELEMENT_TYPES: Final[Mapping[str, ElementType]] = {
    element.name: element
    for element in (
        *_NATIVE,
        *(ElementType(name, 1, TensorDataType.UINT8) for name in _CARRIED),
        ElementType("bfloat16", 2, TensorDataType.UINT16),
        ElementType("complex64", 8, TensorDataType.UINT32, 2),
        ElementType("complex128", 16, TensorDataType.UINT32, 4),
        *map(_packed, ("int4", "uint4", "float4_e2m1fn", "int2", "uint2")),
        *(_packed(name, 0) for name in ("uint1", "uint3", "uint6", "nf4")),
        ElementType("string", 0, None, refusal="strings have no fixed size"),
    )
}
"""All element types of the front ends, by numpy's or ml_dtypes' name."""
