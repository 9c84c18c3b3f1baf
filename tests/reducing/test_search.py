"""The search for the fewest items that are still wrong."""

from __future__ import annotations

import random

import pytest

from dmlsplit.reducing.search import first_part, last_part, without_needless


def needs(*wanted):
    asked = []

    def is_wrong(items):
        asked.append(tuple(items))
        return set(wanted) <= set(items)

    return is_wrong, asked


@pytest.mark.parametrize("first", [0, 1, 8, 100])
@pytest.mark.parametrize("wanted", [(0,), (3, 9), (99,), (0, 99), (50, 51, 52)])
def test_the_first_and_the_last_that_matter(wanted, first):
    is_wrong, asked = needs(*wanted)
    part = first_part(range(100), is_wrong, first)
    assert list(part) == list(range(max(wanted) + 1))
    part = last_part(part, is_wrong)
    assert list(part) == list(range(min(wanted), max(wanted) + 1))
    assert len(asked) <= 22


def test_nothing_can_be_removed_from_the_result():
    rng = random.Random(0)
    for _ in range(50):
        wanted = sorted(rng.sample(range(64), rng.randint(1, 6)))
        is_wrong, _ = needs(*wanted)
        assert list(without_needless(range(64), is_wrong)) == wanted


def test_what_is_wrong_for_two_reasons_keeps_one():
    def is_wrong(items):
        return {1, 2} <= set(items) or {5, 6} <= set(items)

    assert set(without_needless(range(8), is_wrong)) in ({1, 2}, {5, 6})


def test_parts_that_are_wrong_here_and_there_have_an_end_that_matters():
    def is_wrong(items):
        return len(items) % 7 == 3 or len(items) == 100

    part = first_part(range(100), is_wrong)
    assert is_wrong(part)
    assert not is_wrong(part[:-1])
