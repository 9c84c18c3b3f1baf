"""Rewrites ONNX models: the new model is one that a level, a release or a runtime accepts, and computes the same bit
for bit.

    written = legalize_model("model.onnx", find_target(onnxruntime="1.24.4"))
    written.model, written.changes

`fields`, `source` and `assembling` know the file: what is not touched stays byte for byte. `sites`, `views` and
`judged` know the nodes and the target's answers about them; `rewritings` is the table of rewritings of a node, `forms`
and `reshaping` carry them out. `graph_cures` chooses cures for wrong graphs, and `cures` makes the changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dmlsplit.formats.files import AllowedFolders, note_references
from dmlsplit.system.errors import InputError, NotLegalizedError
from dmlsplit.system.garbage import rarely_collected
from dmlsplit.system.printable import printable
from dmlsplit.targets.target import LevelLike, ReleaseLike, RuntimeLike, Target, find_target

if TYPE_CHECKING:
    import onnx

    from dmlsplit.mending.mending import Mending
    from dmlsplit.mending.words import Change


class Written(NamedTuple):
    """A model that a target accepts: its bytes, and the changes that were made."""

    model: bytes
    changes: tuple[Change, ...]


def legalize(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    *,
    feature_level: LevelLike = None,
    directml: ReleaseLike = None,
    onnxruntime: RuntimeLike = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> Written:
    """Returns the bytes of a model that a feature level, a release or a version of ONNX Runtime accepts, and the
    changes that were made.

    The new model computes the same, bit for bit, and differs only around the nodes that needed it; if none did, the
    bytes are those of `source`. External data stays where it is. Raises NotLegalizedError if something cannot be
    legalized, InputError if the source is not a model, ValueError for an unknown target, OSError if a file cannot be
    read.
    """
    return legalize_model(source, find_target(feature_level, directml, onnxruntime), allow_paths=allow_paths)


def legalize_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: Target,
    *,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> Written:
    """Returns the bytes of a model that the target accepts, and the changes; the bytes of `source` if nothing needs a
    change.

    Raises NotLegalizedError, which says what cannot be legalized and why; InputError if the source is not a model;
    OSError if a file cannot be read.
    """
    from dmlsplit.formats.arguments import check_source

    check_source(source)
    with rarely_collected(), mended_model(source, target, allow_paths) as found:
        if found.refusals:
            raise NotLegalizedError([str(refusal) for refusal in found.refusals], target.name)
        return Written(b"".join(map(bytes, found.copied())), tuple(found.changes))


@contextmanager
def mended_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    target: Target,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    sizes: Mapping[str, int] | None = None,
) -> Iterator[Mending]:
    """Context manager that yields the Mending of a model: changes, refusals and the new bytes, which can be read only
    inside the block, because the source file is open only there. `sizes` of symbolic dimensions are written into the
    model. Raises InputError if the source is not a model, and for a symbol that it does not have; OSError if it cannot
    be read."""
    try:
        import onnx
    except ModuleNotFoundError:
        raise InputError("ONNX models need the package onnx: pip install 'dmlsplit[onnx]'") from None
    from dmlsplit.formats.onnx.tensors import external_reader, no_external_data
    from dmlsplit.mending.mending import mended
    from dmlsplit.mending.source import SourceModel, mapped

    if isinstance(source, onnx.ModelProto):
        source = source.SerializeToString()
    if isinstance(source, bytes):
        yield mended(SourceModel(source), target, no_external_data, sizes)
        return
    folder = os.path.dirname(os.path.abspath(source))
    with ExitStack() as opened:
        try:
            read = SourceModel(opened.enter_context(mapped(source)))
            note_references(read.locations, source)
            folders = AllowedFolders(folder, allow_paths)
            found = mended(read, target, external_reader(folders), sizes)
            found.file, found.folders = os.fspath(source), folders
        except InputError as error:
            raise InputError(f"{printable(os.fspath(source), None)}: {error}") from None
        yield found
