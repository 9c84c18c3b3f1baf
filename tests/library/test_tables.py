"""What check says by tables, compared with builds that are asked the same."""

from __future__ import annotations

from collections import Counter

import pytest

import dmlsplit as dml
from dmlsplit.library import ask
from dmlsplit.library.catalogue import find_build
from dmlsplit.library.fetching import is_added
from tests.library.conftest import LINUX_BUILDS, NEWEST, require
from tests.library.fresh import KINDS, OUTCOMES, base_of, compared, counted, questions, share

QUESTIONS = 1_500
MANY = 17_500
"""Questions to each of three builds."""
RIGHT, RIGHT_OF_FEW = 0.995, 0.98
"""The least share of right verdicts where data types and ranks alone decide; of few questions chance has its part."""


def check(build, count, right=RIGHT_OF_FEW):
    """Compares fresh questions, others for each build."""
    if build is not NEWEST and not is_added(build):
        pytest.skip(f"dmlsplit library add {build} has not been run")
    require(build)
    found = compared(build, build.name, count)
    wrong = [dml.dumps(each.question.desc) for each in found if each.outcome in ("wrongly refused", "unforeseen end")]
    assert wrong == []
    plain = Counter(each.outcome for each in found if each.is_of_types_and_ranks)
    assert plain.total() > count / 10
    assert share(plain) >= right
    for each in found:
        said, answered = each.report.hresult, each.answer.hresult
        if None not in (said, answered) and said != answered:
            # A fault that the tables do not have is found before the one that they have.
            assert said == dml.HResult.E_UNEXPECTED, dml.dumps(each.question.desc)
            assert answered == build.release.invalid_argument
            assert len(each.question.kinds) == 2
    outcomes = counted(found)
    assert sum(outcomes.values(), Counter())["accepted"] > count / 5
    return outcomes


@pytest.mark.parametrize("build", LINUX_BUILDS, ids=str)
def test_what_is_accepted_is_never_refused(build):
    check(build, QUESTIONS)


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["tensorflow-directml-1.15.3.dev200619", "torch-directml-0.2.5.dev240914", "1.15.4"])
def test_many_questions(name):
    outcomes = check(find_build(name), MANY, RIGHT)
    assert all(outcomes[kind]["accepted"] > MANY / 1000 for kind in KINDS)


def test_questions_differ_by_seed_and_have_all_kinds():
    level = dml.FeatureLevel.FL_6_4
    first, again, other = (list(questions(seed, level, 600)) for seed in (1, 1, 2))
    texts, same, others = ({dml.dumps(each.desc) for each in found} for found in (first, again, other))
    assert texts == same
    assert len(others - texts) > 500
    assert {kind for each in first for kind in each.kinds} == set(KINDS)


@pytest.mark.parametrize("changed", [{"InputTensor": (1, 2, 4)}, {"OutputTensor": (1, 3, 2)}], ids=str)
@pytest.mark.parametrize("name", ["CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION"])
def test_ranks_that_no_build_compares(name, changed):
    """Integer convolutions of tensors of three and of four dimensions: accepted, though nothing can be computed."""
    members = dict(base_of(name).members)
    for member, sizes in changed.items():
        members[member] = dml.BufferTensorDesc(members[member].desc.data_type, sizes)
    desc = dml.AnyOperatorDesc(name, members)
    for build in (NEWEST, find_build("torch-directml-0.2.0.dev230426")):
        if is_added(build):
            assert ask(desc, require(build)).accepted
        assert dml.validate(desc, directml=build.release).hresult is None
    assert dml.validate(desc, feature_level="2_1").hresult == 0x80070057


def test_outcomes_are_all_named():
    found = compared(require(NEWEST), "named", 300)
    assert {each.outcome for each in found} <= set(OUTCOMES)
