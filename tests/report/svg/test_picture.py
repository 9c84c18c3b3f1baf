"""Pictures as a whole: any descriptor gives well-formed, bounded, equal SVG that says what is wrong."""

import copy
import pickle
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given

import dmlsplit as dml
from dmlsplit.report import svg
from dmlsplit.report.svg import block, canvas
from dmlsplit.report.svg.subject import subject
from tests.effort import calls
from tests.report.contrast import contrast
from tests.strategies import any_operator

NS = "{http://www.w3.org/2000/svg}"
X = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2))
SPLIT = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1, 3))
MAX = 2**32 - 1


def texts(picture):
    return ["".join(t.itertext()) for t in ET.fromstring(picture).iter(f"{NS}text")]


def test_says_what_is_cut():
    found = texts(svg.picture(SPLIT))
    assert "DML_OPERATOR_SPLIT" in found
    assert "Split of FLOAT32 [1, 1, 6, 2] along axis 2 into 3 outputs" in found
    assert "Axis 2: Sizes[2] = 6" in found
    assert [t for t in found if re.fullmatch(r"\[\d\]", t)] == ["[0]", "[1]", "[2]"]
    assert "".join(str(i) for i in range(12)) in found  # the cells of the input
    assert not any("⚠" in t or "not to scale" in t for t in found)


def test_readers_that_see_nothing_are_told():
    root = ET.fromstring(svg.picture(SPLIT, name="cut"))
    ids = root.get("aria-labelledby").split()
    assert root.get("role") == "img"
    assert [root.find(f"{NS}{tag}").get("id") for tag in ("title", "desc")] == ids
    assert root.find(f"{NS}title").text == "cut Split of FLOAT32 [1, 1, 6, 2] along axis 2 into 3 outputs"
    assert root.find(f"{NS}desc").text == "Lengths along the axis: 2, 1, 3."


def test_pieces_are_to_scale():
    (shares, exact) = block.widths([2, 1, 3], 300)
    assert exact
    assert shares == [100, 50, 150]
    shares, exact = block.widths([1, 10**6], 300)
    assert not exact
    assert shares == [block.NARROWEST, 300 - block.NARROWEST]
    assert block.widths([0, 0], 300)[1] is False


@pytest.mark.parametrize(
    ("desc", "said"),
    [
        (dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1)), "Axis 2: Sizes[2] = 6, the outputs have 3"),
        (dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1)), "3 left"),
        (dml.SplitOperatorDesc.from_lengths(X, 2, (4, 5)), "Axis 2: Sizes[2] = 6, the outputs have 9"),
        (dml.SplitOperatorDesc(X, [X], 7), "Axis 7 is out of range; Sizes[3] = 2"),
        (dml.SplitOperatorDesc(X, [None], 2), "⚠ OutputTensors[0]"),
        (dml.SplitOperatorDesc(None, [X], 2), "⚠ InputTensor"),
        (dml.SplitOperatorDesc(None, None, 2), "no sizes to draw"),
        (dml.SplitOperatorDesc.from_lengths(X, 2, (0, 6)), "⚠ OutputTensors[0]"),
        (dml.SplitOperatorDesc.from_lengths(X, 2, (1, 5)), None),
        (dml.JoinOperatorDesc.from_lengths(X, 2, (1, 4)), "Axis 2: Sizes[2] = 6, the inputs have 5"),
        (dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (1,) * 20), [], 0), "20 dimensions are too many to draw"),
    ],
)
def test_marks_what_is_wrong(desc, said):
    found = texts(svg.picture(desc))
    assert said is None or said in found
    assert any(t.startswith("⚠") for t in found) == (not dml.validate(desc).ok)


def test_marks_by_the_report_that_is_given():
    report = dml.validate(SPLIT, feature_level="6_4")
    wide = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(dml.TensorDataType.INT64, (4,)), 0, (2, 2))
    assert "⚠ InputTensor" not in texts(svg.picture(wide, dml.validate(wide, feature_level="6_4")))
    assert "⚠ InputTensor" in texts(svg.picture(wide, dml.validate(wide, feature_level="1_0")))
    assert svg.picture(SPLIT, report) == svg.picture(SPLIT)


