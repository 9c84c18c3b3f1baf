"""The page as text: what it says, that it is self-contained, and that nothing in a file can add to its markup."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections import Counter
from html.parser import HTMLParser

import pytest

import dmlsplit as dml
from dmlsplit.checking import columns, compatibility
from dmlsplit.checking.results import Judged, Note
from dmlsplit.descriptors.location import Location
from dmlsplit.formats.json import dumps, loads
from dmlsplit.report import html
from dmlsplit.report.html import build
from dmlsplit.report.html.view import LOOKS, Page
from dmlsplit.rules import RULES
from dmlsplit.targets.target import Use
from tests.report.contrast import contrast
from tests.report.html import pages

pytest.importorskip("jinja2")


class Document(HTMLParser):
    """Elements with their attributes, and the text of each."""

    VOID = frozenset(("meta", "input", "br", "link", "img"))

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = (tag, dict(attributes), [])
        self.elements.append(element)
        if tag == "br":
            self.handle_data("\n")
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), []))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, _, texts in self._open:
            texts.append(data)

    def all(self, tag, **wanted):
        for name, attributes, texts in self.elements:
            if name == tag and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items()):
                yield attributes, "".join(texts)

    def texts(self, tag, **wanted):
        return [" ".join(text.split()) for _, text in self.all(tag, **wanted)]


@pytest.fixture(scope="module")
def text():
    return pages.page(pages.small())


@pytest.fixture(scope="module")
def document(text):
    return Document(text)


def view(items) -> Page:
    builder = build.Builder()
    for item in items:
        builder.add([item])
    return builder.finish()


def test_says_what_was_judged(document):
    assert document.texts("h1") == ["11 operators of 2 files"]
    assert document.texts("h2")[:1] == ["models/a.json"]
    tiles = dict(zip(document.texts("dt"), document.texts("dd"), strict=True))
    assert tiles == {
        "ok": "8", "not ok": "1", "not judged": "1", "not read": "1", "errors": "2", "warnings": "0", "notes": "1",
    }  # fmt: skip


def test_nothing_comes_from_elsewhere(document):
    for tag, attributes, _ in document.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "image")
        assert not {"src", "srcset", "action", "style", "background"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            assert attributes["href"].startswith("#") or tag == "a"
    assert len(list(document.all("script"))) == len(list(document.all("style"))) == 1
    for _, style in document.all("style"):
        assert "url(" not in style
        assert "@import" not in style


def test_policy_lets_the_page_alone_run(document):
    (meta,) = [a["content"] for a, _ in document.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert meta.startswith("default-src 'none';")
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        ((_, content),) = document.all(tag)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in meta


def test_hostile_names_are_text(text, document):
    assert "<img" not in text
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    shown = r"</script><script>document.title='owned'</script>\x00\x1b[31m\u202e<img src=x onerror=alert(1)>\ud800"
    assert shown in document.texts("bdi")
    assert r"models/<b>b</b>\u202e.jsonl" in document.texts("h2")
    text.encode("utf-8")


def test_ids_are_unique_and_links_lead_somewhere(document):
    ids = Counter(a["id"] for _, a, _ in document.elements if "id" in a)
    assert max(ids.values()) == 1
    for attributes, _ in document.all("a"):
        if attributes["href"].startswith("#"):
            assert attributes["href"][1:] in ids
    for _, attributes, _ in document.elements:
        if "data-reason" in attributes:
            assert f"r{attributes['data-reason']}" in ids
        for reference in re.findall(r"url\(#([^)]*)\)", attributes.get("fill", "")):
            assert reference in ids


def test_equal_operators_are_shown_once():
    page = view(pages.small())
    assert page.count == 11
    (equal,) = [d for d in page.details if len(d.occurrences) > 1]
    assert [row.index for row in equal.occurrences] == [0, 4, 0]
    assert page.files[1].rows[0].detail is page.files[0].rows[0].detail


def test_matrix_is_what_the_judges_say():
    page = view(pages.small())
    names = [c.label for asked in (columns.LEVELS, columns.RELEASES) for c in asked.columns]
    assert len(names) == len(dml.FeatureLevel) + len({release.directml for release in dml.releases()})
    found = {d.occurrences[0].name: {c.label: LOOKS[c.use].sign for c in d.cells} for d in page.details if d.cells}
    assert set(found["cut"].values()) == {"✓"}
    assert set(found["sum"].values()) == {"✕"}
    assert [found["wide"][str(level)] for level in dml.FeatureLevel] == ["↻"] * 6 + ["✓"] * 9
    for item in pages.small():
        if not isinstance(item, Judged) or item.name not in found:
            continue
        for level in dml.FeatureLevel:
            sign = found[item.name][str(level)]
            assert (sign == "✓") == dml.validate(item.descriptor, feature_level=level).ok
            assert (sign != "✕") == dml.legalize(item.descriptor, feature_level=level).ok
        for release in dml.releases():
            sign = found[item.name][release.directml]
            assert (sign == "✓") == dml.validate(item.descriptor, directml=release).ok
            assert (sign != "✕") == dml.legalize(item.descriptor, directml=release).ok


def test_matrix_of_random_operators():
    """Rewritings are shared between targets that take the same: the outcome is the target's own all the same."""
    for item in pages.many(12):
        for asked in (columns.LEVELS, columns.RELEASES):
            for answer in compatibility.compatibility(item.descriptor, asked):
                target = answer.column.target
                asked = {"directml": target.release} if target.release else {"feature_level": target.feature_level}
                own = dml.legalize(item.descriptor, **asked)
                assert (answer.use is not Use.REFUSED) == own.ok
                if answer.use is Use.REWRITTEN:
                    assert all(dml.validate(o, **asked).ok for o in answer.legalization.operators)


