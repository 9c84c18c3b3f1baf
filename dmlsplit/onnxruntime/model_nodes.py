"""The Split and Concat nodes of ONNX models: Split 1, 2, 11, 13 and 18, Concat 1, 4, 11 and 13, in graphs, graphs
inside nodes, and local functions. Each node refers to the sessions of its model, which give ONNX Runtime's answers.

Shapes come from onnx's shape inference, which runs in a separate process because hostile models crash it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias

from dmlsplit.descriptors.dims import Dim
from dmlsplit.formats.arguments import inputs_of
from dmlsplit.formats.joins import JoinNode
from dmlsplit.formats.nodes import ModelNodes, SplitNode
from dmlsplit.formats.sessions import Inputs
from dmlsplit.system.errors import InputError
from dmlsplit.system.printable import printable

if TYPE_CHECKING:
    import onnx

    from dmlsplit.onnxruntime.onnx_session import OnnxSessions

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"


def read(
    source: Source,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    values: Mapping[str, Sequence[int]] | None = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> list[SplitNode | JoinNode]:
    """Returns the Split and Concat nodes of a model, in the order of the graph; those of a function once for each call.

    `source` is a path, the bytes of a file, or a ModelProto. `shapes` gives tensors their shapes (None for a size that
    stays unknown), `dims` gives symbolic dimensions their sizes, `values` gives tensors of the main graph that are
    lengths, or from which lengths are computed, their elements. External data is read only for such lengths, from the
    model's folder and `allow_paths`.

    Raises InputError if `source` is not a model or lacks a given tensor or dimension, OSError if a file cannot be read;
    faults of nodes are in their reports.
    """
    return list(read_model(source, shapes, dims, values=values, allow_paths=allow_paths).judged)


def read_model(
    source: Source,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, int] | None = None,
    *,
    values: Mapping[str, Sequence[int]] | None = None,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    require_known_names: bool = True,
    free_dimensions: Mapping[str, int] | None = None,
) -> ModelNodes:
    """Returns the nodes that `read` returns, and the nodes that are listed but not judged: SplitToSequence,
    ConcatFromSequence, and nodes named Split or Concat of other domains. Arguments and errors are those of `read`.

    If `require_known_names`, a tensor or symbol that the model lacks raises InputError; otherwise it is ignored.
    `free_dimensions` are sizes of symbolic dimensions that are set at session creation.
    """
    inputs = inputs_of(shapes, dims, values, free_dimensions)
    return read_sessions(source, inputs, allow_paths=allow_paths, require_known_names=require_known_names)[1]


def read_sessions(
    source: Source,
    inputs: Inputs,
    *,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
    require_known_names: bool = True,
) -> tuple[OnnxSessions, ModelNodes]:
    """Returns the sessions of a model, and the nodes that `read_model` returns. Raises as `read` does."""
    try:
        import onnx  # noqa: F401
        from google.protobuf.message import DecodeError, EncodeError
    except ModuleNotFoundError:
        raise InputError("ONNX models need the package onnx: pip install 'dmlsplit[onnx]'") from None
    from dmlsplit.formats.limits import Budget
    from dmlsplit.formats.onnx import loading
    from dmlsplit.models import functions, given
    from dmlsplit.models.inference import Inference
    from dmlsplit.models.reading import Reader
    from dmlsplit.onnxruntime.onnx_session import OnnxSessions, in_session

    model, read_external = loading.of_source(source, allow_paths)
    try:
        asked = model = loading.without_weights(model)
        functions.check_references(model)
        shapes, dims = inputs.shapes, _dims(inputs)
        if shapes or dims:
            model = deepcopy(asked)
        given.fill_in(model, shapes, dims, require_known_names)
        constants = given.constants(model, inputs.values)
        budget = Budget(model.ByteSize())
        inference = Inference()
        sessions = OnnxSessions(
            asked, read_external, inputs, require_known_names=require_known_names, inference=inference
        )
        reader = Reader(model, read_external, frozenset(shapes), bool(shapes or dims), budget, inference)
        items = tuple(in_session(sessions, list(reader.items(model, constants))))
        return sessions, ModelNodes(items, reader.node_count, sessions)
    except (RecursionError, DecodeError, EncodeError):  # protobuf has its own limit: 100 nested messages
        raise InputError("its graphs are nested too deeply") from None


def _dims(inputs: Inputs) -> dict[str, int]:
    """Maps the names of symbolic dimensions to their sizes, those of `inputs.dims` and `inputs.free_dimensions`
    together. Raises InputError if the two give one name different sizes."""
    for name, size in inputs.free_dimensions.items():
        if inputs.dims.get(name, size) != size:
            raise InputError(f"dimension '{printable(name)}' is both {inputs.dims[name]} and {size}")
    return {**inputs.dims, **inputs.free_dimensions}
