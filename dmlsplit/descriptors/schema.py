"""Every operator of DirectML up to feature level 6_4: its number, and the members of its struct in order.

The table is `operators.json.xz`, which packaging/schema.py generates from DirectML's public headers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dmlsplit.descriptors.enums import FeatureLevel
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.system.spelling import nearest
from dmlsplit.system.tables import read_table

PREFIX: Final = "DML_OPERATOR_"
_FAMILIES: Final = ("ACTIVATION", "ELEMENT_WISE")
OLDER_NAMES: Final[Mapping[str, str]] = {"SCATTER": "SCATTER_ELEMENTS"}


@record
class Member:
    """A member of an operator's struct.

    `role` is input, output or attribute. `type` is tensor (a pointer), tensors (an array of DML_TENSOR_DESC), operator
    (a pointer to a DML_OPERATOR_DESC without tensors), operators (an array of them), uint, uint64, int, float, bool (4
    bytes), enum (4 bytes, `enum` names it), uints, ints, floats (pointers to arrays), scale-bias (a pointer to two
    floats), size-2d (two uints by value), or scalar (a union of 8 bytes by value, whose type is the member of
    DML_TENSOR_DATA_TYPE). `count` names the member that holds the length of an array.
    """

    name: str
    role: str
    type: str
    optional: bool = False
    count: str = ""
    enum: str = ""


@record
class OperatorSchema:
    """An operator: `name` is without DML_OPERATOR_, `since` the feature level that introduced it.

    `whole` is False if only the tensors are described (see tensors_only).
    """

    name: str
    number: int
    since: FeatureLevel
    members: tuple[Member, ...]
    whole: bool = True

    @property
    def c_name(self) -> str:
        """The C name of the operator: "DML_OPERATOR_GEMM"."""
        return f"{PREFIX}{self.name}"

    @property
    def struct(self) -> str:
        """The name of the operator's struct: "DML_GEMM_OPERATOR_DESC"."""
        return f"DML_{self.name}_OPERATOR_DESC"

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)


@cache
def _table() -> dict[str, Any]:
    """Returns the content of operators.json.xz."""
    return read_table(os.path.join(os.path.dirname(__file__), "operators.json.xz"))


@cache
def operators() -> tuple[OperatorSchema, ...]:
    """Returns the schemas of all operators, sorted by number."""
    return tuple(
        [
            OperatorSchema(
                row["name"],
                row["number"],
                FeatureLevel[f"FL_{row['since']}"],
                tuple([Member(**member) for member in row["fields"]]),
            )
            for row in _table()["operators"]
        ]
    )


@cache
def _by_name() -> Mapping[str, OperatorSchema]:
    named = {operator.name: operator for operator in operators()}
    return named | {old: named[new] for old, new in OLDER_NAMES.items()}


@cache
def _by_number() -> Mapping[int, OperatorSchema]:
    return {operator.number: operator for operator in operators()}


def known_operator(name: str | int) -> OperatorSchema | None:
    """Returns the schema of an operator, given its name (with or without DML_OPERATOR_) or number; None for an unknown
    one."""
    return _by_name().get(name.removeprefix(PREFIX)) if isinstance(name, str) else _by_number().get(name)


def find_operator(name: str | int) -> OperatorSchema:
    """Returns the schema of an operator, given its name ("GEMM", "DML_OPERATOR_GEMM") or DML_OPERATOR_TYPE. Raises
    ValueError, which suggests the nearest name, for an unknown one."""
    if not isinstance(name, (str, int)):
        raise TypeError(f"the name of an operator is a string, its number an integer, not {type(name).__name__}")
    found = known_operator(name)
    if found is None:
        short = str(name).removeprefix(PREFIX)
        family = next((f"{family}_{short}" for family in _FAMILIES if f"{family}_{short}" in _by_name()), None)
        near = f"; did you mean {family}?" if family else suggestion(short, _by_name())
        raise ValueError(f"{printable(str(name), 60)} is not an operator{near}")
    return found


_TENSORS: Final = (Member("Inputs", "input", "tensors"), Member("Outputs", "output", "tensors"))


def tensors_only(number: int) -> OperatorSchema:
    """Returns a schema of two arrays of tensors, Inputs and Outputs, for an operator whose other members are not known.

    `number` may be any DML_OPERATOR_TYPE; one that DirectML does not have is named "TYPE(9999)".
    """
    known = known_operator(number)
    since = known.since if known else FeatureLevel.FL_1_0
    return OperatorSchema(known.name if known else f"TYPE({number})", number, since, _TENSORS, whole=False)


def enumerators(enum: str) -> Mapping[str, int]:
    """Maps the names of an enum's values, without the enum's own name, to the values."""
    values: Mapping[str, int] = _table()["enums"][enum]
    return values


def enums() -> tuple[str, ...]:
    """Returns the names of the enums that members use."""
    return tuple(_table()["enums"])


def suggestion(name: str, known: Mapping[str, object]) -> str:
    """Returns "; did you mean X?" with the key of `known` that is nearest to `name`, or "" if none is near."""
    near = nearest(name, known) or nearest(name.upper(), known)
    return f"; did you mean {near}?" if near else ""
