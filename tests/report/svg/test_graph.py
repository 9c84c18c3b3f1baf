"""Pictures of a graph's memory."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from dmlsplit import graphs
from dmlsplit.graphs.examples import Sketch
from dmlsplit.report.svg.graph import picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(rule, directml="1.15.4", *, cured=False):
    return ET.fromstring(picture(graphs.EXAMPLES[rule](cured), directml, "title"))


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def frames(root):
    return [element for element in root.iter(f"{SVG}rect") if element.get("class") == "wrong"]


def test_a_row_for_each_dispatch_and_a_column_for_each_buffer():
    root = drawn("graph/memory-overwritten")
    found = texts(root)
    assert [text for text in found if text.split()[0].isdigit() and " " in text] == [
        "1 COPY",
        "2 TANH",
        "3 RELU",
        "4 COPY",
    ]
    assert [text for text in found if text.startswith(("input", "output")) and "wrong" not in text] == [
        *("input 0", "input 1", "output 0", "output 1"),
    ]


@pytest.mark.parametrize(
    ("rule", "directml", "says"),
    [
        ("graph/memory-overwritten", "1.15.4", "output 1 is wrong"),
        ("graph/fused-wrongly", "1.15.4", "output 0 is wrong"),
        ("graph/place-not-written", "1.10.1", "output 0 is wrong"),
        ("graph/memory-too-small", "1.15.4", "512 bytes do not fit into the 256 of output 0"),
    ],
)
def test_what_is_wrong_is_framed_and_said(rule, directml, says):
    root = drawn(rule, directml)
    assert len(frames(root)) == 1
    assert any(says in text for text in texts(root))
    cured = drawn(rule, directml, cured=True)
    assert frames(cured) == []
    assert "every output is right" in texts(cured)


def test_nothing_leaves_the_picture():
    for rule in ("graph/memory-too-small", "graph/memory-overwritten"):
        root = drawn(rule)
        for rect in root.iter(f"{SVG}rect"):
            if rect.get("width") != "100%":
                assert float(rect.get("x")) + float(rect.get("width")) <= float(root.get("width"))


def test_a_long_graph_is_cut_off():
    g = Sketch()
    x = g.input(1, 1, 1, 16)
    for _ in range(100):
        x = g("ELEMENT_WISE_EXP", x)
    root = ET.fromstring(picture(g.graph(x), "1.15.4", "title"))
    assert sum(text.endswith(" EXP") for text in texts(root)) < 100


def test_a_release_that_was_not_observed():
    with pytest.raises(ValueError, match="unknown DirectML release"):
        picture(graphs.EXAMPLES["graph/fused-wrongly"](False), "9.9", "title")
