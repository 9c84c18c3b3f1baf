"""Models written back: an ONNX model that a level, a release or a runtime takes, and that gives the same bit for bit.

    written = legalize_model("model.onnx", find_target(onnxruntime="1.24.4"))
    written.model, written.changes

`fields`, `source` and `assembling` know the file: what is not touched stays byte for byte. `sites`, `views` and
`judging` know the nodes and what the target makes of them; `rewritings` is the table of what mends a node, `forms` and
`reshaping` carry it out. `graph_cures` chooses what helps against wrong graphs, and `cures` carries it out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.errors import InputError, NotLegalizedError
from dmlsplit.formats.files import AllowedFolders
from dmlsplit.printable import printable
from dmlsplit.target import Target

if TYPE_CHECKING:
    import onnx

    from dmlsplit.formats.onnx.mending.mending import Mending
    from dmlsplit.formats.onnx.mending.words import Change


class Written(NamedTuple):
    """A model as a target takes it: its bytes, and what was changed."""

    model: bytes
    changes: tuple[Change, ...]


def legalize_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: Target,
    *,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> Written:
    """The model with what the target does not take mended; the same bytes where there is nothing to mend.

    Raises NotLegalizedError where something cannot be mended, which says what and why; InputError for what is no model;
    OSError.
    """
    with mended_model(source, target, allow_paths) as found:
        if found.refusals:
            raise NotLegalizedError([str(refusal) for refusal in found.refusals], target.name)
        return Written(b"".join(map(bytes, found.copied())), tuple(found.changes))


@contextmanager
def mended_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: Target,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> Iterator[Mending]:
    """The mending of a model; its bytes can be had within the block, in which a file stays open."""
    try:
        import onnx
    except ImportError:
        raise InputError("ONNX models need the package onnx: pip install 'dmlsplit[onnx]'") from None
    from dmlsplit.formats.onnx.loading import note_external_data
    from dmlsplit.formats.onnx.mending.mending import mended
    from dmlsplit.formats.onnx.mending.source import SourceModel, mapped
    from dmlsplit.formats.onnx.tensors import external_reader, no_external_data

    if isinstance(source, onnx.ModelProto):
        source = source.SerializeToString()
    if isinstance(source, bytes):
        yield mended(SourceModel(source), target, no_external_data)
        return
    folder = os.path.dirname(os.path.abspath(source))
    with ExitStack() as opened:
        try:
            read = SourceModel(opened.enter_context(mapped(source)))
            note_external_data(read.model, source)
            found = mended(read, target, external_reader(AllowedFolders(folder, allow_paths)))
        except InputError as error:
            raise InputError(f"{printable(os.fspath(source), None)}: {error}") from None
        yield found
