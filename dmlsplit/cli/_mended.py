"""`dmlsplit legalize` for ONNX models that are written as ONNX models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from dmlsplit.checking.front_ends import Given
from dmlsplit.cli import _streams
from dmlsplit.system.printable import printable
from dmlsplit.system.records import record
from dmlsplit.targets.target import Target

if TYPE_CHECKING:
    from dmlsplit.mending.mending import Mending
    from dmlsplit.mending.words import Change

MOST_SHOWN: Final = 10
"""The most changes by the same rewritings, or operators accepted as they are, that are shown without --verbose."""
HINT: Final = "--verbose shows all"


@record
class WriteBackOptions:
    """The options of `legalize` that apply to ONNX models only."""

    dry_run: bool
    diff: bool
    page: str | None
    copy_data: bool
    verbose: bool

    @property
    def asks(self) -> bool:
        """True if an option requests a report, so that no model needs to be written."""
        return self.dry_run or self.diff or self.page is not None


def write_back(file: str, out: str | None, target: Target, given: Given, options: WriteBackOptions) -> int:
    """Writes the model of `file`, legalized for a target, to `out`, prints the changes, or why there are none, and
    returns the exit status: 1 if the model cannot be legalized, else 0. Without `out`, with --dry-run, and if the model
    cannot be legalized, no model is written. Raises UsageError for options that do not fit, InputError if `file` is not
    a model, OSError if a file cannot be read or written."""
    from dmlsplit.mending import mended_model

    if given.shapes or given.dims:
        raise click.UsageError(
            "a file has no sizes of the first Run, which --shape and --dim give; --free-dimension fixes sizes in the "
            "file, and python -m onnxruntime.tools.make_dynamic_shape_fixed those without names"
        )
    show = _streams.write if options.page != "-" else lambda text: None
    with mended_model(file, target, given.allow_paths, given.free_dimensions) as found:
        if options.page is not None:  # before reading the model, whose external data it must not replace
            _write_page(options.page, found, target)
        show("".join(f"{line}\n" for line in _lines(found, target, options)))
        if found.refusals:
            if out is not None and not options.dry_run:
                _streams.complain(f"{out}: not written, since {file} cannot be legalized for {target.name}")
            return 1
        if out is not None and not options.dry_run:
            from dmlsplit.mending.writing import write

            for path in write(found, out, copy_data=options.copy_data):
                show(f"{printable(path, None)}: written\n")
    return 0


def _write_page(path: str, found: Mending, target: Target) -> None:
    from dmlsplit.report import html

    pieces = html.mended(found, target.name)
    with _streams.output(path, colons_meant=True) as write:
        for piece in pieces:
            write(piece)


def _lines(found: Mending, target: Target, options: WriteBackOptions) -> Iterator[str]:
    yield f"{printable(found.file, None)}: {found.outcome} for {target.name}"
    if found.refusals:
        yield from (f"  {refusal}" for refusal in found.refusals)
        return
    by_names: dict[tuple[str, ...], list[Change]] = {}
    for change in found.changes:
        by_names.setdefault(change.names, []).append(change)
    for names, changes in by_names.items():
        shown = changes if options.verbose or options.diff else changes[:MOST_SHOWN]
        for change in shown:
            yield f"  {change.path or 'the model'}: {', '.join(names)}: {change.reason}"
            if options.diff:
                yield from (f"    - {line}" for line in change.before)
                yield from (f"    + {line}" for line in change.after)
        if len(shown) < len(changes):
            yield f"  {len(changes) - len(shown)} more changed by {', '.join(names)} ({HINT})"
    for each in found.left:
        yield f"  not changed: {each}"
    yield from (f"  {doubt}" for doubt in found.doubts)
