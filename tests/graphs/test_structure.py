"""Graphs that are wrong whatever becomes of them: what CompileGraph of builds returned for each."""

from __future__ import annotations

import pytest

import dmlsplit as dml
from dmlsplit.graphs.examples import Sketch
from tests.graphs.structure import ACCEPTED, REFUSED

BY_VERSION = {release.directml: release for release in dml.releases()}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    rule, graph = REFUSED[name]
    report = dml.validate(graph)
    assert rule in {d.rule for d in report.diagnostics}
    assert (report.hresult, report.compiles, report.ok) == (dml.HResult.E_INVALIDARG, False, False)
    assert dml.validate(graph, directml="tensorflow-directml-1.15.3.dev200619").hresult == 0x80000003


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name):
    rule, graph = ACCEPTED[name]
    report = dml.validate(graph)
    assert report.ok is (rule is None)
    assert report.compiles in (True, None)
    if rule:
        assert rule in {d.rule for d in report.diagnostics}
        assert report.hresult == 0
        assert set(report.outputs) == {"unknown"}


@pytest.mark.parametrize(("directml", "compiles"), [("1.5.1", False), ("1.7.0", True)])
def test_an_output_that_no_edge_reaches_ended_the_process_once(directml, compiles):
    report = dml.validate(ACCEPTED["graph output that no edge reaches"][1], directml=BY_VERSION[directml])
    assert (report.hresult, report.compiles) == (0 if compiles else None, compiles)


def test_a_temporary_is_whole_vectors():
    """The second part of three numbers is read as if the Split's rows were apart, and fits nevertheless."""
    g = Sketch()
    wide, thin = g.split(g.input(4, 4), 1, [3, 1])
    most, last = g.split(thin, 0, [3, 1])
    first, rest = g.split(g("ELEMENT_WISE_ABS", most), 0, [1, 2])
    for release in ("1.13.1", "1.15.4"):
        assert dml.validate(g.graph(first, rest, last, wide), directml=BY_VERSION[release]).hresult == 0


def test_a_place_is_named():
    (fault,) = dml.validate(REFUSED["wire to input"][1]).diagnostics[:1]
    assert str(fault.location) == "IntermediateEdges[0].ToNodeInputIndex"
    assert (fault.expected, fault.actual) == ("below 1", 1)
