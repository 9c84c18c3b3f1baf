"""A report, or the changes of a model, as one self-contained HTML page that loads nothing.

Needs jinja2 (`pip install 'dmlsplit[html]'`). Text from files is escaped and made printable; a content security policy
allows only the page's own script. Without scripts the tables are static.
"""

from __future__ import annotations

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from dmlsplit.checking.results import Answer, Note, Result, verdict_of
from dmlsplit.descriptors.diagnostics import Report, Severity
from dmlsplit.report import explained as explained_text
from dmlsplit.report.html.build import PREFIX, Builder
from dmlsplit.report.html.view import LOOKS
from dmlsplit.report.rule import examples
from dmlsplit.report.shown import AS_USUAL, Shown
from dmlsplit.report.svg import canvas
from dmlsplit.system.errors import DmlSplitError
from dmlsplit.system.printable import printable

if TYPE_CHECKING:
    import jinja2

    from dmlsplit.conformance.summary import Summary
    from dmlsplit.mending.mending import Mending
    from dmlsplit.onnxruntime.explaining import Explanation


class MissingPackageError(DmlSplitError):
    """jinja2 is not installed."""


def chunks(results: Iterable[Result], targets: int = 1, shown: Shown = AS_USUAL) -> Iterator[str]:
    """Returns an iterator over the pieces of an HTML page about the results; the answers of several targets about one
    operator must be consecutive.

    All results are read before the first piece. Raises MissingPackageError, before a result is read, if jinja2 is
    missing.
    """
    template = _environment().get_template("page.html.j2")
    builder = Builder(shown.runtimes)
    answers: list[Answer] = []
    for result in results:
        if isinstance(result, Note):
            builder.note(result)
            continue
        answers.append(result)
        if len(answers) == targets:
            builder.add(answers)
            answers = []
    style, script = _text("style.css") + canvas.style(), _text("script.js")
    return template.generate(
        page=builder.finish(),
        style=style,
        script=script,
        policy=_policy(style=style, script=script),
        patterns=ET.tostring(canvas.definitions(PREFIX), "unicode"),
        severities=list(Severity),
        examples=examples,
        looks=LOOKS,
    )


def mended(found: Mending, target: str) -> Iterator[str]:
    """Returns an iterator over the pieces of an HTML page about a mended model: each change, with the nodes before and
    after side by side.

    Raises MissingPackageError if jinja2 is missing.
    """
    style = _text("style.css")
    template = _environment().get_template("mended.html.j2")
    return template.generate(found=found, target=target, style=style, policy=_policy(style=style))


def explained(file: str, found: Explanation) -> Iterator[str]:
    """Returns an iterator over the pieces of an HTML page about a node of the model in `file`: a table with a row for
    each step of a session.

    Raises MissingPackageError if jinja2 is missing.
    """
    style = _text("style.css")
    template = _environment().get_template("explained.html.j2")
    heading, rows = explained_text.heading(found), list(explained_text.rows(found))
    return template.generate(file=file, heading=heading, rows=rows, style=style, policy=_policy(style=style))


def conformance(summary: Summary) -> Iterator[str]:
    """Returns an iterator over the pieces of an HTML page about a conformance run: a row for each file of cases, and
    its failures.

    Raises MissingPackageError if jinja2 is missing.
    """
    style = _text("style.css")
    template = _environment().get_template("conformance.html.j2")
    return template.generate(summary=summary, style=style, policy=_policy(style=style))


def notebook(report: Report) -> str | None:
    """Returns a report as HTML for notebooks: the verdict and a table of its diagnostics; None if jinja2 is missing."""
    try:
        template = _environment().get_template("notebook.html.j2")
    except MissingPackageError:
        return None
    return template.render(report=report, word=verdict_of(report))


@cache
def _environment() -> jinja2.Environment:
    try:
        import jinja2
    except ImportError:
        raise MissingPackageError("a page of HTML needs jinja2: pip install 'dmlsplit[html]'") from None
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(_text),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = lambda text: printable(text, None)
    environment.filters["anchor"] = lambda id: re.sub(r"[^a-z0-9]+", "-", id)
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment


def _text(name: str) -> str:
    return (resources.files(__package__) / name).read_text("utf-8")


def _policy(**inline: str) -> str:
    """Returns a content security policy that allows inline parts with exactly these contents (`style`, `script`) and
    nothing else."""
    allowed = "".join(f"{kind}-src '{_hash(text)}'; " for kind, text in inline.items())
    return f"default-src 'none'; {allowed}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    """Returns the SHA-256 of an inline part in the notation of content security policies."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


__all__ = ["MissingPackageError", "chunks", "explained", "mended", "notebook"]
