"""The README on a package index: nothing in it leads into the repository, and it begins with the installation."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
on_index = runpy.run_path(str(ROOT / "packaging" / "readme.py"))["on_index"]
README = (ROOT / "README.md").read_text("utf-8")
TARGET = re.compile(r"\]\(([^)]*)\)")


def test_the_repositorys_readme_has_links_that_would_break():
    assert [target for target in TARGET.findall(README) if not target.startswith("http")]


def test_no_link_and_no_picture_is_relative():
    shown = on_index(README)
    assert [target for target in TARGET.findall(shown) if not target.startswith("http")] == []
    assert "<!--" not in shown
    assert "docs/images" not in shown


def test_code_and_headings_stay():
    blocks = re.compile(r"^```.*?^```$|^#.*?$", re.MULTILINE | re.DOTALL)
    assert blocks.findall(on_index(README)) == blocks.findall(README)


def test_it_is_installed_before_the_first_example():
    shown = on_index(README)
    assert 0 < shown.index("pip install") < shown.index("dmlsplit run") < shown.index("$ dmlsplit")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](docs/a.md) and [b](https://b.c)", "a and [b](https://b.c)"),
        ("![what it shows](docs/x.svg)", "*what it shows*"),
        ("`d[i](x)` stays", "`d[i](x)` stays"),
        ("<!-- run -->\n```sh\na [b](c)\n```\n", "```sh\na [b](c)\n```\n"),
        ("[`co[d]e`](docs/a.md) `x`", "`co[d]e` `x`"),
    ],
)
def test_pieces(text, shown):
    assert on_index(text) == shown