def test_reasons(document):
    reasons = document.texts("li")
    assert any(t.startswith("Feature levels 1_0-2_0 ↻ runs rewritten InputTensor.DataType is INT64;") for t in reasons)
    assert any("rewritten: INT64 is copied as UINT32, 2 for each element" in t for t in reasons)
    assert "Feature levels 4_1-6_4 ✓ runs" in reasons


def test_reason_names_no_other_target():
    """Levels that refuse to rewrite for the same reason share it, whichever was tried first."""
    page = view([pages.judged(pages.split((41, 44, 55, 6), 3, (3, 3), dml.TensorDataType.UINT8))])
    (refused,) = [r for r in page.details[0].reasons if r.use is Use.REFUSED]
    assert refused.labels == "feature levels 1_0-2_0"
    assert (
        refused.lines[-1]
        == "no rewriting: pieces of UINT8 begin or end within 16 bits, the smallest unit that it copies"
    )


def test_rewritten_beside_the_original(document):
    assert "Rewritten for feature levels 1_0-4_0" in document.texts("h4")
    assert {"UINT32", "[1, 4, 8, 16]"} <= set(document.texts("mark"))
    operators = [loads(text) for text in document.texts("pre") if text.startswith('{"Type": "DML_OPERATOR')]
    wanted = dml.legalize(pages.INT64, feature_level="1_0").operators
    assert set(wanted) <= set(operators)


def test_rewritten_for_who_was_asked():
    """For the judge where that refuses, not for the lowest level."""
    page = view([pages.judged(pages.RANK, level="2_1")])
    assert page.details[0].rewritten.target == "feature levels 1_0-2_1"
    five = pages.split((2, 2, 2, 3, 3), 1, (1, 1), dml.TensorDataType.INT64)
    page = view([pages.judged(five, level="3_0")])
    assert page.details[0].rewritten.target.startswith("feature levels 3_0")


def test_what_takes_every_operator():
    page = view([pages.judged(d, index=i) for i, d in enumerate((pages.GOOD, pages.RANK, pages.SUM))])
    assert page.left_out == 1
    assert page.common[0] == ("feature levels", "3_0-6_4", "1_0-6_4")


def test_rules_that_are_used_are_explained(document):
    headings = document.texts("h3")
    assert any(t.startswith("split/axis-sizes-sum ") for t in headings)
    assert any(t.startswith("input/malformed ") for t in headings)
    assert not any(t.startswith("split/axis-out-of-range ") for t in headings)
    assert any(RULES["split/axis-sizes-sum"].explanation in t for t in document.texts("p"))
    assert dumps(RULES["split/axis-sizes-sum"].bad()) in document.texts("pre")


def test_findings_name_member_rule_and_place(document):
    (finding,) = [t for t in document.texts("li") if "split/axis-sizes-sum" in t and t.startswith("✕ error")]
    assert finding.startswith("✕ error OutputTensors have sizes on axis 2 that add up to 3, but InputTensor has 6")


def test_several_judges():
    items = []
    for i, desc in enumerate((pages.GOOD, pages.INT64)):
        items += [pages.judged(desc, "x", index=i, level=level) for level in ("3_0", "6_4")]
    document = Document(pages.page(items, 2))
    assert {"feature level 3_0", "feature level 6_4"} <= set(document.texts("th"))
    rows = [t for a, t in document.all("tr") if "data-verdict" in a]
    assert len(rows) == 2
    assert [a["data-verdict"] for a, _ in document.all("tr") if "data-verdict" in a] == ["ok|ok", "not ok|ok"]


