"""Notes and warnings of one rule in one line."""

from __future__ import annotations

import pytest

from dmlsplit.descriptors.diagnostics import Basis, Diagnostic, Severity
from dmlsplit.descriptors.location import Location
from dmlsplit.report.alike import NAMES_SHOWN, Alike


def note(node, message="said", rule="a/b", steps=()):
    return Diagnostic(rule, Severity.NOTE, Basis.OURS, Location(steps, node), message, None, None, "", 3, 4)


def lines(*found):
    alike = Alike("node")
    for each in found:
        alike.add(each, each.location.node)
    return [line.diagnostic for line in alike.lines()]


def test_one_stays_as_it_is():
    assert lines(note("n")) == [note("n")]


@pytest.mark.parametrize("count", [2, NAMES_SHOWN, NAMES_SHOWN + 1, 1000])
def test_several_have_the_number_and_the_first_names(count):
    (line,) = lines(*[note(f"n{i}") for i in range(count)])
    names = ", ".join(f"n{i}" for i in range(min(count, NAMES_SHOWN)))
    assert line.message == f"{count} nodes ({names}{', ...' if count > NAMES_SHOWN else ''}): said"
    assert (line.path, line.line, line.column) == ("", None, None)


def test_the_number_is_that_of_the_diagnostics_and_each_node_is_named():
    (line,) = lines(note("n", steps=("x", 0)), note("n", steps=("x", 1)), note("m"))
    assert line.message == "3 times at 2 nodes (n, m): said"
    (line,) = lines(note("n", steps=("x", 0)), note("n", steps=("x", 1)))
    assert line.message == "2 times at n: said"


def test_where_messages_differ_the_first_is_shown_with_its_place():
    (line,) = lines(note("n", "one", steps=("x",)), note("m", "two"))
    assert line.message == "2 nodes (n, m): n.x: one (--verbose shows all)"


def test_each_rule_has_its_line():
    found = lines(note("n"), note("n", rule="c/d"), note("m"))
    assert [line.rule for line in found] == ["a/b", "c/d"]


def test_little_is_kept_of_many():
    alike = Alike("node")
    for i in range(10_000):
        alike.add(note(f"n{i}", f"said {i}"), f"n{i}")
    (held,) = alike._of_rule.values()
    assert (held.count, held.named, len(held.names)) == (10_000, 10_000, NAMES_SHOWN)


def test_different_messages_about_one_node_name_it_once():
    (line,) = lines(note("n", "one"), note("n", "two"))
    assert line.message == "2 times at n: one (--verbose shows all)"
