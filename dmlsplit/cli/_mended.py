"""legalize for ONNX models that are written back as such."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from dmlsplit.cli import _streams
from dmlsplit.formats.models import Given
from dmlsplit.printable import printable
from dmlsplit.target import Target

if TYPE_CHECKING:
    from dmlsplit.formats.onnx.mending.mending import Mending


def is_written_back(file: str, out: str | None) -> bool:
    """Whether a model is to be written as the model that it is."""
    return all(path is not None and path.lower().endswith(".onnx") for path in (file, out))


def write_back(
    file: str, out: str | None, target: Target, given: Given, *, dry_run: bool, diff: bool, copy_data: bool
) -> int:
    """Writes the model of `file`, mended for a target, to `out`; says what was changed, or why it cannot be."""
    from dmlsplit.formats.files import AllowedFolders
    from dmlsplit.formats.onnx.mending import mended_model

    if given.shapes or given.dims or given.free_dimensions:
        raise click.UsageError("a model is written for all of its sizes: --shape, --dim and --free-dimension give some")
    with mended_model(file, target, given.allow_paths) as found:
        _streams.write("".join(f"{line}\n" for line in _lines(file, found, target, diff)))
        if found.refusals:
            if out is not None and not dry_run:
                _streams.complain(f"{out}: not written, since {file} cannot be mended for {target.name}")
            return 1
        if out is not None and not dry_run:
            from dmlsplit.formats.onnx.mending.writing import write

            folders = AllowedFolders(os.path.dirname(os.path.abspath(file)), given.allow_paths)
            for path in write(found, file, out, folders, copy_data=copy_data):
                _streams.write(f"{printable(path, None)}: written\n")
    return 0


def _lines(file: str, found: Mending, target: Target, diff: bool) -> Iterator[str]:
    name = printable(file, None)
    if found.refusals:
        yield f"{name}: cannot be mended for {target.name}"
        yield from (f"  {refusal}" for refusal in found.refusals)
        return
    count = len(found.changes)
    what = "nothing to mend" if not count else "1 node changed" if count == 1 else f"{count} nodes changed"
    yield f"{name}: {what} for {target.name}"
    for change in found.changes:
        yield f"  {change.path}: {', '.join(change.names)}: {change.reason}"
        if diff:
            yield from (f"    - {line}" for line in change.before)
            yield from (f"    + {line}" for line in change.after)
    for each in dict.fromkeys(found.unknown):
        yield f"  not known of {each}"
