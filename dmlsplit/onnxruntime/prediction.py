"""Predicts how ONNX Runtime with its DirectML execution provider runs the Splits and Concats of a model.

    for node in on_onnxruntime("model.onnx", "1.24.4", run_shapes={"images": (1, 3, 640, 640)}):
        print(node.path, node.answer.outcome, node.answer.at, node.answer.compile)

The model is followed as ONNX Runtime follows it: functions are inlined, what is constant is folded, each graph is cut
into what is fused and what is not. Sizes that the file leaves open stay open until the first Run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from dmlsplit.descriptors.dims import Dim
from dmlsplit.formats.arguments import inputs_of
from dmlsplit.formats.onnx import loading
from dmlsplit.models.functions import check_references
from dmlsplit.onnxruntime.reports import answer_json
from dmlsplit.targets.runtime_versions import Runtime, find_runtime
from dmlsplit.targets.session_options import DEFAULTS, SessionOptions, check_options

if TYPE_CHECKING:
    from dmlsplit.onnxruntime.answers import NodeOnRuntime
    from dmlsplit.onnxruntime.onnx_session import OnnxSessions
    from dmlsplit.verdicts.model_placements import SessionAnswer

__all__ = ["answer_json", "on_onnxruntime", "session"]


def on_onnxruntime(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    version: str | Runtime,
    *,
    run_shapes: Mapping[str, Sequence[Dim]] | None = None,
    run_values: Mapping[str, Sequence[int]] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: SessionOptions = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> list[NodeOnRuntime]:
    """Returns the answers of one version about every Split and Concat of a model, in order; nodes of a function are
    answered for each call.

    `run_shapes` and `run_values` describe the model's inputs at the first Run: shapes, and the elements of inputs that
    determine lengths. `free_dimensions` are ONNX Runtime's overrides of symbolic dimensions at session creation.

    Raises InputError if the source is not a model, or does not have these tensors or dimensions; ValueError for an
    unknown version; OSError if a file cannot be read.
    """
    runtime = find_runtime(version)
    inputs = inputs_of(run_shapes, None, run_values, free_dimensions, "run_")
    check_options(options)
    return list(_sessions(source, allow_paths).of(runtime, options, inputs).nodes)


def session(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    version: str | Runtime,
    *,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    dims: Mapping[str, int] | None = None,
    free_dimensions: Mapping[str, int] | None = None,
    options: SessionOptions = DEFAULTS,
    allow_paths: Iterable[str | os.PathLike[str]] = (),
) -> SessionAnswer:
    """Returns the session of one version with a model: whether it is created, where every node runs, and the
    consequences.

    `shapes` of inputs and `dims`, sizes of symbols, are those of the first Run; `free_dimensions` are overrides of
    symbols at session creation.

    Raises InputError if the source is not a model, or does not have these inputs or dimensions; ValueError for an
    unknown version; OSError if a file cannot be read.
    """
    runtime = find_runtime(version)
    inputs = inputs_of(shapes, dims, free_dimensions=free_dimensions)
    check_options(options)
    return _sessions(source, allow_paths).of(runtime, options, inputs).placement


def _sessions(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, allow_paths: Iterable[str | os.PathLike[str]]
) -> OnnxSessions:
    from dmlsplit.onnxruntime.onnx_session import OnnxSessions  # it asks fusion, which is made of what is here

    proto, read_external = loading.of_source(source, allow_paths)
    read = loading.without_weights(proto)
    check_references(read)
    return OnnxSessions(read, read_external)
