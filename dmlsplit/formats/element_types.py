"""Element types of models: what holds one in numpy, and what carries its bits in DirectML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlsplit.enums import TensorDataType
from dmlsplit.errors import InputError

T = TensorDataType


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element type; `name` is numpy's, or ml_dtypes' where numpy has none.

    DirectML holds an element as `count` elements of `data_type`; where it cannot, `data_type` is None and `refusal`
    says why. `itemsize` is the size in numpy's unpacked form, 0 where numpy has none.
    """

    name: str
    itemsize: int
    data_type: TensorDataType | None
    count: int = 1
    refusal: str = ""

    @property
    def is_native(self) -> bool:
        """Whether DirectML has the type itself."""
        return self.data_type is not None and self.data_type.name.lower() == self.name

    def dtype(self) -> np.dtype[Any]:
        """numpy's type; InputError where there is none, or where ml_dtypes would hold it and is not installed."""
        if self.itemsize == 0:
            raise InputError(f"numpy has no fixed-size type for {self.name}")
        try:
            return np.dtype(self.name)
        except TypeError:
            pass
        try:
            import ml_dtypes
        except ImportError:
            message = f"type {self.name} needs ml_dtypes: pip install 'dmlsplit[onnx]'"
            raise InputError(message) from None
        held = getattr(ml_dtypes, self.name, None)
        if held is None:
            raise InputError(f"ml_dtypes {ml_dtypes.__version__} has no type {self.name}")
        dtype: np.dtype[Any] = np.dtype(held)
        return dtype


def _packed(name: str, bits: int, itemsize: int = 1) -> ElementType:
    refusal = f"{bits}-bit elements share bytes, and DirectML splits whole bytes only"
    return ElementType(name, itemsize, None, refusal=refusal)


ELEMENT_TYPES: Final[Mapping[str, ElementType]] = {
    element.name: element
    for element in (
        ElementType("float16", 2, T.FLOAT16),
        ElementType("float32", 4, T.FLOAT32),
        ElementType("float64", 8, T.FLOAT64),
        ElementType("int8", 1, T.INT8),
        ElementType("int16", 2, T.INT16),
        ElementType("int32", 4, T.INT32),
        ElementType("int64", 8, T.INT64),
        ElementType("uint8", 1, T.UINT8),
        ElementType("uint16", 2, T.UINT16),
        ElementType("uint32", 4, T.UINT32),
        ElementType("uint64", 8, T.UINT64),
        # A split moves bits, whatever they mean: an integer of the same width carries them.
        ElementType("bool", 1, T.UINT8),
        ElementType("bfloat16", 2, T.UINT16),
        ElementType("float8_e3m4", 1, T.UINT8),
        ElementType("float8_e4m3", 1, T.UINT8),
        ElementType("float8_e4m3b11fnuz", 1, T.UINT8),
        ElementType("float8_e4m3fn", 1, T.UINT8),
        ElementType("float8_e4m3fnuz", 1, T.UINT8),
        ElementType("float8_e5m2", 1, T.UINT8),
        ElementType("float8_e5m2fnuz", 1, T.UINT8),
        ElementType("float8_e8m0fnu", 1, T.UINT8),
        ElementType("complex64", 8, T.UINT32, 2),
        ElementType("complex128", 16, T.UINT32, 4),
        _packed("int4", 4),
        _packed("uint4", 4),
        _packed("float4_e2m1fn", 4),
        _packed("int2", 2),
        _packed("uint2", 2),
        _packed("uint1", 1, 0),
        _packed("uint3", 3, 0),
        _packed("uint6", 6, 0),
        _packed("nf4", 4, 0),
        ElementType("string", 0, None, refusal="strings have no fixed size"),
    )
}
"""Every element type that a front end knows, by numpy's or ml_dtypes' name."""
