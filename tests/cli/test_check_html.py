"""dmlsplit check --format html."""

from __future__ import annotations

import sys

import pytest

from dmlsplit.report import html
from tests.cli.conftest import BAD, GOOD, HOSTILE, INT64, MALFORMED, OTHER

jinja2 = pytest.importorskip("jinja2")


def test_page_of_several_files(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{GOOD}\n{BAD}\n{OTHER}\n")
    (tmp_path / "b.json").write_text(INT64)
    status, out, err = cli("check", "a.jsonl", "b.json", "--format", "html", "-o", "r.html")
    assert (status, out, err) == (1, "", "")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<h1>4 operators of 2 files</h1>" in page
    assert cli("check", "a.jsonl", "b.json", "--format", "html").out == page


def test_several_releases(cli, tmp_path):
    (tmp_path / "a.json").write_text(INT64)
    page = cli("check", "a.json", "--format", "html", "--directml", "1.5.1", "--directml", "1.15.4").out
    assert 'data-verdict="not ok|ok"' in page


def test_what_cannot_be_read_is_said_twice(cli, tmp_path):
    (tmp_path / "a.jsonl").write_text(f"{MALFORMED}\n{GOOD}\n")
    status, _, err = cli("check", "a.jsonl", "--format", "html", "-o", "r.html")
    assert status == 2
    assert err.startswith("dmlsplit: a.jsonl:1:")
    assert "not read" in (tmp_path / "r.html").read_text("utf-8")


def test_ignored_rules_are_not_shown(cli, tmp_path):
    (tmp_path / "a.json").write_text(BAD)
    page = cli("check", "a.json", "--format", "html", "--ignore", "split/").out
    assert 'id="rule-split-axis-sizes-sum"' not in page


def test_hostile_file_name(cli, tmp_path):
    name = HOSTILE.replace("/", "").replace("\ud800", "") + "<b>.json"
    (tmp_path / name).write_text(GOOD)
    page = cli("check", name, "--format", "html").out
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "<b>.json" not in page


def test_jinja2_missing(cli, tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text(GOOD)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    html._environment.cache_clear()
    status, out, err = cli("check", "a.json", "--format", "html", "-o", "r.html")
    html._environment.cache_clear()
    assert (status, out) == (2, "")
    assert err == "dmlsplit: a page of HTML needs jinja2: pip install 'dmlsplit[html]'\n"
    assert not (tmp_path / "r.html").exists()
