"""OpenVINO's names of element types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlsplit.formats.element_types import ELEMENT_TYPES, ElementType
from dmlsplit.system.printable import printable

_PRECISIONS: Final = {"fp16": "f16", "fp32": "f32", "fp64": "f64", "bool": "boolean", "bin": "u1"}
"""Names that ports use and that are not element_type's in upper case."""
_UNKNOWN: Final = ("dynamic", "undefined", "unspecified")

_NUMPY_NAMES: Final[Mapping[str, str]] = {
    **{
        f"{short}{bits}": f"{long}{bits}"
        for short, long in (("i", "int"), ("u", "uint"))
        for bits in (4, 8, 16, 32, 64)
    },
    **{f"u{bits}": f"uint{bits}" for bits in (1, 2, 3, 6)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "boolean": "bool",
    "string": "string",
    "nf4": "nf4",
    "f4e2m1": "float4_e2m1fn",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
}


def type_name(text: str | None) -> str | None:
    """Returns the element type that an IR names, in lower case: "f32" for "FP32". An unrecognized name is returned
    shortened and printable. None if the name is missing, empty, or stands for an unknown type."""
    if text is None:
        return None
    name = text.strip().lower()
    name = _PRECISIONS.get(name, name)
    if not name or name in _UNKNOWN:
        return None
    return name if name in _NUMPY_NAMES else printable(text, 60)


def element_type(name: str | None) -> ElementType | None:
    """Returns the ElementType of an OpenVINO type name in lower case; None for a name without one, or None."""
    return ELEMENT_TYPES.get(_NUMPY_NAMES.get(name or "", ""))
