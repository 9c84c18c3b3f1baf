"""legalize --page: the changes of an ONNX model, with the nodes before and after."""

from __future__ import annotations

import re
import sys
from html import escape, unescape

import numpy as np
import pytest

from dmlsplit.report import html

onnx = pytest.importorskip("onnx")
pytest.importorskip("jinja2")

from tests.models import FLOAT, INT64, model, node, value  # noqa: E402

TARGET = ("--feature-level", "2_0")


def save(path, *, name="split", part="a", data_type=FLOAT, **fields):
    """A Split of five dimensions, which feature level 2_0 takes merged, if it takes the type."""
    lengths = onnx.numpy_helper.from_array(np.array([1, 3]), "l")
    inputs = [value("x", [1, 4, 2, 2, 2], data_type)]
    outputs = [value(part, [1, 1, 2, 2, 2], data_type), value("b", [1, 3, 2, 2, 2], data_type)]
    nodes = [node("Split", ["x", "l"], [part, "b"], axis=1, name=name)]
    onnx.save(model(nodes, inputs, outputs, opset=13, initializers=[lengths], ir_version=8), path, **fields)


def nodes(page, title):
    """The nodes of every change, as a browser shows them."""
    return [unescape(text) for text in re.findall(rf"<h4>{title}</h4><pre[^>]*>(.*?)</pre>", page, re.DOTALL)]


def test_nodes_before_and_after(cli, tmp_path):
    save(tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", *TARGET, "-o", "fixed.onnx", "--page", "page.html", "--diff")
    assert (result.status, result.err) == (0, "")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<h1>1 node changed for feature level 2_0</h1>" in page
    assert "<h3>split <small>merge-dimensions</small></h3>" in page
    assert "<p>its tensors have 5 dimensions, but the target accepts 4</p>" in page
    diff = [line for line in result.out.splitlines() if line.startswith("    ")]
    assert nodes(page, "Before") == ["\n".join(line[6:] for line in diff if line[4] == "-")]
    assert nodes(page, "After") == ["\n".join(line[6:] for line in diff if line[4] == "+")]
    assert (tmp_path / "fixed.onnx").exists()


def test_without_a_model(cli, tmp_path):
    save(tmp_path / "m.onnx")
    assert cli("legalize", "m.onnx", *TARGET, "--page", "page.html").status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "page.html"]
    printed = cli("legalize", "m.onnx", *TARGET, "--page", "-").out
    assert printed == (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("data_type", "target", "status", "said"),
    [
        (INT64, TARGET, 1, "the target does not accept INT64"),
        (FLOAT, ("--feature-level", "6_0"), 0, "<h1>Nothing to legalize for feature level 6_0</h1>"),
    ],
)
def test_without_changes(cli, tmp_path, data_type, target, status, said):
    save(tmp_path / "m.onnx", data_type=data_type)
    result = cli("legalize", "m.onnx", *target, "--page", "page.html")
    assert result.status == status
    page = (tmp_path / "page.html").read_text("utf-8")
    assert said in page
    assert not nodes(page, "Before")


MARKUP = "</pre></article><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}&quot;'\""
CONTROL = "a\x1b[31m\u202e\r\n\x00b"


@pytest.mark.parametrize("name", [MARKUP, CONTROL])
def test_hostile_names_are_text(cli, tmp_path, name):
    save(tmp_path / "m.onnx", name=name, part=name)
    assert cli("legalize", "m.onnx", *TARGET, "--page", "page.html").status == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    body = page[page.index("<body>") :]
    tags = set(re.findall(r"<(\w+)", body))
    assert tags == {"body", "main", "p", "h1", "article", "h3", "small", "div", "section", "h4", "pre"}
    assert body.count("</article>") == body.count("<article ") == 1
    assert not [c for c in page if c != "\n" and not c.isprintable()]
    start = name[:20].encode("unicode_escape").decode() if name == CONTROL else escape(name[:20])
    assert start in body[body.index("<h3>") : body.index("</h3>")]
    assert any(unescape(start) in text for text in nodes(page, "Before"))
    assert any(unescape(start) in text for text in nodes(page, "After"))


def test_a_change_of_the_whole_model(cli, tmp_path):
    nodes_ = [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2, name="split")]
    outputs = [value(name, [1, 2]) for name in "ab"]
    onnx.save(model(nodes_, [value("x", [1, 4])], outputs, opset=18, ir_version=99), tmp_path / "m.onnx")
    result = cli("legalize", "m.onnx", "--onnxruntime", "1.24.4", "--page", "page.html")
    assert result.status == 0
    assert "  the model: older-ir-version: IR version 99 is newer than" in result.out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<h3>The model <small>older-ir-version</small></h3>" in page
    assert nodes(page, "Before")[0] == "IR version 99"


def test_hostile_file_name(cli, tmp_path):
    file = "<b>\x1b[1m&.onnx"
    save(tmp_path / file)
    page = cli("legalize", file, *TARGET, "--page", "-").out
    assert page.count(r"&lt;b&gt;\x1b[1m&amp;.onnx") == 2  # title and text
    assert "<b>" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize("page", ["m.onnx", "./fixed.onnx", "weights.bin"])
def test_no_input_or_model_is_replaced(cli, tmp_path, page):
    save(tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = cli("legalize", "m.onnx", *TARGET, "-o", "fixed.onnx", "--page", page)
    assert result.status == 2
    assert "would replace" in result.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_copied_data_is_not_replaced(cli, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    save(tmp_path / "in/m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    options = ("-o", "out/fixed.onnx", "--copy-data", "--page", "out/weights.bin")
    result = cli("legalize", "in/m.onnx", *TARGET, *options)
    assert result.status == 2
    assert "'out/weights.bin' exists already" in result.err.replace(str(tmp_path) + "/", "")
    assert not (tmp_path / "out/fixed.onnx").exists()


def test_it_is_for_models_written_back(cli, tmp_path):
    save(tmp_path / "m.onnx")
    assert cli("legalize", "m.onnx", *TARGET, "-o", "lower.json", "--page", "page.html").status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_jinja2_missing(cli, tmp_path, monkeypatch):
    save(tmp_path / "m.onnx")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    html._environment.cache_clear()
    result = cli("legalize", "m.onnx", *TARGET, "-o", "fixed.onnx", "--page", "page.html")
    html._environment.cache_clear()
    assert (result.status, result.out) == (2, "")
    assert result.err == "dmlsplit: a page of HTML needs jinja2: pip install 'dmlsplit[html]'\n"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_the_format_names_what_the_output_is(cli, tmp_path):
    """A page in place of a model."""
    save(tmp_path / "m.onnx")
    assert cli("legalize", "m.onnx", *TARGET, "--page", "page.html").status == 0
    assert cli("legalize", "m.onnx", *TARGET, "--format", "html", "-o", "page2.html").status == 0
    assert (tmp_path / "page2.html").read_text("utf-8") == (tmp_path / "page.html").read_text("utf-8")
    assert (
        cli("legalize", "m.onnx", *TARGET, "--format", "html").out
        == cli("legalize", "m.onnx", *TARGET, "--page", "-").out
    )
    assert cli("legalize", "m.onnx", *TARGET, "--format", "html", "--page", "p.html").status == 2
    (tmp_path / "a.json").write_text("{}")
    assert cli("legalize", "a.json", *TARGET, "--format", "html").status == 2
