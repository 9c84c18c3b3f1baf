"""Tensor support of Split and Join by feature level, as their pages document it.

A feature level without a row of its own has the support of the highest row below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from dmlsplit.descriptors.enums import FeatureLevel, OperatorType, TensorDataType
from dmlsplit.descriptors.layout import ELEMENT_BITS
from dmlsplit.system.records import record

SPLIT_PAGE: Final = "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_split_operator_desc"
JOIN_PAGE: Final = "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_join_operator_desc"


@record
class TensorSupport:
    """One row of a "Tensor support" table: the dimension counts and data types of one member.

    `source` is the page, or names the builds that were asked. `same_data_type_as` and `same_dimension_count_as` name
    the tensors that must have the same data type or dimension count as this one; pages do not state this in their
    tables.
    """

    tensor: str
    kind: str
    dimension_counts: tuple[int, ...]
    data_types: frozenset[TensorDataType]
    source: str
    optional: bool = False
    same_data_type_as: tuple[str, ...] = ()
    same_dimension_count_as: tuple[str, ...] = ()


def _of_bits(*bits: int) -> frozenset[TensorDataType]:
    return frozenset(t for t in TensorDataType if ELEMENT_BITS.get(t) in bits)


_32_AND_16_BIT, _AND_8_BIT, _AND_64_BIT = _of_bits(32, 16), _of_bits(32, 16, 8), _of_bits(32, 16, 8, 64)

_MEMBERS: Final[Mapping[OperatorType, tuple[str, tuple[tuple[str, str], ...]]]] = {
    OperatorType.SPLIT: (SPLIT_PAGE, (("InputTensor", "Input"), ("OutputTensors", "Array of outputs"))),
    OperatorType.JOIN: (JOIN_PAGE, (("InputTensors", "Array of inputs"), ("OutputTensor", "Output"))),
}

# operator -> feature level -> (dimension counts, data types). On both pages every tensor of a table has the same row.
_TABLES: Final[Mapping[OperatorType, Mapping[FeatureLevel, tuple[range, frozenset[TensorDataType]]]]] = {
    OperatorType.SPLIT: {
        FeatureLevel.FL_4_1: (range(1, 9), _AND_64_BIT),
        FeatureLevel.FL_3_0: (range(1, 9), _AND_8_BIT),
        FeatureLevel.FL_2_1: (range(4, 5), _AND_8_BIT),
        FeatureLevel.FL_1_0: (range(4, 5), _32_AND_16_BIT),
    },
    OperatorType.JOIN: {
        FeatureLevel.FL_4_1: (range(1, 9), _AND_64_BIT),
        FeatureLevel.FL_3_0: (range(4, 6), _AND_8_BIT),
        FeatureLevel.FL_2_1: (range(4, 5), _AND_8_BIT),
        FeatureLevel.FL_1_0: (range(4, 5), _32_AND_16_BIT),
    },
}


def table_levels(operator: OperatorType) -> tuple[FeatureLevel, ...]:
    """Returns the feature levels that have a table on the operator's page, the lowest first."""
    return tuple(sorted(_TABLES[operator]))


def documented_support(operator: OperatorType, feature_level: FeatureLevel | int | str) -> tuple[TensorSupport, ...]:
    """Returns the documented tensor support of Split or Join at a feature level, as one row for each tensor member,
    inputs first.

    Raises ValueError for an operator other than SPLIT and JOIN, or an unknown level.
    """
    if not isinstance(operator, int) or operator not in _TABLES:
        raise ValueError(f"dmlsplit knows the tensor support of SPLIT and JOIN, not of {operator!r}")
    return _documented_support(OperatorType(operator), FeatureLevel.parse(feature_level))


@cache
def _documented_support(operator: OperatorType, level: FeatureLevel) -> tuple[TensorSupport, ...]:
    row = max(candidate for candidate in _TABLES[operator] if candidate <= level)
    dimension_counts, data_types = _TABLES[operator][row]
    page, members = _MEMBERS[operator]
    source = f"{page} (DML_FEATURE_LEVEL_{row})"
    return tuple(TensorSupport(tensor, kind, tuple(dimension_counts), data_types, source) for tensor, kind in members)