@given(any_operator())
def test_any_descriptor(desc):
    picture = svg.picture(desc, name="\x00\x1b[31m<b>&\u202e\ud800\ufffe")
    ET.fromstring(picture)
    picture.encode("utf-8")
    assert len(picture) < 60_000
    assert picture == svg.picture(copy.copy(desc), name="\x00\x1b[31m<b>&\u202e\ud800\ufffe")
    found = re.findall(r' (?:[xy]|width|height)="([^"]*)"', picture)
    assert all(float(n) >= -1 for n in found if n != "100%")


@pytest.mark.parametrize(
    "desc",
    [
        dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (20_000, MAX)), 0, (1,) * 20_000),
        dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (MAX,) * 8), 3, (MAX - 1, 1)),
        dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (MAX,) * 16, strides=(1,) * 16), [], 3),
        dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (MAX,) * 16, strides=(0,) * 16), [], 3),
        dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (MAX,) * 50_000), [], 3),
        dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (2,) * 8, strides=(1, 2, 3, 5, 8, 13, 21, 34)), [], 3),
    ],
    ids=["20,000 outputs", "2^256 elements", "overlapping", "one place", "50,000 dimensions", "fibonacci"],
)
def test_bounded(desc):
    report = dml.Report((), "nobody", None, "DML_OPERATOR_SPLIT")
    pictures = []
    work = calls(lambda: pictures.append(svg.picture(desc, report)))
    assert work < 1_000_000 + 40 * (len(desc.output_tensors) + len(desc.input_tensor.sizes))
    assert len(pictures[0]) < 60_000
    ET.fromstring(pictures[0])


def test_thousands_of_outputs_are_summed_up():
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (1024, 4)), 0, (1,) * 1024)
    found = texts(svg.picture(desc))
    assert "… 1,018 more outputs" in found
    assert "… 1,013 more" in found
    assert [t for t in found if t.startswith("OutputTensors")] == [f"OutputTensors[{i}]" for i in range(6)]


def test_names_are_shown_not_obeyed():
    picture = svg.picture(SPLIT, name="</svg><script>alert(1)</script>\x1b\u202e")
    assert "<script" not in picture
    assert r"</svg><script>alert(1)</script>\x1b\u202e" in texts(picture)[0]


def test_several_operators():
    bad = dml.SplitOperatorDesc.from_lengths(X, 2, (2, 1))
    drawings = [svg.Drawing(d, dml.validate(d), name) for d, name in ((SPLIT, "a"), (bad, "b"), (SPLIT, None))]
    picture = svg.document(drawings)
    assert [t for t in texts(picture) if "DML_OPERATOR" in t] == [
        "a DML_OPERATOR_SPLIT",
        "b DML_OPERATOR_SPLIT",
        "DML_OPERATOR_SPLIT",
    ]
    ids = re.findall(r' id="([^"]*)"', picture)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]*)\)", picture)) <= set(ids)
    many = svg.document(drawings[:1] * (svg.OPERATORS_SHOWN + 5))
    assert "… 5 more operators" in texts(many)


def test_notebooks_show_the_picture():
    join = dml.JoinOperatorDesc.from_lengths(X, 2, (2, 4))
    assert SPLIT._repr_svg_() == svg.picture(SPLIT)
    assert join._repr_svg_() == svg.picture(join)
    assert pickle.loads(pickle.dumps(join)) == join


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_contrast(mode):
    """WCAG 2.1 AA: 4.5 for text, 3 for what has to be seen."""
    colours = {name: re.search(r"#\w{6}", both[mode])[0] for name, both in canvas.LIGHT_AND_DARK.items()}
    for ink in ("ink", "soft", "fault"):
        assert contrast(colours[ink], colours["back"]) >= 4.5
    for fill in canvas.PIECES:
        assert contrast(canvas.PIECE_INK, fill) >= 4.5
    assert contrast(colours["ink"], colours["plain"]) >= 4.5
    assert contrast(colours["wrong"], colours["back"]) >= 3


def test_every_fill_has_every_texture():
    looks = {(canvas.piece_class(i), canvas.texture(i, "")) for i in range(56)}
    assert len(looks) == len(canvas.PIECES) * len(canvas.TEXTURES) == 56


def test_an_edge_for_every_dimension():
    desc = dml.SplitOperatorDesc.from_lengths(dml.BufferTensorDesc(1, (2, 3, 1, 10, 7, 9)), 3, (4, 6))
    along, up, away = block.edges(subject(desc, dml.validate(desc)))
    assert (along.name, up.name, away.name) == ("Sizes[3]", "Sizes[4]·[5]", "Sizes[0]·[1]")
    assert (along.length, up.length, away.length) == (10, 63, 6)
