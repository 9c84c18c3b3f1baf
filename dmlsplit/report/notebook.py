"""Descriptors and reports in notebooks: a picture, a table. Rendered, and imported, when they are shown."""

from __future__ import annotations

from dmlsplit.descriptors.descs import JoinOperatorDesc, OperatorDesc, SplitOperatorDesc
from dmlsplit.descriptors.diagnostics import Report


def picture(desc: OperatorDesc) -> str:
    """The SVG of an operator."""
    from dmlsplit.report import svg

    return svg.picture(desc)


def table(report: Report) -> str | None:
    """The HTML of a report; None, for the plain text, where jinja2 is missing."""
    from dmlsplit.report import html

    return html.notebook(report)


def install() -> None:
    """Gives the classes the methods that IPython looks for, so that they need not know what renders them."""
    for kind in (SplitOperatorDesc, JoinOperatorDesc):
        kind._repr_svg_ = picture  # type: ignore[union-attr]
    Report._repr_html_ = table  # type: ignore[attr-defined]
