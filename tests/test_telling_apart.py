"""Releases that differ are told apart by small descriptors, and all that is recorded tells no more of them apart."""

import dmlsplit as dml
from tests import oracle
from tests.telling_apart import pairs, read, verdicts


def test_every_pair_that_differs_is_told_apart():
    told = set().union(*(pairs(verdicts(desc)) for desc in read()))
    known = set()
    for name in ("random", "boundary", "systematic"):
        header, *records = oracle.records(name)
        assert header["builds"] == [release.name for release in dml.releases()]
        # a build that dies as it compiles what it has created says nothing of the descriptor
        plain = [r for r in records if "flags" not in r["desc"] and not oracle.reason_to_leave_out(r)]
        known = known.union(*(pairs(record["verdicts"]) for record in plain))
    assert known <= told
    assert len(told) == 382  # of 435: the other pairs are alike in all that is known


def test_each_tells_a_pair_apart_that_no_other_before_it_does():
    told = set()
    for desc in read():
        assert pairs(verdicts(desc)) - told
        told |= pairs(verdicts(desc))
