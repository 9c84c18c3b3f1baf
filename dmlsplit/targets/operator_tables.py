"""The answers of DirectML builds about each operator's data types and ranks: the table that packaging/support.py
writes.

`operator_support.json.xz` has a column for each build that was asked. For each operator it has the distinct answers,
and which build gave which.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlsplit.descriptors.enums import FeatureLevel, TensorDataType
from dmlsplit.system.records import record
from dmlsplit.system.tables import read_table
from dmlsplit.targets.relations import Relation

FILE: Final = Path(__file__).with_name("operator_support.json.xz")


@record
class OperatorFacts:
    """A build's support for an operator.

    `types` and `ranks` are those of its tensors; members of DML_TENSOR_DATA_TYPE count as tensors. `by` maps an
    attribute setting ("Function=L2", "ScaleBias=given") to the types accepted with it, if they differ. `values` are the
    values of enums and BOOLs, and the numbers of fused activations, that are accepted when all other members are valid.
    `same_sizes`: all tensors must have the same sizes.
    """

    types: Relation
    ranks: Relation
    by: Mapping[str, Relation]
    values: Mapping[str, frozenset[int]]
    same_sizes: bool = False


class OperatorTable:
    """The whole table."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.builds: tuple[str, ...] = tuple(content["builds"])
        self._operators: Mapping[str, Mapping[str, Any]] = content["operators"]
        self._documented: Mapping[str, Mapping[str, Any]] = content["documented"]

    def facts(self, operator: str, build: str) -> OperatorFacts | None:
        """Returns a build's support for an operator; None if it refuses the operator altogether. Raises ValueError for
        a build that is not in the table."""
        return _facts(self, operator, self.builds.index(build)) if operator in self._operators else None

    def was_asked(self, build: str) -> bool:
        return build in self.builds

    def documented(self, operator: str, level: FeatureLevel) -> tuple[FeatureLevel, OperatorFacts] | None:
        """Returns the row of the operator's page for a level, as (level of the row, row): the highest row at or below
        the level. None if there is no such row."""
        rows = {FeatureLevel.parse(each): row for each, row in self._documented.get(operator, {}).items()}
        own = max([each for each in rows if each <= level], default=None)
        if own is None:
            return None
        ranks = {tensor: row[0] for tensor, row in rows[own].items()}
        types = {tensor: [TensorDataType[name] for name in row[1]] for tensor, row in rows[own].items()}
        return own, OperatorFacts(Relation.independent(types), Relation.independent(ranks), {}, {})

    def form(self, operator: str, index: int) -> dict[str, Any]:
        """Returns the answers of build number `index` about an operator in the form of the file."""
        found: dict[str, Any] = {}
        for key, (forms, of) in self._operators[operator].items():
            if of[index] is not None:
                found[key] = forms[of[index]]
        return found


@cache
def table() -> OperatorTable:
    """Returns the table shipped with the package."""
    return OperatorTable(read_table(FILE))


@cache
def _facts(of: OperatorTable, operator: str, index: int) -> OperatorFacts | None:
    form = of.form(operator, index)
    if not form:
        return None
    return OperatorFacts(
        Relation.from_json(form["types"]),
        Relation.from_json(form["ranks"]),
        {key.removeprefix("by "): Relation.from_json(value) for key, value in form.items() if key.startswith("by ")},
        {key.removeprefix("of "): frozenset(value) for key, value in form.items() if key.startswith("of ")},
        form.get("sizes") == "same",
    )
