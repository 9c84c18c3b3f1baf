"""Numeric values of DirectML.h (DML_TARGET_VERSION 0x6400) and the HRESULTs that its calls return.

Members drop the common prefix of the C name: DML_TENSOR_DATA_TYPE_FLOAT32 is TensorDataType.FLOAT32.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from dmlsplit.system.printable import shortened

TENSOR_DIMENSION_COUNT_MAX: Final = 5
TENSOR_DIMENSION_COUNT_MAX1: Final = 8
"""DML_TENSOR_DIMENSION_COUNT_MAX1: the limit from feature level 3_0 on."""
MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16
"""In bytes; the offset of every bound buffer range must be a multiple of it."""
TEMPORARY_BUFFER_ALIGNMENT: Final = 256
PERSISTENT_BUFFER_ALIGNMENT: Final = 256
"""In bytes; the offset of a temporary or persistent resource must be a multiple of it."""

GRAPH: Final = "DML_GRAPH"
"""The name of a DML_GRAPH_DESC in reports and JSON, where an operator has its operator type."""
MODEL_GRAPH: Final = "DML_GRAPH_DESC"
"""Its name in DxDispatch models, where an operator has its operator type."""

UINT_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1


class TensorDataType(enum.IntEnum):
    """DML_TENSOR_DATA_TYPE."""

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13


class TensorType(enum.IntEnum):
    """DML_TENSOR_TYPE."""

    INVALID = 0
    BUFFER = 1


class TensorFlags(enum.IntFlag):
    """DML_TENSOR_FLAGS."""

    NONE = 0
    OWNED_BY_DML = 1


class ExecutionFlags(enum.IntFlag):
    """DML_EXECUTION_FLAGS."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class BindingType(enum.IntEnum):
    """DML_BINDING_TYPE."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


class OperatorType(enum.IntEnum):
    """DML_OPERATOR_TYPE; dmlsplit models two of its values."""

    INVALID = 0
    SPLIT = 62
    JOIN = 63

    @property
    def c_name(self) -> str:
        """The C name: "DML_OPERATOR_SPLIT" or "DML_OPERATOR_JOIN"."""
        return f"DML_OPERATOR_{self.name}"


class FeatureLevel(enum.IntEnum):
    """DML_FEATURE_LEVEL: each level contains all lower ones."""

    FL_1_0 = 0x1000
    FL_2_0 = 0x2000
    FL_2_1 = 0x2100
    FL_3_0 = 0x3000
    FL_3_1 = 0x3100
    FL_4_0 = 0x4000
    FL_4_1 = 0x4100
    FL_5_0 = 0x5000
    FL_5_1 = 0x5100
    FL_5_2 = 0x5200
    FL_6_0 = 0x6000
    FL_6_1 = 0x6100
    FL_6_2 = 0x6200
    FL_6_3 = 0x6300
    FL_6_4 = 0x6400

    def __str__(self) -> str:
        """Returns the short form that users type: "3_0"."""
        return self.name.removeprefix("FL_")

    @classmethod
    def parse(cls, value: FeatureLevel | int | str) -> FeatureLevel:
        """Returns the level named "3_0", "3.0", "FL_3_0", "DML_FEATURE_LEVEL_3_0" or 0x3000. Raises ValueError for any
        other text or integer, TypeError for other values."""
        if isinstance(value, str):
            text = value.strip().upper().removeprefix("DML_FEATURE_LEVEL_").removeprefix("FL_").replace(".", "_")
            named = cls.__members__.get(f"FL_{text}")
            if named is not None:
                return named
            if re.fullmatch(r"\s*0[xX][0-9a-fA-F]{1,8}\s*", value):
                value = int(value, 16)
        if isinstance(value, int):
            if value in cls._value2member_map_:
                return cls(value)
            value = hex(value)
        elif not isinstance(value, str):
            raise TypeError(f"a feature level is a string, an integer or a FeatureLevel, not {type(value).__name__}")
        raise ValueError(
            f"unknown feature level {shortened(value, 60)!r}; known: {', '.join(str(level) for level in cls)}"
        )


class HResult(enum.IntEnum):
    """Return codes of DirectML and DXGI, unsigned."""

    S_OK = 0
    E_NOINTERFACE = 0x80004002
    E_UNEXPECTED = 0x8000FFFF
    E_OUTOFMEMORY = 0x8007000E
    E_INVALIDARG = 0x80070057
    DXGI_ERROR_UNSUPPORTED = 0x887A0004
    DXGI_ERROR_DEVICE_REMOVED = 0x887A0005
    DXGI_ERROR_SDK_COMPONENT_MISSING = 0x887A002D
