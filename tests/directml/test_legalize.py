"""Microsoft's library takes what a descriptor was legalised into, for its level and for itself."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from tests.directml.conftest import COUNT, FRESH_SEED, compared
from tests.directml.generator import descriptor

pytestmark = pytest.mark.directml

FIXED_SEED = 20230426


@pytest.mark.parametrize("by", ["feature_level", "directml"])
@pytest.mark.parametrize("seed", [FIXED_SEED, pytest.param(FRESH_SEED, id="fresh")])
def test_the_library_takes_legalised_operators(made, library, seed, by):
    release = dml.find_release(made.name)
    target = {by: release.max_feature_level if by == "feature_level" else release}
    results = [dml.legalize(descriptor(seed, index), **target) for index in range(COUNT)]
    rewritten = [found for found in results if found.ok and found.operators != (found.desc,)]
    operators = [operator for found in rewritten for operator in found.operators]
    answers = library.judge(operators)
    refused = [dml.dumps(operator) for operator, answer in zip(operators, answers, strict=True) if answer != 0]
    assert not refused, f"{len(refused)} of {len(operators)}; DMLSPLIT_DIRECTML_SEED={seed}: {refused[:3]}"
    compared.append(
        f"{made.name}, {by}: {len(rewritten)} of {COUNT} descriptors of seed {seed} rewritten "
        f"into {len(operators)} operators, all taken"
    )
    assert COUNT < 1000 or rewritten
