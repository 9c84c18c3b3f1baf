"""Microsoft's library takes what a descriptor was legalised into, for its level, for those below, and for itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import dmlsplit as dml
from dmlsplit import OperatorDesc
from dmlsplit.library.process import Library
from tests.directml.conftest import COUNT, FRESH
from tests.directml.generator import descriptor
from tests.strategies import faultless_operator

pytestmark = pytest.mark.directml

FIXED_SEED = 20230426
SEEDS = [FIXED_SEED, FRESH]
TABLE_LEVELS = ("1_0", "2_1", "3_0", "3_1", "4_1")


@cache
def rewritable(seed: int) -> tuple[OperatorDesc, ...]:
    """Operators that are right in themselves: nearly all have a rewriting, unlike those of the mean generator."""
    found: list[OperatorDesc] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=COUNT,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(faultless_operator())
    def collect(desc: OperatorDesc) -> None:
        found.append(desc)

    collect()
    return tuple(found)


Taken: TypeAlias = Callable[[str, int, Sequence[dml.Legalization]], int]


@pytest.fixture
def taken(library: Library, compared: Callable[[str], None]) -> Taken:
    """Asks the library about all operators of what was rewritten; returns how many descriptors that were."""

    def ask(what: str, seed: int, results: Sequence[dml.Legalization]) -> int:
        return _taken(library, compared, what, seed, results)

    return ask


def _taken(
    library: Library, compared: Callable[[str], None], what: str, seed: int, results: Sequence[dml.Legalization]
) -> int:
    rewritten = [found for found in results if found.ok and found.operators != (found.desc,)]
    operators = [operator for found in rewritten for operator in found.operators]
    answers = library.judge(operators)
    refused = [dml.dumps(operator) for operator, answer in zip(operators, answers, strict=True) if answer != 0]
    assert not refused, f"{len(refused)} of {len(operators)}; DMLSPLIT_DIRECTML_SEED={seed}: {refused[:3]}"
    compared(
        f"{what}: {len(rewritten)} of {len(results)} descriptors of seed {seed} rewritten "
        f"into {len(operators)} operators, all taken"
    )
    return len(rewritten)


@pytest.mark.parametrize("by", ["feature_level", "directml"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_library_takes_legalised_operators(made, taken, seed, by):
    release = dml.find_release(made.name)
    target = {by: release.max_feature_level if by == "feature_level" else release}
    results = [dml.legalize(descriptor(seed, index), **target) for index in range(COUNT)]
    rewritten = taken(f"{made.name}, {by}", seed, results)
    assert COUNT < 1000 or rewritten


@pytest.mark.parametrize(
    "one_in", [pytest.param(5, marks=pytest.mark.slow), pytest.param(1, marks=[pytest.mark.slow, pytest.mark.thorough])]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_library_takes_rewritings_for_its_level_and_those_below(made, taken, seed, one_in):
    highest = dml.find_release(made.name).max_feature_level
    for level in sorted({*map(dml.FeatureLevel.parse, TABLE_LEVELS), highest}):
        if level <= highest:
            results = [dml.legalize(desc, feature_level=level) for desc in rewritable(seed)[::one_in]]
            rewritten = taken(f"{made.name}, right in themselves, for {level}", seed, results)
            assert COUNT < 1000 or rewritten > len(results) // 20
