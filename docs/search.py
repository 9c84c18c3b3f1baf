"""A hook of mkdocs: its search cuts what is sought into words as it cuts the pages, by the separator of mkdocs.yml."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

BEFORE: Final = "lunr.tokenizer.separator = "
AFTER: Final = "lunr.QueryLexer.termSeparator = lunr.tokenizer.separator = "


def on_post_build(config: Any, **_: object) -> None:
    """Called by mkdocs when the site is written."""
    worker = Path(config["site_dir"], "search", "worker.js")
    text = worker.read_text("utf-8")
    if BEFORE not in text:
        raise ValueError(f"{worker}: sets no separator; is it another search?")
    worker.write_text(text.replace(BEFORE, AFTER), "utf-8")