def test_nodes_of_a_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    from dmlsplit.checking.files import judge_file
    from dmlsplit.checking.question import Question
    from dmlsplit.report.html.build import page_columns
    from tests.models import model, node, value

    nodes = [
        node("Split", [name], [f"{name}0", f"{name}1"], name=f"<b>{name}", axis=-1, num_outputs=2)
        for name in ("known", "open")
    ]
    nodes.append(node("Concat", ["rank", "rank"], ["whole"], name="rank", axis=0))
    inputs = [
        value("known", [1, 1, 1, 1, 1, 1, 2, 3, 4]),
        value("open", ["batch", None]),
        value("rank", None),
    ]
    path = tmp_path / "m.onnx"
    onnx.save(model(nodes, inputs, ["known0"], ir_version=9), path)
    items = list(judge_file(str(path), Question(columns=page_columns(()))))
    page = view(items)
    known, open_, unknown = page.files[0].rows
    assert (known.name, known.op, known.whole, known.axis) == (
        "<b>known",
        "Split 18",
        "FLOAT [1, 1, 1, 1, 1, 1, 2, 3, 4]",
        "8",
    )
    assert known.detail.picture is not None
    assert {LOOKS[c.use].sign for c in known.detail.cells} == {"↻"}  # nine dimensions
    assert known.detail.rewritten is not None
    assert (open_.level, {LOOKS[c.use].sign for c in open_.detail.cells}) == ("3_0", {"↻", "✓"})
    assert open_.detail.reasons[1].lines[0].startswith("as it is (sizes at least 1, input[1] at least 2, at most ")
    assert (unknown.level, unknown.detail.picture, unknown.detail.cells) == ("?", None, [])
    assert page.left_out == 1
    document = Document(pages.page(items))
    assert "<b>known" in document.texts("bdi")
    assert "<b>known" not in [tag for tag, _, _ in document.elements]


def test_what_is_said_of_a_file():
    note = RULES["input/no-split"].diagnostic(Location(), "there is no Split")
    item = Note(dml.Report((note,), "feature level 4_1", None, None, "m.onnx"))
    document = Document(pages.page([item]))
    assert document.texts("h1") == ["0 operators of 1 file"]
    assert "there is no Split" in document.texts("p")


def test_no_operators_at_all():
    assert Document(pages.page([])).texts("h1") == ["0 operators of 0 files"]


def test_equal_input_gives_equal_pages(text):
    assert pages.page(pages.small()) == text


@pytest.mark.slow
def test_bounded():
    wide = pages.split((3000, 4), 0, (1,) * 3000)
    bad = dml.SplitOperatorDesc(dml.BufferTensorDesc(1, (3000, 4)), [None] * 3000, 0)
    text = pages.page([pages.judged(wide, "x" * 100_000), pages.judged(bad, "y", index=1)])
    assert len(text) < 400_000
    page = view(pages.many(build.PICTURES_SHOWN + 20))
    pictures = [d.picture for d in page.details]
    assert sum(p is not None for p in pictures) <= build.PICTURES_SHOWN
    assert "draws the first operators only" in pages.page(pages.many(build.PICTURES_SHOWN + 1))


def test_contrast_of_the_palette():
    style = (html._text("style.css")).split("*, ::before")[0]
    light, dark = style.split("@media")
    for block in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        pairs = [(f, b) for f in ("ink", "soft", "accent") for b in ("back", "card")] + [("ink", "head")]
        pairs += [(name, f"{name}-back") for name in ("good", "bad", "warn")] + [("ink", "mark")]
        for foreground, background in pairs:
            assert contrast(colours[foreground], colours[background]) >= 4.5, (foreground, background)


def test_jinja2_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    html._environment.cache_clear()
    asked = []
    with pytest.raises(html.MissingPackageError, match=r"pip install 'dmlsplit\[html\]'"):
        html.chunks(asked.append(1) or iter(()))
    assert dml.validate(pages.SUM)._repr_html_() is None
    html._environment.cache_clear()


def test_notebooks_show_a_report():
    shown = dml.validate(pages.SUM, feature_level="6_4")._repr_html_()
    document = Document(shown)
    assert document.texts("strong") == ["DML_OPERATOR_SPLIT: not ok"]
    assert document.texts("code") == ["OutputTensors", "split/axis-sizes-sum"]
    hostile = dml.Report(pages.malformed("a", 0).report.diagnostics, "nobody", None, None)._repr_html_()
    assert "<script" not in hostile
    assert "<img" not in hostile
