"""Tensor support of every operator, by feature level or release: what builds answered, otherwise what the pages say.

A level that builds were asked about accepts whatever any of them accepts. Any other level has the support on the
operator's page, if the page has a row that is newer than the builds below that level; otherwise it has the support of
the builds below and above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final, TypeAlias

from dmlsplit.descriptors.enums import FeatureLevel, OperatorType, TensorDataType
from dmlsplit.descriptors.schema import Member, OperatorSchema, find_operator
from dmlsplit.system.records import entity
from dmlsplit.targets.feature_levels import TensorSupport, documented_support
from dmlsplit.targets.operator_tables import OperatorFacts, table
from dmlsplit.targets.relations import Relation
from dmlsplit.targets.release_names import find_release
from dmlsplit.targets.releases import Release, releases

By: TypeAlias = FeatureLevel | Release

PAGE: Final = "https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_{}_operator_desc"
RECORDED: Final = "recorded"
DOCUMENTED: Final = "documented"
_SPLIT_AND_JOIN: Final = {"SPLIT": OperatorType.SPLIT, "JOIN": OperatorType.JOIN}


@entity
class OperatorSupport:
    """The support that a target has for an operator: it accepts whatever one of `facts` accepts, nothing if there are
    none.

    `basis` is "recorded" (builds were asked) or "documented"; `source` names the builds or the page.
    """

    facts: tuple[OperatorFacts, ...]
    basis: str
    source: str


@lru_cache(maxsize=8192)  # a caller may name any number of versions
def operator_support(schema: OperatorSchema, by: By) -> OperatorSupport:
    """Returns what a feature level or a release accepts of an operator other than Split and Join: for a release, what a
    build of the same version for another system accepts if only that one was asked."""
    recorded = table()
    asked = [each for each in releases() if recorded.was_asked(each.name)]
    builds = [each for each in asked if each.max_feature_level == by]
    if isinstance(by, Release):
        same = [each for each in asked if each.directml == by.directml]
        builds = [next((each for each in same if each.name == by.name), same[0])]
    elif schema.since > by:
        page = PAGE.format(schema.name.lower())
        return OperatorSupport((), DOCUMENTED, f"{page} (DML_FEATURE_LEVEL_{schema.since})")
    elif not builds:
        levels = {each.max_feature_level for each in asked}
        below = max([each for each in levels if each < by], default=None)
        documented = recorded.documented(schema.name, by)
        if documented is not None and (below is None or documented[0] > below):
            row, of_page = documented
            source = f"{PAGE.format(schema.name.lower())} (DML_FEATURE_LEVEL_{row})"
            return OperatorSupport((of_page,), DOCUMENTED, source)
        around = {below, min(each for each in levels if each > by)}
        builds = [each for each in asked if each.max_feature_level in around and each.max_feature_level >= schema.since]
    different: list[OperatorFacts] = []
    for build in builds:
        facts = recorded.facts(schema.name, build.name)
        if facts is not None and facts not in different:
            different.append(facts)
    names = ", ".join(dict.fromkeys(build.directml for build in builds))
    return OperatorSupport(tuple(different), RECORDED, f"{RECORDED}: DirectML {names}")


def tensor_support(operator: str | int, by: By | str | int) -> tuple[TensorSupport, ...]:
    """Returns the tensor support of an operator at a feature level or in a release: one row for each tensor, in the
    struct's order.

    `operator` is a name ("GEMM", "DML_OPERATOR_GEMM") or a DML_OPERATOR_TYPE, `by` a FeatureLevel, a Release or the
    name of one ("3_0", "1.15.4"). Returns () if the target does not know the operator. Raises ValueError for an unknown
    operator, level or release.
    """
    if not isinstance(operator, (str, int)):
        raise ValueError(f"{operator!r} is not an operator; give its name or its DML_OPERATOR_TYPE")
    schema = find_operator(operator)
    target = _target(by)
    kind = _SPLIT_AND_JOIN.get(schema.name)
    if kind is not None:
        return target.support[kind] if isinstance(target, Release) else documented_support(kind, target)
    support = operator_support(schema, target)
    if not support.facts:
        return ()
    return tuple([row for member in schema.members for row in _rows(member, support)])


def settings_of(schema: OperatorSchema, by: By) -> dict[str, tuple[TensorSupport, ...]]:
    """Maps each attribute setting that narrows the accepted data types ("Function=L2", "ScaleBias=given") to the rows
    of the tensors that it affects."""
    if schema.name in _SPLIT_AND_JOIN:
        return {}
    settings = dict.fromkeys(setting for each in operator_support(schema, by).facts for setting in each.by)
    rows = {row.tensor: row for row in tensor_support(schema.number, by)}
    found = {setting: rows_with(schema, by, setting) for setting in settings}
    fewer = {
        setting: tuple([row for row in with_it if row.data_types != rows[row.tensor].data_types])
        for setting, with_it in found.items()
    }
    return {setting: with_it for setting, with_it in fewer.items() if with_it}


def rows_with(schema: OperatorSchema, by: By, setting: str) -> tuple[TensorSupport, ...]:
    """Returns the rows of tensor_support, with only the data types that are accepted together with a setting of an
    attribute."""
    facts = operator_support(schema, by).facts
    found = []
    for row in tensor_support(schema.number, by):
        types = {each for of in facts for each in of.by.get(setting, of.types).values_of(row.tensor)}
        found.append(replace(row, data_types=frozenset(map(TensorDataType, types))))
    return tuple(found)


@cache
def recorded_values(schema: OperatorSchema, member: str) -> frozenset[int]:
    """Returns the values of an enum member that any build accepts, if the descriptor's other members are valid."""
    recorded = table()
    found = [recorded.facts(schema.name, build) for build in recorded.builds]
    return frozenset(value for facts in found if facts is not None for value in facts.values.get(member, ()))


def _target(by: By | str | int) -> By:
    if isinstance(by, (FeatureLevel, Release)):
        return by
    try:
        return FeatureLevel.parse(by)
    except ValueError:
        if isinstance(by, str) and by[:1].isdigit() and "." not in by:
            raise
        return find_release(str(by))


def _rows(member: Member, support: OperatorSupport) -> Iterable[TensorSupport]:
    """Yields the rows of a member's tensors: one for a tensor, one for each entry of an array that the table has, none
    for other members."""
    if member.type == "tensor":
        names = [member.name]
    elif member.type == "tensors":
        names = [f"{member.name}[{i}]" for i in range(9)]
    else:
        return
    for name in names:
        types = {each for facts in support.facts for each in _types(facts, name)}
        ranks = {each for facts in support.facts for each in facts.ranks.values_of(name)}
        if types or ranks:
            kind = "Optional input" if member.optional else "Input"
            yield TensorSupport(
                name,
                kind if member.role == "input" else kind.replace("Input", "Output").replace("input", "output"),
                tuple(sorted(ranks)),
                frozenset(map(TensorDataType, types)),
                support.source,
                member.optional,
                _alike([each for facts in support.facts for each in (facts.types, *facts.by.values())], name),
                _alike([facts.ranks for facts in support.facts], name),
            )


def _types(facts: OperatorFacts, name: str) -> set[int]:
    """Returns the data types that a tensor may have, for any attributes."""
    return {each for relation in (facts.types, *facts.by.values()) for each in relation.values_of(name)}


def _alike(relations: Sequence[Relation], name: str) -> tuple[str, ...]:
    """Returns the tensors that always have the same value as tensor `name` in all of the relations."""
    found = [relation.alike(name) for relation in relations]
    return tuple([each for each in found[0] if all(each in others for others in found)])
